import { EXACT_DIGITS_MAX, unitsOf, type HistogramInterval } from "../../queries/histogram-buckets.ts";

/** The SQL of the number of the bucket that contains a number. */
export function bucketNumberSql({ interval, isTime }: HistogramInterval, number: string): string {
  if (isTime) return `ts // ${interval}`;
  const floor = `floor(${number} / ${interval.toExponential()})`;
  const { units, digits } = unitsOf(interval);
  if (digits > EXACT_DIGITS_MAX) return floor;
  // The quotient may be off by its last digit, and so by one bucket. A division of two exact numbers is as close to the
  // start of a bucket as the number that is written there.
  const begin = (bucket: string) => `((${bucket}) * ${units.toExponential()} / 1e${digits})`;
  return `CASE WHEN ${begin(`${floor} + 1`)} <= ${number} THEN ${floor} + 1 WHEN ${begin(floor)} > ${number} THEN ${floor} - 1 ELSE ${floor} END`;
}
