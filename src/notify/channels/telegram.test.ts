import * as fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Message } from "../message.ts";
import { closedMessageOf, messageOf, NO_CHANNELS, someAlert, startHttpPeer, type HttpPeer } from "../peers.fixture.ts";
import { openChannels } from "../open-channels.ts";

const TOKEN = "12345678:abcdefghijklmnopqrstuvwxyz_0123456";

/** The text that Telegram shows; undefined if it would refuse the HTML. Throws if text of others is outside code. */
function parsed(text: string): string | undefined {
  const open: string[] = [];
  let shown = "";
  for (const [part, end, name, rest = ""] of text.matchAll(/<(\/?)([a-z]+)( [^>]*)?>|[^<]+/g)) {
    if (name === undefined) {
      if (/&(?!amp;|lt;|gt;|quot;|#\d+;)/.test(part) || part.includes(">")) return undefined;
      const words = part
        .replace(/&lt;/g, "<")
        .replace(/&gt;/g, ">")
        .replace(/&quot;/g, '"')
        .replace(/&#39;/g, "'");
      // Entities that Telegram finds by itself.
      if (!open.some((tag) => tag === "code" || tag === "pre") && /@\w|\w\.\w|:\/\/|(?:^|\s)[/#]\w/.test(words))
        throw new Error(`a link or a mention: ${words}`);
      shown += words.replace(/&amp;/g, "&");
    } else if (end) {
      if (open.pop() !== name) return undefined;
    } else {
      if (!["b", "code", "pre", "a"].includes(name)) return undefined;
      if (name === "a" ? !/^ href="https:\/\/tocsin\.example\/[^"<>]*"$/.test(rest) : rest !== "") return undefined;
      open.push(name);
    }
  }
  return open.length === 0 ? shown : undefined;
}

// Checks what the Bot API checks: https://core.telegram.org/bots/api#sendmessage
let peer: HttpPeer;
let busySeconds = 0;
beforeAll(async () => {
  peer = await startHttpPeer((_, { method, path, body }) => {
    const refuse = (error_code: number, description: string, parameters?: object) => ({
      status: error_code,
      text: JSON.stringify({ ok: false, error_code, description, parameters }),
    });
    if (method !== "POST" || !path.endsWith("/sendMessage")) return refuse(404, "Not Found");
    if (path !== `/bot${TOKEN}/sendMessage`) return refuse(401, "Unauthorized");
    if (busySeconds > 0)
      return refuse(429, `Too Many Requests: retry after ${busySeconds}`, { retry_after: busySeconds });
    if (body.chat_id !== "-1001234567890") return refuse(400, "Bad Request: chat not found");
    if (body.message_thread_id !== undefined && body.message_thread_id !== 7)
      return refuse(400, "Bad Request: message thread not found");
    if (body.parse_mode !== "HTML" || body.link_preview_options.is_disabled !== true) return refuse(400, "Bad Request");
    const shown = parsed(body.text);
    if (shown === undefined) return refuse(400, "Bad Request: can't parse entities");
    if (shown.trim() === "") return refuse(400, "Bad Request: message text is empty");
    if (shown.length > 4096) return refuse(400, "Bad Request: message is too long");
    return { status: 200, text: JSON.stringify({ ok: true, result: { message_id: 1 } }) };
  });
});
afterAll(() => peer.close());
beforeEach(() => {
  busySeconds = 0;
  peer.received.splice(0);
});

const send = (message: Message, more: Partial<typeof NO_CHANNELS> = {}) =>
  openChannels({
    ...NO_CHANNELS,
    telegramUrl: peer.origin,
    telegramToken: TOKEN,
    telegramChat: "-1001234567890",
    ...more,
  })
    .get("telegram")!
    .send(message, new AbortController().signal);

test("a message shows the facts of an alert and a link", async () => {
  const alert = someAlert();
  expect(await send(messageOf([alert]), { telegramThread: "7" })).toEqual({ kind: "sent" });
  const { body } = peer.received[0]!;
  expect(body).toMatchObject({ message_thread_id: 7, disable_notification: false });
  expect(body.text).toContain("<b>[high] New alert</b>\n<code>Failed logins from 192.0.2.17</code>");
  expect(body.text).toContain("Rule: site.failed_logins");
  expect(body.text).toContain(`<a href="https://tocsin.example/alerts?alert=${alert.id}">Open the alert</a>`);
});

test("a resolved alert shows its resolution and is silent, and a digest counts", async () => {
  await send(closedMessageOf(someAlert(), { comment: "a drill" }));
  const alerts = Array.from({ length: 100 }, () => someAlert());
  expect(await send(messageOf(alerts, { isRepeat: true }))).toEqual({ kind: "sent" });
  const [closed, digest] = peer.received.map(({ body }) => body);
  expect(closed.disable_notification).toBe(true);
  expect(closed.text).toContain("Resolved by: ann\n\nComment:\na drill");
  for (const part of ["<b>100 alerts: 100 high</b>", "100 × <code>site.failed_logins", "And 90 more.", "sent before"])
    expect(digest.text).toContain(part);
});

test("a flood is retried after the delay in the answer, and a wrong chat or token is refused for good", async () => {
  busySeconds = 31;
  expect(await send(messageOf([someAlert()]))).toMatchObject({ kind: "failed", retryAfterMs: 31_000 });
  busySeconds = 0;
  const refusals = [
    [{ telegramChat: "@elsewhere" }, /^answered 400: .*chat not found/],
    [{ telegramThread: "8" }, /thread not found/],
    [{ telegramToken: "87654321:abcdefghijklmnopqrstuvwxyz_0123456" }, /^answered 401: .*Unauthorized/],
  ] as const;
  for (const [more, error] of refusals)
    expect(await send(messageOf([someAlert()]), more)).toMatchObject({
      kind: "refused",
      error: expect.stringMatching(error),
    });
});

test("text from events creates no links, mentions or markup and stays within the limits", async () => {
  const nasty = fc.oneof(
    fc.string({ unit: "binary", maxLength: 200 }),
    fc.constantFrom(
      '@everyone </code><b>x</b><a href="https://evil.example">y</a> /start #tag evil.example',
      "&lt;b&gt; &amp;",
      "&<>\"'".repeat(2000),
      "😀".repeat(3000),
      "",
    ),
  );
  await fc.assert(
    fc.asyncProperty(nasty, nasty, fc.integer({ min: 1, max: 12 }), async (title, description, count) => {
      const group = { field: title || "x", value: description };
      const rule = { id: "r", name: title, description, tags: [] };
      const alerts = Array.from({ length: count }, () => someAlert({ title, description, group, rule }));
      const closed = closedMessageOf(alerts[0]!, { by: title, comment: description, actionsTaken: [title] });
      expect(await send(messageOf(alerts))).toEqual({ kind: "sent" });
      expect(await send(closed)).toEqual({ kind: "sent" });
    }),
    { numRuns: 20 },
  );
});
