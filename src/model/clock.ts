import { DAY_MS, startOfDay } from "../lib/time.ts";

// Between which times something can have happened, as far as anyone is believed.

/** A sender's clock may be ahead of ours by so much. */
export const AHEAD_MS_MAX = 5 * 60_000;

export interface ClockBounds {
  readonly now: number;
  readonly earliest: number;
  readonly latest: number;
}

/** What is kept goes back whole UTC days, so that is how far back an event may lie. */
export function clockBounds(now: number, retentionDays: number): ClockBounds {
  return { now, earliest: startOfDay(now - retentionDays * DAY_MS), latest: now + AHEAD_MS_MAX };
}
