import { formatTime } from "../../lib/time.ts";
import { HISTOGRAM_BUCKETS_MAX } from "../../model/aggregation.ts";
import { QueryRefused } from "../ports/store-errors.ts";

// The buckets of a histogram: bucket number n covers n times the interval up to the next bucket. Numbers count as written:
// 0.3 is three times 0.1, although their doubles are not.

/** Powers of ten up to this one are exact doubles. */
export const EXACT_DIGITS_MAX = 22;

export interface HistogramInterval {
  readonly interval: number;
  readonly isTime: boolean;
}

/** An interval as an integer and a number of decimal places. */
export function unitsOf(interval: number): { units: number; digits: number } {
  const [mantissa = "", exponent = "0"] = interval.toExponential().split("e");
  const [, fraction = ""] = mantissa.split(".");
  const digits = fraction.length - Number(exponent);
  return digits <= 0 ? { units: interval, digits: 0 } : { units: Number(mantissa.replace(".", "")), digits };
}

/** A function that returns the number of the bucket that contains a number. */
export function bucketNumbers({ interval, isTime }: HistogramInterval): (number: number) => number {
  const { units, digits } = unitsOf(interval);
  if (isTime || digits > EXACT_DIGITS_MAX) return (number) => Math.floor(number / interval);
  const begin = (bucket: number) => (bucket * units) / 10 ** digits;
  return (number) => {
    // The quotient may be off by its last digit, and so by one bucket.
    const floor = Math.floor(number / interval);
    if (begin(floor + 1) <= number) return floor + 1;
    return begin(floor) > number ? floor - 1 : floor;
  };
}

export function bucketKey({ interval, isTime }: HistogramInterval, bucket: number): string | number {
  if (isTime) return formatTime(bucket * interval);
  const { units, digits } = unitsOf(interval);
  return digits === 0 ? bucket * interval : Number(`${BigInt(bucket) * BigInt(units)}e-${digits}`);
}

/** All buckets from the first to the last that has events, empty ones in between included. */
export function fillBuckets(
  counts: ReadonlyMap<number, number>,
  interval: HistogramInterval,
  path: string,
): { key: string | number; count: number }[] {
  const [first = 0] = counts.keys();
  const last = [...counts.keys()].at(-1);
  const width = last === undefined ? 0 : last - first + 1;
  // NaN if even the bucket numbers are too large to count.
  if (!(width <= HISTOGRAM_BUCKETS_MAX)) {
    throw new QueryRefused(
      `${path}.histogram.interval`,
      `would make more than ${HISTOGRAM_BUCKETS_MAX} buckets: make it longer`,
    );
  }
  return Array.from({ length: width }, (_, i) => ({
    key: bucketKey(interval, first + i),
    count: counts.get(first + i) ?? 0,
  }));
}
