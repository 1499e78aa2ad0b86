import { z } from "zod";
import { formatTime } from "../lib/time.ts";
import { CHANNELS, type Channel } from "./rule.ts";

// What one channel is to be told about one alert, from the change that causes it until it is delivered or given up.

export const NOTIFICATION_REASONS = ["created", "reopened", "severity_raised", "resolved"] as const;
export type NotificationReason = (typeof NOTIFICATION_REASONS)[number];

/** `sending`: an attempt is under way, or was when the process ended. `dead`: given up, until somebody sends it again. */
export const NOTIFICATION_STATUSES = ["waiting", "sending", "sent", "dead"] as const;
export type NotificationStatus = (typeof NOTIFICATION_STATUSES)[number];

export interface NewNotification {
  readonly id: string;
  readonly alertId: string;
  readonly channel: Channel;
  readonly reason: NotificationReason;
  readonly createdAt: number;
}

export interface Notification extends NewNotification {
  readonly status: NotificationStatus;
  /** The message that it is part of: several may be told in one. Null until there is one. */
  readonly deliveryId: string | null;
  readonly attempts: number;
  /** Whether the channel may have got the message before. */
  readonly isRepeat: boolean;
  /** Those of the channel's recipients who are still to get the message, where others have it; null: all of them. */
  readonly untold: readonly string[] | null;
  /** When it was put in line: later than its creation where somebody sent it again. */
  readonly queuedAt: number;
  /** When it is tried next; null where it is not. */
  readonly dueAt: number | null;
  /** When it was delivered or given up. */
  readonly settledAt: number | null;
  /** What went wrong the last time. */
  readonly error: string | null;
}

export const notificationSchema = z
  .object({
    id: z.string().describe("ntf_ and a time-ordered id"),
    alert_id: z.string(),
    channel: z.enum(CHANNELS),
    reason: z.enum(NOTIFICATION_REASONS).describe("what happened to the alert"),
    status: z.enum(NOTIFICATION_STATUSES).describe("dead: given up; it stays here for a while and can be sent again"),
    delivery_id: z.string().nullable().describe("the message that it is part of; several may be told in one"),
    attempts: z.int(),
    repeat: z.boolean().describe("whether the channel may have got it before"),
    created_at: z.string(),
    next_attempt_at: z.string().nullable(),
    settled_at: z.string().nullable().describe("when it was delivered or given up"),
    error: z.string().nullable().describe("what went wrong the last time"),
  })
  .meta({ id: "Notification" });

export function notificationView(notification: Notification): z.infer<typeof notificationSchema> {
  const { dueAt, settledAt } = notification;
  return {
    id: notification.id,
    alert_id: notification.alertId,
    channel: notification.channel,
    reason: notification.reason,
    status: notification.status,
    delivery_id: notification.deliveryId,
    attempts: notification.attempts,
    repeat: notification.isRepeat,
    created_at: formatTime(notification.createdAt),
    next_attempt_at: dueAt === null ? null : formatTime(dueAt),
    settled_at: settledAt === null ? null : formatTime(settledAt),
    error: notification.error,
  };
}
