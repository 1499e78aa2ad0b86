import { SYSTEM, type AlertSummary } from "../model/alert.ts";
import type { NewNotification, NotificationReason } from "../model/notification.ts";
import type { Channel } from "../model/rule.ts";
import type { AlertChanges } from "../store/store.ts";

// Who hears of what happens to an alert.

/** What there is to tell people with. */
export interface Telling {
  readonly channels: readonly Channel[];
  /** Whether they hear of an alert that was resolved. */
  readonly onResolve: boolean;
}

export const NOBODY: Telling = { channels: [], onResolve: false };

export interface Teller {
  readonly at: number;
  newEntryId(): string;
  newNotificationId(): string;
}

export interface Happening {
  readonly alert: AlertSummary;
  readonly reason: NotificationReason;
}

type Told = Required<Pick<AlertChanges, "notifications" | "timeline">>;

/** The channels that the alert's rule names are told; one that there is not is noted once, when the alert is made. */
export function tell(happenings: readonly Happening[], { channels, onResolve }: Telling, teller: Teller): Told {
  const notifications: NewNotification[] = [];
  const timeline: Told["timeline"][number][] = [];
  const { at } = teller;
  for (const { alert, reason } of happenings) {
    if (reason === "resolved" && !onResolve) continue;
    for (const channel of alert.channels ?? []) {
      if (channels.includes(channel)) {
        notifications.push({ id: teller.newNotificationId(), alertId: alert.id, channel, reason, createdAt: at });
      } else if (reason === "created") {
        const happened = { id: teller.newEntryId(), at, actor: SYSTEM };
        const entry = { ...happened, kind: "notified", channel, outcome: "not_configured", reason } as const;
        timeline.push({ alertId: alert.id, entry });
      }
    }
  }
  return { notifications, timeline };
}
