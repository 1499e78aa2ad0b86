import type { Scalar } from "./condition.ts";

// The closed table of aggregations. Each kind also has an entry in SHAPES (aggregation-schema.ts), in the plans of every
// engine, and in the reference that the store contract compares with: a kind without one of them does not compile.

export const HISTOGRAM_BUCKETS_MAX = 10_000;

interface AggregationFields {
  terms: { readonly field: string; readonly size: number; readonly aggs: Aggregations };
  count: { readonly field?: string | undefined };
  histogram: { readonly field: string; readonly interval: number; readonly aggs: Aggregations };
  stats: { readonly field: string };
  cardinality: { readonly field: string };
}

export type AggregationKind = keyof AggregationFields;
export type AggregationOf<Kind extends AggregationKind> = { readonly kind: Kind } & AggregationFields[Kind];
export type Aggregation = { [Kind in AggregationKind]: AggregationOf<Kind> }[AggregationKind];
export type Aggregations = readonly { readonly name: string; readonly aggregation: Aggregation }[];

export type Bucket = { readonly key: Scalar; readonly count: number } & {
  readonly [subAggregation: string]: unknown;
};
export interface BucketsResult {
  readonly buckets: readonly Bucket[];
  readonly other_count?: number;
}
interface ValueResult {
  readonly value: number;
}
type StatsResult =
  | {
      readonly min: number | bigint | null;
      readonly max: number | bigint | null;
      readonly avg: number | null;
      readonly sum: number;
    }
  /** Statistics of the timestamp are times; their sum means nothing. */
  | { readonly min: string | null; readonly max: string | null; readonly avg: string | null; readonly sum: null };
export type AggregationResult = BucketsResult | ValueResult | StatsResult;

/** A table with one entry for each kind of aggregation. */
export type PerAggregation<Entry extends { [Kind in AggregationKind]: unknown }> = {
  readonly [Kind in AggregationKind]: Entry[Kind];
};

interface AggregationMeta<Kind extends AggregationKind> {
  readonly about: string;
  /** Buckets take inner aggregations; single figures do not. */
  readonly hasBuckets: boolean;
  /** The component of the OpenAPI document that describes the answer. */
  readonly answer: "Buckets" | "Value" | "Stats";
  /** The result over no events at all. */
  empty(aggregation: AggregationOf<Kind>): AggregationResult;
}

export const AGGREGATIONS: PerAggregation<{ [Kind in AggregationKind]: AggregationMeta<Kind> }> = {
  terms: {
    about: "the most frequent values, each with the number of its matches",
    hasBuckets: true,
    answer: "Buckets",
    empty: () => ({ buckets: [], other_count: 0 }),
  },
  count: {
    about: "the number of matches that have the field; without a field, of all matches",
    hasBuckets: false,
    answer: "Value",
    empty: () => ({ value: 0 }),
  },
  histogram: {
    about: "the number of matches in each interval",
    hasBuckets: true,
    answer: "Buckets",
    empty: () => ({ buckets: [] }),
  },
  stats: {
    about: "min, max, avg and sum; those of times are times, and sum is null",
    hasBuckets: false,
    answer: "Stats",
    empty: ({ field }) =>
      field === "timestamp"
        ? { min: null, max: null, avg: null, sum: null }
        : { min: null, max: null, avg: null, sum: 0 },
  },
  cardinality: {
    about: "the number of distinct values of the field",
    hasBuckets: false,
    answer: "Value",
    empty: () => ({ value: 0 }),
  },
};
export const AGGREGATION_KINDS = Object.keys(AGGREGATIONS) as AggregationKind[];

/** The result of an aggregation over no events. */
export function emptyResult(aggregation: Aggregation): AggregationResult {
  return (AGGREGATIONS[aggregation.kind] as AggregationMeta<AggregationKind>).empty(aggregation);
}
