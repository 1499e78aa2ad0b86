import * as fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Message } from "../message.ts";
import { closedMessageOf, messageOf, NO_CHANNELS, someAlert, startHttpPeer, type HttpPeer } from "../peers.fixture.ts";
import { openChannels } from "../open-channels.ts";

const TOKEN = "syt_dG9jc2lu_0123456789";
const ROOM = "!room:example.com";

/** The messages of the room by transaction: https://spec.matrix.org/latest/client-server-api/#put_matrixclientv3roomsroomidsendeventtypetxnid */
const posted = new Map<string, any>();
let busy = false;

const TAG = /<(?:\/?(?:strong|ul|li|p)|br|\/a|a href="https:\/\/tocsin\.example\/[^"<>]*")>/g;

function faultOf(text: string, content: any): string | undefined {
  if (Buffer.byteLength(text) > 65_000) return "M_TOO_LARGE";
  if (content.msgtype !== "m.text" || typeof content.body !== "string" || content.body === "") return "M_BAD_JSON";
  if (content.format !== "org.matrix.custom.html") return "M_BAD_JSON";
  const rest = content.formatted_body.replace(TAG, "");
  if (/[<>"']|&(?!amp;|lt;|gt;|quot;|#39;)/.test(rest)) return `M_MARKUP ${rest}`;
  // Without it, @room in the body would notify everybody.
  return JSON.stringify(content["m.mentions"]) === "{}" ? undefined : "M_MENTIONS";
}

let peer: HttpPeer;
beforeAll(async () => {
  peer = await startHttpPeer((_, { method, path, headers, text, body }) => {
    const refuse = (status: number, errcode: string, more = {}) => ({
      status,
      text: JSON.stringify({ errcode, error: errcode, ...more }),
    });
    const [, room = "", transaction = ""] =
      /^\/_matrix\/client\/v3\/rooms\/([^/]+)\/send\/m\.room\.message\/([^/]+)$/.exec(path) ?? [];
    if (method !== "PUT" || room === "") return refuse(404, "M_UNRECOGNIZED");
    if (headers.authorization !== `Bearer ${TOKEN}`) return refuse(401, "M_UNKNOWN_TOKEN", { soft_logout: false });
    if (decodeURIComponent(room) !== ROOM) return refuse(403, "M_FORBIDDEN");
    if (busy) return refuse(429, "M_LIMIT_EXCEEDED", { retry_after_ms: 2345 });
    const wrong = faultOf(text, body);
    if (wrong) return refuse(400, wrong);
    if (!posted.has(transaction)) posted.set(transaction, body);
    return { status: 200, text: JSON.stringify({ event_id: "$1" }) };
  });
});
afterAll(() => peer.close());
beforeEach(() => {
  busy = false;
  posted.clear();
});

const send = (message: Message, more: Partial<typeof NO_CHANNELS> = {}) =>
  openChannels({ ...NO_CHANNELS, matrixUrl: `${peer.origin}/`, matrixToken: TOKEN, matrixRoom: ROOM, ...more })
    .get("matrix")!
    .send(message, new AbortController().signal);

test("a message shows the facts of an alert and a link, in text and HTML", async () => {
  const alert = someAlert();
  expect(await send(messageOf([alert]))).toEqual({ kind: "sent" });
  const content = posted.get("dlv_1");
  expect(content.body).toMatch(/^\[high\] New alert: Failed logins from 192\.0\.2\.17\n\nFive failed/);
  expect(content.body).toContain("Rule: site.failed_logins\n");
  expect(content.formatted_body).toContain("<strong>[high] New alert: Failed logins from 192.0.2.17</strong>");
  expect(content.formatted_body).toContain(
    `<a href="https://tocsin.example/alerts?alert=${alert.id}">Open the alert</a>`,
  );
});

test("a repeated message has the same transaction, so that the room shows it once", async () => {
  const message = messageOf([someAlert()]);
  expect(await send(message)).toEqual({ kind: "sent" });
  expect(await send({ ...message, isRepeat: true })).toEqual({ kind: "sent" });
  expect([...posted.keys()]).toEqual(["dlv_1"]);
});

test("a resolved alert shows its resolution, and a digest counts", async () => {
  await send(closedMessageOf(someAlert(), { comment: "a drill" }));
  expect(posted.get("dlv_1").formatted_body).toContain("Resolved by: ann<br><br>Comment:<br>a drill");
  const alerts = Array.from({ length: 100 }, () => someAlert());
  expect(await send(messageOf(alerts, { isRepeat: true, deliveryId: "dlv_2" }))).toEqual({ kind: "sent" });
  const { body, formatted_body: formatted } = posted.get("dlv_2");
  expect(body).toMatch(/^100 alerts: 100 high\n/);
  for (const part of ["And 80 more.", "may have been sent before"])
    expect([body, formatted]).toEqual([expect.stringContaining(part), expect.stringContaining(part)]);
});

test("a rate limit is retried after the delay in the answer; a wrong token or room is refused for good", async () => {
  busy = true;
  expect(await send(messageOf([someAlert()]))).toMatchObject({ kind: "failed", retryAfterMs: 2345 });
  const forbidden = await send(messageOf([someAlert()]), { matrixRoom: "!other:example.com" });
  expect(forbidden).toMatchObject({ kind: "refused", error: expect.stringContaining("M_FORBIDDEN") });
  const wrong = await send(messageOf([someAlert()]), { matrixToken: "another-access-token" });
  expect(wrong).toMatchObject({ kind: "refused", error: expect.stringContaining("M_UNKNOWN_TOKEN") });
});

test("text from events is escaped and stays within the limits", async () => {
  const nasty = fc.oneof(
    fc.string({ unit: "binary", maxLength: 200 }),
    fc.constantFrom(
      '@room <b>x</b> <a href="https://evil.example">y</a> &lt;',
      "&<>\"'".repeat(5000),
      "漢".repeat(20_000),
      "",
    ),
  );
  await fc.assert(
    fc.asyncProperty(nasty, nasty, fc.integer({ min: 1, max: 30 }), async (title, description, count) => {
      const group = { field: title, value: description };
      const rule = { id: "r", name: title, description, tags: [] };
      const alerts = Array.from({ length: count }, () => someAlert({ title, description, group, rule }));
      const closed = closedMessageOf(alerts[0]!, { by: title, comment: description, actionsTaken: [title] });
      expect(await send(messageOf(alerts))).toEqual({ kind: "sent" });
      expect(await send(closed)).toEqual({ kind: "sent" });
    }),
    { numRuns: 15 },
  );
});
