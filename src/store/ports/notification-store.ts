import type { TimelineEntry } from "../../model/alert.ts";
import type { Notification, NotificationStatus } from "../../model/notification.ts";
import type { Position } from "../../model/page.ts";
import type { Channel } from "../../model/rule.ts";

// The part of store.ts that is about telling people.

export interface NewTimelineEntry {
  readonly alertId: string;
  readonly entry: TimelineEntry;
}

export interface NotificationFilter {
  readonly status?: NotificationStatus | undefined;
  readonly channel?: Channel | undefined;
  readonly alertId?: string | undefined;
}

/** What waits for one channel. */
export interface Backlog {
  /** When the first of those was put in line that no message has been made of yet. */
  readonly freshSince: number | null;
  /** How many were put in line since the time that was asked for, whatever has become of them; at most a thousand. */
  readonly recent: number;
  /** Of the messages that are to be tried again, the one that is due, or will be first; where several are due, the one tried least. */
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
      /** Given where it is known by now who has not got it; left out, it is as it was. */
      readonly untold?: readonly string[];
    };

/**
 * Notifications that alerts are committed with. A message is made of the oldest of a channel, and is a message for good:
 * whatever happens to it happens to all of its notifications. There is an end to how many wait, and to how many are kept after.
 */
export interface NotificationStore {
  get(id: string): Promise<Notification | undefined>;
  /** Newest first. An unknown cursor is a QuestionRefused on `after`. */
  list(
    filter: NotificationFilter,
    position: Position,
  ): Promise<{
    readonly total: number;
    readonly items: readonly Notification[];
    readonly nextCursor: string | null;
  }>;
  backlog(channel: Channel, since: number, now: number): Promise<Backlog>;
  /** Makes a message of at most so many, and says durably that it is being sent. Empty: nothing waits. */
  begin(channel: Channel, deliveryId: string, limit: number): Promise<readonly Notification[]>;
  /** The same for a message that is to be tried again. */
  beginAgain(deliveryId: string): Promise<readonly Notification[]>;
  /** What has become of a message, and what is said of it on the timelines. */
  settle(deliveryId: string, outcome: Settlement, now: number, timeline: readonly NewTimelineEntry[]): Promise<void>;
  /** Messages that were being sent when the process ended will be tried again, as repeats. Gives how many there are. */
  recover(now: number): Promise<number>;
  /**
   * Puts dead ones in line again: one, or all of a channel. Gives how many. What somebody has got already stays the message that it
   * was, for those who have not.
   */
  resend(which: { readonly id: string } | { readonly channel: Channel }, now: number): Promise<number>;
  /** Removes sent and dead ones that were settled before this time. Gives how many. */
  removeBefore(ms: number): Promise<number>;
  /** How many there are of each status, by channel. */
  counts(): Promise<
    readonly { readonly channel: Channel; readonly status: NotificationStatus; readonly count: number }[]
  >;
  /** Called after notifications were put in line. Gives the way to stop it. */
  onQueued(listener: () => void): () => void;
}

/** What analyses have cost. */
export interface AnalysisStore {
  /** Tokens that were used in the month, written as 2026-11. */
  tokensUsed(month: string): Promise<number>;
  /** Adds them where the month then has at most so many; false: it would have more, and nothing is added. */
  reserveTokens(month: string, tokens: number, max: number): Promise<boolean>;
  addTokens(month: string, tokens: number): Promise<void>;
}
