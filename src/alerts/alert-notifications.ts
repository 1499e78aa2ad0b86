import { SYSTEM, type AlertSummary } from "../model/alert.ts";
import type { NewNotification, NotificationReason } from "../model/notification.ts";
import type { Channel } from "../model/rule.ts";
import type { AlertChanges } from "../store/ports/alert-store.ts";

// Notifications that a change of an alert queues.

export interface NotificationPolicy {
  /** The configured channels. */
  readonly channels: readonly Channel[];
  /** True if resolving an alert notifies every channel. */
  readonly onResolve: boolean;
  /** Channels that are told whenever the status changes. */
  readonly followers?: readonly Channel[];
}

export const NO_NOTIFICATIONS: NotificationPolicy = { channels: [], onResolve: false };

export interface NotificationContext {
  readonly at: number;
  newEntryId(): string;
  newNotificationId(): string;
}

export interface AlertChange {
  readonly alert: AlertSummary;
  readonly reason: NotificationReason;
}

type QueuedNotifications = Required<Pick<AlertChanges, "notifications" | "timeline">>;

/**
 * Queues a notification for each channel of the alert's rule. A channel that is not configured gets a timeline entry, only
 * when the alert is created.
 */
export function notificationsFor(
  changes: readonly AlertChange[],
  { channels, onResolve, followers = [] }: NotificationPolicy,
  context: NotificationContext,
): QueuedNotifications {
  const notifications: NewNotification[] = [];
  const timeline: QueuedNotifications["timeline"][number][] = [];
  const { at } = context;
  for (const { alert, reason } of changes) {
    const isForAll = reason === "resolved" ? onResolve : reason !== "acknowledged";
    for (const channel of alert.channels ?? []) {
      if (!isForAll && !followers.includes(channel)) continue;
      if (channels.includes(channel)) {
        notifications.push({ id: context.newNotificationId(), alertId: alert.id, channel, reason, createdAt: at });
      } else if (reason === "created") {
        const happened = { id: context.newEntryId(), at, actor: SYSTEM };
        const entry = { ...happened, kind: "notified", channel, outcome: "not_configured", reason } as const;
        timeline.push({ alertId: alert.id, entry });
      }
    }
  }
  return { notifications, timeline };
}
