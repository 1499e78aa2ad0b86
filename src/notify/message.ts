import { oneLine } from "../lib/text.ts";
import type { AlertSummary } from "../model/alert.ts";
import { SEVERITIES, type Severity } from "../model/event.ts";
import type { NotificationReason } from "../model/notification.ts";

// What people are told, before a channel gives it its form: one alert, or a digest of many.

export interface MessageItem {
  readonly reason: NotificationReason;
  readonly alert: AlertSummary;
  /** Where to read more. */
  readonly url: string;
}

export interface Message {
  /** The same for every attempt, so that whoever gets it twice can tell. */
  readonly deliveryId: string;
  /** Whether it may have arrived before. */
  readonly isRepeat: boolean;
  readonly at: number;
  /** At least one. */
  readonly items: readonly MessageItem[];
  /** The only recipients who are to get it; others have it already. */
  readonly untold?: readonly string[];
}

export interface Digest {
  readonly bySeverity: readonly { readonly severity: Severity; readonly count: number }[];
  readonly topRules: readonly { readonly name: string; readonly count: number }[];
  /** The worst, and of those the first. */
  readonly shown: readonly MessageItem[];
  readonly omitted: number;
}

const TOP_RULES_MAX = 5;

export const REASON_WORDS: Readonly<Record<NotificationReason, string>> = {
  created: "New alert",
  reopened: "Reopened",
  severity_raised: "Severity raised",
  resolved: "Resolved",
};

export const REPEAT_WORDS = "This message may have been sent before: the service was interrupted while sending it.";

export function digestOf(items: readonly MessageItem[], shownMax: number): Digest {
  const rank = ({ alert }: MessageItem) => SEVERITIES.indexOf(alert.severity);
  const shown = items.toSorted((a, b) => rank(a) - rank(b)).slice(0, shownMax);
  const rules = new Map<string, number>();
  for (const { alert } of items) rules.set(alert.rule.name, (rules.get(alert.rule.name) ?? 0) + 1);
  return {
    bySeverity: SEVERITIES.map((severity) => ({
      severity,
      count: items.filter(({ alert }) => alert.severity === severity).length,
    })).filter(({ count }) => count > 0),
    topRules: [...rules]
      .map(([name, count]) => ({ name, count }))
      .sort((a, b) => b.count - a.count)
      .slice(0, TOP_RULES_MAX),
    shown,
    omitted: items.length - shown.length,
  };
}

/** One line for the whole message. */
export function headlineOf({ items }: Message, charactersMax: number): string {
  const [first] = items;
  if (items.length === 1) {
    const { alert, reason } = first!;
    return oneLine(`[${alert.severity}] ${REASON_WORDS[reason]}: ${alert.title}`, charactersMax);
  }
  const counts = digestOf(items, 0).bySeverity.map(({ severity, count }) => `${count} ${severity}`);
  return oneLine(`${items.length} alerts: ${counts.join(", ")}`, charactersMax);
}
