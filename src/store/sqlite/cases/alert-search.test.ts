import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Position } from "../../../model/page.ts";
import { newAlert } from "../../testing/new-alert.ts";
import type { QueryContext } from "../../ports/query-context.ts";
import { StoreUnavailable } from "../../ports/store-errors.ts";
import { HEAVY_PER_CLIENT_MAX } from "../../queries/query-lanes.ts";
import { openCaseDatabase, type SqliteCaseDatabase } from "./case-database.ts";

// A search for a phrase reads every alert that contains its words. It runs in slices, so that other calls are not delayed and
// it can be stopped.

const folder = mkdtempSync(join(tmpdir(), "tocsin-alert-search-"));
/** Enough that a search takes several slices even on a fast machine. */
const ALERTS = 10_000;
const BATCH_ALERTS = 500;
const WORDS = "many passwords were tried from one address within minutes ".repeat(20);
const PAGE: Position = { mode: "page", page: 1, size: 10 };

let cases: SqliteCaseDatabase;
const open = () => openCaseDatabase({ dataDir: folder, registry: new Registry(), now: Date.now });
const search = (words: string, context?: QueryContext) =>
  cases.alerts.list({ search: words }, PAGE, "created_at", true, context);
/** A phrase whose words are in every alert, and which is in none. */
const slow = (context?: QueryContext) => search('"minutes within address"', context);

beforeAll(async () => {
  cases = await open();
  for (let count = 0; count < ALERTS; count += BATCH_ALERTS) {
    const alerts = Array.from({ length: BATCH_ALERTS }, (_, i) => {
      const isResolved = i % 2 === 0;
      const status = isResolved ? ("resolved" as const) : ("open" as const);
      return { ...newAlert(), description: WORDS, status, resolvedAt: isResolved ? 1000 : null };
    });
    expect(await cases.alerts.commit({ alerts, timeline: [] })).toEqual([]);
  }
});
afterAll(async () => {
  await cases.close();
  rmSync(folder, { recursive: true, force: true });
});

test("other calls are answered while a search runs", async () => {
  const answered: string[] = [];
  const searches = [slow(), slow()].map((running) => running.then(() => answered.push("search")));
  await cases.alerts.lastChange();
  answered.push("other");
  await Promise.all(searches);
  expect(answered).toEqual(["other", "search", "search"]);
});

test("a search stops when its client disconnects", async () => {
  const client = new AbortController();
  const running = slow({ signal: client.signal });
  client.abort(new Error("gone"));
  await expect(running).rejects.toThrow("gone");
  expect((await search('"passwords were tried"')).total).toBe(ALERTS);
});

test("a client with too many searches in flight is refused, and other clients are answered", async () => {
  const client = new AbortController();
  const context = { client: "key_1", signal: client.signal };
  const running = Array.from({ length: HEAVY_PER_CLIENT_MAX }, () => slow(context));
  const ended = Promise.allSettled(running);
  await expect(slow(context)).rejects.toMatchObject({ reason: "queue_full", retryAfterSeconds: expect.any(Number) });
  expect(cases.refused).toBe(1);
  expect((await search('"passwords were tried"', { client: "key_2" })).total).toBe(ALERTS);
  client.abort();
  await ended;
});

test("the store closes without waiting for a search", async () => {
  const running = expect(slow()).rejects.toBeInstanceOf(StoreUnavailable);
  await cases.close();
  await running;
  cases = await open();
});

test("a search does not return alerts that were removed or created while it ran", async () => {
  const running = search('"passwords were tried"');
  const removed = cases.alerts.removeResolvedBefore(Date.now(), new AbortController().signal);
  const created = cases.alerts.commit({ alerts: [{ ...newAlert(), description: "Another one" }], timeline: [] });
  const { items } = await running;
  expect(items.every(({ description }) => description === WORDS)).toBe(true);
  await created;
  expect(await removed).toBe(ALERTS / 2);
  expect((await search('"passwords were tried"')).total).toBe(ALERTS / 2);
});
