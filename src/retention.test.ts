import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { Registry } from "prom-client";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { changed } from "../test/api-server.ts";
import { createLog } from "./lib/log.ts";
import { DAY_MS } from "./lib/time.ts";
import { startRetention } from "./retention.ts";
import { newAlert } from "./store/testing/new-alert.ts";
import { openStore } from "./store/open-store.ts";
import { StoreUnavailable } from "./store/ports/store-errors.ts";
import type { Store } from "./store/ports/store.ts";

const NOW = Date.UTC(2026, 10, 15, 12);
const SETTINGS = { eventsDays: 365, flowsDays: 30, alertsDays: 10, shareMax: 100 };
const RESOLVED = { status: "resolved", resolution: "benign", createdAt: NOW - 40 * DAY_MS } as const;

let store: Store;
let lines: Record<string, any>[];

beforeEach(async () => {
  lines = [];
  const dataDir = mkdtempSync(join(tmpdir(), "tocsin-retention-"));
  const registry = new Registry();
  store = await openStore({
    dataDir,
    platform: "platform",
    indexPrefix: "tocsin",
    registry,
    log: log(),
    now: () => NOW,
  });
  onTestFinished(async () => {
    await store.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
});

function log() {
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (const line of chunk.toString().split("\n")) if (line !== "") lines.push(JSON.parse(line));
      done();
    },
  });
  return createLog({ level: "info", destination });
}

async function start(around: Store, everyMs: number) {
  const options = { store: around, settings: SETTINGS, registry: new Registry(), log: log(), now: () => NOW, everyMs };
  return startRetention(options);
}

const messages = () => lines.map(({ msg }) => msg as string);
const commit = (...alerts: Parameters<Store["alerts"]["commit"]>[0]["alerts"]) =>
  store.alerts.commit({ alerts, timeline: [] });

test("alerts are removed once their resolution is old enough, at the start and in every run, and each run logs their number", async () => {
  const old = newAlert({ ...RESOLVED, resolvedAt: NOW - 10 * DAY_MS - 1 });
  const young = newAlert({ ...RESOLVED, resolvedAt: NOW - 10 * DAY_MS });
  const open = newAlert({ createdAt: NOW - 4000 * DAY_MS });
  await commit(old, young, open);
  const retention = await start(store, 20);
  await expect.poll(() => store.alerts.get(old.id)).toBeUndefined();
  const later = newAlert({ ...RESOLVED, resolvedAt: NOW - 11 * DAY_MS });
  await commit(later, newAlert({ ...RESOLVED, resolvedAt: NOW - 11 * DAY_MS }));
  await expect.poll(() => store.alerts.get(later.id)).toBeUndefined();
  await retention.close();
  expect(await store.alerts.getMany([young.id, open.id])).toMatchObject([{ id: young.id }, { id: open.id }]);
  const told = lines.filter(({ msg }) => msg === "old alerts removed");
  expect(told[0]).toMatchObject({ alerts: 1 });
  expect(told.reduce((sum, { alerts }) => sum + (alerts as number), 0)).toBe(3);
});

test("a failed removal is logged, retried in the next run, and does not block the others", async () => {
  const old = newAlert({ ...RESOLVED, resolvedAt: NOW - 11 * DAY_MS });
  await commit(old);
  let failures = 0;
  const failing = <Value>(answer: () => Promise<Value>) => {
    if (failures++ < 2) return Promise.reject(new StoreUnavailable("disk_full", "no room"));
    return answer();
  };
  const troubled = changed(store, {
    events: changed(store.events, { removeBefore: (ms) => failing(() => store.events.removeBefore(ms)) }),
    alerts: changed(store.alerts, {
      removeResolvedBefore: (...args) => failing(() => store.alerts.removeResolvedBefore(...args)),
    }),
  });
  const retention = await start(troubled, 20);
  await expect.poll(() => store.alerts.get(old.id)).toBeUndefined();
  await retention.close();
  expect(messages()).toEqual([
    "old days of events not removed; the next run retries",
    "old alerts not removed; the next run retries",
    "old alerts removed",
  ]);
  expect(lines[1]).toMatchObject({ level: "error", err: { message: "no room" } });
});

test("neither a start nor a stop waits until all old alerts are removed", async () => {
  const old = Array.from({ length: 3000 }, () => newAlert({ ...RESOLVED, resolvedAt: NOW - 11 * DAY_MS }));
  for (let i = 0; i < old.length; i += 500) await commit(...old.slice(i, i + 500));
  const retention = await start(store, DAY_MS);
  const count = async () => (await store.alerts.totals({})).total;
  expect(await count()).toBeGreaterThan(0);
  await expect.poll(count, { interval: 1 }).toBeLessThan(old.length);
  await retention.close();
  const left = await count();
  expect(left).toBeGreaterThan(0);
  expect(lines).toMatchObject([{ msg: "old alerts removed", alerts: old.length - left }]);
});
