import { cpSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestServer, openTestServerIn, type TestServer } from "../test/api-server.ts";
import { DAY_MS, formatDay, formatTime } from "./lib/time.ts";
import { newAlert } from "./store/testing/new-alert.ts";
import { openStorageNotes } from "./store/open-store.ts";

// Removal is final: retention needs a confirmation after the clock has jumped, or before it removes a large share at once.

const NOW = Date.UTC(2026, 5, 15, 12);
const clock = { ms: NOW };
let filled: string;
let server: TestServer;
/** Every test begins with a copy of a folder that has an event on each of sixty days: making the files takes longer. */
beforeAll(async () => {
  const first = await openTestServer({ now: () => clock.ms });
  const events = Array.from({ length: 60 }, (_, n) => ({
    type: "login_failure",
    source: "custom",
    data: { n },
    timestamp: formatTime(NOW - n * DAY_MS),
  }));
  expect((await first.call("POST", "/v1/events/batch", { body: events })).body.data.accepted).toBe(60);
  await first.stop();
  filled = first.dataDir;
});
afterAll(() => rmSync(filled, { recursive: true, force: true }));
beforeEach(() => {
  clock.ms = NOW;
});
afterEach(() => server.close());

type Options = Parameters<typeof openTestServer>[0];
const start = async (more: Options = {}) => {
  const dataDir = mkdtempSync(join(tmpdir(), "tocsin-retention-"));
  cpSync(filled, dataDir, { recursive: true });
  server = await openTestServerIn(dataDir, { now: () => clock.ms, ...more });
};
const restart = async (more: Options = {}) => {
  server = await server.restart(undefined, more);
};
const count = () => server.store.events.count();
const status = async () => (await server.call("GET", "/readyz")).body.data.retention;
const metric = async (name: string) => {
  const { text } = await server.call("GET", "/metrics");
  return Number(new RegExp(`^tocsin_retention_${name} (\\d+)`, "m").exec(text)?.[1]);
};
const confirm = async () => {
  const notes = await openStorageNotes({ dataDir: server.dataDir, indexPrefix: "tocsin" });
  const confirmed = await notes.confirm();
  await notes.close();
  return confirmed;
};
const withDays = (eventsDays: number) => ({
  settings: { retention: { eventsDays, flowsDays: 30, alertsDays: 730, shareMax: 25 } },
});

test("a clock that is 400 days ahead at the start removes nothing until somebody confirms it or sets it back", async () => {
  clock.ms += 400 * DAY_MS;
  await start();
  expect(await count()).toBe(60);
  expect(await status()).toEqual({
    status: "paused",
    messages: [expect.stringMatching(/^60 events .*400 days ahead/)],
  });
  expect([await metric("paused"), await metric('held_rows{kind="events"}')]).toEqual([1, 60]);
  expect(server.log.filter(({ msg }) => String(msg).startsWith("retention is paused"))).toHaveLength(1);
  clock.ms = NOW;
  await restart();
  expect(await status()).toEqual({ status: "running", messages: [] });
  clock.ms += 400 * DAY_MS;
  await restart();
  // Beside the running server, like the command.
  expect(await confirm()).toBe(clock.ms);
  await expect.poll(count, { timeout: 20_000 }).toBe(0);
  await expect.poll(async () => (await status()).status, { timeout: 20_000 }).toBe("running");
});

test("a lower setting that would remove most of the data waits for a confirmation", async () => {
  await start(withDays(10));
  expect(await count()).toBe(60);
  expect(await status()).toMatchObject({ status: "paused", messages: [expect.stringMatching(/^49 events .*82 %/)] });
  expect(await confirm()).toBe(NOW);
  await restart(withDays(10));
  expect(await count()).toBe(11);
  expect(await status()).toEqual({ status: "running", messages: [] });
  // The confirmation is used up: the next large removal waits again.
  await restart(withDays(2));
  expect(await count()).toBe(11);
});

test("a lower setting that removes less than the share needs no confirmation, nor do the days that expire later", async () => {
  await start(withDays(50));
  expect(await count()).toBe(51);
  for (let day = 1; day <= 3; day++) {
    clock.ms += DAY_MS;
    await restart(withDays(50));
    expect(await count()).toBe(51 - day);
  }
});

test("a day that expires as time passes is removed without a confirmation, however large its share", async () => {
  await start();
  await server.store.retention.save({ confirmedAt: NOW });
  await restart(withDays(1));
  expect(await count()).toBe(2);
  clock.ms += DAY_MS;
  await restart(withDays(1));
  expect(await count()).toBe(1);
});

test("alerts and exports survive a jump of the clock as well", async () => {
  await start();
  const resolved = { status: "resolved", resolution: "benign", createdAt: NOW, resolvedAt: NOW } as const;
  const alert = newAlert(resolved);
  await server.store.alerts.commit({ alerts: [alert], timeline: [] });
  const range = { from: formatTime(NOW - DAY_MS), to: formatTime(NOW + DAY_MS) };
  const asked = await server.call("POST", "/v1/events/export", { body: { format: "csv", time_range: range } });
  const { id } = asked.body.data;
  const get = () => server.call("GET", `/v1/events/exports/${id}`);
  await expect.poll(async () => (await get()).body.data.status, { timeout: 20_000 }).toBe("completed");
  clock.ms += 1000 * DAY_MS;
  await restart();
  expect((await status()).messages).toEqual(expect.arrayContaining([expect.stringMatching(/^1 alerts /)]));
  clock.ms = NOW + 1000;
  await restart();
  expect(await server.store.alerts.get(alert.id)).toMatchObject({ id: alert.id });
  expect((await get()).body.data.status).toBe("completed");
  expect(existsSync(join(server.dataDir, "events", `tocsin-events-${formatDay(NOW - (NOW % DAY_MS))}.db`))).toBe(true);
});
