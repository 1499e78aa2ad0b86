import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { alertView } from "../../model/alert.ts";
import type { Message } from "../message.ts";
import {
  closedMessageOf,
  messageOf,
  NO_CHANNELS,
  someAlert,
  startHttpPeer,
  type HttpPeer,
  type Received,
} from "../peers.fixture.ts";
import { openChannels } from "../open-channels.ts";

const SECRET = "it's a secret";

let peer: HttpPeer;
beforeAll(async () => {
  peer = await startHttpPeer();
});
afterAll(() => peer.close());
beforeEach(() => void peer.received.splice(0));

const send = async (message: Message): Promise<Received> => {
  const channel = openChannels({ ...NO_CHANNELS, webhookUrl: peer.url, webhookSecret: SECRET }).get("webhook")!;
  expect(await channel.send(message, new AbortController().signal)).toEqual({ kind: "sent" });
  return peer.received.at(-1)!;
};

test("the alert is posted as the API shows it, with the reason and a link", async () => {
  const alert = someAlert();
  const { body } = await send(messageOf([alert]));
  expect(body).toEqual({
    delivery_id: "dlv_1",
    repeat: false,
    sent_at: "2023-11-14T22:14:22.000Z",
    total: 1,
    omitted: 0,
    by_severity: { high: 1 },
    notifications: [
      {
        reason: "created",
        url: `https://tocsin.example/alerts?alert=${alert.id}`,
        api_url: `https://tocsin.example/v1/alerts/${alert.id}`,
        alert: alertView(alert),
      },
    ],
  });
});

test("a resolved alert is posted with its resolution, author and comment", async () => {
  const { body } = await send(closedMessageOf(someAlert(), { comment: "again", actionsTaken: ["blocked it"] }));
  expect(body.notifications[0]).toMatchObject({
    reason: "resolved",
    alert: { status: "resolved", resolution: "false_positive" },
    resolved: { resolution: "false_positive", by: "ann", comment: "again", actions_taken: ["blocked it"] },
  });
});

test("totals count notifications, of which one alert may have several", async () => {
  const alert = someAlert();
  const { body } = await send(messageOf([alert, alert]));
  expect(body).toMatchObject({ total: 2, omitted: 0, by_severity: { high: 2 } });
});

test("each post is signed over time and body; a repeated post keeps its delivery id and says so", async () => {
  const message = messageOf([someAlert()]);
  const first = await send(message);
  const again = await send({ ...message, isRepeat: true, at: message.at + 60_000 });
  for (const { headers, text } of [first, again]) {
    const timestamp = headers["x-tocsin-timestamp"];
    const expected = createHmac("sha256", SECRET)
      .update(`${String(timestamp)}.${text}`)
      .digest("hex");
    expect(headers["x-tocsin-signature"]).toBe(`v1=${expected}`);
    expect(headers["x-tocsin-delivery"]).toBe("dlv_1");
  }
  expect([first.headers["x-tocsin-repeat"], again.headers["x-tocsin-repeat"]]).toEqual([undefined, "true"]);
  expect(again.headers["x-tocsin-timestamp"]).toBe("1700000122");
});

test("many alerts become one post: the most severe hundred within a megabyte, the others counted", async () => {
  const large = someAlert({ description: "x".repeat(60_000), severity: "critical" });
  const few = await send(messageOf(Array.from({ length: 30 }, () => large)));
  expect(few.text.length).toBeLessThan(1024 * 1024 + 1000);
  expect(few.body.notifications.length + few.body.omitted).toBe(30);
  expect(few.body.omitted).toBeGreaterThan(0);
  const many = await send(messageOf(Array.from({ length: 250 }, () => someAlert())));
  expect([many.body.notifications.length, many.body.omitted, many.body.total]).toEqual([100, 150, 250]);
});

test("the documented example accepts valid posts and refuses invalid, old and replayed ones", async () => {
  const page = readFileSync(new URL("../../../docs/notifications.md", import.meta.url), "utf8");
  const code = /```js\n([\s\S]*?)```/.exec(page)![1]!;
  const url = `data:text/javascript,${encodeURIComponent(code)}`;
  const { isGenuine } = (await import(url)) as {
    isGenuine: (headers: object, body: string, secret: string, nowSeconds: number, seen: Set<string>) => boolean;
  };
  const { headers, text } = await send(messageOf([someAlert()]));
  const at = 1_700_000_062;
  const check = (more: { headers?: object; body?: string; secret?: string; now?: number; seen?: Set<string> } = {}) =>
    isGenuine(
      { ...headers, ...more.headers },
      more.body ?? text,
      more.secret ?? SECRET,
      more.now ?? at,
      more.seen ?? new Set(),
    );
  expect(check()).toBe(true);
  expect(check({ body: text.replace("high", "info") })).toBe(false);
  expect(check({ secret: "another" })).toBe(false);
  expect(check({ headers: { "x-tocsin-timestamp": "1700000063" } })).toBe(false);
  expect(check({ headers: { "x-tocsin-signature": "v1=00" } })).toBe(false);
  expect(check({ headers: { "x-tocsin-signature": undefined } })).toBe(false);
  expect(check({ now: at + 301 })).toBe(false);
  const seen = new Set<string>();
  expect([check({ seen }), check({ seen })]).toEqual([true, false]);
});

test("without a URL or a secret there is no channel", () => {
  expect(openChannels({ ...NO_CHANNELS, webhookUrl: peer.url }).get("webhook")).toBeUndefined();
  expect(openChannels({ ...NO_CHANNELS, webhookSecret: SECRET }).get("webhook")).toBeUndefined();
});
