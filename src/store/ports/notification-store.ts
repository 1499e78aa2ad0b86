import type { Notification, NotificationStatus } from "../../model/notification.ts";
import type { Position } from "../../model/page.ts";
import type { Channel } from "../../model/rule.ts";
import type { NewTimelineEntry } from "./alert-store.ts";

export interface NotificationFilter {
  readonly status?: NotificationStatus | undefined;
  readonly channel?: Channel | undefined;
  readonly alertId?: string | undefined;
}

/** `waitingMax` is per channel: notifications past it are dead at once. Past the other two limits, the oldest are evicted. */
export const NOTIFICATION_LIMITS = { waitingMax: 100_000, sentMax: 50_000, deadMax: 10_000 };
/** Counting of the latest ones stops here: callers do not need the exact number of more. */
export const RECENT_NOTIFICATIONS_MAX = 1000;

/** The queue of one channel. */
export interface Backlog {
  /** When the oldest notification was queued that is not yet part of a message. */
  readonly freshSince: number | null;
  /** How many were queued since the given time, whatever became of them; at most RECENT_NOTIFICATIONS_MAX. */
  readonly recent: number;
  /** The message to retry that is due first; of several that are due, the one with the fewest attempts. */
  readonly retry: { readonly deliveryId: string; readonly dueAt: number } | null;
}

export type Settlement =
  | { readonly status: "sent"; readonly error: string | null }
  | { readonly status: "dead"; readonly error: string }
  | {
      readonly status: "waiting";
      readonly error: string;
      readonly dueAt: number;
      readonly isRepeat: boolean;
      /** The recipients who have not received it, if known; if omitted, they stay as they were. */
      readonly untold?: readonly string[];
    };

/**
 * Notifications that are committed together with alerts. A message comprises the oldest notifications of a channel, and
 * stays that message: its outcome is the outcome of all of them. The queue and the number of settled ones are bounded.
 */
export interface NotificationStore {
  get(id: string): Promise<Notification | undefined>;
  /** Newest first. An unknown cursor is a QueryRefused on `after`. */
  list(
    filter: NotificationFilter,
    position: Position,
  ): Promise<{
    readonly total: number;
    readonly items: readonly Notification[];
    readonly nextCursor: string | null;
  }>;
  backlog(channel: Channel, since: number, now: number): Promise<Backlog>;
  /** Makes a message of at most `limit` notifications and records that it is being sent. Empty: nothing waits. */
  begin(channel: Channel, deliveryId: string, limit: number): Promise<readonly Notification[]>;
  /** The same for a message to retry. */
  beginAgain(deliveryId: string): Promise<readonly Notification[]>;
  /** Records the outcome of a message and adds to the timelines. */
  settle(deliveryId: string, outcome: Settlement, now: number, timeline: readonly NewTimelineEntry[]): Promise<void>;
  /**
   * Messages of a channel that were sent or given up since this time, or are still to be sent, at most RECENT_NOTIFICATIONS_MAX.
   * Whoever goes on with the queue learns from them how many attempts were made lately.
   */
  recentDeliveries(
    channel: Channel,
    since: number,
  ): Promise<readonly { readonly deliveryId: string; readonly settledAt: number | null }[]>;
  /** Queues messages that were being sent when the process ended again, as repeats. Returns how many. */
  recover(now: number): Promise<number>;
  /**
   * Queues dead notifications again: one, or all of a channel. Returns how many. A message that some recipients have
   * received stays the same message, for the others.
   */
  resend(which: { readonly id: string } | { readonly channel: Channel }, now: number): Promise<number>;
  /** Removes sent and dead notifications that were settled before this time. Returns how many. */
  removeBefore(ms: number): Promise<number>;
  /** Notifications of each status by channel. */
  counts(): Promise<
    readonly { readonly channel: Channel; readonly status: NotificationStatus; readonly count: number }[]
  >;
  /** Calls the listener after notifications were queued. Returns a function that removes it. */
  onQueued(listener: () => void): () => void;
}
