import { pathList, type Rule } from "../model/rule.ts";

// What a threshold measures of the events of a window: how many there are, how many different values, or the sum, the
// average or a percentile of a number in them. A window needs no list of these numbers: two figures of each say enough.

export type Threshold = NonNullable<Rule["threshold"]>;

/** Numbers put together: how many, and for a sum or an average their sum, for a percentile how many miss the bound. */
export interface Tally {
  readonly values: number;
  readonly amount: number;
}

export interface Measure {
  /** The field whose numbers are measured. */
  readonly path: string;
  amountOf(value: number): number;
  /** Whether numbers with this tally are within the bound. */
  holds(tally: Tally): boolean;
}

interface Bound {
  admits(value: number): boolean;
}

/** By what the threshold measures, with its lower bound; undefined where it counts, or has none. */
export function lowerMeasure(threshold: Threshold): Measure | undefined {
  return measureWith(threshold, lowerBound(threshold));
}

/** The same with its upper bound. */
export function upperMeasure(threshold: Threshold): Measure | undefined {
  return measureWith(threshold, upperBound(threshold));
}

function measureWith({ sum, avg, percentile }: Threshold, bound: Bound | undefined): Measure | undefined {
  if (!bound) return undefined;
  if (sum !== undefined) return { path: sum, amountOf: (value) => value, holds: ({ amount }) => bound.admits(amount) };
  if (avg !== undefined) {
    return { path: avg, amountOf: (value) => value, holds: ({ amount, values }) => bound.admits(amount / values) };
  }
  return percentile && percentileWith(percentile, bound);
}

/**
 * The nearest rank: the least number that the rank's share of all numbers does not exceed. It is at least a bound when fewer
 * numbers than its place lie below the bound, and at most a bound when as many lie within it.
 */
function percentileWith({ of: path, rank }: NonNullable<Threshold["percentile"]>, bound: Bound): Measure {
  const placeOf = (values: number) => Math.max(1, Math.ceil((rank / 100) * values));
  const isLower = bound.admits(Infinity);
  return {
    path,
    amountOf: (value) => (bound.admits(value) ? 0 : 1),
    holds: ({ amount, values }) => (isLower ? amount < placeOf(values) : values - amount >= placeOf(values)),
  };
}

function lowerBound({ gte, gt }: Threshold): Bound | undefined {
  if (gte !== undefined) return { admits: (value) => value >= gte };
  return gt === undefined ? undefined : { admits: (value) => value > gt };
}

/** Of counts too. */
export function upperBound({ lte, lt }: Threshold): Bound | undefined {
  if (lte !== undefined) return { admits: (value) => value <= lte };
  return lt === undefined ? undefined : { admits: (value) => value < lt };
}

/** The paths whose values an event must bring along to count. */
export function valuePaths(threshold: Threshold | null): readonly string[] {
  if (!threshold) return [];
  const { distinct, sum, avg, percentile } = threshold;
  return pathList(distinct ?? sum ?? avg ?? percentile?.of);
}

/** Whether it measures numbers rather than counting. */
/** What sums and averages are made of: integers beyond 2^53 as the nearest number. */
export function isNumeric(value: unknown): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

export function isMeasured(threshold: Threshold): boolean {
  return threshold.sum !== undefined || threshold.avg !== undefined || threshold.percentile !== undefined;
}
