const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const STEPS_MS = [
  1000,
  5000,
  15_000,
  30_000,
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 4, 6, 8, 12].map((hours) => hours * HOUR_MS),
  ...[1, 2, 4, 7, 14, 28].map((days) => days * DAY_MS),
];

/** The smallest step of clocks and calendars that cuts the length into at most so many parts. */
export function stepFor(lengthMs: number, partsMax: number): number {
  return STEPS_MS.find((step) => lengthMs / step <= partsMax) ?? Math.ceil(lengthMs / partsMax / DAY_MS) * DAY_MS;
}
