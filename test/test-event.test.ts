import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TEST_SOURCES } from "../src/demo/test-samples.ts";
import type { Event } from "../src/model/event.ts";
import { makeKey } from "./server-process.ts";
import { makeFolder, startTocsin, tocsin, type Running } from "./tocsin.ts";

// The command against a running service, with its ports and its secret.

const SECRET = "a secret of the access controller";
const folder = makeFolder();
let server: Running;
let env: Record<string, string>;

beforeAll(async () => {
  const dataDir = join(folder, "data");
  const key = await makeKey(dataDir);
  env = { TOCSIN_COLLECTORS_ACCESS_SECRET: SECRET, TOCSIN_COLLECTORS_ADDRESSES: "127.0.0.1" };
  server = await startTocsin(dataDir, {
    env: { ...env, TOCSIN_SYSLOG_PORT: "0", TOCSIN_TIMEZONE: "Pacific/Auckland" },
  });
  env = { ...env, TOCSIN_URL: server.address, TOCSIN_KEY: key };
});
afterAll(async () => {
  await server?.stop("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

test("a service that requires signed access events: the refusal names the setting of the secret", async () => {
  const { TOCSIN_COLLECTORS_ACCESS_SECRET: _, ...unsigned } = env;
  for (const wrong of [[], ["--collectors-access-secret", "another secret of sixteen letters"]]) {
    const { code, stderr } = await tocsin(["test-event", "access", ...wrong], unsigned);
    expect(stderr).toMatch(/refused: the .*sign.*\n.*--collectors-access-secret.*TOCSIN_COLLECTORS_ACCESS_SECRET/);
    expect(code).toBe(1);
  }
});

test("an event of each source arrives and is shown with its id and the current time", async () => {
  const startedAtMs = Date.now();
  const outcomes = await Promise.all(TEST_SOURCES.map((source) => tocsin(["test-event", source, "--json"], env)));
  const told = outcomes.map(({ stdout, stderr }) => {
    expect(stderr).toBe("");
    return JSON.parse(stdout) as { sent: string; event: Event; rules: string[] };
  });
  expect(told.map(({ event }) => event.source)).toEqual([
    "platform_network",
    "platform_protect",
    "platform_access",
    "platform_talk",
    "custom",
    "platform_network",
    "platform_network",
    "platform_network",
  ]);
  for (const { event } of told) {
    expect(event.id).toMatch(/^evt_/);
    expect(event.type).not.toBe("unparsed");
    expect(Date.parse(event.timestamp)).toBeGreaterThanOrEqual(Math.floor(startedAtMs / 1000) * 1000);
    expect(Date.parse(event.timestamp)).toBeLessThanOrEqual(Date.now());
  }
  expect(told[5]!.sent).toMatch(/^TCP to 127.0.0.1 port \d+$/);
  // This service has no EVE port.
  expect(told[7]!.sent).toBe("POST /v1/collect/eve");
});

const WINDOW_MS_MIN = 40_000;

/** A key of the plan with the lowest limit, at a time when its window does not end soon. */
async function makeStarterKey() {
  const args = ["--name", "few", "--scopes", "events:read,events:write,alerts:read,rules:read", "--json"];
  const { stdout } = await tocsin(["keys", "create", "--plan", "starter", ...args, "--data-dir", join(folder, "data")]);
  const { key: secret } = JSON.parse(stdout) as { key: string };
  /** Makes one request and returns how many are left after it. */
  const countLeft = async () => {
    const { headers } = await fetch(`${server.address}/v1/rules?per_page=1`, {
      headers: { authorization: `Bearer ${secret}` },
    });
    return {
      left: Number(headers.get("x-ratelimit-remaining")),
      endsAtMs: Number(headers.get("x-ratelimit-reset")) * 1000,
    };
  };
  const { endsAtMs } = await countLeft();
  if (endsAtMs - Date.now() < WINDOW_MS_MIN) await sleep(endsAtMs - Date.now() + 1000);
  return { env: { ...env, TOCSIN_KEY: secret }, countLeft };
}

async function addRules(names: readonly string[]): Promise<void> {
  for (const name of names) {
    const body = JSON.stringify({
      name,
      description: "Any test event.",
      severity: "low",
      conditions: [{ field: "type", equals: "test_event" }],
      actions: [{ alert: { channels: [] } }],
    });
    const headers = { authorization: `Bearer ${env["TOCSIN_KEY"]}`, "content-type": "application/json" };
    const answer = await fetch(`${server.address}/v1/rules`, { method: "POST", headers, body });
    expect(answer.status).toBe(201);
  }
}

test("a run takes few requests of a plan's limit, however many alerts there are", async () => {
  const names = Array.from({ length: 10 }, (_, i) => `test.rule_${i}`);
  await addRules(names);
  const { env: few, countLeft } = await makeStarterKey();
  const before = (await countLeft()).left;
  const made = await tocsin(["test-event", "custom", "--json"], few);
  expect(made).toMatchObject({ code: 0, stderr: "" });
  expect((JSON.parse(made.stdout) as { rules: string[] }).rules.toSorted()).toEqual(names);
  const none = await tocsin(["test-event", "talk"], few);
  expect(none).toMatchObject({ code: 0, stdout: expect.stringContaining("No rule raised an alert.") });
  expect((await countLeft()).left).toBeGreaterThan(before - 45);
});

test("an event is reported as stored even if no request is left to look for rules", async () => {
  const { env: few, countLeft } = await makeStarterKey();
  while ((await countLeft()).left > 2);
  const outcome = await tocsin(["test-event", "custom"], few);
  expect(outcome).toMatchObject({ code: 0, stderr: "" });
  expect(outcome.stdout).toMatch(/found after \d+ ms: evt_/);
  expect(outcome.stdout).toMatch(/Alerts could not be checked: .*limit of 60 requests per minute/);
  const next = await tocsin(["test-event", "custom"], few);
  expect(next).toMatchObject({ code: 1, stderr: expect.stringContaining("limit of 60 requests per minute") });
});

test("a collector key is shown with the address to post to, which works", async () => {
  const args = ["keys", "create", "--name", "doors", "--scopes", "collect:talk", "--data-dir", join(folder, "data")];
  const { stdout } = await tocsin(args);
  const path = /http:\/\/<this service>:<port>(\/v1\/collect\/talk\/tsn_\S+)/.exec(stdout)![1]!;
  const body = JSON.stringify({ uuid: "1", from: "100", to: "101", direction: "out", status: "answered", duration: 5 });
  const answer = await fetch(server.address + path, { method: "POST", body: new TextEncoder().encode(body) });
  expect(answer.status).toBe(200);
  expect(server.output()).not.toContain(path.slice(-64));
});

test("prints text, and each fault with its remedy", async () => {
  const [full, halfName, said, toaster, nobody, keyless] = await Promise.all([
    tocsin(["test-event", "platform_network", "--json"], env),
    tocsin(["test-event", "platform_custom"], env),
    tocsin(["test-event", "custom"], env),
    tocsin(["test-event", "toaster"], env),
    tocsin(["test-event", "custom"], { ...env, TOCSIN_URL: "http://127.0.0.1:9" }),
    tocsin(["test-event", "custom"], { ...env, TOCSIN_KEY: "" }),
  ]);
  expect(JSON.parse(full.stdout)).toMatchObject({ source: "network", event: { source: "platform_network" } });
  expect(halfName).toMatchObject({ code: 2 });
  expect(said.stdout).toMatch(/Sent by POST \/v1\/events, found after \d+ ms: evt_/);
  expect(toaster).toMatchObject({ code: 2 });
  expect(nobody).toMatchObject({ code: 1, stderr: expect.stringContaining("No service answers") });
  expect(keyless).toMatchObject({ code: 2 });
});

test("a sender that is not allowed is told where to look", async () => {
  const dataDir = join(folder, "closed");
  const key = await makeKey(dataDir);
  const closed = await startTocsin(dataDir, {
    env: { ...env, TOCSIN_SYSLOG_PORT: "0", TOCSIN_COLLECTORS_ALLOWED_SENDERS: "192.0.2.1" },
  });
  try {
    const told = await tocsin(["test-event", "syslog"], { ...env, TOCSIN_URL: closed.address, TOCSIN_KEY: key });
    expect(told).toMatchObject({ code: 1, stdout: "" });
    expect(told.stderr).toContain(
      "GET /v1/collectors lists refusals with their reasons, such as a sender that collectors.allowed_senders",
    );
  } finally {
    await closed.stop("SIGKILL");
  }
});
