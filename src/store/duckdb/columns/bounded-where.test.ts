import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { randomFrom } from "../../../demo/random.ts";
import { compileCondition, type Condition, type FieldTest } from "../../../model/condition.ts";
import type { Event } from "../../../model/event.ts";
import { QueryRefused } from "../../ports/store-errors.ts";
import type { Store } from "../../ports/store.ts";
import { openStore } from "../../open-store.ts";

// Conditions that are expensive on some rows, which are then evaluated in slices.

const EVENTS = 60;
const MEMTABLE_ROWS = 25;
/** Lengths of texts; those of the last length are evaluated in slices. */
const LENGTHS = [3, 100, 1500];
const now = Date.now();
const dataDir = mkdtempSync(join(tmpdir(), "tocsin-bounded-"));
let store: Store;
const events: Event[] = [];

beforeAll(async () => {
  const options = {
    platform: "platform",
    indexPrefix: "tocsin",
    registry: new Registry(),
    log: pino({ level: "silent" }),
  };
  // Most rows are on disk, the last ones in memory.
  store = await openStore({ dataDir, tailRowsMax: MEMTABLE_ROWS, ...options });
  const random = randomFrom(7);
  const text = (letters: string, length: number) =>
    Array.from({ length }, () => letters[random.below(letters.length)]).join("");
  const drafts = Array.from({ length: EVENTS }, (_, i) => {
    // Short and long texts, some oversized events, and lists.
    const length = i % 40 === 39 ? 17_000 : LENGTHS[random.below(LENGTHS.length)]!;
    const message = text(i % 2 === 0 ? "ab " : "abcdefé0123", length);
    return {
      type: `t${i % 3}`,
      source: "custom",
      severity: "info",
      class: "security",
      timestampMs: now + i,
      raw: {
        message: i % 7 === 6 ? [message, "b b"] : message,
        url: text("ab/", i === 0 ? 10_000 : 1 + random.below(500)),
        number: i,
      },
      enrichment: {},
    } as const;
  });
  const stored = await store.events.append(drafts.map((draft) => ({ draft })));
  events.push(...stored.map(({ text: body }) => JSON.parse(body) as Event));
}, 60_000);

afterAll(async () => {
  await store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const regex = (field: string, value: string | string[], ignoreCase = false): FieldTest => ({
  kind: "test",
  field,
  operator: "regex",
  value,
  ignoreCase,
});
const equals = (field: string, value: string): FieldTest => ({
  kind: "test",
  field,
  operator: "equals",
  value,
  ignoreCase: false,
});
const not = (of: Condition): Condition => ({ kind: "not", of });
const all = (...of: Condition[]): Condition => ({ kind: "all", of });
const any = (...of: Condition[]): Condition => ({ kind: "any", of });

const MESSAGE = regex("raw.message", "a[ab ]{60}b");
const WIDE = regex("raw.message", "a.{0,40}0.{0,40}1", true);
const CONDITIONS: readonly Condition[] = [
  MESSAGE,
  WIDE,
  not(MESSAGE),
  all(equals("type", "t1"), MESSAGE),
  all(not(equals("type", "t1")), any(MESSAGE, WIDE)),
  any(equals("type", "t2"), all(WIDE, not(regex("raw.url", "b/.{50}a")))),
  regex(
    "raw.message",
    Array.from({ length: 10 }, (_, i) => `b.{${i + 5}}aa$`),
  ),
  regex(
    "raw.message",
    Array.from({ length: 60 }, (_, i) => `^b.{${i}}aa`),
  ),
  { kind: "test", field: "raw.message", operator: "glob", value: "*a?????????b*b?a*", ignoreCase: false },
  { kind: "test", field: "*", operator: "contains", value: "AB BA", ignoreCase: true },
  all(...Array.from({ length: 10 }, (_, i) => not(regex("raw.message", `c.{${i}}dd`)))),
];

const fieldTest = (field: string, operator: FieldTest["operator"], value: FieldTest["value"]): FieldTest => ({
  kind: "test",
  field,
  operator,
  value,
  ignoreCase: operator === "contains",
});
/** More values than become one expression each. */
const MANY = Array.from({ length: 40 }, (_, i) => `${i}B${i % 10}`);
const LISTS: readonly FieldTest[] = [
  fieldTest("raw.message", "contains", MANY),
  fieldTest("*", "contains", MANY),
  fieldTest("raw.*", "ends_with", MANY),
  fieldTest("raw.url", "starts_with", ["a/", "b/", "//"]),
  fieldTest("raw.message", "glob", ["*9b9*", "*aa", "b b"]),
  fieldTest("raw.message", "in", ["b b", "aaa", "bab", 7]),
  fieldTest("raw.message", "not_in", ["b b", "aaa", "bab"]),
  fieldTest("raw.number", "in", [3, 4, 5, "b b"]),
  fieldTest("timestamp", "in", [new Date(now + 3).toISOString(), new Date(now + 4).toISOString()]),
];
const filler = any(
  ...Array.from({ length: 25 }, (_, i) =>
    fieldTest(
      "raw.url",
      "contains",
      Array.from({ length: 50 }, (_, j) => `nowhere${i}.${j}`),
    ),
  ),
);

async function found(condition: Condition): Promise<string[]> {
  const { items, total } = await store.events.search({ condition, sort: [], limit: 1000, aggs: [] });
  expect(total).toBe(items.length);
  return items.map((item) => (JSON.parse(item) as Event).id).sort();
}

test("rows that are evaluated in slices match like any others, in searches, scans and projections", async () => {
  for (const condition of CONDITIONS) {
    const expected = events.filter(compileCondition(condition)).map(({ id }) => id);
    expect(await found(condition)).toEqual(expected.sort());
    const scanned: string[] = [];
    for await (const chunk of store.events.scan({ condition }, new AbortController().signal)) {
      scanned.push(...chunk.map((item) => (JSON.parse(item) as Event).id));
    }
    expect(scanned.sort()).toEqual(expected);
    const projection = { condition: equals("type", "t1"), fields: [], tests: [condition] };
    let passed = 0;
    for await (const part of store.events.project!(projection, new AbortController().signal)) {
      passed += part.passed.reduce((sum, bits) => sum + bits, 0);
    }
    expect(passed).toBe(events.filter(compileCondition(all(projection.condition, condition))).length);
  }
}, 120_000);

test("lists of values match in a query with very many of them just as in a small one", async () => {
  for (const list of LISTS) {
    for (const condition of [any(list, filler), all(not(list), not(filler))]) {
      const expected = events.filter(compileCondition(condition)).map(({ id }) => id);
      expect([list, await found(condition)]).toEqual([list, expected.sort()]);
    }
  }
}, 120_000);

test("a query that would take long to plan is refused", async () => {
  const keywords = any(...Array.from({ length: 400 }, (_, i) => fieldTest("*", "contains", `nowhere${i}`)));
  await expect(found(keywords)).rejects.toBeInstanceOf(QueryRefused);
  const numbers = Array.from({ length: 1000 }, (_, i) => i);
  const manyNumbers = any(...Array.from({ length: 70 }, () => fieldTest("raw.number", "in", numbers)));
  await expect(found(manyNumbers)).rejects.toBeInstanceOf(QueryRefused);
});

test("aggregations and sorts see the same matches", async () => {
  const { total, aggregations } = await store.events.search({
    condition: MESSAGE,
    sort: [{ field: "raw.number", descending: true }],
    limit: 5,
    aggs: [{ name: "types", aggregation: { kind: "terms", field: "type", size: 5, aggs: [] } }],
  });
  const expected = events.filter(compileCondition(MESSAGE));
  expect(total).toBe(expected.length);
  const { buckets } = aggregations.types as { buckets: { key: string; count: number }[] };
  for (const { key, count } of buckets) expect(count).toBe(expected.filter(({ type }) => type === key).length);
});

test("patterns that would take too long on a single row are refused, but only if there are such rows", async () => {
  const patterns = Array.from({ length: 8 }, (_, i) => `.{0,500}.{0,500}.{0,900}${i}x`);
  const condition = regex("raw.url", patterns);
  await expect(found(condition)).rejects.toBeInstanceOf(QueryRefused);
  const short = events.find(({ raw }) => String(raw.url).length < 50 && String(raw.message).length < 50)!;
  expect(await found(all(condition, equals("timestamp", short.timestamp)))).toEqual([]);
});

test("a cancelled query ends at any stage", async () => {
  const stop = new AbortController();
  const condition = regex("raw.message", ".{0,300}.{0,300}.{0,300}\\x01");
  const cancelled = store.events.search({ condition, sort: [], limit: 1, aggs: [] }, { signal: stop.signal });
  // The next query is answered while that one runs or is queued.
  await store.events.list({ type: "t1" }, { mode: "page", page: 1, size: 1 });
  stop.abort(new Error("gone"));
  await expect(cancelled).rejects.toThrow("gone");
  expect((await found(equals("type", "t1"))).length).toBe(EVENTS / 3);
});
