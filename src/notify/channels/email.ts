import { getCACertificates } from "node:tls";
import { secretsOfLogin, withoutSecrets } from "../../lib/redact.ts";
import { choice, credentialOrOff, integer, list, textOrOff } from "../../lib/setting-types.ts";
import { lines, oneLine } from "../../lib/text.ts";
import { defineChannel, type SendOutcome, type ChannelTransport } from "../channel.ts";
import { html } from "../escape.ts";
import {
  alertFacts,
  closingTexts,
  countsOf,
  digestOf,
  headlineOf,
  lineOf,
  REASON_WORDS,
  REPEAT_WORDS,
} from "../message.ts";
import type { Message, MessageItem } from "../message.ts";
import { plainLines } from "../message-text.ts";
import { withTlsAdvice } from "../tls-advice.ts";

// Messages as mails, in plain text and HTML, submitted to the operator's mail server.

const CONNECT_MS_MAX = 15_000;
const SOCKET_MS_MAX = 30_000;
const RECIPIENTS_MAX = 50;
const SUBJECT_CHARACTERS_MAX = 150;
const ALERTS_SHOWN_MAX = 50;
const TITLE_CHARACTERS_MAX = 300;
/** A title with the reason in front. */
const LINE_CHARACTERS_MAX = 400;
const DESCRIPTION_CHARACTERS_MAX = 4000;
const ERROR_CHARACTERS_MAX = 200;
/** Strict enough that only an address can get into a header. */
const EMAIL = /^[^\s@<>,;:"()[\]\\]{1,64}@[A-Za-z0-9.-]{1,255}$/;

export const email = defineChannel({
  delivers: "a mail in plain text and HTML",
  settings: {
    emailHost: textOrOff(
      "mail server that mails are submitted to",
      "a host name or an address",
      /^[A-Za-z0-9_.:%-]{1,255}$/,
    ),
    emailPort: integer("port of the mail server", 587, 1, 65_535),
    emailSecurity: choice("encryption of the connection to the mail server", "starttls", ["starttls", "tls", "none"]),
    emailUser: textOrOff("user name for the mail server", "a name"),
    emailPassword: credentialOrOff("password for the mail server"),
    emailFrom: textOrOff("sender address of mails", "an e-mail address", EMAIL),
    emailTo: list((item) => EMAIL.test(item), {
      about: "recipients of mails",
      items: "e-mail addresses",
      fallback: [],
      max: RECIPIENTS_MAX,
    }),
  },
  required: ["emailHost", "emailFrom", "emailTo"],
  needs: [
    { setting: "emailFrom", because: "emailHost", why: "a mail needs a sender" },
    { setting: "emailTo", because: "emailHost", why: "a mail needs a recipient" },
    { setting: "emailHost", because: "emailFrom", why: "no mail is sent without it" },
    { setting: "emailHost", because: "emailTo", why: "no mail is sent without it" },
    { setting: "emailPassword", because: "emailUser", why: "a login needs both" },
    { setting: "emailUser", because: "emailPassword", why: "a login needs both" },
  ],
  findConflicts: ({ emailPassword, emailSecurity }) =>
    emailPassword !== null && emailSecurity === "none"
      ? [
          {
            setting: "emailSecurity",
            message: "must be starttls or tls with a password: none would send it in clear text",
          },
        ]
      : [],
  open: (settings, transport) => ({ send: (message) => sendMail(message, settings, transport) }),
});

interface MailSettings {
  readonly emailHost: string;
  readonly emailPort: number;
  readonly emailSecurity: "starttls" | "tls" | "none";
  readonly emailUser: string | null;
  readonly emailPassword: string | null;
  readonly emailFrom: string;
  readonly emailTo: readonly string[];
}

async function sendMail(
  message: Message,
  settings: MailSettings,
  { certificates }: ChannelTransport,
): Promise<SendOutcome> {
  const { emailSecurity, emailUser, emailPassword, emailFrom: from, emailTo } = settings;
  const { untold } = message;
  const recipients = untold ? emailTo.filter((address) => untold.includes(address)) : emailTo;
  if (recipients.length === 0)
    return { kind: "sent", error: "the remaining recipients are no longer in notifications.email_to" };
  const secrets = secretsOfLogin(emailUser ?? "", emailPassword ?? "");
  // Imported late: commands that only read settings start faster without it.
  const { createTransport } = await import("nodemailer");
  // One connection per mail: messages are rare, and a kept connection is often dead by the next one.
  const transport = createTransport({
    host: settings.emailHost,
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
      // The To header names every recipient, even if only some of them remain.
      envelope: { from, to: [...recipients] },
      subject: headlineOf(message, SUBJECT_CHARACTERS_MAX),
      text: textOf(message),
      html: htmlOf(message),
      date: new Date(message.at),
      // The same for every attempt, so that mail programs show a repeated mail once.
      messageId: `<${message.deliveryId}@${from.slice(from.lastIndexOf("@") + 1)}>`,
      headers: {
        "Auto-Submitted": "auto-generated",
        "X-Auto-Response-Suppress": "All",
        "X-Tocsin-Delivery": message.deliveryId,
        ...(message.isRepeat && { "X-Tocsin-Repeat": "true" }),
      },
    });
    return partialOutcome(rejectedErrors as SmtpError[], emailTo.length, secrets);
  } catch (error) {
    const { rejectedErrors } = error as SmtpError;
    // All remaining recipients were refused, but others have the mail.
    if (untold && rejectedErrors) return partialOutcome(rejectedErrors, emailTo.length, secrets);
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

/** The outcome of a mail that at least one recipient has. */
function partialOutcome(rejected: readonly SmtpError[], total: number, secrets: readonly string[]): SendOutcome {
  if (rejected.length === 0) return { kind: "sent" };
  const later = rejected.filter(({ responseCode = 0 }) => responseCode < 500);
  const permanent = rejected.length - later.length;
  const words = permanent === 0 ? "" : `refused for ${permanent} of ${total} addresses`;
  if (later.length === 0) return { kind: "sent", error: words };
  const before = words === "" ? "" : `${words}, `;
  const message = `${before}refused for now for ${later.length} of ${total} addresses: ${later[0]!.message}`;
  return { kind: "partly", error: shown(message, secrets), untold: later.map(({ recipient }) => recipient!) };
}

function shown(message: string, secrets: readonly string[]): string {
  return oneLine(withoutSecrets(withTlsAdvice(message), secrets), ERROR_CHARACTERS_MAX);
}

function outcomeOf({ code, message, responseCode, command }: SmtpError, secrets: readonly string[]): SendOutcome {
  const error = shown(message, secrets);
  if (responseCode !== undefined && responseCode >= 500) return { kind: "refused", error };
  // After DATA, a missing reply does not mean that the server refused the mail.
  const mayHaveArrived = responseCode === undefined && command === "DATA" && code !== "EENVELOPE";
  return { kind: "failed", error, mayHaveArrived };
}

function textOf(message: Message): string {
  const { items } = message;
  const [first] = items;
  const title = oneLine(first!.alert.title, TITLE_CHARACTERS_MAX);
  const head = items.length === 1 ? `${REASON_WORDS[first!.reason]}: ${title}` : countsOf(items);
  const limits = { alertsMax: ALERTS_SHOWN_MAX, descriptionCharactersMax: DESCRIPTION_CHARACTERS_MAX };
  return [head, "", ...plainLines(message, limits), ""].join("\n");
}

function htmlOf(message: Message): string {
  const { items, isRepeat } = message;
  const body = items.length === 1 ? htmlOfOne(items[0]!) : htmlOfMany(items);
  const repeat = isRepeat ? `<p><em>${html(REPEAT_WORDS)}</em></p>` : "";
  return `<!doctype html><html><body style="font-family:sans-serif">${body}${repeat}</body></html>`;
}

function htmlOfOne(item: MessageItem): string {
  const { alert, reason, url } = item;
  const rows = alertFacts(item).map(
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
