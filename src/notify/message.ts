import { oneLine } from "../lib/text.ts";
import { formatTime } from "../lib/time.ts";
import type { AlertSummary, TimelineEntry } from "../model/alert.ts";
import type { Resolution } from "../model/alert-state.ts";
import { SEVERITIES, type Severity } from "../model/event.ts";
import type { NotificationReason } from "../model/notification.ts";

// The content of a message, independent of the channel: one alert, or a digest of many.

export interface AlertLinks {
  /** For people. */
  readonly url: string;
  /** For programs: the alert in the API. */
  readonly apiUrl: string;
}

export interface MessageItem extends AlertLinks {
  readonly reason: NotificationReason;
  readonly alert: AlertSummary;
  /** The resolution, if the alert was resolved. */
  readonly closing?: Closing | undefined;
}

/** The resolution of an alert. */
export interface Closing {
  readonly resolution: Resolution;
  readonly by: string;
  readonly comment: string | null;
  readonly actionsTaken: readonly string[];
}

/** The resolution at that time: the alert may have been reopened and resolved again since. */
export function closingAt(timeline: readonly TimelineEntry[], at: number): Closing | undefined {
  const resolved = timeline.find((entry) => entry.kind === "resolved" && entry.at === at);
  if (resolved?.kind !== "resolved") return undefined;
  const { resolution, actor: by, actionsTaken } = resolved;
  const comment = timeline.find((entry) => entry.kind === "commented" && entry.at === at && entry.actor === by);
  return { resolution, by, comment: comment?.kind === "commented" ? comment.comment.body : null, actionsTaken };
}

export interface Message {
  /** The same for every attempt, so that a receiver can detect duplicates. */
  readonly deliveryId: string;
  /** True if an earlier attempt may have arrived. */
  readonly isRepeat: boolean;
  readonly at: number;
  /** At least one. */
  readonly items: readonly MessageItem[];
  /** The remaining recipients, if others already have the message. */
  readonly untold?: readonly string[];
  /** The message is a test of the channel: its alert does not exist. */
  readonly isTest?: true;
}

/** Most severe first, without zero counts. */
type SeverityCounts = readonly { readonly severity: Severity; readonly count: number }[];

/** Counts distinct alerts: one that was resolved and reopened is listed twice and counted once. */
export interface Digest {
  readonly bySeverity: SeverityCounts;
  readonly topRules: readonly { readonly name: string; readonly count: number }[];
  /** Most severe first, then oldest first. */
  readonly shown: readonly MessageItem[];
  readonly omitted: number;
}

const TOP_RULES_MAX = 5;

export const REASON_WORDS: Readonly<Record<NotificationReason, string>> = {
  created: "New alert",
  reopened: "Reopened",
  severity_raised: "Severity raised",
  resolved: "Resolved",
  acknowledged: "Acknowledged",
};

const RESOLUTION_WORDS: Readonly<Record<Resolution, string>> = {
  true_positive: "true positive",
  false_positive: "false positive",
  benign: "benign",
  duplicate: "duplicate",
};

/** The facts of an alert with their names, in the order in which people read them. */
export function alertFacts(item: MessageItem): [string, string][] {
  const { alert } = item;
  return [
    ["Severity", alert.severity],
    ["Rule", alert.rule.name],
    ["Source", alert.source],
    ...(alert.group ? [[alert.group.field, alert.group.value] as [string, string]] : []),
    ["Events", String(alert.eventCount)],
    ["First event", formatTime(alert.firstEventAt)],
    ["Last event", formatTime(alert.lastEventAt)],
    ["Status", alert.status],
    ...closingFacts(item),
  ];
}

/** The resolution as additional facts of an alert. */
export function closingFacts({ closing }: MessageItem): [string, string][] {
  if (!closing) return [];
  return [
    ["Resolution", RESOLUTION_WORDS[closing.resolution]],
    ["Resolved by", closing.by],
  ];
}

/** The comment and the actions taken, for below the facts. */
export function closingTexts({ closing }: MessageItem): [string, string][] {
  const texts: [string, string][] = [];
  if (closing && closing.comment !== null) texts.push(["Comment", closing.comment]);
  if (closing && closing.actionsTaken.length > 0) texts.push(["Actions taken", closing.actionsTaken.join("\n")]);
  return texts;
}

/** `Resolved (benign, by ann): Failed logins`, or `New alert: Failed logins`. */
export function lineOf({ reason, alert, closing }: MessageItem): string {
  const how = closing ? ` (${RESOLUTION_WORDS[closing.resolution]}, by ${closing.by})` : "";
  return `${REASON_WORDS[reason]}${how}: ${alert.title}`;
}

export const REPEAT_WORDS = "This message may have been sent before: the service was interrupted while sending it.";

export function digestOf(items: readonly MessageItem[], shownMax: number): Digest {
  const rank = ({ alert }: MessageItem) => SEVERITIES.indexOf(alert.severity);
  const shown = items.toSorted((a, b) => rank(a) - rank(b)).slice(0, shownMax);
  const alerts = alertsOf(items);
  const rules = new Map<string, number>();
  for (const { alert } of alerts) rules.set(alert.rule.name, (rules.get(alert.rule.name) ?? 0) + 1);
  return {
    bySeverity: countSeverities(alerts),
    topRules: [...rules]
      .map(([name, count]) => ({ name, count }))
      .sort((a, b) => b.count - a.count)
      .slice(0, TOP_RULES_MAX),
    shown,
    omitted: items.length - shown.length,
  };
}

/** One item per distinct alert: its last. */
export function alertsOf(items: readonly MessageItem[]): MessageItem[] {
  return [...new Map(items.map((item) => [item.alert.id, item])).values()];
}

export function countSeverities(items: readonly MessageItem[]): SeverityCounts {
  return SEVERITIES.map((severity) => ({
    severity,
    count: items.filter(({ alert }) => alert.severity === severity).length,
  })).filter(({ count }) => count > 0);
}

/** `2 alerts: 1 critical, 1 high`. */
export function countsOf(items: readonly MessageItem[]): string {
  const alerts = alertsOf(items);
  const counts = countSeverities(alerts).map(({ severity, count }) => `${count} ${severity}`);
  return `${alerts.length} ${alerts.length === 1 ? "alert" : "alerts"}: ${counts.join(", ")}`;
}

/** A one-line summary of the message. */
export function headlineOf({ items }: Message, charactersMax: number): string {
  const [first] = items;
  if (items.length === 1) {
    return oneLine(`[${first!.alert.severity}] ${lineOf(first!)}`, charactersMax);
  }
  if (alertsOf(items).length > 1) return oneLine(countsOf(items), charactersMax);
  const reasons = new Set(items.map(({ reason }) => REASON_WORDS[reason]));
  return oneLine(`[${first!.alert.severity}] ${[...reasons].join(", ")}: ${first!.alert.title}`, charactersMax);
}
