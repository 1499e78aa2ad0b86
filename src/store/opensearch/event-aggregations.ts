import { DAY_MS, formatTime } from "../../lib/time.ts";
import {
  emptyResult,
  HISTOGRAM_BUCKETS_MAX,
  type Aggregation,
  type AggregationKind,
  type AggregationOf,
  type AggregationResult,
  type Aggregations,
  type Bucket,
  type PerAggregation,
} from "../../model/aggregation.ts";
import type { Scalar } from "../../model/condition.ts";
import { CLASSES, SEVERITIES, sourceNames } from "../../model/event.ts";
import { isTopField } from "../../model/field.ts";
import type { TimeRange } from "../../model/query.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import { bucketNumbers, fillBuckets, type HistogramInterval } from "../queries/histogram-buckets.ts";
import { both, term, terms, type Query } from "./event-query.ts";
import { totalOf, type EventView } from "./event-search.ts";
import { objectMark, scalarMark, severalMark } from "./event-terms.ts";
import { countValues, withValues, type CountedValue } from "./event-values.ts";

// Aggregations over the events of a query that is exact. Each bucket's inner aggregations are those of a query of its own; the
// view sends the searches that are asked for at the same time in one request.

interface AggregationScope {
  readonly view: EventView;
  readonly query: Query;
  /** The position of the aggregation in the request, for messages. */
  readonly path: string;
  readonly platform: string;
  /** Of the query. */
  readonly range: TimeRange;
}

type ComputeEvents<Kind extends AggregationKind> = (
  aggregation: AggregationOf<Kind>,
  scope: AggregationScope,
) => Promise<AggregationResult>;

/** True if the searches for it need no answers of others, except in rare cases. */
export function takesOneSearch(aggregation: Aggregation, range: TimeRange): boolean {
  const { kind } = aggregation;
  if (kind === "terms") return aggregation.aggs.length === 0;
  if (kind === "count") return aggregation.field === undefined;
  if (kind !== "histogram") return true;
  return aggregation.aggs.length === 0 && aggregation.field === "timestamp" && hasFewSteps(range, aggregation.interval);
}

function hasFewSteps({ fromMs, toMs }: TimeRange, interval: number): boolean {
  return fromMs !== undefined && toMs !== undefined && (toMs - fromMs) / interval + 1 < HISTOGRAM_BUCKETS_MAX;
}

export async function aggregateEvents(
  aggs: Aggregations,
  scope: Omit<AggregationScope, "path">,
  path = "aggs",
): Promise<Record<string, AggregationResult>> {
  const results = await Promise.all(
    aggs.map(async ({ name, aggregation }) => [
      name,
      await aggregateOne(aggregation, { ...scope, path: `${path}.${name}` }),
    ]),
  );
  return Object.fromEntries(results) as Record<string, AggregationResult>;
}

function aggregateOne(aggregation: Aggregation, scope: AggregationScope): Promise<AggregationResult> {
  return (COMPUTE[aggregation.kind] as ComputeEvents<AggregationKind>)(aggregation, scope);
}

const COMPUTE: PerAggregation<{ [Kind in AggregationKind]: ComputeEvents<Kind> }> = {
  count: async ({ field }, { view, query }) => ({
    value: await countEvents(view, field === undefined ? query : both(query, hasField(field))),
  }),
  cardinality: async ({ field }, { view, query, path }) => ({
    value: (await countValues(view, query, field, `${path}.cardinality`)).length,
  }),
  stats: async ({ field }, scope) => {
    if (field === "timestamp") return timeStats(scope);
    if (isTopField(field)) throw new QueryRefused(`${scope.path}.stats.field`, "is not a number");
    return numberStats(await numbersOf(field, scope, "stats"));
  },
  terms: async (aggregation, scope) => {
    const { field, size } = aggregation;
    const counted = await countValues(scope.view, scope.query, field, `${scope.path}.terms`);
    const compare = keyOrder(field, scope.platform);
    const top = counted.toSorted((a, b) => b.count - a.count || compare(a.value, b.value)).slice(0, size);
    const buckets = await Promise.all(
      top.map(async ({ key, value, count }): Promise<Bucket> => {
        const part = withValues(scope.query, field, [key]);
        return { key: value, count, ...(await inner(aggregation, part, scope)) };
      }),
    );
    const sum = (items: readonly { readonly count: number }[]) => items.reduce((total, { count }) => total + count, 0);
    return { buckets, other_count: sum(counted) - sum(top) };
  },
  histogram: async (aggregation, scope) => {
    const { field, interval } = aggregation;
    if (field === "timestamp") return histogramOf(await timeBuckets(interval, scope), true, aggregation, scope);
    if (isTopField(field))
      throw new QueryRefused(`${scope.path}.histogram.field`, "is neither a number nor the timestamp");
    return histogramOf(await numberBuckets(aggregation, scope), false, aggregation, scope);
  },
};

async function countEvents(view: EventView, query: Query): Promise<number> {
  return totalOf(await view({ query, size: 0, track_total_hits: true }));
}

function hasField(field: string): Query {
  return isTopField(field) ? { match_all: {} } : terms("terms", [scalarMark(field), objectMark(field)]);
}

async function inner(
  { aggs }: AggregationOf<"terms" | "histogram">,
  query: Query,
  { view, platform, path, range }: AggregationScope,
): Promise<Record<string, AggregationResult>> {
  return aggs.length === 0 ? {} : aggregateEvents(aggs, { view, query, platform, range }, `${path}.aggs`);
}

async function numbersOf(
  field: string,
  { view, query, path }: AggregationScope,
  kind: string,
): Promise<CountedNumber[]> {
  const counted = await countValues(view, query, field, `${path}.${kind}`);
  return counted.filter(
    (item): item is CountedNumber => typeof item.value === "number" || typeof item.value === "bigint",
  );
}
type CountedNumber = CountedValue & { readonly value: number | bigint };

function numberStats(numbers: readonly CountedNumber[]): AggregationResult {
  if (numbers.length === 0) return { min: null, max: null, avg: null, sum: 0 };
  const values = numbers.map(({ value }) => value);
  const min = values.reduce((least, value) => (value < least ? value : least));
  const max = values.reduce((most, value) => (value > most ? value : most));
  const sum = numbers.reduce((total, { value, count }) => total + Number(value) * count, 0);
  const count = numbers.reduce((total, item) => total + item.count, 0);
  return { min, max, avg: sum / count, sum };
}

async function timeStats({ view, query }: AggregationScope): Promise<AggregationResult> {
  const answer = await view({
    query,
    size: 0,
    track_total_hits: true,
    aggs: {
      min: { min: { field: "timestamp" } },
      max: { max: { field: "timestamp" } },
      days: { sum: { field: "day" } },
      ms: { sum: { field: "day_ms" } },
    },
  });
  const count = totalOf(answer);
  if (count === 0) return { min: null, max: null, avg: null, sum: null };
  const valueOf = (name: string) => answer.aggregations![name]!.value!;
  const total = BigInt(valueOf("days")) * BigInt(DAY_MS) + BigInt(valueOf("ms"));
  return {
    min: formatTime(valueOf("min")),
    max: formatTime(valueOf("max")),
    avg: formatTime(Number(total / BigInt(count))),
    sum: null,
  };
}

/** A bucket of a histogram that has events. */
interface FilledBucket {
  readonly count: number;
  readonly query: Query;
}

async function timeBuckets(interval: number, scope: AggregationScope): Promise<Map<number, FilledBucket>> {
  const { view, query, range } = scope;
  if (!hasFewSteps(range, interval)) await refuseManySteps(interval, scope);
  const { aggregations } = await view({
    query,
    size: 0,
    track_total_hits: false,
    aggs: { steps: { date_histogram: { field: "timestamp", fixed_interval: `${interval}ms`, min_doc_count: 1 } } },
  });
  return new Map(
    (aggregations?.["steps"]?.buckets ?? []).map(({ key, doc_count: count }) => {
      const from = Number(key);
      return [
        from / interval,
        { count, query: both(query, { range: { timestamp: { gte: from, lt: from + interval } } }) },
      ];
    }),
  );
}

/** Refuses what OpenSearch would have too many buckets for. */
async function refuseManySteps(interval: number, { view, query, path }: AggregationScope): Promise<void> {
  const edges = await view({
    query,
    size: 0,
    track_total_hits: true,
    aggs: { min: { min: { field: "timestamp" } }, max: { max: { field: "timestamp" } } },
  });
  if (totalOf(edges) === 0) return;
  const [min, max] = [edges.aggregations!["min"]!.value!, edges.aggregations!["max"]!.value!];
  if (Math.floor(max / interval) - Math.floor(min / interval) >= HISTOGRAM_BUCKETS_MAX)
    fillBuckets(
      new Map([Math.floor(min / interval), Math.floor(max / interval)].map((step) => [step, 1])),
      { interval, isTime: true },
      path,
    );
}

async function numberBuckets(
  { field, interval }: AggregationOf<"histogram">,
  scope: AggregationScope,
): Promise<Map<number, FilledBucket>> {
  const { view, query } = scope;
  const [numbers, several] = await Promise.all([
    numbersOf(field, scope, "histogram"),
    countEvents(view, both(query, term("terms", severalMark(field)))),
  ]);
  const bucketOf = bucketNumbers({ interval, isTime: false });
  const groups = [...Map.groupBy(numbers, ({ value }) => bucketOf(Number(value)))].sort(([a], [b]) => a - b);
  // Refuses too many buckets before each is counted.
  fillBuckets(new Map(groups.map(([step]) => [step, 1])), { interval, isTime: false }, scope.path);
  return new Map(
    await Promise.all(
      groups.map(async ([step, items]): Promise<[number, FilledBucket]> => {
        const part = withValues(
          query,
          field,
          items.map(({ key }) => key),
        );
        // An event with two values in one bucket counts once.
        const isCounted = several > 0 && items.length > 1;
        const count = isCounted ? await countEvents(view, part) : items.reduce((sum, item) => sum + item.count, 0);
        return [step, { count, query: part }];
      }),
    ),
  );
}

async function histogramOf(
  filled: ReadonlyMap<number, FilledBucket>,
  isTime: boolean,
  aggregation: AggregationOf<"histogram">,
  scope: AggregationScope,
): Promise<AggregationResult> {
  const interval: HistogramInterval = { interval: aggregation.interval, isTime };
  const [first = 0] = filled.keys();
  const all = fillBuckets(new Map([...filled].map(([step, { count }]) => [step, count])), interval, scope.path);
  const empty = Object.fromEntries(aggregation.aggs.map((item) => [item.name, emptyResult(item.aggregation)]));
  const buckets = await Promise.all(
    all.map(async (bucket, nth): Promise<Bucket> => {
      const part = filled.get(first + nth);
      return { ...bucket, ...(part ? await inner(aggregation, part.query, scope) : empty) };
    }),
  );
  return { buckets };
}

const TYPES = ["string", "number", "bigint", "boolean"];

/** The order of values with equal counts: that of a closed set, or texts, numbers, integers past 2^53, booleans. */
function keyOrder(field: string, platform: string): (a: Scalar, b: Scalar) => number {
  const closed = { severity: SEVERITIES, class: CLASSES, source: sourceNames(platform) }[field] as
    | readonly string[]
    | undefined;
  if (closed) return (a, b) => closed.indexOf(a as string) - closed.indexOf(b as string);
  return (a, b) => {
    if (typeof a !== typeof b) return TYPES.indexOf(typeof a) - TYPES.indexOf(typeof b);
    if (typeof a === "string") return Buffer.compare(Buffer.from(a), Buffer.from(b as string));
    return a < b ? -1 : 1;
  };
}
