import { parseDuration } from "../lib/duration.ts";
import { DAY_MS } from "../lib/time.ts";
import { FLOW_WINDOW_MS } from "../model/flow.ts";
import { TIMESERIES_POINTS_MAX } from "../model/flow-query.ts";
import { invalid } from "./problems.ts";
import { textParameter } from "./query-parameters.ts";

// The intervals of charts over time.

/** Default intervals: the first one that yields at most POINTS_DEFAULT_MAX points is used. */
const INTERVALS = ["1m", "5m", "15m", "1h", "6h", "1d"] as const;
const POINTS_DEFAULT_MAX = 200;

export const intervalParameter = textParameter(
  `length of a point, in whole minutes: \`1m\`, \`1h\`, \`1d\`; default: the first of ${INTERVALS.join(", ")} that yields at most ${POINTS_DEFAULT_MAX} points`,
  "must be a duration of whole minutes, such as 5m, 1h or 1d",
  readInterval,
  { type: "string" },
);

function readInterval(text: string): number | undefined {
  const ms = parseDuration(text);
  return ms !== undefined && ms % FLOW_WINDOW_MS === 0 ? ms : undefined;
}

export function defaultInterval(fromMs: number, toMs: number): number {
  const lengths = INTERVALS.map((text) => parseDuration(text)!);
  const fitting = lengths.find((ms) => (toMs - fromMs) / ms <= POINTS_DEFAULT_MAX);
  if (fitting !== undefined) return fitting;
  // Very long ranges get an interval of several days.
  const days = Math.ceil((toMs - fromMs) / DAY_MS / POINTS_DEFAULT_MAX);
  return days * DAY_MS;
}

export function refuseTooManyPoints(fromMs: number, toMs: number, intervalMs: number): void {
  if ((toMs - fromMs) / intervalMs <= TIMESERIES_POINTS_MAX) return;
  const message = `yields more than ${TIMESERIES_POINTS_MAX} points; use a longer interval or a shorter range`;
  throw invalid([{ field: "interval", message }]);
}
