import { formatTime } from "../../../lib/time.ts";
import { HISTOGRAM_BUCKETS_MAX, QuestionRefused } from "../../store.ts";

// The steps of a histogram: bucket number n goes from n times the interval up to the next. Numbers are read as they are
// written: 0.3 is three times 0.1, although their doubles are not.

/** Powers of ten up to here are doubles exactly. */
const EXACT_DIGITS_MAX = 22;

export interface Steps {
  readonly interval: number;
  readonly isTime: boolean;
}

/** An interval as whole units, and how many of these digits stand behind the point. */
function unitsOf(interval: number): { units: number; digits: number } {
  const [mantissa = "", exponent = "0"] = interval.toExponential().split("e");
  const [, fraction = ""] = mantissa.split(".");
  const digits = fraction.length - Number(exponent);
  return digits <= 0 ? { units: interval, digits: 0 } : { units: Number(mantissa.replace(".", "")), digits };
}

/** SQL of the number of the bucket that a number lies in. */
export function stepSql({ interval, isTime }: Steps, number: string): string {
  if (isTime) return `ts // ${interval}`;
  const floor = `floor(${number} / ${interval.toExponential()})`;
  const { units, digits } = unitsOf(interval);
  if (digits > EXACT_DIGITS_MAX) return floor;
  // The quotient may be off by its last digit, and so by one bucket; a division of two exact numbers is as near to
  // where a bucket begins as the number that is written there.
  const begin = (step: string) => `((${step}) * ${units.toExponential()} / 1e${digits})`;
  return `CASE WHEN ${begin(`${floor} + 1`)} <= ${number} THEN ${floor} + 1 WHEN ${begin(floor)} > ${number} THEN ${floor} - 1 ELSE ${floor} END`;
}

export function keyOfStep({ interval, isTime }: Steps, step: number): string | number {
  if (isTime) return formatTime(step * interval);
  const { units, digits } = unitsOf(interval);
  return digits === 0 ? step * interval : Number(`${BigInt(step) * BigInt(units)}e-${digits}`);
}

/** Every bucket from the first that holds something to the last, those between that hold nothing included. */
export function bucketsOf(
  counts: ReadonlyMap<number, number>,
  steps: Steps,
  place: string,
): { key: string | number; count: number }[] {
  const [first = 0] = counts.keys();
  const last = [...counts.keys()].at(-1);
  const width = last === undefined ? 0 : last - first + 1;
  // Not a number where even the steps are too large to be counted.
  if (!(width <= HISTOGRAM_BUCKETS_MAX)) {
    throw new QuestionRefused(
      `${place}.histogram.interval`,
      `would make more than ${HISTOGRAM_BUCKETS_MAX} buckets: make it longer`,
    );
  }
  return Array.from({ length: width }, (_, i) => ({
    key: keyOfStep(steps, first + i),
    count: counts.get(first + i) ?? 0,
  }));
}
