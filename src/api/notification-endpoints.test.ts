import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { loadSettings } from "../config/config.ts";
import type { Settings } from "../config/settings.ts";
import { startHttpPeer, type HttpPeer } from "../notify/peers.fixture.ts";

const PATIENCE = { timeout: 100_000, interval: 20 };

let server: TestServer;
let peer: HttpPeer;
let answer = 404;

function settingsFor({ url }: HttpPeer, more: Record<string, string> = {}): Settings["notifications"] {
  const environment = {
    TOCSIN_NOTIFICATIONS_WEBHOOK_URL: url,
    TOCSIN_NOTIFICATIONS_WEBHOOK_SECRET: "the-secret-of-the-webhook",
    TOCSIN_NOTIFICATIONS_PRIVATE_ADDRESSES: "on",
    TOCSIN_NOTIFICATIONS_CONSOLE_URL: "https://tocsin.example/",
    ...more,
  };
  const loaded = loadSettings({ environment, workingFolder: "/" });
  if ("faults" in loaded) throw new Error(JSON.stringify(loaded.faults));
  return loaded.settings.notifications;
}

beforeAll(async () => {
  peer = await startHttpPeer(() => ({ status: answer, text: answer === 200 ? "ok" : "no_service" }));
  server = await openTestServer({ settings: { notifications: settingsFor(peer) } });
});
afterAll(async () => {
  await server.close();
  await peer.close();
});

let rules = 0;
async function alertOf(channels: string[], on = server): Promise<string> {
  const name = `told.rule_${++rules}`;
  const conditions = [{ field: "type", equals: name }];
  const rule = { name, description: "Told.", severity: "high", conditions, actions: [{ alert: { channels } }] };
  expect((await on.call("POST", "/v1/rules", { body: rule })).status).toBe(201);
  const event = { type: name, source: "custom", data: {} };
  expect((await on.call("POST", "/v1/events", { body: event })).status).toBe(201);
  return vi.waitFor(async () => {
    const { body } = await on.call("GET", `/v1/alerts?rule_name=${name}`);
    expect(body.data).toHaveLength(1);
    return body.data[0].id as string;
  }, PATIENCE);
}

const list = async (query: string) => (await server.call("GET", `/v1/notifications?${query}`)).body;
const settled = (alertId: string, status: string) =>
  vi.waitFor(async () => {
    const { data } = await list(`alert_id=${alertId}&status=${status}`);
    expect(data).toHaveLength(1);
    return data[0];
  }, PATIENCE);

test("a dead notification is listed with its error, resent by an authorised key, and then delivered", async () => {
  answer = 404;
  const alertId = await alertOf(["webhook", "slack"]);
  const dead = await settled(alertId, "dead");
  expect(dead).toMatchObject({
    alert_id: alertId,
    channel: "webhook",
    reason: "created",
    attempts: 1,
    repeat: false,
    next_attempt_at: null,
    error: "answered 404: no_service",
  });
  expect((await list(`alert_id=${alertId}`)).pagination.total).toBe(1);
  expect((await list("channel=slack")).data).toEqual([]);
  answer = 200;
  const reader = await server.addKey({ scopes: ["alerts:read"] });
  const path = `/v1/notifications/${dead.id}/resend`;
  expect((await server.call("POST", path, { key: reader.secret })).status).toBe(403);
  const resent = await server.call("POST", path);
  const { paths } = (await server.call("GET", "/openapi.json")).body;
  const { example } = paths["/v1/notifications/{id}/resend"].post.responses["200"].content["application/json"];
  const { id: deadId, created_at } = dead;
  const own = { id: deadId, alert_id: alertId, channel: "webhook", created_at };
  expect(resent.status).toBe(200);
  expect(resent.body.data).toEqual({ ...example.data, ...own });
  const sent = await settled(alertId, "sent");
  expect(sent.id).toBe(dead.id);
  expect(peer.received.at(-1)!.body.notifications[0]).toMatchObject({
    alert: { id: alertId },
    api_url: `https://tocsin.example/v1/alerts/${alertId}`,
  });
  const again = await server.call("POST", path);
  expect([again.status, again.body.error.code]).toEqual([409, "conflict"]);
  const { timeline } = (await server.call("GET", `/v1/alerts/${alertId}`)).body.data;
  const outcomes = timeline
    .filter(({ kind }: any) => kind === "notified")
    .map((entry: any) => [entry.channel, entry.outcome]);
  expect(outcomes).toEqual([
    ["slack", "not_configured"],
    ["webhook", "failed"],
    ["webhook", "sent"],
  ]);
});

test("all dead notifications of a channel are resent at once", async () => {
  answer = 410;
  const ids = await Promise.all([alertOf(["webhook"]), alertOf(["webhook"])]);
  for (const id of ids) await settled(id, "dead");
  answer = 200;
  const { status, body } = await server.call("POST", "/v1/notifications/resend", { body: { channel: "webhook" } });
  expect([status, body.data.resent]).toEqual([200, 2]);
  for (const id of ids) await settled(id, "sent");
});

test("the list supports pages and cursors and refuses unknown parameters", async () => {
  const all = await list("per_page=100");
  expect(all.data.length).toBeGreaterThan(2);
  const first = await list("limit=2");
  const rest = await list(`after=${first.pagination.next_cursor}&limit=100`);
  expect([...first.data, ...rest.data]).toEqual(all.data);
  for (const query of ["status=lost", "channel=pigeon", "page=1&limit=1", "after=ntf_0", "color=red"]) {
    expect((await server.call("GET", `/v1/notifications?${query}`)).status, query).toBe(400);
  }
  const writer = await server.addKey({ scopes: ["alerts:write"] });
  expect((await server.call("GET", "/v1/notifications", { key: writer.secret })).status).toBe(403);
});

test("a notification that does not exist or whose channel is not configured cannot be resent", async () => {
  expect((await server.call("POST", "/v1/notifications/ntf_0/resend")).status).toBe(404);
  const resendAll = () => server.call("POST", "/v1/notifications/resend", { body: { channel: "slack" } });
  expect((await resendAll()).body.data).toEqual({ resent: 0 });
  const alertId = await alertOf([]);
  const dead = { id: "ntf_1", alertId, channel: "slack", reason: "created", createdAt: 1 } as const;
  const { alerts, notifications } = server.store;
  await alerts.commit({ alerts: [], timeline: [], notifications: [dead] });
  await notifications.begin("slack", "dlv_1", 1);
  await notifications.settle("dlv_1", { status: "dead", error: "gone" }, 2, []);
  for (const answer of [await resendAll(), await server.call("POST", "/v1/notifications/ntf_1/resend")]) {
    expect([answer.status, answer.body.error.code]).toEqual([409, "conflict"]);
    expect(answer.body.error.message).toContain("slack is not configured");
  }
});

test("neither the address nor the secret appears in the log or in a response", async () => {
  const seen = JSON.stringify([server.log, await list("per_page=100")]);
  expect(seen).not.toContain("secret-path");
  expect(seen).not.toContain("the-secret");
});

test("alerts of built-in rules notify from a configured severity on", async () => {
  answer = 200;
  const { data: builtins } = (await server.call("GET", "/v1/rules?per_page=100")).body;
  const channelsOf = (severity: string) =>
    builtins
      .filter((rule: any) => rule.builtin && rule.severity === severity)
      .map((rule: any) => rule.actions[0].alert.channels);
  for (const severity of ["critical", "high"])
    expect(new Set(channelsOf(severity).flat()), severity).toEqual(new Set(["webhook"]));
  for (const severity of ["medium", "low", "info"]) expect(channelsOf(severity).flat(), severity).toEqual([]);
  const event = { type: "anything", source: "custom", severity: "critical", data: {} };
  await server.call("POST", "/v1/events", { body: event });
  const alertId = await vi.waitFor(async () => {
    const { body } = await server.call("GET", "/v1/alerts?rule_name=custom.critical_event");
    expect(body.data).toHaveLength(1);
    return body.data[0].id as string;
  }, PATIENCE);
  expect(await settled(alertId, "sent")).toMatchObject({ channel: "webhook", reason: "created" });
});

test("each resolution notifies with its actor, resolution and comment", async () => {
  const told = await startHttpPeer();
  const own = await openTestServer({
    settings: { notifications: settingsFor(told, { TOCSIN_NOTIFICATIONS_ON_RESOLVE: "on" }) },
  });
  onTestFinished(async () => {
    await own.close();
    await told.close();
  });
  const alertId = await alertOf(["webhook"], own);
  const { secret } = await own.addKey({ name: "ann" });
  const move = async (action: string, body?: object) => {
    const { status, text } = await own.call("POST", `/v1/alerts/${alertId}/${action}`, { key: secret, body });
    expect(status, text).toBe(200);
  };
  await move("resolve", { resolution: "benign", comment: "a drill", actions_taken: ["asked Ben"] });
  await move("reopen");
  await move("resolve", { resolution: "duplicate" });
  const items = () => told.received.flatMap(({ body }) => body.notifications as any[]);
  await vi.waitFor(() => expect(items()).toHaveLength(4), PATIENCE);
  expect(items().map(({ reason, resolved }) => [reason, resolved])).toEqual([
    ["created", undefined],
    ["resolved", { resolution: "benign", by: "ann", comment: "a drill", actions_taken: ["asked Ben"] }],
    ["reopened", undefined],
    ["resolved", { resolution: "duplicate", by: "ann", comment: null, actions_taken: [] }],
  ]);
});
