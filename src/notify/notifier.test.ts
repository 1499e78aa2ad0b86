import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { Registry } from "prom-client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Alert, AlertSummary } from "../model/alert.ts";
import type { NewNotification, Notification } from "../model/notification.ts";
import type { Channel } from "../model/rule.ts";
import { idMaker } from "../lib/id.ts";
import { openStore } from "../store/open-store.ts";
import { StoreUnavailable } from "../store/ports/store-errors.ts";
import type { Store } from "../store/ports/store.ts";
import { changed } from "../../test/api-server.ts";
import { openChannels } from "./open-channels.ts";
import { alertLinks, openNotifier, type Notifier, type NotifierOptions } from "./notifier.ts";
import { PACE } from "./schedule.ts";
import { NO_CHANNELS, someAlert, startHttpPeer, startMailPeer, type HttpPeer } from "./peers.fixture.ts";

const newNotificationId = idMaker("ntf_");
const newAlertId = idMaker("alt_");
const PATIENCE = { timeout: 100_000, interval: 10 };

let dataDir: string;
let store: Store;
const closing: { close(): Promise<void> }[] = [];

let clock: () => number;
beforeEach(async () => {
  clock = Date.now;
  // A store of its own: the limit per minute counts what was sent before the start.
  dataDir = mkdtempSync(join(tmpdir(), "tocsin-notify-"));
  await open();
});
afterEach(async () => {
  for (const part of closing.splice(0).toReversed()) await part.close();
  await store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

async function open(): Promise<void> {
  const log = pino({ level: "silent" });
  store = await openStore({ dataDir, platform: "platform", indexPrefix: "tocsin", registry: new Registry(), log });
}

const startPeer = async (...args: Parameters<typeof startHttpPeer>): Promise<HttpPeer> => {
  const peer = await startHttpPeer(...args);
  closing.push(peer);
  return peer;
};

interface Started {
  readonly notifier: Notifier;
  readonly registry: Registry;
}

async function start(peer: HttpPeer | undefined, more: Partial<NotifierOptions> = {}): Promise<Started> {
  const settings = peer ? { ...NO_CHANNELS, webhookUrl: peer.url, webhookSecret: "s" } : NO_CHANNELS;
  const registry = new Registry();
  // A test with its own clock uses it for everything; some clocks advance with each reading.
  const { now } = more;
  let lookedMs = 0;
  const clocks = now && { now: () => (lookedMs = now()), steadyNow: () => lookedMs };
  const notifier = await openNotifier({
    store,
    channels: openChannels(settings),
    perMinuteMax: 1000,
    retryMs: 3_600_000,
    linksTo: (id) => alertLinks("https://tocsin.example/", id, { hasConsole: true }),
    registry,
    log: pino({ level: "silent" }),
    // Short delays, so that the tests run quickly; schedule.test.ts covers the real ones.
    pace: { gatherMs: 20, digestMs: 300 },
    ...more,
    ...clocks,
    ...(more.steadyNow && { steadyNow: more.steadyNow }),
  });
  closing.push(notifier);
  return { notifier, registry };
}

async function raise(
  count: number,
  channel: Channel = "webhook",
  more: Partial<Alert> = {},
  reason: NewNotification["reason"] = "created",
): Promise<string[]> {
  const alerts = Array.from({ length: count }, (_, i): Alert => ({
    ...(someAlert({ title: `Alert ${i}` }) as AlertSummary),
    id: newAlertId(),
    relatedEvents: [],
    ...more,
  }));
  const notifications = alerts.map(({ id }): NewNotification => ({
    id: newNotificationId(),
    alertId: id,
    channel,
    reason,
    createdAt: clock(),
  }));
  expect(await store.alerts.commit({ alerts, timeline: [], notifications })).toEqual([]);
  return alerts.map(({ id }) => id);
}

const listed = async (): Promise<readonly Notification[]> => {
  const { items } = await store.notifications.list({}, { mode: "page", page: 1, size: 1000 });
  return items;
};
const waitFor = (status: Notification["status"], count: number) =>
  vi.waitFor(async () => {
    const found = (await listed()).filter((notification) => notification.status === status);
    expect(found).toHaveLength(count);
    return found;
  }, PATIENCE);
const outcomesOf = async (alertId: string) =>
  (await store.alerts.withTimeline(alertId))!.timeline.map((entry) =>
    entry.kind === "notified" ? [entry.channel, entry.outcome] : [],
  );

test("without a console, the link for people is the alert in the API", () => {
  const api = "https://tocsin.example/base/v1/alerts/alt_1";
  expect(alertLinks("https://tocsin.example/base//", "alt_1", { hasConsole: false })).toEqual({
    url: api,
    apiUrl: api,
  });
});

test("an alert notifies once, with a link and a timeline entry", async () => {
  const peer = await startPeer();
  const { registry } = await start(peer);
  const [id] = await raise(1);
  const [sent] = await waitFor("sent", 1);
  expect(peer.received).toHaveLength(1);
  expect(peer.received[0]!.body.notifications[0]).toMatchObject({
    reason: "created",
    url: `https://tocsin.example/alerts?alert=${id}`,
    api_url: `https://tocsin.example/v1/alerts/${id}`,
    alert: { id },
  });
  expect(peer.received[0]!.headers["x-tocsin-delivery"]).toBe(sent!.deliveryId);
  expect(await outcomesOf(id!)).toEqual([["webhook", "sent"]]);
  const metrics = await registry.metrics();
  expect(metrics).toContain('tocsin_notifications_total{channel="webhook",outcome="sent"} 1');
  expect(metrics).toContain('tocsin_notifications{channel="webhook",status="sent"} 1');
});

test("a hundred alerts in a minute are one message, recorded on each timeline", async () => {
  let nowMs = Date.now();
  clock = () => nowMs;
  const peer = await startPeer();
  await start(peer, { now: clock, pace: PACE });
  const ids = await raise(9);
  for (let i = 0; i < 9; i++) {
    nowMs += 6000;
    ids.push(...(await raise(10)));
  }
  expect(peer.received).toEqual([]);
  nowMs += 6000;
  ids.push(...(await raise(1)));
  await waitFor("sent", 100);
  expect(peer.received.map(({ body }) => body.total)).toEqual([100]);
  for (const id of [ids[0]!, ids[99]!]) expect(await outcomesOf(id)).toEqual([["webhook", "sent"]]);
});

test("a clock set back delays neither a queued alert nor the next one", async () => {
  let setBackMs = 0;
  clock = () => Date.now() - setBackMs;
  const peer = await startPeer((before) => ({ status: before < 1 ? 503 : 200 }));
  const steadyNow = () => performance.now();
  await start(peer, { now: clock, steadyNow, random: () => 0 });
  await raise(1);
  const delayed = [{ status: "waiting", attempts: 1 }];
  await vi.waitFor(async () => expect(await listed()).toMatchObject(delayed), PATIENCE);
  setBackMs = 2 * 3_600_000;
  await raise(1);
  await waitFor("sent", 2);
});

test("a channel stays within its messages per minute", async () => {
  let nowMs = Date.now();
  clock = () => nowMs;
  const peer = await startPeer();
  await start(peer, { perMinuteMax: 2, pace: { gatherMs: 0, digestAbove: 1000 }, now: clock });
  for (const count of [1, 2]) {
    await raise(1);
    await waitFor("sent", count);
  }
  await raise(1);
  await raise(1);
  expect(peer.received).toHaveLength(2);
  nowMs += 60_000;
  await raise(1);
  await waitFor("sent", 5);
  expect(peer.received.map(({ body }) => body.total)).toEqual([1, 1, 3]);
});

test("a failing peer is retried with the same delivery id until it accepts the message", async () => {
  const peer = await startPeer((before) => ({ status: before < 3 ? 503 : 200 }));
  let nowMs = Date.now();
  await start(peer, { now: () => (nowMs += 20_000), random: () => 0 });
  const [id] = await raise(1);
  const [sent] = await waitFor("sent", 1);
  expect(sent!.attempts).toBe(4);
  expect(new Set(peer.received.map(({ headers }) => headers["x-tocsin-delivery"])).size).toBe(1);
  expect(peer.received.every(({ headers }) => headers["x-tocsin-repeat"] === undefined)).toBe(true);
  expect(await outcomesOf(id!)).toEqual([
    ["webhook", "delayed"],
    ["webhook", "sent"],
  ]);
});

test("Retry-After is honoured and pauses the whole channel", async () => {
  let nowMs = Date.now();
  clock = () => nowMs;
  const peer = await startPeer((before) =>
    before === 0 ? { status: 429, headers: { "retry-after": "600" } } : { status: 200 },
  );
  await start(peer, { now: clock, pace: { gatherMs: 0, digestAbove: 1000 } });
  await raise(1);
  const [delayed] = await vi.waitFor(async () => {
    const found = (await listed()).filter(({ status, attempts }) => status === "waiting" && attempts === 1);
    expect(found).toHaveLength(1);
    return found;
  }, PATIENCE);
  expect(delayed).toMatchObject({ dueAt: nowMs + 600_000, error: "answered 429: ok" });
  nowMs += 599_999;
  await raise(1);
  expect(peer.received).toHaveLength(1);
  nowMs += 1;
  await raise(1);
  await waitFor("sent", 3);
});

test("a permanent refusal is dead at once with its reason, and can be resent", async () => {
  let status = 404;
  const peer = await startPeer(() => ({ status, text: "no_service" }));
  await start(peer);
  const [id] = await raise(1);
  const [dead] = await waitFor("dead", 1);
  expect(dead).toMatchObject({ error: "answered 404: no_service", attempts: 1 });
  expect(await outcomesOf(id!)).toEqual([["webhook", "failed"]]);
  status = 200;
  expect(await store.notifications.resend({ id: dead!.id }, Date.now())).toBe(1);
  await waitFor("sent", 1);
  expect(await outcomesOf(id!)).toEqual([
    ["webhook", "failed"],
    ["webhook", "sent"],
  ]);
});

test("a message that is not delivered within the retry period is dead", async () => {
  let nowMs = Date.now();
  const peer = await startPeer(() => ({ status: 500 }));
  await start(peer, { now: () => (nowMs += 100_000), retryMs: 3_600_000 });
  await raise(1);
  const [dead] = await waitFor("dead", 1);
  expect(dead!.error).toMatch(/^given up after \d+ attempts: answered 500/);
  expect(dead!.attempts).toBeGreaterThan(1);
});

test("only the message in flight at a crash is repeated, and it is marked", async () => {
  const peer = await startPeer();
  const [, inLine] = await raise(2);
  const begun = await store.notifications.begin("webhook", "dlv_interrupted", 1);
  await store.close();
  await open();
  await start(peer);
  await waitFor("sent", 2);
  const told = peer.received.map(({ headers, body }) => [
    headers["x-tocsin-repeat"],
    body.repeat,
    body.notifications[0].alert.id,
  ]);
  expect(told).toHaveLength(2);
  expect(told).toContainEqual(["true", true, begun[0]!.alertId]);
  expect(told).toContainEqual([undefined, false, inLine]);
  expect(peer.received.map(({ headers }) => headers["x-tocsin-delivery"])).toContain("dlv_interrupted");
  expect(await outcomesOf(begun[0]!.alertId)).toEqual([["webhook", "repeated"]]);
});

test("a message without an answer is marked when it is retried", async () => {
  let nowMs = Date.now();
  const peer = await startPeer((before, { headers }) => {
    if (before > 0) return { status: 200 };
    expect(headers["x-tocsin-repeat"]).toBeUndefined();
    // Longer than the headers say: the client sees a broken answer.
    return { status: 200, headers: { "content-length": "1000", connection: "close" }, text: "cut" };
  });
  await start(peer, { now: () => (nowMs += 20_000), random: () => 0 });
  await raise(1);
  await waitFor("sent", 1);
  expect(peer.received.map(({ headers }) => headers["x-tocsin-repeat"])).toEqual([undefined, "true"]);
});

test("notifications queued for a channel that is no longer configured are dead with the reason", async () => {
  const [id] = await raise(3, "slack");
  await store.notifications.begin("slack", "dlv_old", 1);
  await start(undefined);
  const dead = await waitFor("dead", 3);
  expect(new Set(dead.map(({ error }) => error))).toEqual(new Set(["the channel slack is not configured"]));
  expect(await outcomesOf(id!)).toEqual([["slack", "failed"]]);
});

test("a short outage of the store loses nothing and repeats nothing", async () => {
  const peer = await startPeer();
  let failures = 0;
  const notifications = changed(store.notifications, {
    settle: async (...args) => {
      if (failures++ < 1) throw new StoreUnavailable("disk_full", "no room");
      return store.notifications.settle(...args);
    },
  });
  await start(peer, { store: { alerts: store.alerts, notifications } });
  await raise(1);
  await waitFor("sent", 1);
  expect([peer.received.length, failures]).toEqual([1, 2]);
});

test.each(["getMany", "withTimeline"] as const)(
  "a message whose alert cannot be read for a moment (%s) is sent later, and not as a repetition",
  async (method) => {
    const peer = await startPeer();
    let failures = 0;
    const failOnce = <Value>(ask: () => Promise<Value>): Promise<Value> =>
      failures++ < 1 ? Promise.reject(new StoreUnavailable("queue_full", "too many are waiting")) : ask();
    const alerts = changed(store.alerts, {
      getMany: (ids) => (method === "getMany" ? failOnce(() => store.alerts.getMany(ids)) : store.alerts.getMany(ids)),
      withTimeline: (id) => failOnce(() => store.alerts.withTimeline(id)),
    });
    await start(peer, { store: { alerts, notifications: store.notifications } });
    const [id] = await raise(1, "webhook", {}, "resolved");
    const [sent] = await waitFor("sent", 1);
    expect(sent).toMatchObject({ attempts: 1, isRepeat: false });
    expect(peer.received.map(({ headers }) => headers["x-tocsin-repeat"])).toEqual([undefined]);
    expect(await outcomesOf(id!)).toEqual([["webhook", "sent"]]);
  },
);

test("a message whose alert cannot be read at shutdown waits for the next start, and does not count as repeated", async () => {
  const peer = await startPeer();
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const alerts = changed(store.alerts, {
    getMany: () => {
      resolve();
      return Promise.reject(new StoreUnavailable("queue_full", "too many are waiting"));
    },
  });
  const { notifier } = await start(peer, { store: { alerts, notifications: store.notifications } });
  await raise(1);
  await asked;
  await notifier.close();
  expect(await listed()).toMatchObject([{ status: "waiting", isRepeat: false }]);
  expect(peer.received).toEqual([]);
});

test("closing waits for the attempt in flight", async () => {
  const { promise: arrived, resolve } = Promise.withResolvers<void>();
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const peer = await startPeer(async () => {
    resolve();
    await answered;
    return { status: 200 };
  });
  const { notifier } = await start(peer);
  await raise(1);
  await arrived;
  const closed = notifier.close();
  answer();
  await closed;
  expect((await listed()).map(({ status }) => status)).toEqual(["sent"]);
});

test("a temporarily refused recipient delays nobody and gets each mail once, also after a restart", async () => {
  let isBenTaken = false;
  const peer = await startMailPeer({
    authOptional: true,
    disabledCommands: ["STARTTLS", "AUTH"],
    onRcptTo: ({ address }, _, done) =>
      isBenTaken || address !== "ben@example.org"
        ? done()
        : done(Object.assign(new Error("greylisted"), { responseCode: 450 })),
  });
  closing.push(peer);
  const email = {
    emailHost: "127.0.0.1",
    emailPort: peer.port,
    emailFrom: "a@example.com",
    emailSecurity: "none",
  } as const;
  const emailTo = ["anna@example.com", "ben@example.org"];
  let nowMs = Date.now();
  clock = () => nowMs;
  const options = {
    channels: openChannels({ ...NO_CHANNELS, ...email, emailTo }),
    now: clock,
    pace: { gatherMs: 0, digestAbove: 1000 },
  };
  const { notifier } = await start(undefined, options);
  const ids: string[] = [];
  for (const count of [1, 2]) {
    ids.push(...(await raise(1, "email")));
    await vi.waitFor(() => expect(peer.mails).toHaveLength(count), PATIENCE);
  }
  const waiting = await waitFor("waiting", 2);
  expect(waiting).toMatchObject([{ untold: ["ben@example.org"], attempts: 1 }, { isRepeat: false }]);
  expect(waiting[0]!.error).toContain("refused for now for 1 of 2 addresses");
  await notifier.close();
  isBenTaken = true;
  nowMs += 60_000;
  await start(undefined, options);
  await waitFor("sent", 2);
  expect(peer.mails.map(({ to }) => to).sort()).toEqual([
    ["anna@example.com"],
    ["anna@example.com"],
    ["ben@example.org"],
    ["ben@example.org"],
  ]);
  for (const id of ids) {
    expect(await outcomesOf(id)).toEqual([
      ["email", "delayed"],
      ["email", "sent"],
    ]);
  }
});

test("closing does not wait for a silent mail server, and the mail is repeated later", async () => {
  const { promise: connected, resolve } = Promise.withResolvers<void>();
  const silent = createServer(() => resolve()).listen(0, "127.0.0.1");
  await once(silent, "listening");
  closing.push({ close: async () => void silent.close() });
  const { port } = silent.address() as AddressInfo;
  const settings = { ...NO_CHANNELS, emailHost: "127.0.0.1", emailPort: port, emailFrom: "a@example.com" };
  const channels = openChannels({ ...settings, emailTo: ["b@example.com"] });
  const { notifier } = await start(undefined, { channels });
  await raise(1, "email");
  await connected;
  await notifier.close();
  expect(await listed()).toMatchObject([{ status: "waiting", isRepeat: true, attempts: 1 }]);
});
