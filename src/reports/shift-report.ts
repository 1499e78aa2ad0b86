import { oneLine } from "../lib/text.ts";
import { formatTime } from "../lib/time.ts";
import type { AlertSummary } from "../model/alert.ts";
import type { Condition } from "../model/condition.ts";
import type { SortKey } from "../model/query.ts";
import type { RetentionStatus } from "../model/retention-status.ts";
import { falsePositiveShare, outcomesSince } from "../model/rule-view.ts";
import type { AlertWork, HandledAlert, SeverityTotals } from "../store/ports/alert-store.ts";
import type { QueryContext } from "../store/ports/query-context.ts";
import type { MissingDay, Store } from "../store/ports/store.ts";
import { lossesOf, sourcesOf, type InputStatuses } from "./report-sources.ts";
import {
  COMMENT_CHARACTERS_MAX,
  HANDLED_MAX,
  MESSAGES_MAX,
  OPEN_MAX,
  RULES_SHOWN_MAX,
  TALKERS_MAX,
  type ShiftReport,
} from "./shift-report-schema.ts";

// Gathers the data of a shift report. The number of queries is fixed: it depends neither on the range nor on the alerts.

export interface ShiftReportOptions {
  readonly site: string;
  readonly store: Pick<Store, "alerts" | "flows" | "missing" | "space">;
  readonly inputStatuses: () => Promise<InputStatuses>;
  readonly retention: { status(): Promise<RetentionStatus> };
  /** The cached host name of an address. */
  readonly hostnameOf: (address: string) => string | null;
  readonly now: () => number;
}

export interface Shift {
  readonly fromMs: number;
  readonly toMs: number;
  readonly timezone: string;
}

const MINUTE_MS = 60_000;
/** Lengths of the intervals of the charts, in minutes: the first that yields at most INTERVALS_MAX is used. */
const INTERVAL_MINUTES = [1, 5, 10, 15, 30, 60, 120, 180, 360, 720] as const;
const INTERVALS_MAX = 60;

const UNRESOLVED_STATUSES = ["open", "acknowledged"] as const;
const UNRESOLVED: Condition = {
  kind: "test",
  field: "status",
  operator: "in",
  value: UNRESOLVED_STATUSES,
  ignoreCase: false,
};
/** If there are more than are shown, the worst must be among those shown. */
const WORST_FIRST: readonly SortKey[] = [
  { field: "severity", descending: true },
  { field: "created_at", descending: false },
];

export async function gatherShiftReport(
  { site, store, inputStatuses, retention, hostnameOf, now }: ShiftReportOptions,
  { fromMs, toMs, timezone }: Shift,
  context: QueryContext,
): Promise<ShiftReport> {
  const generatedMs = now();
  const previous = { fromMs: 2 * fromMs - toMs, toMs: fromMs };
  const range = { fromMs, toMs };
  const intervalMs = intervalFor(toMs - fromMs);
  const { alerts, flows } = store;
  const series = { intervalMs, by: "bytes", limit: 1 } as const;
  const [
    [created, createdBefore, work, workBefore, open, oldest, trends],
    [traffic, trafficBefore, talkers],
    [statuses, space, missing],
  ] = await Promise.all([
    Promise.all([
      alerts.totals(range),
      alerts.totals(previous),
      alerts.work({ ...range, limit: HANDLED_MAX }),
      alerts.work({ ...previous, limit: 0 }),
      alerts.search({ condition: UNRESOLVED, sort: WORST_FIRST, limit: OPEN_MAX, aggs: [] }, context),
      alerts.list({ status: UNRESOLVED_STATUSES }, { mode: "page", page: 1, size: 1 }, "created_at", false, context),
      alerts.trends({ ...range, intervalMs, rulesMax: RULES_SHOWN_MAX }),
    ]),
    Promise.all([
      flows.timeseries({ filter: range, ...series }, context),
      flows.timeseries({ filter: previous, shiftMs: toMs - fromMs, ...series }, context),
      flows.topTalkers({ filter: range, dimension: "src", by: "bytes", limit: TALKERS_MAX }, context),
    ]),
    Promise.all([
      inputStatuses(),
      store.space(),
      Promise.all([store.missing("events", range), store.missing("flows", range)]),
    ]),
  ]);
  const names = trends.rules.map(({ name }) => name);
  const outcomes = await alerts.outcomes(names, outcomesSince(generatedMs));
  const bytesAt = new Map(
    trafficBefore.timestamps.map((ms, i) => [ms, Number(trafficBefore.series[0]?.bytes[i] ?? 0)]),
  );
  const bytes = traffic.timestamps.map((_, i) => Number(traffic.series[0]?.bytes[i] ?? 0));
  const { isPaused, messages } = await retention.status();
  return {
    site,
    generated_at: formatTime(generatedMs),
    from: formatTime(fromMs),
    to: formatTime(toMs),
    previous_from: formatTime(previous.fromMs),
    timezone,
    alerts: figuresOf({ created, createdBefore: createdBefore.total, work, workBefore }),
    handled: { total: work.handled.total, items: work.handled.items.map(handledRow) },
    open: {
      total: open.total,
      oldest_created_at: oldest.items[0] ? formatTime(oldest.items[0].createdAt) : null,
      items: open.items.toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1)).map(openRow),
    },
    trend: {
      interval_seconds: intervalMs / 1000,
      intervals: trends.intervals.map(({ startMs, totals }) => ({
        from: formatTime(startMs),
        by_severity: { ...totals.bySeverity },
      })),
    },
    rules: {
      items: trends.rules.map(({ name, count }, i) => ({
        rule_name: name,
        alerts: count,
        false_positive_share: falsePositiveShare(outcomes[i]!),
      })),
      other_alerts: sum(trends.intervals.map(({ otherRules }) => otherRules)),
    },
    traffic: {
      bytes: sum(bytes),
      flow_count: sum(traffic.series[0]?.flowCount ?? []),
      previous_bytes: sum([...bytesAt.values()]),
      interval_seconds: intervalMs / 1000,
      intervals: traffic.timestamps.map((ms, i) => ({
        from: formatTime(ms),
        bytes: bytes[i]!,
        previous_bytes: bytesAt.get(ms) ?? 0,
      })),
      talkers: talkers.map(({ key, bytes, flowCount }) => ({
        address: key,
        hostname: hostnameOf(key),
        bytes: Number(bytes),
        flow_count: flowCount,
      })),
    },
    sources: sourcesOf(statuses),
    losses: {
      dropped: lossesOf(statuses),
      missing: missing.flat().slice(0, MESSAGES_MAX).map(missingText),
      retention_paused: isPaused,
      retention_messages: messages.slice(0, MESSAGES_MAX),
      disk: { total_bytes: space.totalBytes, free_bytes: space.freeBytes, used_bytes: space.usedBytes },
    },
  };
}

function intervalFor(lengthMs: number): number {
  const minutes = INTERVAL_MINUTES.find((each) => lengthMs / (each * MINUTE_MS) <= INTERVALS_MAX);
  return (minutes ?? INTERVAL_MINUTES.at(-1)!) * MINUTE_MS;
}

interface Figures {
  readonly created: SeverityTotals;
  readonly createdBefore: number;
  readonly work: AlertWork;
  readonly workBefore: AlertWork;
}

function figuresOf({ created, createdBefore, work, workBefore }: Figures): ShiftReport["alerts"] {
  const figure = ({ total, bySeverity }: SeverityTotals, previous: number) => ({
    total,
    previous,
    by_severity: { ...bySeverity },
  });
  const seconds = (ms: number | null) => (ms === null ? null : ms / 1000);
  return {
    created: figure(created, createdBefore),
    acknowledged: figure(work.acknowledged, workBefore.acknowledged.total),
    resolved: figure(work.resolved, workBefore.resolved.total),
    resolutions: { ...work.resolutions },
    open: {
      total: work.unresolved.total,
      unacknowledged: work.unacknowledged,
      at_start: work.unresolvedBefore,
      by_severity: { ...work.unresolved.bySeverity },
    },
    seconds_to_first_look: { value: seconds(work.firstLookMs), previous: seconds(workBefore.firstLookMs) },
    seconds_to_resolve: { value: seconds(work.resolveMs), previous: seconds(workBefore.resolveMs) },
  };
}

function alertRow({ id, title, severity, rule, status, assignee }: AlertSummary) {
  return { alert_id: id, title, severity, rule_name: rule.name, status, assignee };
}

function handledRow({ alert, kind, at, actor, lastComment }: HandledAlert): ShiftReport["handled"]["items"][number] {
  return {
    ...alertRow(alert),
    action: kind,
    at: formatTime(at),
    by: actor,
    resolution: kind === "resolved" ? alert.resolution : null,
    last_comment: lastComment && {
      author: lastComment.author,
      at: formatTime(lastComment.createdAt),
      text: oneLine(lastComment.body, COMMENT_CHARACTERS_MAX),
    },
  };
}

function openRow(alert: AlertSummary): ShiftReport["open"]["items"][number] {
  return { ...alertRow(alert), created_at: formatTime(alert.createdAt), event_count: alert.eventCount };
}

function missingText({ kind, day, rows, why }: MissingDay): string {
  const date = formatTime(day).slice(0, 10);
  if (why !== undefined) return `${kind} of ${date}: ${why}`;
  return `${rows} ${kind} of ${date}: the file of that day was removed, emptied or damaged`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
