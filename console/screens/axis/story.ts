import { isWorthReading } from "../../components/axis/worth-reading.ts";
import type { View } from "../../components/axis/view.ts";
import type { Alert, Event, Severity } from "../../data/client.ts";
import { SEVERITIES } from "../../data/severity.ts";

// The same as the picture, in words and in order: what happened, what was raised, and how long nothing happened.

export type StoryRow =
  | { readonly kind: "event"; readonly id: string; readonly atMs: number; readonly event: Event }
  | { readonly kind: "alert"; readonly id: string; readonly atMs: number; readonly alert: Alert }
  | { readonly kind: "gap"; readonly id: string; readonly lengthMs: number }
  | { readonly kind: "day"; readonly id: string; readonly dayMs: number; readonly counts: DayCounts };

export type DayCounts = readonly { readonly severity: Severity; readonly count: number }[];

export type Show = "worth" | "everything";

const GAP_MS_MIN = 180_000;

interface StoryInput {
  readonly events: readonly Event[];
  readonly alerts: readonly Alert[];
  /** Ids of the events of the chosen alert, and of what has to do with them: always told. */
  readonly told: ReadonlySet<string>;
  readonly chosen: string | undefined;
  readonly view: View;
  readonly show: Show;
  readonly startOfDayMs: (atMs: number) => number;
}

const isIn = ({ fromMs, toMs }: View, atMs: number) => atMs >= fromMs && atMs <= toMs;

/** An alert is told after its last event, which raised it or added to it. */
const toldAtMs = (alert: Alert) => Date.parse(alert.last_event_at);

/** Each event in view that is worth reading, or each one, with the alerts among them. */
export function storyOf({ events, alerts, told, chosen, view, show, startOfDayMs }: StoryInput): StoryRow[] {
  const rows: (StoryRow & { readonly atMs: number })[] = [];
  for (const event of events) {
    const atMs = Date.parse(event.timestamp);
    if (!isIn(view, atMs)) continue;
    if (show === "everything" || told.has(event.id) || isWorthReading(event)) {
      rows.push({ kind: "event", id: event.id, atMs, event });
    }
  }
  for (const alert of alerts) {
    const isBad = alert.severity === "critical" || alert.severity === "high";
    if (isIn(view, toldAtMs(alert)) && (show === "everything" || isBad || alert.id === chosen)) {
      rows.push({ kind: "alert", id: alert.id, atMs: toldAtMs(alert), alert });
    }
  }
  rows.sort((a, b) => a.atMs - b.atMs || Number(a.kind === "alert") - Number(b.kind === "alert"));
  const isOneDay = startOfDayMs(view.fromMs) === startOfDayMs(view.toMs);
  return rows.flatMap((row, index): StoryRow[] => {
    const before = rows[index - 1]?.atMs;
    const dayMs = startOfDayMs(row.atMs);
    if (!isOneDay && (before === undefined || startOfDayMs(before) !== dayMs)) {
      return [{ kind: "day", id: `day ${dayMs}`, dayMs, counts: [] }, row];
    }
    const lengthMs = row.atMs - (before ?? row.atMs);
    return lengthMs < GAP_MS_MIN ? [row] : [{ kind: "gap", id: `before ${row.id}`, lengthMs }, row];
  });
}

/** For a view with too many events to tell: its days, each with its worst alerts. */
export function daysOf(
  alerts: readonly Alert[],
  view: View,
  show: Show,
  startOfDayMs: (atMs: number) => number,
): StoryRow[] {
  const inView = alerts.filter((alert) => isIn(view, toldAtMs(alert))).toSorted((a, b) => toldAtMs(a) - toldAtMs(b));
  const days = Map.groupBy(inView, (alert) => startOfDayMs(toldAtMs(alert)));
  return [...days].flatMap(([dayMs, all]): StoryRow[] => {
    const counts = SEVERITIES.map((severity) => ({
      severity,
      count: all.filter((alert) => alert.severity === severity).length,
    })).filter(({ count }) => count > 0);
    const told = all.filter(({ severity }) => show === "everything" || severity === "critical");
    return [
      { kind: "day", id: `day ${dayMs}`, dayMs, counts },
      ...told.map((alert) => ({ kind: "alert" as const, id: alert.id, atMs: toldAtMs(alert), alert })),
    ];
  });
}

/** The next alert after a moment, or the one before it. `n` and `p` walk through them. */
export function neighbourAlert<Named extends Pick<Alert, "id" | "first_event_at">>(
  alerts: readonly Named[],
  chosen: string | undefined,
  middleMs: number,
  step: 1 | -1,
): Named | undefined {
  const inOrder = alerts.toSorted(
    (a, b) => Date.parse(a.first_event_at) - Date.parse(b.first_event_at) || a.id.localeCompare(b.id),
  );
  const place = inOrder.findIndex(({ id }) => id === chosen);
  if (place !== -1) return inOrder[place + step];
  const after = inOrder.findIndex(({ first_event_at }) => Date.parse(first_event_at) > middleMs);
  const split = after === -1 ? inOrder.length : after;
  return inOrder[step === 1 ? split : split - 1];
}
