import { RETRY_AFTER_MS_MAX } from "../lib/outgoing.ts";
import type { Backlog } from "../store/ports/notification-store.ts";

// Decides when a channel sends and retries, on plain numbers.

const MINUTE_MS = 60_000;
const WAIT_FIRST_MS = 5000;
const WAIT_MS_MAX = 15 * MINUTE_MS;
/** The longest delay before a retry, including a delay that the peer asked for. */
const RETRY_MS_MAX = Math.max(WAIT_MS_MAX, RETRY_AFTER_MS_MAX);

export interface DeliveryPace {
  /** How long the first notification waits for others to join its message. */
  readonly gatherMs: number;
  /** With more notifications than this within `digestMs`, all of them wait that long and form one digest. */
  readonly digestAbove: number;
  readonly digestMs: number;
  /** Attempts per minute. */
  readonly perMinuteMax: number;
  /** Notifications in one message. */
  readonly messageMax: number;
}

export const PACE: Omit<DeliveryPace, "perMinuteMax"> = {
  gatherMs: 2000,
  digestAbove: 5,
  digestMs: MINUTE_MS,
  messageMax: 1000,
};

/** Past attempts on the channel, by a monotonic clock. */
export interface ChannelHistory {
  /** Times of the last attempts, oldest first, up to the limit per minute. */
  readonly attemptsAt: readonly number[];
  /** No attempt is made before this time. */
  readonly pausedUntil: number;
  /** True if the last message was new rather than a retry. */
  readonly lastWasNew: boolean;
}

export type QueueStep =
  | { readonly kind: "begin" }
  | { readonly kind: "again"; readonly deliveryId: string }
  /** Null: until a notification is queued. */
  | { readonly kind: "wait"; readonly until: number | null };

/** `steadyNow` is from the monotonic clock of `past`. */
export function nextQueueStep(
  { freshSince, recent, retry }: Backlog,
  past: ChannelHistory,
  pace: DeliveryPace,
  now: number,
  steadyNow: number,
): QueueStep {
  const gathers = recent > pace.digestAbove ? pace.digestMs : pace.gatherMs;
  const freshAt = freshSince === null ? Infinity : unlessSetBack(freshSince + gathers, gathers, now);
  const retryAt = retry === null ? Infinity : unlessSetBack(retry.dueAt, RETRY_MS_MAX, now);
  const readyAt = Math.min(freshAt, retryAt);
  if (readyAt === Infinity) return { kind: "wait", until: null };
  const until = Math.max(readyAt, now + allowedAt(past, pace) - steadyNow);
  if (until > now) return { kind: "wait", until };
  // New messages and retries alternate, so that neither starves the other.
  const isNewsTurn = freshAt <= now && (retryAt > now || !past.lastWasNew);
  return isNewsTurn ? { kind: "begin" } : { kind: "again", deliveryId: retry!.deliveryId };
}

/** A time further ahead than any delay was stored before the clock was set back: it is due. */
function unlessSetBack(at: number, waitMsMax: number, now: number): number {
  return at - now > waitMsMax ? now : at;
}

function allowedAt({ attemptsAt, pausedUntil }: ChannelHistory, { perMinuteMax }: DeliveryPace): number {
  const oldest = attemptsAt.at(-perMinuteMax);
  return Math.max(pausedUntil, oldest === undefined ? 0 : oldest + MINUTE_MS);
}

/** Exponential backoff up to 15 minutes, with jitter. `random` is from 0 to 1. */
export function backoffMs(failures: number, random: number): number {
  const full = Math.min(WAIT_FIRST_MS * 2 ** Math.min(failures - 1, 20), WAIT_MS_MAX);
  return Math.round(full * (0.5 + random / 2));
}
