import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { DuckDBInstance } from "@duckdb/node-api";
import * as fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { parseExact } from "../../lib/exact-json.ts";
import { DAY_MS, startOfDay } from "../../lib/time.ts";
import type { Aggregation } from "../../model/aggregation.ts";
import { compileCondition, type Condition } from "../../model/condition.ts";
import type { Event, EventDraft } from "../../model/event.ts";
import { columnsFile } from "../files/layout.ts";
import { openStore } from "../open-store.ts";
import type { Store } from "../ports/store.ts";
import { conditions, drafts } from "../testing/arbitrary-events.ts";
import { aggregatePlainly } from "../testing/reference-queries.ts";
import { options } from "./embedded-store.fixture.ts";

// Aggregations on fields that were given a column because they were aggregated agree with plain evaluation, whatever happens to
// the rows.

const NOON = startOfDay(Date.UTC(2026, 5, 15)) + DAY_MS / 2;
const FIELDS = ["raw.mixed", "raw.list", "raw.a.b", "raw.flag", "raw.port", "enrichment.note"];
const EVERYTHING: Condition = { kind: "all", of: [] };
const MS_MAX = 240_000;

let dataDir: string;
let store: Store;
let settings: ReturnType<typeof options>;
let events: Event[];

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "tocsin-field-columns-"));
  events = [];
  await open();
});
afterEach(async () => {
  await store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

async function open(): Promise<void> {
  settings = options(dataDir, () => NOON);
  store = await openStore(settings);
}

/** In small groups, which fill several memtables. */
async function append(...added: EventDraft[]): Promise<void> {
  for (let at = 0; at < added.length; at += 100) {
    const stored = await store.events.append(added.slice(at, at + 100).map((draft) => ({ draft })));
    events.push(...stored.map(({ text }) => parseExact(text) as Event));
  }
}

const terms = (field: string): Aggregation => ({ kind: "terms", field, size: 1000, aggs: [] });

async function check(aggregation: Aggregation, condition: Condition = EVERYTHING): Promise<void> {
  const search = { condition, sort: [], limit: 0, aggs: [{ name: "a", aggregation }] };
  const { aggregations } = await store.events.search(search);
  expect(aggregations["a"]).toEqual(aggregatePlainly(aggregation, events.filter(compileCondition(condition))));
}

async function checkAll(): Promise<void> {
  for (const field of FIELDS) {
    await check(terms(field));
    await check({ kind: "cardinality", field });
    await check({ kind: "terms", field: "severity", size: 10, aggs: [{ name: "inner", aggregation: terms(field) }] });
    await check({ kind: "terms", field, size: 3, aggs: [{ name: "inner", aggregation: terms("raw.user") }] });
  }
  for (const condition of fc.sample(conditions(), { numRuns: 15, seed: 61 }))
    await check(terms(FIELDS[events.length % FIELDS.length]!), condition);
}

async function columnsFilled(): Promise<number> {
  const metrics = await settings.registry.getSingleMetricAsString("tocsin_columns_field_columns");
  return Number(/^tocsin_columns_field_columns (\d+)$/m.exec(metrics)?.[1]);
}

/** Asks until the columns of all fields are filled. */
async function untilFilled(): Promise<void> {
  while ((await columnsFilled()) < FIELDS.length) {
    for (const field of FIELDS) await check(terms(field));
    await sleep(20);
  }
}

const inFile = async (sql: string) => {
  const instance = await DuckDBInstance.create(columnsFile(dataDir), { access_mode: "READ_ONLY" });
  const connection = await instance.connect();
  const rows = (await connection.runAndReadAll(sql)).getRows();
  connection.closeSync();
  instance.closeSync();
  return rows;
};

const randomDrafts = (seed: number, count: number, fromMs: number, toMs: number) =>
  fc.sample(drafts(fromMs, toMs), { numRuns: count, seed }).map((draft, nth): EventDraft => ({
    ...draft,
    raw: { ...draft.raw, ...(nth % 40 === 0 ? { mixed: "long ".repeat(80) } : {}) },
    enrichment: { ...draft.enrichment, note: nth % 3 === 0 ? `note ${nth % 7}` : nth % 5 },
  }));

test(
  "aggregations agree with plain evaluation before, during and after a column is made, and when its rows change",
  async () => {
    await append(...randomDrafts(1, 900, NOON - 2 * DAY_MS, NOON));
    await checkAll();
    await untilFilled();
    await checkAll();

    // Rows in memory, and rows of segments that are not filled yet, also of days before.
    await append(...randomDrafts(2, 450, NOON - 2 * DAY_MS, NOON));
    await append({
      ...randomDrafts(3, 1, NOON - DAY_MS, NOON)[0]!,
      raw: { filler: "x".repeat(40_000), mixed: "oversized", list: [1, "a"], flag: true },
    });
    await checkAll();

    const amended = events.filter((_, nth) => nth % 4 === 0);
    await store.events.amend(amended.map(({ id }, nth) => ({ id, enrichment: { note: `changed ${nth % 9}` } })));
    for (const [nth, event] of amended.entries()) event.enrichment["note"] = `changed ${nth % 9}`;
    await checkAll();
    await untilFilled();
    await checkAll();

    await store.events.removeBefore(startOfDay(NOON) - DAY_MS);
    events = events.filter(({ timestamp }) => Date.parse(timestamp) >= startOfDay(NOON) - DAY_MS);
    await checkAll();

    await store.close();
    expect((await inFile("SELECT path FROM field_columns ORDER BY path")).flat()).toEqual([...FIELDS].sort());
    await open();
    await checkAll();
    await append(...randomDrafts(4, 350, NOON - DAY_MS, NOON));
    await checkAll();
  },
  MS_MAX,
);

test(
  "a field whose values would take much space keeps no column",
  async () => {
    const texts = Array.from({ length: 700 }, (_, nth) => `${nth} ${"text ".repeat(20)}`);
    const [draft] = randomDrafts(5, 1, NOON - DAY_MS, NOON);
    await append(...texts.map((text) => ({ ...draft!, raw: { text, kind: text.length % 3 } })));
    // The second field shows that the first has had its turn.
    while ((await columnsFilled()) < 1) {
      await check({ kind: "cardinality", field: "raw.text" });
      await check(terms("raw.kind"));
      await sleep(20);
    }
    await store.close();
    expect(await inFile("SELECT path FROM field_columns")).toEqual([["raw.kind"]]);
    // A column that a query read until the end is dropped at the next start.
    await open();
    await store.close();
    const names = await inFile("SELECT column_name FROM duckdb_columns() WHERE column_name LIKE 'field_%'");
    const [[name]] = (await inFile("SELECT name FROM field_columns")) as [[string]];
    expect(names.flat()).toEqual([name]);
    await open();
  },
  MS_MAX,
);
