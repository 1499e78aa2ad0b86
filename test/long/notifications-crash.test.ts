import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { startHttpPeer } from "../../src/notify/peers.fixture.ts";
import { makeKey, startServer, type ServerProcess } from "../server-process.ts";
import { tocsin } from "../tocsin.ts";

// Notifications when the process is killed while sending: none is lost, and repeated ones are marked.

const PATIENCE = { timeout: 100_000, interval: 50 };
/** Each round costs a start of the server; the tested behaviour is the same in all of them. */
const ROUNDS = 1;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tocsin-notify-crash-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const RULE = {
  name: "crash.told",
  description: "Every event of the test is an alert",
  severity: "high",
  conditions: [{ field: "type", equals: "told" }],
  dedup: { period: "1s", by: "raw.n" },
  actions: [{ alert: { channels: ["webhook"] } }],
};

it("a kill during a message loses no notification and repeats only that message, marked as repeated", async () => {
  let hold: ((answer: { status: number }) => void) | undefined;
  const held: string[] = [];
  // Every other message gets no response: the process is killed while it waits.
  let isHolding = false;
  const peer = await startHttpPeer((_, { headers }) => {
    if (!isHolding) return { status: 200 };
    isHolding = false;
    held.push(String(headers["x-tocsin-delivery"]));
    return new Promise((resolve) => (hold = resolve));
  });
  onTestFinished(() => peer.close());
  const dataDir = join(folder, "killed");
  const key = await makeKey(dataDir);
  const variables = {
    TOCSIN_NOTIFICATIONS_WEBHOOK_URL: peer.url,
    TOCSIN_NOTIFICATIONS_WEBHOOK_SECRET: "a-secret-of-the-webhook",
    TOCSIN_NOTIFICATIONS_PRIVATE_ADDRESSES: "on",
    TOCSIN_ANALYSIS_AUTOMATIC_FROM: "off",
  };
  const start = async (): Promise<ServerProcess> => {
    const server = await startServer({ dataDir, variables });
    onTestFinished(async () => void (await server.end("SIGKILL")));
    return server;
  };
  const ask = async ({ address }: ServerProcess, path: string, body?: unknown): Promise<any> => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const request = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
    return (await fetch(address + path, request)).json();
  };
  let server = await start();
  expect((await ask(server, "/v1/rules", RULE)).data.name).toBe(RULE.name);
  let sent = 0;
  for (let round = 0; round < ROUNDS; round++) {
    isHolding = true;
    await ask(server, "/v1/events", { type: "told", source: "custom", data: { n: sent++ } });
    await vi.waitFor(() => expect(held).toHaveLength(round + 1), PATIENCE);
    // Further notifications that are only queued at the kill.
    await ask(server, "/v1/events", { type: "told", source: "custom", data: { n: sent++ } });
    await vi.waitFor(async () => {
      expect((await ask(server, "/v1/notifications?limit=1")).pagination.total).toBe(sent);
    }, PATIENCE);
    await server.end("SIGKILL");
    hold!({ status: 200 });
    server = await start();
    await vi.waitFor(async () => {
      expect((await ask(server, "/v1/notifications?status=sent")).pagination.total).toBe(sent);
    }, PATIENCE);
  }

  const alerts = (await ask(server, `/v1/alerts?rule_name=${RULE.name}`)).data.map(({ id }: any) => id);
  expect(alerts).toHaveLength(sent);
  const told = new Map<string, (string | undefined)[]>();
  for (const { headers, body } of peer.received) {
    for (const { alert } of body.notifications) {
      told.set(alert.id, [...(told.get(alert.id) ?? []), headers["x-tocsin-repeat"] as string | undefined]);
    }
  }
  expect([...told.keys()].sort()).toEqual(alerts.toSorted());
  const times = [...told.values()].map((marks) => marks.join()).sort();
  // Sent once without a mark, or twice, the second time marked and with the same delivery id.
  expect(times).toEqual([
    ...Array.from({ length: ROUNDS }, () => ""),
    ...Array.from({ length: ROUNDS }, () => ",true"),
  ]);
  for (const delivery of held) {
    expect(peer.received.filter(({ headers }) => headers["x-tocsin-delivery"] === delivery)).toHaveLength(2);
  }
  expect(await server.end()).toBe(0);
});

it("the command line can test a channel, with the result as exit code", async () => {
  let status = 200;
  const peer = await startHttpPeer(() => ({ status, text: "no_service" }));
  onTestFinished(() => peer.close());
  const env = { TOCSIN_NOTIFICATIONS_SLACK_URL: peer.url, TOCSIN_NOTIFICATIONS_PRIVATE_ADDRESSES: "on" };
  const sent = await tocsin(["notify", "test", "slack"], env);
  expect([sent.code, sent.stdout]).toEqual([0, "Delivered to slack.\n"]);
  expect(peer.received[0]!.body.text).toContain("Test message");
  status = 404;
  const refused = await tocsin(["notify", "test", "slack", "--json"], env);
  expect(refused.code).toBe(1);
  expect(JSON.parse(refused.stdout)).toEqual({
    channel: "slack",
    outcome: "refused",
    error: "answered 404: no_service",
  });
  const absent = await tocsin(["notify", "test", "email"], env);
  expect([absent.code, absent.stderr]).toEqual([2, expect.stringContaining("not configured")]);
  const half = await tocsin(["notify", "test", "email"], { TOCSIN_NOTIFICATIONS_EMAIL_HOST: "mail.example.com" });
  expect([half.code, half.stderr]).toEqual([2, expect.stringContaining("notifications.email_from")]);
});
