import { RETRY_AFTER_MS_MAX } from "../lib/outgoing.ts";
import type { Backlog } from "../store/store.ts";

// When a channel is told something, and when again: decided on plain numbers.

const MINUTE_MS = 60_000;
const WAIT_FIRST_MS = 5000;
const WAIT_MS_MAX = 15 * MINUTE_MS;
/** A message waits for its next try as long as that, or as the other side asks for. */
const RETRY_MS_MAX = Math.max(WAIT_MS_MAX, RETRY_AFTER_MS_MAX);

export interface Pace {
  /** How long the first notification waits for others to come along in the same message. */
  readonly gatherMs: number;
  /** With more than so many within `digestMs`, all wait so long and become one digest. */
  readonly digestAbove: number;
  readonly digestMs: number;
  /** Attempts in a minute. */
  readonly perMinuteMax: number;
  /** Notifications in one message. */
  readonly messageMax: number;
}

export const PACE: Omit<Pace, "perMinuteMax"> = {
  gatherMs: 2000,
  digestAbove: 5,
  digestMs: MINUTE_MS,
  messageMax: 1000,
};

/** What has happened on the channel, by a clock that nobody sets. */
export interface Past {
  /** When the last attempts were made, oldest first; as many as the pace allows in a minute. */
  readonly attemptsAt: readonly number[];
  /** It is left alone until then. */
  readonly pausedUntil: number;
  /** Whether the last message was a new one. */
  readonly lastWasNew: boolean;
}

export type Step =
  | { readonly kind: "begin" }
  | { readonly kind: "again"; readonly deliveryId: string }
  /** Null: until something is put in line. */
  | { readonly kind: "wait"; readonly until: number | null };

/** `steadyNow` is the time of the clock that `past` is by. */
export function nextStep(
  { freshSince, recent, retry }: Backlog,
  past: Past,
  pace: Pace,
  now: number,
  steadyNow: number,
): Step {
  const gathers = recent > pace.digestAbove ? pace.digestMs : pace.gatherMs;
  const freshAt = freshSince === null ? Infinity : unlessSetBack(freshSince + gathers, gathers, now);
  const retryAt = retry === null ? Infinity : unlessSetBack(retry.dueAt, RETRY_MS_MAX, now);
  const readyAt = Math.min(freshAt, retryAt);
  if (readyAt === Infinity) return { kind: "wait", until: null };
  const until = Math.max(readyAt, now + allowedAt(past, pace) - steadyNow);
  if (until > now) return { kind: "wait", until };
  // In turns, so that neither keeps the other from being told.
  const isNewsTurn = freshAt <= now && (retryAt > now || !past.lastWasNew);
  return isNewsTurn ? { kind: "begin" } : { kind: "again", deliveryId: retry!.deliveryId };
}

/** What is further ahead than anybody ever waits was written before the clock was set back: it is due. */
function unlessSetBack(at: number, waitMsMax: number, now: number): number {
  return at - now > waitMsMax ? now : at;
}

function allowedAt({ attemptsAt, pausedUntil }: Past, { perMinuteMax }: Pace): number {
  const oldest = attemptsAt.at(-perMinuteMax);
  return Math.max(pausedUntil, oldest === undefined ? 0 : oldest + MINUTE_MS);
}

/** Twice as long each time, up to a quarter of an hour, and never the same for all who wait. `random` is from 0 to 1. */
export function waitAfter(failures: number, random: number): number {
  const full = Math.min(WAIT_FIRST_MS * 2 ** Math.min(failures - 1, 20), WAIT_MS_MAX);
  return Math.round(full * (0.5 + random / 2));
}
