import * as fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Message } from "../message.ts";
import { closedMessageOf, messageOf, NO_CHANNELS, someAlert, startHttpPeer, type HttpPeer } from "../peers.fixture.ts";
import { openChannels } from "../open-channels.ts";

const PATH = "/workflows/0123456789abcdef/triggers/manual/paths/invoke?api-version=1&sig=the-signature";

/** Checks the message as the workflow's trigger and Teams do. */
function faultOf(text: string, { type, attachments }: any): string | undefined {
  if (Buffer.byteLength(text) > 28 * 1024) return `${Buffer.byteLength(text)} bytes`;
  if (type !== "message" || attachments?.length !== 1) return "attachments";
  const [{ contentType, content }] = attachments;
  if (contentType !== "application/vnd.microsoft.card.adaptive") return "contentType";
  if (content.type !== "AdaptiveCard" || !/^1\.[0-5]$/.test(content.version)) return "version";
  for (const { type: kind, inlines } of content.body) {
    // Every other element reads Markdown.
    if (kind !== "RichTextBlock" || inlines.length === 0) return `a ${kind}`;
    for (const each of inlines) {
      if (each.type !== "TextRun" || typeof each.text !== "string" || each.text === "") return "an empty run";
      if (each.text.includes("{{")) return "a function";
    }
  }
  for (const action of content.actions)
    if (action.type !== "Action.OpenUrl" || !URL.canParse(action.url)) return "action";
  return undefined;
}

let peer: HttpPeer;
let busy = false;
beforeAll(async () => {
  peer = await startHttpPeer((_, { path, text, body }) => {
    const refuse = (status: number, code: string, headers = {}) => ({
      status,
      headers,
      text: JSON.stringify({ error: { code, message: `${code} at ${path}` } }),
    });
    if (path !== PATH) return refuse(401, "DirectApiAuthorizationRequired");
    if (busy) return refuse(429, "TooManyRequests", { "retry-after": "20" });
    const wrong = faultOf(text, body);
    return wrong ? refuse(400, `TriggerInputSchemaMismatch: ${wrong}`) : { status: 202, text: "" };
  });
});
afterAll(() => peer.close());
beforeEach(() => {
  busy = false;
  peer.received.splice(0);
});

const send = (message: Message, path = PATH) =>
  openChannels({ ...NO_CHANNELS, teamsUrl: `${peer.origin}${path}` })
    .get("teams")!
    .send(message, new AbortController().signal);
const cards = () => peer.received.map(({ body }) => body.attachments[0].content);
const shown = (card: any): string[] =>
  card.body.map(({ inlines }: any) => inlines.map(({ text }: any) => text).join(""));

test("a card shows the facts of an alert and a button", async () => {
  const alert = someAlert();
  expect(await send(messageOf([alert]))).toEqual({ kind: "sent" });
  const [card] = cards();
  expect(shown(card)).toEqual(
    expect.arrayContaining([
      "[high] New alert: Failed logins from 192.0.2.17",
      "Five failed logins from one address.",
      "Rule: site.failed_logins",
      "raw.src_ip: 192.0.2.17",
    ]),
  );
  expect(card.actions).toEqual([
    { type: "Action.OpenUrl", title: "Open the alert", url: `https://tocsin.example/alerts?alert=${alert.id}` },
  ]);
});

test("a resolved alert shows its resolution, and a digest counts and lists the most severe", async () => {
  await send(closedMessageOf(someAlert(), { comment: "a drill\nof the fire brigade" }));
  const alerts = Array.from({ length: 60 }, (_, i) => someAlert({ severity: i === 30 ? "critical" : "low" }));
  expect(await send(messageOf(alerts, { isRepeat: true }))).toEqual({ kind: "sent" });
  const [closed, digest] = cards();
  expect(shown(closed)).toEqual(expect.arrayContaining(["Resolved by: ann", "a drill", "of the fire brigade"]));
  expect(shown(digest)).toEqual(
    expect.arrayContaining(["60 alerts: 1 critical, 59 low", "60 × site.failed_logins", "And 50 more."]),
  );
  expect(digest.actions[0].url).toContain(alerts[30]!.id);
  expect(shown(digest).at(-1)).toContain("may have been sent before");
});

test("a throttled workflow is retried after its delay; a wrong signature is refused for good and hidden", async () => {
  busy = true;
  expect(await send(messageOf([someAlert()]))).toMatchObject({ kind: "failed", retryAfterMs: 20_000 });
  const wrong = await send(messageOf([someAlert()]), PATH.replace("the-signature", "another-signature"));
  expect(wrong).toMatchObject({ kind: "refused", error: expect.stringContaining("DirectApiAuthorizationRequired") });
  expect(JSON.stringify(wrong)).not.toContain("another-signature");
});

test("text from events stays text within the limits", async () => {
  const nasty = fc.oneof(
    fc.string({ unit: "binary", maxLength: 200 }),
    fc.constantFrom(
      "<at>everyone</at> [x](https://evil.example) **b** {{DATE(2017-02-14T06:08:39Z)}} {{{{",
      '"\\'.repeat(3000),
      "x\n".repeat(3000),
      "漢".repeat(5000),
      "",
    ),
  );
  await fc.assert(
    fc.asyncProperty(nasty, nasty, fc.integer({ min: 1, max: 12 }), async (title, description, count) => {
      const group = { field: title, value: description };
      const rule = { id: "r", name: title, description, tags: [] };
      const alerts = Array.from({ length: count }, () => someAlert({ title, description, group, rule }));
      const closed = closedMessageOf(alerts[0]!, { by: title, comment: description, actionsTaken: [description] });
      expect(await send(messageOf(alerts))).toEqual({ kind: "sent" });
      expect(await send(closed)).toEqual({ kind: "sent" });
    }),
    { numRuns: 20 },
  );
});
