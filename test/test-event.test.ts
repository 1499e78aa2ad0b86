import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { TEST_SOURCES } from "../src/demo/test-samples.ts";
import { makeKey } from "./server-process.ts";
import { makeFolder, startTocsin, tocsin, type Running } from "./tocsin.ts";

// The command against a running service, with its ports and its secret.

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const SECRET = "a secret of the access controller";
const folder = makeFolder();
let server: Running;
let env: Record<string, string>;

beforeAll(async () => {
  const dataDir = join(folder, "data");
  const key = await makeKey(dataDir);
  env = { TOCSIN_COLLECTORS_ACCESS_SECRET: SECRET, TOCSIN_COLLECTORS_ADDRESSES: "127.0.0.1" };
  server = await startTocsin(dataDir, { env: { ...env, TOCSIN_SYSLOG_PORT: "0" } });
  env = { ...env, TOCSIN_URL: server.address, TOCSIN_KEY: key };
});
afterAll(async () => {
  await server?.stop("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

test("an event of each source goes all the way and is shown with its id", async () => {
  const outcomes = await Promise.all(TEST_SOURCES.map((source) => tocsin(["test-event", source, "--json"], env)));
  const told = outcomes.map(({ stdout, stderr }) => {
    expect(stderr).toBe("");
    return JSON.parse(stdout) as { sent: string; event: { id: string; type: string; source: string }; rules: string[] };
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
  }
  expect(told[5]!.sent).toMatch(/^TCP to 127.0.0.1 port \d+$/);
  // There is no port for EVE here.
  expect(told[7]!.sent).toBe("POST /v1/collect/eve");
});

test("a key for a collector is shown with the address to post to, which works", async () => {
  const args = ["keys", "create", "--name", "doors", "--scopes", "collect:talk", "--data-dir", join(folder, "data")];
  const { stdout } = await tocsin(args);
  const path = /http:\/\/<this service>:<port>(\/v1\/collect\/talk\/tsn_\S+)/.exec(stdout)![1]!;
  const body = JSON.stringify({ uuid: "1", from: "100", to: "101", direction: "out", status: "answered", duration: 5 });
  const answer = await fetch(server.address + path, { method: "POST", body: new TextEncoder().encode(body) });
  expect(answer.status).toBe(200);
  expect(server.output()).not.toContain(path.slice(-64));
});

test("in words; and what is wrong is told with its remedy", async () => {
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
