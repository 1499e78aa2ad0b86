import * as fc from "fast-check";
import { CLASSES, SEVERITIES, sourceNames, type Event, type Severity } from "../../model/event.ts";
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

/** The values that a kind of document has at its fields. */
export interface PlainFields<Document> {
  reader(path: string): (document: Document) => readonly FieldValue[];
  isTime(path: string): boolean;
  /** Closed sets, whose order is that of equal counts. */
  readonly closed: Readonly<Record<string, readonly string[]>>;
  /** Closed sets that sort in their own order, and not as texts. */
  readonly ranked?: Readonly<Record<string, readonly string[]>>;
}

const EVENTS: PlainFields<Event> = {
  reader: fieldReader,
  isTime: (path) => path === "timestamp",
  closed: { severity: SEVERITIES, class: CLASSES, source: sourceNames("platform") },
};

function values<Document>(fields: PlainFields<Document>, document: Document, field: string): Plain[] {
  const found = fields
    .reader(field)(document)
    .filter((value) => value !== OBJECT);
  return [...new Set(found)];
}

function numbers<Document>(fields: PlainFields<Document>, document: Document, field: string): (number | bigint)[] {
  const all = values(fields, document, field);
  if (fields.isTime(field)) return all.map((time) => Date.parse(time as string));
  return all.filter((value) => typeof value === "number" || typeof value === "bigint");
}

/** The order of equal counts: that of a closed set, or texts, numbers, integers past 2^53, booleans, each ascending. */
function compareKeys(closed: readonly string[] | undefined, a: Plain, b: Plain): number {
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
  compute<Document>(
    aggregation: AggregationOf<Kind>,
    documents: readonly Document[],
    fields: PlainFields<Document>,
  ): AggregationResult;
}

const REFERENCE: PerAggregation<{ [Kind in AggregationKind]: Reference<Kind> }> = {
  count: {
    samples: fc.record({
      kind: fc.constant("count"),
      field: fc.option(fc.constantFrom(...SAMPLE_FIELDS, "raw.a", "raw.nothing"), { nil: undefined }),
    }),
    compute: ({ field }, documents, fields) => ({
      value:
        field === undefined
          ? documents.length
          : documents.filter((document) => fields.reader(field)(document).length > 0).length,
    }),
  },
  cardinality: {
    samples: fc.record({ kind: fc.constant("cardinality"), field: fc.constantFrom(...SAMPLE_FIELDS) }),
    compute: ({ field }, documents, fields) => ({
      value: new Set(documents.flatMap((document) => values(fields, document, field))).size,
    }),
  },
  stats: {
    samples: fc.record({ kind: fc.constant("stats"), field: fc.constantFrom("timestamp", ...NUMERIC_FIELDS) }),
    compute: ({ field }, documents, fields) => {
      const all = documents.flatMap((document) => numbers(fields, document, field));
      if (fields.isTime(field)) return timeStats(all.map(Number));
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
    compute: (agg, documents, fields) => {
      const groups = groupBy(documents, (document) => values(fields, document, agg.field));
      const closed = fields.closed[agg.field];
      const sorted = [...groups].sort(([a, x], [b, y]) => y.length - x.length || compareKeys(closed, a, b));
      const buckets = sorted
        .slice(0, agg.size)
        .map(([key, part]) => ({ key, count: part.length, ...inner(agg, part, fields) }));
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
    compute: (agg, documents, fields) => {
      const isTime = fields.isTime(agg.field);
      const groups = groupBy(documents, (document) => [
        ...new Set(numbers(fields, document, agg.field).map((value) => stepOf(Number(value), agg.interval))),
      ]);
      const steps = [...groups.keys()].sort((a, b) => a - b);
      const width = steps.length === 0 ? 0 : steps.at(-1)! - steps[0]! + 1;
      const buckets = Array.from({ length: width }, (_, i) => {
        const step = steps[0]! + i;
        const part = groups.get(step) ?? [];
        return {
          key: isTime ? new Date(step * agg.interval).toISOString() : keyOf(step, agg.interval),
          count: part.length,
          ...inner(agg, part, fields),
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
  return aggregateDocuments(agg, events, EVENTS);
}

/** The same for another kind of document. */
export function aggregateDocuments<Document>(
  agg: Aggregation,
  documents: readonly Document[],
  fields: PlainFields<Document>,
): AggregationResult {
  return (REFERENCE[agg.kind] as Reference<AggregationKind>).compute(agg, documents, fields);
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

function inner<Document>(
  agg: AggregationOf<"terms" | "histogram">,
  documents: readonly Document[],
  fields: PlainFields<Document>,
): Record<string, AggregationResult> {
  return Object.fromEntries(
    agg.aggs.map(({ name, aggregation }) => [name, aggregateDocuments(aggregation, documents, fields)]),
  );
}

function groupBy<Key, Document>(
  documents: readonly Document[],
  keysOf: (document: Document) => Key[],
): Map<Key, Document[]> {
  const groups = new Map<Key, Document[]>();
  for (const document of documents) {
    for (const key of keysOf(document)) {
      const part = groups.get(key);
      if (part) part.push(document);
      else groups.set(key, [document]);
    }
  }
  return groups;
}

/** Numbers before texts before booleans, events without the field last, severities by gravity; ties newest first. */
export function sortPlainly(events: readonly Event[], sort: readonly SortKey[]): Event[] {
  return sortDocuments(events, sort, EVENTS, (a, b) =>
    a.timestamp === b.timestamp ? (a.id < b.id ? 1 : -1) : a.timestamp < b.timestamp ? 1 : -1,
  );
}

/** The same for another kind of document; `newestFirst` orders equal ones. */
export function sortDocuments<Document extends { readonly severity: Severity }>(
  documents: readonly Document[],
  sort: readonly SortKey[],
  fields: PlainFields<Document>,
  newestFirst: (a: Document, b: Document) => number,
): Document[] {
  return [...documents].sort((a, b) => {
    for (const { field, descending } of sort) {
      const order = compareFields(fields, a, b, field, descending ? -1 : 1);
      if (order !== 0) return order;
    }
    return newestFirst(a, b);
  });
}

function compareFields<Document extends { readonly severity: Severity }>(
  fields: PlainFields<Document>,
  a: Document,
  b: Document,
  field: string,
  direction: number,
): number {
  if (field === "severity") return direction * (SEVERITIES.indexOf(b.severity) - SEVERITIES.indexOf(a.severity));
  const [x, y] = [a, b].map((document) => {
    const [first] = fields.reader(field)(document);
    const ranks = fields.ranked?.[field];
    if (ranks && first !== undefined) return ranks.indexOf(first as string);
    return first === OBJECT ? undefined : first;
  });
  const types = ["number", "string", "boolean", "undefined"];
  const rank = (value: Plain | undefined) => (typeof value === "bigint" ? 0 : types.indexOf(typeof value));
  if (rank(x) !== rank(y)) return rank(x) - rank(y);
  if (x === undefined || y === undefined || x === y) return 0;
  if (typeof x !== "string") return direction * (x < y ? -1 : 1);
  return direction * Buffer.compare(Buffer.from(x), Buffer.from(y as string));
}
