import * as fc from "fast-check";
import { CLASSES, SEVERITIES, sourceNames, type Event } from "../../model/event.ts";
import { fieldReader, OBJECT, type FieldValue } from "../../model/field.ts";
import type {
  Aggregation,
  AggregationKind,
  AggregationOf,
  AggregationResult,
  PerAggregation,
} from "../../model/aggregation.ts";
import type { SortKey } from "../../model/query.ts";

// Plain definitions of aggregations and sorting, with which the contract compares every store. The service does not use them.

type Plain = Exclude<FieldValue, typeof OBJECT>;

function values(event: Event, field: string): Plain[] {
  const found = fieldReader(field)(event).filter((value) => value !== OBJECT);
  return [...new Set(found)];
}

function numbers(event: Event, field: string): (number | bigint)[] {
  if (field === "timestamp") return [Date.parse(event.timestamp)];
  return values(event, field).filter((value) => typeof value === "number" || typeof value === "bigint");
}

const CLOSED: Record<string, readonly string[]> = {
  severity: SEVERITIES,
  class: CLASSES,
  source: sourceNames("platform"),
};

/** The order of equal counts: that of a closed set, or texts, numbers, integers past 2^53, booleans, each ascending. */
function compareKeys(field: string, a: Plain, b: Plain): number {
  const closed = CLOSED[field];
  if (closed) return closed.indexOf(a as string) - closed.indexOf(b as string);
  const order = ["string", "number", "bigint", "boolean"];
  if (typeof a !== typeof b) return order.indexOf(typeof a) - order.indexOf(typeof b);
  if (typeof a === "string") return Buffer.compare(Buffer.from(a), Buffer.from(b as string));
  return a < b ? -1 : 1;
}

function timeStats(all: readonly number[]): AggregationResult {
  if (all.length === 0) return { min: null, max: null, avg: null, sum: null };
  const total = all.reduce((sum, ms) => sum + BigInt(ms), 0n);
  const iso = (ms: number) => new Date(ms).toISOString();
  const avg = iso(Number(total / BigInt(all.length)));
  return { min: iso(Math.min(...all)), max: iso(Math.max(...all)), avg, sum: null };
}

/** Fields of arbitrary-events.ts. */
export const SAMPLE_FIELDS = [
  "type",
  "source",
  "severity",
  "class",
  "raw.src_ip",
  "raw.dst_port",
  "raw.user",
  "raw.mixed",
  "raw.list",
  "raw.a.b",
  "raw.flag",
  "enrichment.geo.country",
];
const NUMERIC_FIELDS = ["raw.dst_port", "raw.mixed", "raw.list", "raw.a.b"];
/** Numeric fields with a small range, which fits into the buckets of a histogram. */
const BOUNDED_FIELDS = ["raw.port", "raw.ports", "enrichment.abuse_ipdb.score"];

interface Reference<Kind extends AggregationKind> {
  /** Random aggregations of this kind, without inner ones. */
  readonly samples: fc.Arbitrary<AggregationOf<Kind>>;
  compute(aggregation: AggregationOf<Kind>, events: readonly Event[]): AggregationResult;
}

const REFERENCE: PerAggregation<{ [Kind in AggregationKind]: Reference<Kind> }> = {
  count: {
    samples: fc.record({
      kind: fc.constant("count"),
      field: fc.option(fc.constantFrom(...SAMPLE_FIELDS, "raw.a", "raw.nothing"), { nil: undefined }),
    }),
    compute: ({ field }, events) => ({
      value:
        field === undefined ? events.length : events.filter((event) => fieldReader(field)(event).length > 0).length,
    }),
  },
  cardinality: {
    samples: fc.record({ kind: fc.constant("cardinality"), field: fc.constantFrom(...SAMPLE_FIELDS) }),
    compute: ({ field }, events) => ({ value: new Set(events.flatMap((event) => values(event, field))).size }),
  },
  stats: {
    samples: fc.record({ kind: fc.constant("stats"), field: fc.constantFrom("timestamp", ...NUMERIC_FIELDS) }),
    compute: ({ field }, events) => {
      const all = events.flatMap((event) => numbers(event, field));
      if (field === "timestamp") return timeStats(all.map(Number));
      const sum = all.reduce<number>((total, value) => total + Number(value), 0);
      if (all.length === 0) return { min: null, max: null, avg: null, sum: 0 };
      const min = all.reduce((least, value) => (value < least ? value : least));
      const max = all.reduce((most, value) => (value > most ? value : most));
      return { min, max, avg: sum / all.length, sum };
    },
  },
  terms: {
    samples: fc.record({
      kind: fc.constant("terms"),
      field: fc.constantFrom(...SAMPLE_FIELDS),
      size: fc.constantFrom(1, 3, 1000),
      aggs: fc.constant([]),
    }),
    compute: (agg, events) => {
      const groups = groupBy(events, (event) => values(event, agg.field));
      const sorted = [...groups].sort(([a, x], [b, y]) => y.length - x.length || compareKeys(agg.field, a, b));
      const buckets = sorted
        .slice(0, agg.size)
        .map(([key, part]) => ({ key, count: part.length, ...inner(agg, part) }));
      const total = sorted.reduce((sum, [, part]) => sum + part.length, 0);
      return { buckets, other_count: total - buckets.reduce((sum, { count }) => sum + count, 0) };
    },
  },
  histogram: {
    samples: fc.oneof(
      fc.record({
        kind: fc.constant("histogram" as const),
        field: fc.constantFrom(...BOUNDED_FIELDS),
        interval: fc.constantFrom(1, 7, 100, 0.5),
        aggs: fc.constant([]),
      }),
      fc.record({
        kind: fc.constant("histogram" as const),
        field: fc.constant("timestamp"),
        interval: fc.constantFrom(3_600_000, 900_000),
        aggs: fc.constant([]),
      }),
    ),
    compute: (agg, events) => {
      const isTime = agg.field === "timestamp";
      const groups = groupBy(events, (event) => [
        ...new Set(numbers(event, agg.field).map((value) => stepOf(Number(value), agg.interval))),
      ]);
      const steps = [...groups.keys()].sort((a, b) => a - b);
      const width = steps.length === 0 ? 0 : steps.at(-1)! - steps[0]! + 1;
      const buckets = Array.from({ length: width }, (_, i) => {
        const step = steps[0]! + i;
        const part = groups.get(step) ?? [];
        return {
          key: isTime ? new Date(step * agg.interval).toISOString() : keyOf(step, agg.interval),
          count: part.length,
          ...inner(agg, part),
        };
      });
      return { buckets };
    },
  },
};

/** Random aggregations of every kind, without inner ones. */
export const sampleAggregations: fc.Arbitrary<Aggregation> = fc.oneof(
  ...Object.values(REFERENCE).map(({ samples }): fc.Arbitrary<Aggregation> => samples),
);

export function aggregatePlainly(agg: Aggregation, events: readonly Event[]): AggregationResult {
  return (REFERENCE[agg.kind] as Reference<AggregationKind>).compute(agg, events);
}

/** The decimal form of a number: an integer, and the number of its decimal places. */
function decimal(value: number): { units: bigint; digits: number } {
  const [mantissa = "", exponent = "0"] = value.toExponential().split("e");
  const digits = (mantissa.split(".")[1] ?? "").length - Number(exponent);
  return { units: BigInt(mantissa.replace(".", "")), digits };
}

/** The largest multiple of the interval that is not above the number, both in decimal form. */
function stepOf(value: number, interval: number): number {
  const [a, b] = [decimal(value), decimal(interval)];
  const digits = Math.max(a.digits, b.digits);
  const units = a.units * 10n ** BigInt(digits - a.digits);
  const width = b.units * 10n ** BigInt(digits - b.digits);
  return Number(units / width) - (units < 0n && units % width !== 0n ? 1 : 0);
}

function keyOf(step: number, interval: number): number {
  const { units, digits } = decimal(interval);
  return Number(`${BigInt(step) * units}e${-digits}`);
}

function inner(agg: AggregationOf<"terms" | "histogram">, events: readonly Event[]): Record<string, AggregationResult> {
  return Object.fromEntries(agg.aggs.map(({ name, aggregation }) => [name, aggregatePlainly(aggregation, events)]));
}

function groupBy<Key>(events: readonly Event[], keysOf: (event: Event) => Key[]): Map<Key, Event[]> {
  const groups = new Map<Key, Event[]>();
  for (const event of events) {
    for (const key of keysOf(event)) {
      const part = groups.get(key);
      if (part) part.push(event);
      else groups.set(key, [event]);
    }
  }
  return groups;
}

/** Numbers before texts before booleans, events without the field last, severities by gravity; ties newest first. */
export function sortPlainly(events: readonly Event[], sort: readonly SortKey[]): Event[] {
  return [...events].sort((a, b) => {
    for (const { field, descending } of sort) {
      const order = compareFields(a, b, field, descending ? -1 : 1);
      if (order !== 0) return order;
    }
    return a.timestamp === b.timestamp ? (a.id < b.id ? 1 : -1) : a.timestamp < b.timestamp ? 1 : -1;
  });
}

function compareFields(a: Event, b: Event, field: string, direction: number): number {
  if (field === "severity") return direction * (SEVERITIES.indexOf(b.severity) - SEVERITIES.indexOf(a.severity));
  const [x, y] = [a, b].map((event) => {
    const [first] = fieldReader(field)(event);
    return first === OBJECT ? undefined : first;
  });
  const types = ["number", "string", "boolean", "undefined"];
  const rank = (value: Plain | undefined) => (typeof value === "bigint" ? 0 : types.indexOf(typeof value));
  if (rank(x) !== rank(y)) return rank(x) - rank(y);
  if (x === undefined || y === undefined || x === y) return 0;
  if (typeof x !== "string") return direction * (x < y ? -1 : 1);
  return direction * Buffer.compare(Buffer.from(x), Buffer.from(y as string));
}
