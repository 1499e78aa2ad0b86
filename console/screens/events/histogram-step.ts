// The width of the bars of a histogram: whole minutes, hours and days, at most about as many as are asked for.

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const STEPS: readonly (readonly [number, string])[] = [
  [SECOND_MS, "1s"],
  [5 * SECOND_MS, "5s"],
  [15 * SECOND_MS, "15s"],
  [MINUTE_MS, "1m"],
  [2 * MINUTE_MS, "2m"],
  [5 * MINUTE_MS, "5m"],
  [10 * MINUTE_MS, "10m"],
  [15 * MINUTE_MS, "15m"],
  [30 * MINUTE_MS, "30m"],
  [HOUR_MS, "1h"],
  [2 * HOUR_MS, "2h"],
  [3 * HOUR_MS, "3h"],
  [6 * HOUR_MS, "6h"],
  [12 * HOUR_MS, "12h"],
  [DAY_MS, "1d"],
  [7 * DAY_MS, "7d"],
];

export interface HistogramStep {
  readonly ms: number;
  /** As the service takes it. */
  readonly interval: string;
}

export function histogramStep(lengthMs: number, barsMax: number): HistogramStep {
  const [ms, interval] = STEPS.find(([step]) => lengthMs / step <= barsMax) ?? STEPS.at(-1)!;
  return { ms, interval };
}
