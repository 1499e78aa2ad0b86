import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import pino from "pino";
import { Registry } from "prom-client";
import { afterEach, beforeEach, expect, test } from "vitest";
import { compileCondition, type Condition, type Scalar } from "../../../model/condition.ts";
import { parseExact } from "../../../lib/exact-json.ts";
import type { Event, EventDraft, JsonObject, JsonValue } from "../../../model/event.ts";
import type { Aggregations } from "../../../model/aggregation.ts";
import { conditions, drafts } from "../../testing/arbitrary-events.ts";
import { projectedValues } from "../../ports/projection.ts";
import type { Store } from "../../ports/store.ts";
import { openStore, rebuildColumns } from "../../open-store.ts";

// Events as large as the API accepts, in shapes that become even larger when they are expanded.

const HOUR_MS = 3_600_000;
const now = Date.now();
let dataDir: string;
let store: Store;

const options = () => ({
  dataDir,
  platform: "platform",
  indexPrefix: "tocsin",
  registry: new Registry(),
  log: pino({ level: "silent" }),
});

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "tocsin-large-"));
  store = await openStore(options());
});

afterEach(async () => {
  await store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

function draft(raw: JsonObject, type = "large"): EventDraft {
  return { type, source: "custom", severity: "info", class: "security", timestampMs: now, raw, enrichment: {} };
}

async function append(list: readonly EventDraft[]): Promise<Event[]> {
  const stored = await store.events.append(list.map((one) => ({ draft: one })));
  return stored.map(({ text }) => parseExact(text) as Event);
}

async function found(condition: Condition): Promise<string[]> {
  const { items } = await store.events.search({ condition, sort: [], limit: 1000, aggs: [] });
  return items.map((text) => (JSON.parse(text) as Event).id).sort();
}

const keyword = (value: string): Condition => ({
  kind: "test",
  field: "*",
  operator: "contains",
  value,
  ignoreCase: true,
});

test("a key as long as a body, with thousands of values below it, is stored and found without blocking others", async () => {
  const values = Object.fromEntries(Array.from({ length: 40_000 }, (_, i) => [`k${i}`, i]));
  const [event] = await append([draft({ ["n".repeat(400_000)]: { ...values, last: "needle" } }), draft({ n: 1 })]);
  expect(await found(keyword("NEEDLE"))).toEqual([event!.id]);
  const page = await store.events.list({ type: "large" }, { mode: "page", page: 1, size: 10 });
  expect(page.total).toBe(2);
});

test("a search in every field finds values whose path is too long for a query", async () => {
  const [event] = await append([draft({ ["n".repeat(600)]: { deep: ["needle", 7], "dotted.name": "thread" } })]);
  expect(await found(keyword("needle"))).toEqual([event!.id]);
  expect(await found(keyword("thread"))).toEqual([event!.id]);
  expect(await found(keyword("nnn"))).toEqual([]);
});

test("a search in every field of raw does not find values of enrichment, regardless of the length of their path", async () => {
  const long = "n".repeat(600);
  const [first, second] = await append([
    {
      ...draft({ [long]: { deep: "needle" }, src_ip: "10.0.0.1" }),
      enrichment: { [long]: "thread", geo: { country: "AT" } },
    },
    { ...draft({ list: ["thread", "AT"] }), enrichment: { [long]: "needle" } },
  ]);
  const inRaw = (value: string) => found({ ...keyword(value), field: "raw.*" } as Condition);
  expect(await inRaw("NEEDLE")).toEqual([first!.id]);
  expect(await inRaw("thread")).toEqual([second!.id]);
  expect(await inRaw("at")).toEqual([second!.id]);
  expect(await inRaw("10.0.")).toEqual([first!.id]);
  expect(await inRaw("large")).toEqual([]);
});

test("conditions match oversized events like any others, also after a rebuild", async () => {
  const random = fc.sample(drafts(now - HOUR_MS, now), { numRuns: 60, seed: 5 });
  const padded = random.map((one, i) => {
    const pad = { pad: "x".repeat(20_000), tail: `end ${i}` };
    return i % 2 === 0 ? { ...one, raw: { ...one.raw, ...pad } } : { ...one, raw: { ...one.raw, user: pad.pad } };
  });
  const events = await append([...padded, ...random]);
  const sampled = fc.sample(conditions(), { numRuns: 50, seed: 8 });
  const agree = async (some: readonly Condition[]) => {
    for (const condition of some) {
      const expected = events.filter(compileCondition(condition)).map(({ id }) => id);
      expect(await found(condition)).toEqual(expected.sort());
    }
  };
  await agree(sampled);
  expect(await found(keyword("end 14"))).toEqual([events[14]!.id]);
  await store.close();
  await rebuildColumns({ ...options(), onProgress: () => undefined });
  store = await openStore(options());
  await agree(sampled.slice(0, 15));
});

test("aggregations, sorts and projections see the same values in oversized events as in others", async () => {
  const random = fc.sample(drafts(now - HOUR_MS, now), { numRuns: 80, seed: 11 });
  const pad = { pad: "x".repeat(20_000) };
  await append(
    random.flatMap((one) => [
      { ...one, type: "plain" },
      { ...one, type: "padded", raw: { ...pad, ...one.raw } },
    ]),
  );
  const fields = [
    "raw.mixed",
    "raw.list",
    "raw.ports",
    "raw.flag",
    "raw.user",
    "raw.dst_port",
    "raw.a",
    "raw.a.b",
    "raw.a.c",
  ];
  const aggs: Aggregations = fields.flatMap((field) => [
    {
      name: `terms ${field}`,
      aggregation: {
        kind: "terms" as const,
        field,
        size: 20,
        aggs: [{ name: "inner", aggregation: { kind: "cardinality" as const, field: "raw.ports" } }],
      },
    },
    { name: `stats ${field}`, aggregation: { kind: "stats" as const, field } },
    { name: `count ${field}`, aggregation: { kind: "count" as const, field } },
    { name: `histogram ${field}`, aggregation: { kind: "histogram" as const, field, interval: 1e29, aggs: [] } },
  ]);
  const answer = async (type: string) => {
    const condition: Condition = { kind: "test", field: "type", operator: "equals", value: type, ignoreCase: false };
    const found = await store.events.search({ condition, sort: [], limit: 0, aggs });
    const orders: JsonValue[] = [];
    for (const field of fields) {
      const sort = [
        { field, descending: true },
        { field: "raw.port", descending: false },
      ];
      const { items } = await store.events.search({ condition, sort, limit: 100, aggs: [] });
      orders.push(
        items
          .map((text) => parseExact(text) as Event)
          .map(({ raw, timestamp }) => [raw[field.slice(4)] ?? null, timestamp]),
      );
    }
    const rows: (readonly (readonly Scalar[])[])[] = [];
    for await (const part of store.events.project!({ condition, fields }, new AbortController().signal))
      for (let row = 0; row < part.length; row++) rows.push(projectedValues(part, row));
    return { aggregations: found.aggregations, orders, rows };
  };
  const plain = await answer("plain");
  expect(plain.rows).toHaveLength(80);
  expect(plain.aggregations["terms raw.user"]).toMatchObject({
    buckets: expect.arrayContaining([expect.objectContaining({ key: "alpha" })]),
  });
  expect(await answer("padded")).toEqual(plain);
});

test("many events with much text are flushed in several segments, and none is missing or duplicated", async () => {
  const body = "x".repeat(15_000);
  for (let at = 0; at < 2600; at += 200)
    await append(Array.from({ length: 200 }, (_, i) => draft({ n: at + i, body })));
  const total = async () => (await store.events.list({ type: "large" }, { mode: "page", page: 1, size: 1 })).total;
  expect(await total()).toBe(2600);
  await store.close();
  store = await openStore(options());
  expect(await total()).toBe(2600);
  const condition: Condition = { kind: "test", field: "raw.n", operator: "equals", value: 2377, ignoreCase: false };
  expect(await found(condition)).toHaveLength(1);
});
