import { z } from "zod";
import { formatTime } from "../lib/time.ts";
import { CHANNELS, type Channel } from "./rule.ts";

// A notification of one change of an alert on one channel, until it is delivered or given up.

export const NOTIFICATION_REASONS = ["created", "reopened", "severity_raised", "resolved", "acknowledged"] as const;
export type NotificationReason = (typeof NOTIFICATION_REASONS)[number];

/** `sending`: an attempt is in flight, or was when the process ended. `dead`: given up, until it is resent. */
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
  /** The message that contains it; one message may contain several notifications. Null until a message exists. */
  readonly deliveryId: string | null;
  readonly attempts: number;
  /** True if the channel may have received the message before. */
  readonly isRepeat: boolean;
  /** Recipients of the channel who have not received the message yet; null: all of them. */
  readonly untold: readonly string[] | null;
  /** Time of queueing: later than the creation if the notification was resent. */
  readonly queuedAt: number;
  /** Time of the next attempt; null if none is due. */
  readonly dueAt: number | null;
  /** Time of delivery or of giving up. */
  readonly settledAt: number | null;
  /** Error of the last attempt. */
  readonly error: string | null;
}

export const notificationSchema = z
  .object({
    id: z.string().describe("ntf_ and a time-ordered id"),
    alert_id: z.string(),
    channel: z.enum(CHANNELS),
    reason: z.enum(NOTIFICATION_REASONS).describe("change of the alert"),
    status: z.enum(NOTIFICATION_STATUSES).describe("dead: given up; kept for a while and can be resent"),
    delivery_id: z
      .string()
      .nullable()
      .describe("the message that contains it; one message may contain several notifications"),
    attempts: z.int(),
    repeat: z.boolean().describe("true: the channel may have received it before"),
    created_at: z.string(),
    next_attempt_at: z.string().nullable(),
    settled_at: z.string().nullable().describe("time of delivery or of giving up"),
    error: z.string().nullable().describe("error of the last attempt"),
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
