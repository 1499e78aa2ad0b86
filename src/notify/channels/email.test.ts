import { afterEach, expect, test } from "vitest";
import type { SMTPServerOptions } from "smtp-server";
import { makeCertificate } from "../certificate.fixture.ts";
import { closedMessageOf, messageOf, NO_CHANNELS, someAlert, startMailPeer, type MailPeer } from "../peers.fixture.ts";
import { openChannels } from "../open-channels.ts";

const { key, certificate } = makeCertificate();
const peers: MailPeer[] = [];
afterEach(async () => {
  for (const peer of peers.splice(0)) await peer.close();
});

const LOGIN = { user: "tocsin", password: "the password" };
const STRICT: SMTPServerOptions = {
  key,
  cert: certificate,
  onAuth: ({ username, password }, session, done) => {
    const isRight = username === LOGIN.user && password === LOGIN.password && session.secure;
    done(isRight ? null : new Error("wrong name or password"), isRight ? { user: username } : undefined);
  },
};

const startPeer = async (options: SMTPServerOptions) => {
  const peer = await startMailPeer(options);
  peers.push(peer);
  return peer;
};

const settingsOf = (peer: MailPeer, more: Partial<typeof NO_CHANNELS> = {}): typeof NO_CHANNELS => ({
  ...NO_CHANNELS,
  emailHost: "127.0.0.1",
  emailPort: peer.port,
  emailUser: LOGIN.user,
  emailPassword: LOGIN.password,
  emailFrom: "tocsin@site.example",
  emailTo: ["anna@example.com", "ben@example.org"],
  ...more,
});

const send = (
  settings: typeof NO_CHANNELS,
  message = messageOf([someAlert()]),
  overrides = { certificates: certificate },
) => openChannels(settings, overrides).get("email")!.send(message, new AbortController().signal);

/** Decodes quoted-printable text. */
const readable = (text: string) =>
  text
    .replace(/=\r\n/g, "")
    .replace(/((?:=[0-9A-F]{2})+)/g, (codes) => Buffer.from(codes.replaceAll("=", ""), "hex").toString());

/** Decodes the encoded words (RFC 2047) of a header. */
const decodedWords = (header: string) =>
  header
    .replace(/\?=\s+=\?/g, "?==?")
    .replace(/=\?utf-8\?([bq])\?(.*?)\?=/gi, (_, way: string, words: string) =>
      way.toLowerCase() === "b" ? Buffer.from(words, "base64").toString() : readable(words.replaceAll("_", " ")),
    );

test("an authenticated STARTTLS session sends a mail in text and HTML to all recipients", async () => {
  const peer = await startPeer(STRICT);
  const alert = someAlert();
  expect(await send(settingsOf(peer), messageOf([alert]))).toEqual({ kind: "sent" });
  const [mail] = peer.mails;
  expect(mail).toMatchObject({
    from: "tocsin@site.example",
    to: ["anna@example.com", "ben@example.org"],
    secure: true,
  });
  const text = readable(mail!.text);
  expect(text).toContain("Subject: [high] New alert: Failed logins from 192.0.2.17");
  expect(text).toContain("Message-ID: <dlv_1@site.example>");
  expect(text).toContain("Auto-Submitted: auto-generated");
  expect(text).toContain("Content-Type: text/plain");
  expect(text).toContain("Content-Type: text/html");
  expect(text).toContain("Rule: site.failed_logins");
  expect(text).toContain(`<a href="https://tocsin.example/alerts?alert=${alert.id}">`);
  expect(text).not.toContain("X-Tocsin-Repeat");
});

test("a resolved alert shows its resolution, author and comment", async () => {
  const peer = await startPeer(STRICT);
  const closing = { comment: "The <b>scanner</b>\nagain", actionsTaken: ["blocked it"] };
  expect(await send(settingsOf(peer), closedMessageOf(someAlert(), closing))).toEqual({ kind: "sent" });
  const text = readable(peer.mails[0]!.text);
  expect(text).toContain("Subject: [high] Resolved (false positive, by ann): Failed logins");
  expect(text).toMatch(/Status: resolved\r\nResolution: false positive\r\nResolved by: ann\r\n/);
  expect(text).toMatch(/Comment:\r\nThe <b>scanner<\/b>\r\nagain\r\n\r\nActions taken:\r\nblocked it\r\n/);
  expect(text).toContain("<strong>Comment</strong><br>The &lt;b&gt;scanner&lt;/b&gt;<br>again</p>");
});

test("text from an attacker is escaped everywhere in the HTML", async () => {
  const peer = await startPeer(STRICT);
  const evil = (place: string) => `<img src="${place}" onerror='x()'>&amp;`;
  const safe = (place: string) => `&lt;img src=&quot;${place}&quot; onerror=&#39;x()&#39;&gt;&amp;amp;`;
  const alert = someAlert({
    title: evil("title"),
    description: evil("description"),
    group: { field: evil("field"), value: evil("value") },
    rule: { id: "r", name: evil("rule"), description: "", tags: [] },
  });
  const closing = { by: evil("by"), comment: evil("comment"), actionsTaken: [evil("action")] };
  const one = closedMessageOf(alert, closing);
  expect(await send(settingsOf(peer), one)).toEqual({ kind: "sent" });
  expect(await send(settingsOf(peer), { ...one, items: [...one.items, ...one.items] })).toEqual({ kind: "sent" });
  const pages = peer.mails.map(({ text }) => readable(text).split("Content-Type: text/html")[1]!);
  for (const page of pages) {
    expect(page).toContain("<!doctype html>");
    expect(page).not.toContain("<img");
    expect(page).toContain(safe("title"));
    expect(page).toContain(safe("rule"));
  }
  expect(pages[0]).toContain(`<th align="left">${safe("field")}</th><td>${safe("value")}</td>`);
  expect(pages[0]).toContain(`<td>${safe("rule")}</td>`);
  expect(pages[0]).toContain(`<td>${safe("by")}</td>`);
  for (const place of ["description", "comment", "action"]) expect(pages[0]).toContain(safe(place));
});

test("a title with line breaks becomes one subject, and adds no header or recipient", async () => {
  const peer = await startPeer(STRICT);
  const title = "Failed\r\nBcc: eve@evil.example\nX-Evil: 1\u0007\r\n\r\n<b>A body</b>\u2028\tSubject: another";
  expect(await send(settingsOf(peer), messageOf([someAlert({ title })]))).toEqual({ kind: "sent" });
  expect(await send(settingsOf(peer), messageOf([someAlert({ title: title.repeat(30) })]))).toEqual({ kind: "sent" });
  const headers = peer.mails.map(({ text }) =>
    text
      .split("\r\n\r\n", 1)[0]!
      .replace(/\r\n[ \t]/g, " ")
      .split("\r\n"),
  );
  const subject = (lines: string[]) => lines.filter((line) => /^subject:/i.test(line));
  expect(subject(headers[0]!)).toEqual([
    "Subject: [high] New alert: Failed Bcc: eve@evil.example X-Evil: 1 <b>A body</b> Subject: another",
  ]);
  const long = decodedWords(subject(headers[1]!).join("\n"));
  expect(long).toMatch(/^Subject: \[high\] New alert: Failed Bcc: .*…$/);
  expect(long.length).toBe("Subject: ".length + 150);
  for (const lines of headers) {
    expect(lines.filter((line) => /^(?:bcc|x-evil)/i.test(line))).toEqual([]);
    expect(lines.filter((line) => !/^[a-z-]+: /i.test(line))).toEqual([]);
  }
  expect(peer.mails.map(({ to }) => to)).toEqual([settingsOf(peer).emailTo, settingsOf(peer).emailTo]);
});

test("a session uses implicit TLS, or no encryption if so configured", async () => {
  const secure = await startPeer({ ...STRICT, secure: true });
  expect(await send(settingsOf(secure, { emailSecurity: "tls" }))).toEqual({ kind: "sent" });
  const open = await startPeer({ authOptional: true, disabledCommands: ["STARTTLS", "AUTH"] });
  const settings = settingsOf(open, { emailSecurity: "none", emailUser: null, emailPassword: null });
  expect(await send(settings)).toEqual({ kind: "sent" });
  expect(open.mails[0]!.secure).toBe(false);
});

test("a server without STARTTLS gets neither the password nor the mail", async () => {
  let logins = 0;
  const peer = await startPeer({
    hideSTARTTLS: true,
    disabledCommands: ["STARTTLS"],
    allowInsecureAuth: true,
    onAuth: ({ username }, _, done) => {
      logins++;
      done(null, { user: username });
    },
  });
  expect(await send(settingsOf(peer))).toMatchObject({ kind: "refused" });
  expect([logins, peer.mails]).toEqual([0, []]);
});

test("an untrusted certificate is refused", async () => {
  const peer = await startPeer(STRICT);
  const { certificate: another } = makeCertificate();
  const outcome = await send(settingsOf(peer), messageOf([someAlert()]), { certificates: another });
  expect(outcome).toMatchObject({ kind: "failed", mayHaveArrived: false });
  // The remedy of docs/notifications.md, and no other.
  expect(outcome).toMatchObject({ error: expect.stringContaining("NODE_EXTRA_CA_CERTS=") });
  expect(outcome).toMatchObject({ error: expect.not.stringContaining("--use-system-ca") });
  expect(peer.mails).toEqual([]);
});

test("a wrong password is a permanent failure and is not revealed", async () => {
  const peer = await startPeer(STRICT);
  const outcome = await send(settingsOf(peer, { emailPassword: "guessed-password" }));
  expect(outcome).toMatchObject({ kind: "refused", error: expect.stringContaining("535") });
  expect(JSON.stringify(outcome)).not.toContain("guessed-password");
});

test("a permanent refusal ends the attempts, a temporary one is retried, and a partial one is reported", async () => {
  const refusing = (code: number, only?: string) => ({
    ...STRICT,
    onRcptTo: ({ address }: { address: string }, _: unknown, done: (error?: Error) => void) =>
      only && address !== only ? done() : done(Object.assign(new Error("not now"), { responseCode: code })),
  });
  expect(await send(settingsOf(await startPeer(refusing(550))))).toMatchObject({ kind: "refused" });
  expect(await send(settingsOf(await startPeer(refusing(451))))).toMatchObject({
    kind: "failed",
    mayHaveArrived: false,
  });
  const some = await startPeer(refusing(550, "ben@example.org"));
  expect(await send(settingsOf(some))).toEqual({ kind: "sent", error: "refused for 1 of 2 addresses" });
  expect(some.mails[0]!.to).toEqual(["anna@example.com"]);
});

test("a temporary refusal of some recipients is retried for them alone, and nobody gets the mail twice", async () => {
  const replies = new Map([
    ["ben@example.org", 450],
    ["cleo@example.org", 550],
  ]);
  const peer = await startPeer({
    ...STRICT,
    onRcptTo: ({ address }, _, done) => {
      const responseCode = replies.get(address);
      done(responseCode ? Object.assign(new Error("not now"), { responseCode }) : undefined);
    },
  });
  const settings = settingsOf(peer, { emailTo: ["anna@example.com", "ben@example.org", "cleo@example.org"] });
  const first = {
    kind: "partly",
    error: expect.stringMatching(/^refused for 1 of 3 addresses, refused for now for 1 of 3 addresses: .*not now/),
    untold: ["ben@example.org"],
  };
  expect(await send(settings)).toEqual(first);
  const left = messageOf([someAlert()], { untold: ["ben@example.org"] });
  expect(await send(settings, left)).toEqual({
    ...first,
    error: expect.stringMatching(/^refused for now for 1 of 3 addresses: .*not now/),
  });
  replies.delete("ben@example.org");
  expect(await send(settings, left)).toEqual({ kind: "sent" });
  expect(peer.mails.map(({ to }) => to)).toEqual([["anna@example.com"], ["ben@example.org"]]);
  expect(readable(peer.mails[1]!.text)).toContain("To: anna@example.com, ben@example.org, cleo@example.org");
  replies.set("ben@example.org", 550);
  expect(await send(settings, left)).toEqual({ kind: "sent", error: "refused for 1 of 3 addresses" });
  expect(await send({ ...settings, emailTo: ["anna@example.com"] }, left)).toMatchObject({ kind: "sent" });
  expect(peer.mails).toHaveLength(2);
});

test("text from events adds no header, recipient or markup", async () => {
  const peer = await startPeer(STRICT);
  const title = "x\r\nBcc: evil@example.com\r\n\r\n<script>alert(1)</script>";
  const alert = someAlert({
    title,
    description: '<img src=x onerror="1">',
    group: { field: "raw.a", value: "</td>\r\n.\r\n" },
  });
  for (const alerts of [[alert], [alert, alert]])
    expect(await send(settingsOf(peer), messageOf(alerts))).toEqual({ kind: "sent" });
  for (const { text, to } of peer.mails) {
    expect(to).toEqual(["anna@example.com", "ben@example.org"]);
    expect(text.slice(0, text.indexOf("\r\n\r\n"))).not.toMatch(/^bcc:/im);
    const html = readable(text.slice(text.indexOf("text/html")));
    expect(html).not.toMatch(/<script|<img|<\/td>\r?\n\./);
    expect(html).toContain("&lt;script&gt;");
  }
});

test("a mail that may have arrived before says so and keeps its Message-ID", async () => {
  const peer = await startPeer(STRICT);
  await send(settingsOf(peer), messageOf([someAlert()], { isRepeat: true }));
  const text = readable(peer.mails[0]!.text);
  expect(text).toContain("X-Tocsin-Repeat: true");
  expect(text).toContain("may have been sent before");
  expect(text).toContain("Message-ID: <dlv_1@site.example>");
});

test("many alerts become one mail with counts, links and the number of the rest", async () => {
  const peer = await startPeer(STRICT);
  await send(settingsOf(peer), messageOf(Array.from({ length: 60 }, () => someAlert())));
  const text = readable(peer.mails[0]!.text);
  expect(text).toContain("Subject: 60 alerts: 60 high");
  expect(text).toContain("60 x site.failed_logins");
  expect(text).toContain("And 10 more.");
});

test("two notifications of one alert count as one alert in the subject and the counts", async () => {
  const peer = await startPeer(STRICT);
  const alert = someAlert();
  const message = messageOf([alert, alert]);
  await send(settingsOf(peer), {
    ...message,
    items: [message.items[0]!, { ...message.items[1]!, reason: "reopened" }],
  });
  const text = readable(peer.mails[0]!.text);
  expect(text).toContain("Subject: [high] New alert, Reopened: Failed logins");
  expect(text).toContain("\n1 alert: 1 high");
  expect(text).toContain("<h2>1 alert: 1 high</h2>");
  expect(text).toContain("1 x site.failed_logins");
});

test("a server that echoes the password, plain or encoded, does not reveal it", async () => {
  const sent = Buffer.from(`\0${LOGIN.user}\0${LOGIN.password}`).toString("base64");
  const peer = await startPeer({
    ...STRICT,
    onAuth: ({ username, password }, _, done) => done(new Error(`no ${password} for ${username}, not ${sent} either`)),
  });
  const outcome = await send(settingsOf(peer));
  expect(outcome).toMatchObject({ kind: "refused" });
  expect(outcome.kind === "refused" && outcome.error).toContain("no (hidden) for tocsin, not (hidden) either");
});
