import { DAY_MS, startOfDay } from "../lib/time.ts";

// Bounds of plausible event times.

/** Tolerance for a sender's clock that runs ahead of ours. */
export const AHEAD_MS_MAX = 5 * 60_000;

export interface ClockBounds {
  readonly now: number;
  readonly earliest: number;
  readonly latest: number;
}

/** The earliest time is the start of a UTC day, like the limit of retention. */
export function clockBounds(now: number, retentionDays: number): ClockBounds {
  return { now, earliest: startOfDay(now - retentionDays * DAY_MS), latest: now + AHEAD_MS_MAX };
}
