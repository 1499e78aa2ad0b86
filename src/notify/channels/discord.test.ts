import * as fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Message } from "../message.ts";
import { closedMessageOf, messageOf, NO_CHANNELS, someAlert, startHttpPeer, type HttpPeer } from "../peers.fixture.ts";
import { openChannels } from "../open-channels.ts";

/** Markup besides our own links and bold severities. */
const MARKUP = /[*_~`|>#@<:[\]()]/;

/** Discord's published limits of an embed, and text of others that is not escaped. */
function faultOf({ embeds, allowed_mentions, content }: any): string | undefined {
  if (content !== undefined || embeds?.length !== 1) return "embeds: one is expected";
  if (JSON.stringify(allowed_mentions) !== '{"parse":[]}') return "allowed_mentions";
  const { title, description, fields = [], footer, url, timestamp } = embeds[0];
  if (title.length < 1 || title.length > 256) return `title: ${title.length}`;
  if (description.length > 4096) return `description: ${description.length}`;
  if (fields.length > 25) return "fields: too many";
  if (url !== undefined && !URL.canParse(url)) return "url";
  if (Number.isNaN(Date.parse(timestamp))) return "timestamp";
  let total = title.length + description.length + (footer?.text.length ?? 0);
  for (const { name, value } of fields) {
    if (name.length < 1 || name.length > 256 || value.length < 1 || value.length > 1024) return "a field";
    total += name.length + value.length;
  }
  if (total > 6000) return `${total} characters`;
  const texts = [title, description, ...fields.flatMap(({ name, value }: any) => [name, value])];
  for (const text of texts) {
    const rest = text
      .replace(/\\[^\p{L}\p{N}\s]/gu, "")
      .replace(/\[Open\]\(https:\/\/tocsin\.example\/[^\s()]*\)/g, "")
      .replace(/^\*\*(?:critical|high|medium|low|info)\*\* /gm, "");
    if (MARKUP.test(title === text && fields.length === 0 ? "" : rest)) return `markup: ${rest}`;
  }
  return undefined;
}

let peer: HttpPeer;
let busy = false;
beforeAll(async () => {
  peer = await startHttpPeer((_, { path, body }) => {
    const answer = (status: number, said: object, headers = {}) => ({ status, text: JSON.stringify(said), headers });
    if (path !== "/api/webhooks/1234/secret-token") return answer(404, { message: "Unknown Webhook", code: 10015 });
    if (busy)
      return answer(
        429,
        { message: "You are being rate limited.", retry_after: 64.57, global: false },
        {
          "retry-after": "65",
        },
      );
    const wrong = faultOf(body);
    return wrong ? answer(400, { code: 50035, message: `Invalid Form Body: ${wrong}` }) : { status: 204, text: "" };
  });
});
afterAll(() => peer.close());
beforeEach(() => {
  busy = false;
  peer.received.splice(0);
});

const send = (message: Message, path = "/api/webhooks/1234/secret-token") =>
  openChannels({ ...NO_CHANNELS, discordUrl: `${peer.origin}${path}` })
    .get("discord")!
    .send(message, new AbortController().signal);
const embeds = () => peer.received.map(({ body }) => body.embeds[0]);

test("an embed shows the facts of an alert and a link", async () => {
  const alert = someAlert();
  expect(await send(messageOf([alert]))).toEqual({ kind: "sent" });
  const [embed] = embeds();
  expect(embed).toMatchObject({
    title: "\\[high\\] New alert\\: Failed logins from 192\\.0\\.2\\.17",
    url: `https://tocsin.example/alerts?alert=${alert.id}`,
    description: "Five failed logins from one address\\.",
    timestamp: "2023-11-14T22:14:20.000Z",
  });
  expect(embed.fields).toContainEqual({ name: "Rule", value: "site\\.failed\\_logins", inline: true });
});

test("a resolved alert shows its resolution, and a digest counts and lists the most severe", async () => {
  await send(closedMessageOf(someAlert(), { comment: "a drill", actionsTaken: ["blocked it"] }));
  const alerts = Array.from({ length: 60 }, (_, i) => someAlert({ severity: i === 30 ? "critical" : "low" }));
  expect(await send(messageOf(alerts, { isRepeat: true }))).toEqual({ kind: "sent" });
  const [closed, digest] = embeds();
  expect(closed.fields).toContainEqual({ name: "Comment", value: "a drill" });
  expect(closed.fields).toContainEqual({ name: "Resolution", value: "false positive", inline: true });
  expect(digest.title).toBe("60 alerts: 1 critical, 59 low");
  expect(digest.description).toMatch(/^60 × site\\\.failed\\_logins\n\n\*\*critical\*\* New alert/);
  expect(digest.description).toContain("And 50 more.");
  expect(digest.footer.text).toContain("may have been sent before");
});

test("a rate limit is retried after the longer delay, and an unknown webhook is refused for good", async () => {
  busy = true;
  expect(await send(messageOf([someAlert()]))).toMatchObject({ kind: "failed", retryAfterMs: 65_000 });
  const gone = await send(messageOf([someAlert()]), "/api/webhooks/1234/another-token");
  expect(gone).toMatchObject({ kind: "refused", error: expect.stringContaining("Unknown Webhook") });
});

test("text from events creates no mentions, links or markup and stays within the limits", async () => {
  const nasty = fc.oneof(
    fc.string({ unit: "binary", maxLength: 200 }),
    fc.constantFrom(
      "@everyone @here <@1234> <#5> <t:1:R> **b** [x](https://evil.example) https://evil.example",
      "# head\n> quote\n- list\n```code```||spoiler||",
      "\\".repeat(3000),
      "😀*".repeat(2000),
      "",
    ),
  );
  await fc.assert(
    fc.asyncProperty(nasty, nasty, fc.integer({ min: 1, max: 12 }), async (title, description, count) => {
      const group = { field: title, value: description };
      const rule = { id: "r", name: title, description, tags: [] };
      const alerts = Array.from({ length: count }, () => someAlert({ title, description, group, rule }));
      const closed = closedMessageOf(alerts[0]!, { by: title, comment: description, actionsTaken: [title] });
      expect(await send(messageOf(alerts))).toEqual({ kind: "sent" });
      expect(await send(closed)).toEqual({ kind: "sent" });
    }),
    { numRuns: 20 },
  );
});
