import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { randomFrom } from "../../../demo/random.ts";
import { startOfDay } from "../../../lib/time.ts";
import type { Store } from "../../ports/store.ts";
import { openStore } from "../../open-store.ts";
import { parseSearch, type TextSearch } from "../../search/text-search.ts";
import { DayReaders, type DayReader } from "./day-file.ts";
import { countPart, hasWords, pagePart, type CountPart, type PagePart, type DaySpan } from "./day-search.ts";
import { newestFirst, type ListPlace } from "./list-position.ts";

const EVENTS = 3000;
const day = startOfDay(Date.now());
const dataDir = mkdtempSync(join(tmpdir(), "tocsin-day-search-"));
const layout = { dataDir, indexPrefix: "tocsin" };
const messages = new Map<number, { ts: number; message: string }>();
let store: Store;
let readers: DayReaders;
let reader: DayReader;

beforeAll(async () => {
  const options = { platform: "platform", registry: new Registry(), log: pino({ level: "silent" }) };
  store = await openStore({ ...layout, ...options });
  const random = randomFrom(3);
  const drafts = Array.from({ length: EVENTS }, (_, i) => ({
    type: "line",
    source: "custom",
    severity: "info" as const,
    class: "security" as const,
    // Nearly in order of arrival.
    timestampMs: day + 10_000 * i + random.below(1_000_000),
    raw: {
      message: `${Array.from({ length: 4 }, () => `w${random.below(9)}`).join(" ")} n${i} num${i} other${i % 700}`,
    },
    enrichment: {},
  }));
  await store.events.append(drafts.map((draft) => ({ draft })));
  readers = new DayReaders(layout);
  reader = readers.get(day)!;
  const rows = reader.sql("SELECT seq, ts FROM events ORDER BY seq").all() as unknown as ListPlace[];
  for (const [i, { seq, ts }] of rows.entries()) messages.set(seq, { ts, message: drafts[i]!.raw.message });
}, 60_000);

afterAll(async () => {
  readers.closeAll();
  await store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const searchFor = (words: string) => parseSearch(words, {}) as TextSearch;
/** Each part ends after its first statement or match. */
const PART_MS = -1;
const SEARCHES: readonly (readonly [words: string, holds: (message: string) => boolean])[] = [
  ["w1", (message) => message.includes("w1")],
  ["w1 w2", (message) => message.includes("w1") && message.includes("w2")],
  ['"w1 w2"', (message) => message.includes("w1 w2")],
  ["n1", (message) => message.includes(" n1")],
  // A prefix of three thousand words.
  ["n", (message) => message.includes(" n")],
  ["num", (message) => message.includes(" num")],
  ["num12", (message) => message.includes(" num12")],
  ["num w1", (message) => message.includes(" num") && message.includes("w1")],
  ["num1 num2 w1", () => false],
  ["num1 other2", (message) => message.includes(" num1") && message.includes(" other2")],
  ['"w1 w2" num1', (message) => message.includes("w1 w2") && message.includes(" num1")],
  ["nowhere", () => false],
];
const SPANS: readonly DaySpan[] = [
  { from: day, to: day + 864e5 },
  { from: day + 5_000_000, to: day + 20_000_000 },
];

function countInParts(words: string, span: DaySpan): { count: number; parts: number } {
  let soFar: CountPart | undefined;
  for (let parts = 1; ; parts++) {
    soFar = countPart(reader, searchFor(words), span, soFar, PART_MS);
    if (soFar.next === undefined) return { count: soFar.count, parts };
  }
}

function pageInParts(words: string, span: DaySpan, after: ListPlace | undefined, limit: number): ListPlace[] {
  let soFar: PagePart | undefined;
  for (;;) {
    soFar = pagePart(reader, searchFor(words), { span, after }, limit, soFar, PART_MS);
    if (soFar.next === undefined) return soFar.places;
  }
}

test("a search in the smallest parts counts and lists exactly the matching events, by words and phrases", () => {
  for (const [words, holds] of SEARCHES) {
    for (const span of SPANS) {
      const expected = [...messages]
        .filter(([, { ts, message }]) => ts >= span.from && ts < span.to && holds(message))
        .map(([seq, { ts }]) => ({ ts, seq }))
        .sort(newestFirst);
      expect([words, countInParts(words, span).count]).toEqual([words, expected.length]);
      expect([words, pageInParts(words, span, undefined, 40)]).toEqual([words, expected.slice(0, 40)]);
      if (expected[39]) expect(pageInParts(words, span, expected[39], 7)).toEqual(expected.slice(40, 47));
    }
  }
});

test("a search for a prefix of very many words can pause while their events are collected", () => {
  const { count, parts } = countInParts("num1 other2", SPANS[0]!);
  expect(count).toBeGreaterThan(0);
  expect(parts).toBeGreaterThan(2);
});

test("a prefix of very many words is tested against a single event", () => {
  const has = (words: string, seq: number) => hasWords(reader, searchFor(words).terms, seq);
  for (const [seq, { message }] of [...messages].slice(0, 200)) {
    expect(has("num", seq)).toBe(true);
    expect(has("num1 w1", seq)).toBe(message.includes(" num1") && message.includes("w1"));
    expect(has("nowhere num", seq)).toBe(false);
  }
});

test("a search for a phrase can pause after each event that it reads", () => {
  const { count, parts } = countInParts('"w1 w2"', SPANS[0]!);
  expect(parts).toBeGreaterThan(count);
});

test("a cancelled search of one day rejects", async () => {
  for (const search of ["w1 w2", '"w1 w2"']) {
    const stop = new AbortController();
    const listed = store.events.list({ search }, { mode: "page", page: 1, size: 5 }, { signal: stop.signal });
    stop.abort(new Error("gone"));
    await expect(listed).rejects.toThrow("gone");
  }
});
