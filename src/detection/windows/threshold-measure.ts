import { pathList, type Threshold } from "../../model/rule.ts";

// The measures of a threshold over the events of a window: the number of events or of distinct values, or the sum, average
// or percentile of a number. A window does not need the list of numbers: a tally of two figures suffices.

/** The number of values, and their sum or, for a percentile, the number outside the bound. */
export interface MeasureTally {
  readonly values: number;
  readonly amount: number;
}

export interface ThresholdMeasure {
  /** The measured field. */
  readonly path: string;
  amountOf(value: number): number;
  /** True if values with this tally are within the bound. */
  holds(tally: MeasureTally): boolean;
}

interface Bound {
  admits(value: number): boolean;
}

/** The measure with the lower bound; undefined if the threshold counts or has no lower bound. */
export function lowerMeasure(threshold: Threshold): ThresholdMeasure | undefined {
  return measureWith(threshold, lowerBound(threshold));
}

/** The measure with the upper bound; undefined if the threshold counts or has no upper bound. */
export function upperMeasure(threshold: Threshold): ThresholdMeasure | undefined {
  return measureWith(threshold, upperBound(threshold));
}

function measureWith({ sum, avg, percentile }: Threshold, bound: Bound | undefined): ThresholdMeasure | undefined {
  if (!bound) return undefined;
  if (sum !== undefined) return { path: sum, amountOf: (value) => value, holds: ({ amount }) => bound.admits(amount) };
  if (avg !== undefined) {
    return { path: avg, amountOf: (value) => value, holds: ({ amount, values }) => bound.admits(amount / values) };
  }
  return percentile && percentileWith(percentile, bound);
}

/**
 * The nearest-rank percentile. It is at or above a lower bound if fewer values than its rank lie below the bound, and at or
 * below an upper bound if at least as many lie within it.
 */
function percentileWith({ of: path, rank }: NonNullable<Threshold["percentile"]>, bound: Bound): ThresholdMeasure {
  const rankOf = (values: number) => Math.max(1, Math.ceil((rank / 100) * values));
  const isLower = bound.admits(Infinity);
  return {
    path,
    amountOf: (value) => (bound.admits(value) ? 0 : 1),
    holds: ({ amount, values }) => (isLower ? amount < rankOf(values) : values - amount >= rankOf(values)),
  };
}

function lowerBound({ gte, gt }: Threshold): Bound | undefined {
  if (gte !== undefined) return { admits: (value) => value >= gte };
  return gt === undefined ? undefined : { admits: (value) => value > gt };
}

/** The upper bound, for counts too. */
export function upperBound({ lte, lt }: Threshold): Bound | undefined {
  if (lte !== undefined) return { admits: (value) => value <= lte };
  return lt === undefined ? undefined : { admits: (value) => value < lt };
}

/** The paths whose values an event must have to count. */
export function valuePaths(threshold: Threshold | null): readonly string[] {
  if (!threshold) return [];
  const { distinct, sum, avg, percentile } = threshold;
  return pathList(distinct ?? sum ?? avg ?? percentile?.of);
}

/** True for values that can be measured. Integers beyond 2^53 are rounded to a double. */
export function isNumeric(value: unknown): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

/** True if the threshold measures numbers instead of counting. */
export function isMeasured(threshold: Threshold): boolean {
  return threshold.sum !== undefined || threshold.avg !== undefined || threshold.percentile !== undefined;
}
