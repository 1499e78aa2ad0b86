import { getCACertificates } from "node:tls";
import { createTransport } from "nodemailer";
import { formatTime } from "../../lib/time.ts";
import { withOurAdvice, type ChannelSettings, type OpenChannel, type Outcome, type Surroundings } from "../channel.ts";
import { lines, oneLine } from "../../lib/text.ts";
import { secretsOfLogin, withoutSecrets } from "../../lib/hiding.ts";
import {
  closingFacts,
  closingTexts,
  countsOf,
  digestOf,
  headlineOf,
  lineOf,
  REASON_WORDS,
  REPEAT_WORDS,
} from "../message.ts";
import type { Message, MessageItem } from "../message.ts";

// Messages as mails, in plain text and in HTML, handed to the operator's mail server.

const CONNECT_MS_MAX = 15_000;
const SOCKET_MS_MAX = 30_000;
const SUBJECT_CHARACTERS_MAX = 150;
const ALERTS_SHOWN_MAX = 50;
const TITLE_CHARACTERS_MAX = 300;
/** A title with what happened before it. */
const LINE_CHARACTERS_MAX = 400;
const DESCRIPTION_CHARACTERS_MAX = 4000;
const ERROR_CHARACTERS_MAX = 200;

export const openEmail: OpenChannel = (settings, surroundings) => {
  const { emailHost, emailFrom, emailTo } = settings;
  if (emailHost === null || emailFrom === null || emailTo.length === 0) return undefined;
  return { send: (message) => sendMail(message, settings, surroundings) };
};

async function sendMail(message: Message, settings: ChannelSettings, { certificates }: Surroundings): Promise<Outcome> {
  const { emailSecurity, emailUser, emailPassword, emailTo } = settings;
  const { untold } = message;
  const from = settings.emailFrom!;
  const recipients = untold ? emailTo.filter((address) => untold.includes(address)) : emailTo;
  if (recipients.length === 0)
    return { kind: "sent", error: "those who have not got it are not in notifications.email_to any more" };
  const secrets = secretsOfLogin(emailUser ?? "", emailPassword ?? "");
  // A connection for each mail: a message is rare, and a kept connection is often dead when it is needed.
  const transport = createTransport({
    host: settings.emailHost!,
    port: settings.emailPort,
    secure: emailSecurity === "tls",
    requireTLS: emailSecurity === "starttls",
    ignoreTLS: emailSecurity === "none",
    ...(emailUser !== null && emailPassword !== null && { auth: { user: emailUser, pass: emailPassword } }),
    ...(certificates !== undefined && { tls: { ca: [...getCACertificates("default"), certificates] } }),
    connectionTimeout: CONNECT_MS_MAX,
    greetingTimeout: CONNECT_MS_MAX,
    socketTimeout: SOCKET_MS_MAX,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  try {
    const { rejectedErrors = [] } = await transport.sendMail({
      from,
      to: [...emailTo],
      // Everybody sees who is told, also where only some are left to be.
      envelope: { from, to: [...recipients] },
      subject: headlineOf(message, SUBJECT_CHARACTERS_MAX),
      text: textOf(message),
      html: htmlOf(message),
      date: new Date(message.at),
      // The same for every attempt: mail programs show a mail that they know already once.
      messageId: `<${message.deliveryId}@${from.slice(from.lastIndexOf("@") + 1)}>`,
      headers: {
        "Auto-Submitted": "auto-generated",
        "X-Auto-Response-Suppress": "All",
        "X-Tocsin-Delivery": message.deliveryId,
        ...(message.isRepeat && { "X-Tocsin-Repeat": "true" }),
      },
    });
    return outcomeForSome(rejectedErrors as SmtpError[], emailTo.length, secrets);
  } catch (error) {
    const { rejectedErrors } = error as SmtpError;
    // Nobody of those who are left: still, others have it.
    if (untold && rejectedErrors) return outcomeForSome(rejectedErrors, emailTo.length, secrets);
    return outcomeOf(error as SmtpError, secrets);
  } finally {
    transport.close();
  }
}

interface SmtpError extends Error {
  readonly code?: string;
  readonly responseCode?: number;
  readonly command?: string;
  readonly recipient?: string;
  readonly rejectedErrors?: readonly SmtpError[];
}

/** What comes of a mail that somebody has got. */
function outcomeForSome(rejected: readonly SmtpError[], total: number, secrets: readonly string[]): Outcome {
  if (rejected.length === 0) return { kind: "sent" };
  const later = rejected.filter(({ responseCode = 0 }) => responseCode < 500);
  const forGood = rejected.length - later.length;
  const words = forGood === 0 ? "" : `refused for ${forGood} of ${total} addresses`;
  if (later.length === 0) return { kind: "sent", error: words };
  const before = words === "" ? "" : `${words}, `;
  const message = `${before}refused for now for ${later.length} of ${total} addresses: ${later[0]!.message}`;
  return { kind: "partly", error: shown(message, secrets), untold: later.map(({ recipient }) => recipient!) };
}

function shown(message: string, secrets: readonly string[]): string {
  return oneLine(withoutSecrets(withOurAdvice(message), secrets), ERROR_CHARACTERS_MAX);
}

function outcomeOf({ code, message, responseCode, command }: SmtpError, secrets: readonly string[]): Outcome {
  const error = shown(message, secrets);
  if (responseCode !== undefined && responseCode >= 500) return { kind: "refused", error };
  // Once the text of the mail is on its way, no answer is not a no.
  const mayHaveArrived = responseCode === undefined && command === "DATA" && code !== "EENVELOPE";
  return { kind: "failed", error, mayHaveArrived };
}

function facts(item: MessageItem): [string, string][] {
  const { alert } = item;
  return [
    ["Severity", alert.severity],
    ["Rule", alert.rule.name],
    ["Source", alert.source],
    ...(alert.group ? [[alert.group.field, alert.group.value] as [string, string]] : []),
    ["Events", String(alert.eventCount)],
    ["First event", formatTime(alert.firstEventAt)],
    ["Last event", formatTime(alert.lastEventAt)],
    ["Status", alert.status],
    ...closingFacts(item),
  ];
}

function textOf(message: Message): string {
  const { items, isRepeat } = message;
  const parts = items.length === 1 ? textOfOne(items[0]!) : textOfMany(items);
  return [...parts, ...(isRepeat ? ["", REPEAT_WORDS] : []), ""].join("\n");
}

function textOfOne(item: MessageItem): string[] {
  const { alert, reason, url } = item;
  const title = oneLine(alert.title, TITLE_CHARACTERS_MAX);
  return [
    `${REASON_WORDS[reason]}: ${title}`,
    "",
    lines(alert.description, DESCRIPTION_CHARACTERS_MAX),
    "",
    ...facts(item).map(([name, value]) => `${oneLine(name, 100)}: ${oneLine(value, TITLE_CHARACTERS_MAX)}`),
    ...closingTexts(item).flatMap(([name, words]) => ["", `${name}:`, lines(words, DESCRIPTION_CHARACTERS_MAX)]),
    "",
    url,
  ];
}

function textOfMany(items: readonly MessageItem[]): string[] {
  const { topRules, shown, omitted } = digestOf(items, ALERTS_SHOWN_MAX);
  return [
    countsOf(items),
    "",
    ...topRules.map(({ name, count }) => `${count} x ${oneLine(name, TITLE_CHARACTERS_MAX)}`),
    "",
    ...shown.flatMap((item) => [
      `[${item.alert.severity}] ${oneLine(lineOf(item), LINE_CHARACTERS_MAX)}`,
      `  ${item.url}`,
    ]),
    ...(omitted > 0 ? ["", `And ${omitted} more.`] : []),
  ];
}

function htmlOf(message: Message): string {
  const { items, isRepeat } = message;
  const body = items.length === 1 ? htmlOfOne(items[0]!) : htmlOfMany(items);
  const repeat = isRepeat ? `<p><em>${html(REPEAT_WORDS)}</em></p>` : "";
  return `<!doctype html><html><body style="font-family:sans-serif">${body}${repeat}</body></html>`;
}

function htmlOfOne(item: MessageItem): string {
  const { alert, reason, url } = item;
  const rows = facts(item).map(
    ([name, value]) =>
      `<tr><th align="left">${html(oneLine(name, 100))}</th><td>${html(oneLine(value, TITLE_CHARACTERS_MAX))}</td></tr>`,
  );
  const paragraph = (words: string) => html(lines(words, DESCRIPTION_CHARACTERS_MAX)).replaceAll("\n", "<br>");
  const description = paragraph(alert.description);
  const texts = closingTexts(item).map(([name, words]) => `<p><strong>${name}</strong><br>${paragraph(words)}</p>`);
  return (
    `<h2>${REASON_WORDS[reason]}: ${html(oneLine(alert.title, TITLE_CHARACTERS_MAX))}</h2><p>${description}</p>` +
    `<table cellpadding="4">${rows.join("")}</table>${texts.join("")}<p><a href="${html(url)}">Open the alert</a></p>`
  );
}

function htmlOfMany(items: readonly MessageItem[]): string {
  const { topRules, shown, omitted } = digestOf(items, ALERTS_SHOWN_MAX);
  const rules = topRules.map(
    ({ name, count }) => `<li>${count} &times; ${html(oneLine(name, TITLE_CHARACTERS_MAX))}</li>`,
  );
  const alerts = shown.map(
    (item) =>
      `<li>[${item.alert.severity}] <a href="${html(item.url)}">${html(oneLine(lineOf(item), LINE_CHARACTERS_MAX))}</a></li>`,
  );
  const more = omitted > 0 ? `<p>And ${omitted} more.</p>` : "";
  return `<h2>${countsOf(items)}</h2><ul>${rules.join("")}</ul><ul>${alerts.join("")}</ul>${more}`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function html(words: string): string {
  return words.replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}
