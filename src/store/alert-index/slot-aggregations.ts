import { formatTime } from "../../lib/time.ts";
import {
  type Aggregation,
  type AggregationKind,
  type AggregationOf,
  type AggregationResult,
  type Bucket,
  type PerAggregation,
} from "../../model/aggregation.ts";
import type { Scalar } from "../../model/condition.ts";
import { bucketNumbers, fillBuckets, type HistogramInterval } from "../queries/histogram-buckets.ts";
import { sliceInOrder } from "./slice-in-order.ts";
import { compareKeys, hasValue, visitCodes, type SlotColumn } from "./slot-column.ts";

// Aggregations over columns, each in a pass over the slots. Inner ones run on the slots of each bucket.

export type Slots = ArrayLike<number> & Iterable<number>;

export interface AggregationSource {
  columnOf(path: string): SlotColumn;
}

type Compute<Kind extends AggregationKind> = (
  aggregation: AggregationOf<Kind>,
  slots: Slots,
  source: AggregationSource,
  path: string,
) => AggregationResult;

const COMPUTE: PerAggregation<{ [Kind in AggregationKind]: Compute<Kind> }> = {
  count: ({ field }, slots, source) => {
    if (field === undefined) return { value: slots.length };
    const column = source.columnOf(field);
    let value = 0;
    for (const slot of slots) if (hasValue(column, slot)) value++;
    return { value };
  },
  cardinality: ({ field }, slots, source) => ({ value: countsOf(source.columnOf(field), slots).size }),
  stats: ({ field }, slots, source) => {
    const column = source.columnOf(field);
    return column.kind === "numbers" && column.isTime ? timeStats(column.at, slots) : numberStats(column, slots);
  },
  terms: (aggregation, slots, source, path) => {
    const column = source.columnOf(aggregation.field);
    const counts = [...countsOf(column, slots)];
    const isOrdered = column.kind === "codes" && column.isOrdered === true;
    const valueOf = (place: number) => valueAt(column, counts[place]![0]);
    const top = sliceInOrder(Uint32Array.from(counts.keys()), 0, aggregation.size, (a, b) => {
      const difference = counts[b]![1] - counts[a]![1];
      if (difference !== 0) return difference < 0;
      return isOrdered ? counts[a]![0] < counts[b]![0] : compareKeys(valueOf(a), valueOf(b)) < 0;
    });
    const parts =
      aggregation.aggs.length === 0 ? undefined : partsOf(column, slots, new Set(top.map((i) => counts[i]![0])));
    const buckets = top.map((place): Bucket => {
      const [key, count] = counts[place]!;
      return { key: valueOf(place), count, ...inner(aggregation, parts?.get(key) ?? [], source, path) };
    });
    const shown = buckets.reduce((sum, { count }) => sum + count, 0);
    return { buckets, other_count: counts.reduce((sum, [, count]) => sum + count, 0) - shown };
  },
  histogram: (aggregation, slots, source, path) => {
    const column = source.columnOf(aggregation.field);
    const isTime = column.kind === "numbers" && column.isTime;
    const interval: HistogramInterval = { interval: aggregation.interval, isTime };
    const parts = bucketsOf(column, slots, bucketNumbers(interval));
    const sorted = [...parts].sort(([a], [b]) => a - b);
    const filled = fillBuckets(new Map(sorted.map(([bucket, part]) => [bucket, part.length])), interval, path);
    const first = sorted[0]?.[0] ?? 0;
    const buckets = filled.map((bucket, i): Bucket => ({
      ...bucket,
      ...inner(aggregation, parts.get(first + i) ?? [], source, path),
    }));
    return { buckets };
  },
};

/** `path` is the aggregation's place in the request. */
export function aggregateSlots(
  aggregation: Aggregation,
  slots: Slots,
  source: AggregationSource,
  path: string,
): AggregationResult {
  return (COMPUTE[aggregation.kind] as Compute<AggregationKind>)(aggregation, slots, source, path);
}

function inner(
  { aggs }: AggregationOf<"terms" | "histogram">,
  slots: Slots,
  source: AggregationSource,
  path: string,
): Record<string, AggregationResult> {
  return Object.fromEntries(
    aggs.map(({ name, aggregation }) => [name, aggregateSlots(aggregation, slots, source, `${path}.aggs.${name}`)]),
  );
}

function visitKeys(column: SlotColumn, slot: number, visit: (key: number) => void): void {
  if (column.kind === "codes") return visitCodes(column, slot, visit);
  const number = column.at(slot);
  if (!Number.isNaN(number)) visit(number);
}

function valueAt(column: SlotColumn, key: number): Scalar {
  if (column.kind === "codes") return column.valueOf(key)!;
  return column.isTime ? formatTime(key) : key;
}

/** The number of slots with each key: a code or a number. */
function countsOf(column: SlotColumn, slots: Slots): Map<number, number> {
  const counts = new Map<number, number>();
  // An array is faster than a map, where the slots are worth its size.
  if (column.kind === "codes" && column.end <= slots.length) {
    const all = new Uint32Array(column.end);
    for (const slot of slots) visitCodes(column, slot, (code) => all[code]!++);
    for (const [code, count] of all.entries()) if (count > 0) counts.set(code, count);
    return counts;
  }
  for (const slot of slots) visitKeys(column, slot, (key) => counts.set(key, (counts.get(key) ?? 0) + 1));
  return counts;
}

/** The slots with each of the keys. */
function partsOf(column: SlotColumn, slots: Slots, keys: ReadonlySet<number>): Map<number, number[]> {
  const parts = new Map(Array.from(keys, (key): [number, number[]] => [key, []]));
  for (const slot of slots) visitKeys(column, slot, (key) => parts.get(key)?.push(slot));
  return parts;
}

/** The slots in each bucket. */
function bucketsOf(column: SlotColumn, slots: Slots, bucketOf: (number: number) => number): Map<number, number[]> {
  const parts = new Map<number, number[]>();
  for (const slot of slots) {
    for (const bucket of new Set(numbersOf(column, slot).map((number) => bucketOf(Number(number))))) {
      const part = parts.get(bucket);
      if (part) part.push(slot);
      else parts.set(bucket, [slot]);
    }
  }
  return parts;
}

function numbersOf(column: SlotColumn, slot: number): (number | bigint)[] {
  const numbers: (number | bigint)[] = [];
  visitKeys(column, slot, (key) => {
    const value = column.kind === "codes" ? column.valueOf(key)! : key;
    if (typeof value === "number" || typeof value === "bigint") numbers.push(value);
  });
  return numbers;
}

const TIMES_PER_PART = 1000;

function timeStats(at: (slot: number) => number, slots: Slots): AggregationResult {
  let [min, max, count] = [Infinity, -Infinity, 0];
  // The sum of all times may exceed the integers that a double holds; a part of it never does.
  let [sum, part] = [0n, 0];
  for (const slot of slots) {
    const ms = at(slot);
    if (ms < min) min = ms;
    if (ms > max) max = ms;
    part += ms;
    if (++count % TIMES_PER_PART !== 0) continue;
    sum += BigInt(part);
    part = 0;
  }
  if (count === 0) return { min: null, max: null, avg: null, sum: null };
  sum += BigInt(part);
  const avg = formatTime(Number(sum / BigInt(count)));
  return { min: formatTime(min), max: formatTime(max), avg, sum: null };
}

function numberStats(column: SlotColumn, slots: Slots): AggregationResult {
  let min: number | bigint | null = null;
  let max: number | bigint | null = null;
  let [sum, count] = [0, 0];
  for (const slot of slots) {
    for (const number of numbersOf(column, slot)) {
      if (min === null || number < min) min = number;
      if (max === null || number > max) max = number;
      sum += Number(number);
      count++;
    }
  }
  return { min, max, avg: count === 0 ? null : sum / count, sum };
}
