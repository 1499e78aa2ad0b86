import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { loadSettings } from "../config/config.ts";
import type { Settings } from "../config/settings.ts";
import { startHttpPeer, type HttpPeer } from "../notify/peers.fixture.ts";
import { CHANNELS } from "../model/rule.ts";

const PATIENCE = { timeout: 100_000, interval: 20 };
const SECRET = "the-secret-of-the-webhook";

let server: TestServer;
let peer: HttpPeer;
let answer: number;

function settingsFor({ url }: HttpPeer, more: Record<string, string> = {}): Settings["notifications"] {
  const environment = {
    TOCSIN_NOTIFICATIONS_WEBHOOK_URL: url,
    TOCSIN_NOTIFICATIONS_WEBHOOK_SECRET: SECRET,
    TOCSIN_NOTIFICATIONS_PRIVATE_ADDRESSES: "on",
    TOCSIN_NOTIFICATIONS_CONSOLE_URL: "https://tocsin.example/",
    ...more,
  };
  const loaded = loadSettings({ environment, workingFolder: "/" });
  if ("faults" in loaded) throw new Error(JSON.stringify(loaded.faults));
  return loaded.settings.notifications;
}

async function open(more: Record<string, string> = {}): Promise<void> {
  server = await openTestServer({ settings: { notifications: settingsFor(peer, more) } });
  const opened = server;
  onTestFinished(() => opened.close());
}

beforeAll(async () => {
  peer = await startHttpPeer(() => ({ status: answer, text: answer === 200 ? "ok" : "no_service" }));
});
afterAll(() => peer.close());

const channels = async () => (await server.call("GET", "/v1/channels")).body.data;
const webhook = async () => (await channels()).find(({ name }: any) => name === "webhook");
const runTest = (channel = "webhook") => server.call("POST", "/v1/notifications/test", { body: { channel } });

async function raiseAlert(): Promise<void> {
  const conditions = [{ field: "type", equals: "told" }];
  const actions = [{ alert: { channels: ["webhook"] } }];
  const rule = { name: "told.rule", description: "Told.", severity: "high", conditions, actions };
  expect((await server.call("POST", "/v1/rules", { body: rule })).status).toBe(201);
  const body = { type: "told", source: "custom", data: {} };
  expect((await server.call("POST", "/v1/events", { body })).status).toBe(201);
}

test("every channel is listed, with the settings that one which is not configured needs", async () => {
  await open();
  expect(await channels()).toEqual([
    expect.objectContaining({
      name: "slack",
      configured: false,
      state: "not_configured",
      required_settings: ["notifications.slack_url"],
    }),
    expect.objectContaining({ name: "email", configured: false }),
    {
      name: "webhook",
      configured: true,
      required_settings: ["notifications.webhook_url", "notifications.webhook_secret"],
      state: "unused",
      queue: { waiting: 0, sending: 0, dead: 0 },
      last_delivery_at: null,
      last_error: null,
      paused_until: null,
      last_test: null,
    },
    ...CHANNELS.slice(3).map((name) => expect.objectContaining({ name, configured: false, state: "not_configured" })),
  ]);
});

test("a channel shows its last error and its dead notifications, also after a restart, and works again once it delivers", async () => {
  answer = 404;
  await open();
  await raiseAlert();
  const failing = await vi.waitFor(async () => {
    const found = await webhook();
    expect(found.queue.dead).toBe(1);
    return found;
  }, PATIENCE);
  expect(failing).toMatchObject({ state: "failing", last_error: { message: "answered 404: no_service" } });
  const restarted = await server.restart();
  server = restarted;
  onTestFinished(() => restarted.close());
  const { message } = failing.last_error;
  expect(await webhook()).toMatchObject({ state: "failing", last_error: { message }, last_delivery_at: null });
  answer = 200;
  expect((await server.call("POST", "/v1/notifications/resend", { body: { channel: "webhook" } })).status).toBe(200);
  await vi.waitFor(async () => {
    expect(await webhook()).toMatchObject({ state: "working", last_delivery_at: expect.any(String) });
  }, PATIENCE);
});

test("a test message reports the outcome, and the channel shows it", async () => {
  answer = 200;
  await open();
  const before = peer.received.length;
  const good = await runTest();
  expect(good).toMatchObject({ status: 200, body: { data: { channel: "webhook", outcome: "sent", error: null } } });
  const sent = peer.received.slice(before);
  expect(sent).toHaveLength(1);
  expect(sent[0]!.text).toMatch(/test asked for a test/);
  expect(sent[0]!.text).toContain("https://tocsin.example");
  expect(await webhook()).toMatchObject({ state: "working", last_test: { outcome: "sent" } });
  answer = 404;
  const bad = await runTest();
  expect(bad.body.data).toMatchObject({ outcome: "refused", error: "answered 404: no_service" });
  expect(await webhook()).toMatchObject({ state: "failing", queue: { waiting: 0, dead: 0 } });
});

test("a test obeys the same address checks as a real message", async () => {
  answer = 200;
  const before = peer.received.length;
  await open({
    TOCSIN_NOTIFICATIONS_PRIVATE_ADDRESSES: "off",
    TOCSIN_NOTIFICATIONS_WEBHOOK_URL: peer.url.replace("127.0.0.1", "localhost"),
  });
  const { status, body } = await runTest();
  expect(status).toBe(200);
  expect(body.data.outcome).not.toBe("sent");
  expect(body.data.error).toMatch(/private|not allowed|public/);
  expect(peer.received).toHaveLength(before);
});

test("tests of a channel are limited, whichever key asks", async () => {
  answer = 200;
  await open();
  const other = (await server.addKey({ name: "other" })).secret;
  for (let i = 0; i < 5; i++) expect((await runTest()).status).toBe(200);
  const before = peer.received.length;
  for (const key of [server.key.secret, other]) {
    const refused = await server.call("POST", "/v1/notifications/test", { key, body: { channel: "webhook" } });
    expect(refused.status).toBe(429);
    expect(refused.body.error.code).toBe("rate_limited");
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(500);
  }
  expect(peer.received).toHaveLength(before);
});

test("tests of one channel do not run at the same time", async () => {
  let release = () => undefined as void;
  const slow = await startHttpPeer(() => new Promise((resolve) => (release = () => resolve({ status: 200 }))));
  onTestFinished(() => slow.close());
  await open({ TOCSIN_NOTIFICATIONS_WEBHOOK_URL: slow.url });
  const first = runTest();
  await vi.waitFor(() => expect(slow.received).toHaveLength(1), PATIENCE);
  expect((await runTest()).status).toBe(429);
  release();
  expect((await first).body.data.outcome).toBe("sent");
});

test("a channel that is not configured, an unknown one and a key without the scope are refused", async () => {
  await open();
  expect((await runTest("slack")).status).toBe(409);
  expect((await runTest("pigeon")).status).toBe(400);
  const reader = (await server.addKey({ scopes: ["alerts:read", "alerts:write"] })).secret;
  const body = { channel: "webhook" };
  expect((await server.call("POST", "/v1/notifications/test", { key: reader, body })).status).toBe(403);
  expect((await server.call("GET", "/v1/channels", { key: reader })).status).toBe(200);
  const stranger = (await server.addKey({ scopes: ["events:read"] })).secret;
  expect((await server.call("GET", "/v1/channels", { key: stranger })).status).toBe(403);
});

test("no answer contains an address or a secret of a channel", async () => {
  answer = 404;
  await open();
  const texts = [await runTest(), await server.call("GET", "/v1/channels")].map(({ text }) => text).join();
  expect(texts).not.toContain("secret-path");
  expect(texts).not.toContain(SECRET);
  expect(texts).not.toContain("127.0.0.1");
});
