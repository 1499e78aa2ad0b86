import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { AlertSummary } from "../../model/alert.ts";
import type { NotificationReason } from "../../model/notification.ts";
import type { Message } from "../message.ts";
import { messageOf, NO_CHANNELS, someAlert, startHttpPeer, type HttpPeer } from "../peers.fixture.ts";
import { openChannels } from "../open-channels.ts";
import { testMessage } from "../test-message.ts";

const KEY = "0123456789abcdef0123456789abcdef";

/** Incidents by deduplication key, as PagerDuty keeps them: https://developer.pagerduty.com/docs/events-api-v2-overview */
const incidents = new Map<string, string>();
let answersBefore429 = Infinity;

function faultOf({ routing_key, event_action, dedup_key, payload }: any): string | undefined {
  if (routing_key !== KEY) return "Invalid routing key";
  if (typeof dedup_key !== "string" || dedup_key === "" || dedup_key.length > 255) return "'dedup_key' is invalid";
  if (event_action !== "trigger")
    return ["acknowledge", "resolve"].includes(event_action) ? undefined : "'event_action' is invalid";
  if (!payload?.summary || payload.summary.length > 1024) return "'payload.summary' is missing, blank or too long";
  if (!payload.source) return "'payload.source' is missing or blank";
  if (!["critical", "error", "warning", "info"].includes(payload.severity)) return "'payload.severity' is invalid";
  return undefined;
}

let peer: HttpPeer;
beforeAll(async () => {
  peer = await startHttpPeer((before, { method, path, text, body }) => {
    if (method !== "POST" || path !== "/v2/enqueue") return { status: 404 };
    if (before >= answersBefore429) return { status: 429, text: "Too many requests", headers: { "retry-after": "45" } };
    const wrong = text.length > 512 * 1024 ? "too large" : faultOf(body);
    if (wrong) {
      const said = { status: "invalid event", message: "Event object is invalid", errors: [wrong] };
      return { status: 400, text: JSON.stringify(said) };
    }
    const { event_action: action, dedup_key: key } = body;
    if (action === "trigger" && incidents.get(key) !== "acknowledge") incidents.set(key, "trigger");
    else if (incidents.has(key) && incidents.get(key) !== "resolve") incidents.set(key, action);
    return { status: 202, text: JSON.stringify({ status: "success", message: "Event processed", dedup_key: key }) };
  });
});
afterAll(() => peer.close());
beforeEach(() => {
  peer.received.splice(0);
  incidents.clear();
  answersBefore429 = Infinity;
});

const channel = (key = KEY) =>
  openChannels({ ...NO_CHANNELS, pagerdutyKey: key, pagerdutyUrl: `${peer.origin}/v2/enqueue` }).get("pagerduty")!;
const send = (message: Message, key = KEY) => channel(key).send(message, new AbortController().signal);
const told = (...items: (readonly [AlertSummary, NotificationReason])[]): Message => {
  const message = messageOf(items.map(([alert]) => alert));
  return { ...message, items: message.items.map((item, i) => ({ ...item, reason: items[i]![1] })) };
};
const actions = () => peer.received.map(({ body }) => `${body.event_action} ${body.dedup_key}`);

test("a new alert triggers an incident with its facts and a link", async () => {
  const alert = someAlert();
  expect(await send(messageOf([alert]))).toEqual({ kind: "sent" });
  const [{ body }] = peer.received as [any];
  expect(body).toMatchObject({
    event_action: "trigger",
    dedup_key: alert.id,
    client: "Tocsin",
    links: [{ href: `https://tocsin.example/alerts?alert=${alert.id}`, text: "Open the alert" }],
    payload: {
      summary: "[high] Failed logins from 192.0.2.17",
      source: "192.0.2.17",
      severity: "error",
      class: "site.failed_logins",
      custom_details: { Rule: "site.failed_logins", Events: "5" },
    },
  });
});

test("the incident follows the alert, by the alert's status at the time of sending", async () => {
  const open = someAlert();
  const acknowledged: AlertSummary = { ...open, status: "acknowledged" };
  const resolved: AlertSummary = { ...open, status: "resolved", resolution: "benign" };
  await send(told([open, "created"]));
  expect(incidents.get(open.id)).toBe("trigger");
  await send(told([acknowledged, "acknowledged"]));
  expect(incidents.get(open.id)).toBe("acknowledge");
  await send(told([resolved, "resolved"]));
  expect(incidents.get(open.id)).toBe("resolve");
  // A message that failed when the alert was new is retried after its end.
  await send(told([resolved, "created"]));
  expect(incidents.get(open.id)).toBe("resolve");
  await send(told([open, "reopened"]));
  expect(incidents.get(open.id)).toBe("trigger");
});

test("one alert with several notifications is told once, and each alert is an incident of its own", async () => {
  const first: AlertSummary = { ...someAlert(), status: "acknowledged" };
  const second = someAlert({ severity: "critical" });
  const gone: AlertSummary = { ...someAlert(), status: "resolved" };
  await send(
    told(
      [first, "created"],
      [second, "severity_raised"],
      [gone, "created"],
      [first, "acknowledged"],
      [gone, "resolved"],
    ),
  );
  expect(actions()).toEqual([
    `trigger ${first.id}`,
    `acknowledge ${first.id}`,
    `trigger ${second.id}`,
    `trigger ${second.id}`,
    `resolve ${gone.id}`,
  ]);
  expect([...incidents]).toEqual([
    [first.id, "acknowledge"],
    [second.id, "trigger"],
  ]);
});

test("a rate limit in the middle of a message leaves the other alerts for later, and only those", async () => {
  const alerts = [someAlert(), someAlert(), someAlert()];
  answersBefore429 = 1;
  const outcome = await send(messageOf(alerts));
  const untold = [alerts[1]!.id, alerts[2]!.id];
  expect(outcome).toEqual({
    kind: "partly",
    error: "2 alerts are left: answered 429: Too many requests",
    untold,
    retryAfterMs: 45_000,
  });
  answersBefore429 = Infinity;
  peer.received.splice(0);
  expect(await send(messageOf(alerts, { untold }))).toEqual({ kind: "sent" });
  expect(actions()).toEqual(untold.map((id) => `trigger ${id}`));
  answersBefore429 = 0;
  expect(await send(messageOf(alerts))).toMatchObject({ kind: "failed", retryAfterMs: 45_000 });
});

test("a wrong key is refused for good after a few alerts and is not revealed", async () => {
  const outcome = await send(messageOf(Array.from({ length: 20 }, () => someAlert())), "another-integration-key");
  expect(outcome).toMatchObject({ kind: "refused", error: expect.stringContaining("Invalid routing key") });
  expect(peer.received).toHaveLength(3);
  expect(JSON.stringify(outcome)).not.toContain("another-integration-key");
});

test("a test opens an incident and resolves it", async () => {
  const message = testMessage({ deliveryId: "dlv_1", at: 0, url: "https://tocsin.example", reason: "Ann asked." });
  expect(await send(message)).toEqual({ kind: "sent" });
  expect([...incidents]).toEqual([["alt_test", "resolve"]]);
});

test("any text stays within the limits, and the channel takes few alerts at once", async () => {
  for (const text of ["", "x".repeat(100_000), "😀".repeat(50_000), '"\\\u0000'.repeat(30_000)]) {
    const alert = someAlert({ title: text, description: text, group: { field: text, value: text } });
    expect(await send(messageOf([alert]))).toEqual({ kind: "sent" });
  }
  expect([channel().messageMax, channel().followsAlerts]).toEqual([50, true]);
});
