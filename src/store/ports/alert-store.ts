import type { Alert, AlertSummary, Comment, TimelineEntry } from "../../model/alert.ts";
import type { Resolution, Status } from "../../model/alert-state.ts";
import type { AggregationResult, Aggregations } from "../../model/aggregation.ts";
import type { AlertEntities } from "../../model/alert-entity.ts";
import type { Condition } from "../../model/condition.ts";
import type { EntityKind } from "../../model/entity.ts";
import type { Severity } from "../../model/event.ts";
import type { EventMark } from "../../model/finding.ts";
import type { NewNotification } from "../../model/notification.ts";
import type { Position } from "../../model/page.ts";
import type { SortKey, TimeRange } from "../../model/query.ts";
import type { IdentifiedDefinition, RuleDefinition } from "../../model/rule-definition.ts";
import type { DetectionProgress } from "./detection-store.ts";
import type { Fence } from "./lease-store.ts";
import type { QueryContext } from "./query-context.ts";

export interface AlertFilter {
  readonly status?: readonly Status[] | undefined;
  readonly severity?: readonly Severity[] | undefined;
  readonly ruleName?: readonly string[] | undefined;
  readonly source?: readonly string[] | undefined;
  /** Addresses, in upper or lower case; null stands for alerts that nobody is assigned to. */
  readonly assignee?: readonly (string | null)[] | undefined;
  /** Tags of the alert, one of which it must have. */
  readonly tag?: readonly string[] | undefined;
  /** Alerts that name one of these entities, in upper or lower case. */
  readonly entity?: readonly EntityFilter[] | undefined;
  /** Alerts of which one of these is among the events that can be listed. */
  readonly eventId?: readonly string[] | undefined;
  /**
   * What the range compares. `created`, the default: `createdAt`. `overlap`: the time from the first to the last event, which
   * must have a moment in common with the range.
   */
  readonly time?: AlertTime | undefined;
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
  /** Words that must all occur in title, description, rule name, group value, assignee, tags or entities; as in an EventFilter. */
  readonly search?: string | undefined;
}

/** The times of creation from which alerts count. */
export interface OutcomesSince {
  readonly createdMs: number;
  readonly resolvedMs: number;
}

export interface RuleOutcomes {
  /** Alerts created since `createdMs`. */
  readonly created: number;
  /** How alerts created since `resolvedMs` were resolved. */
  readonly resolutions: Readonly<Record<Resolution, number>>;
}

export const ALERT_TIMES = ["created", "overlap"] as const;
export type AlertTime = (typeof ALERT_TIMES)[number];

/** Without a kind, an entity of any kind with this value. */
export interface EntityFilter {
  readonly kind?: EntityKind | undefined;
  readonly value: string;
}

/** A search over alerts, whose fields are those of model/alert-field.ts. */
export interface AlertQuery extends TimeRange, Pick<AlertFilter, "time" | "search"> {
  readonly condition: Condition;
  /** Equal alerts are newest first. */
  readonly sort: readonly SortKey[];
  /** The id of the alert that the results start after. */
  readonly after?: string | undefined;
  readonly limit: number;
  readonly aggs: Aggregations;
}

export interface AlertSearchResult extends AlertPage {
  readonly aggregations: Readonly<Record<string, AggregationResult>>;
}

export type AlertSort = "created_at" | "last_event_at" | "severity" | "event_count";

export interface AlertPage {
  readonly total: number;
  readonly items: readonly AlertSummary[];
  readonly nextCursor: string | null;
}

export interface AlertIds {
  readonly total: number;
  readonly ids: readonly string[];
}

/** New alerts have version 1; a changed alert has the stored version plus one. */
export type ChangedAlert = AlertSummary & {
  /** If omitted, the stored ones stay. The same holds for `entities`. */
  readonly relatedEvents?: readonly EventMark[] | undefined;
  /** Events that are no longer among the newest. The store adds them to those it has, up to ALERT_EVENTS_MAX in all. */
  readonly olderEvents?: readonly EventMark[] | undefined;
};

export interface AlertEventsQuery {
  /** The id of the event that the page starts after. */
  readonly after?: string | undefined;
  readonly limit: number;
  /** Newest first, otherwise oldest first. */
  readonly descending: boolean;
}

export interface AlertEventsPage {
  /** The number of the alert's events, including those that cannot be listed. */
  readonly eventCount: number;
  /** How many of them can be listed. */
  readonly total: number;
  readonly events: readonly EventMark[];
  readonly nextCursor: string | null;
}

export interface NewTimelineEntry {
  readonly alertId: string;
  readonly entry: TimelineEntry;
}

/** Changes that become visible together or not at all. */
export interface AlertChanges {
  readonly alerts: readonly ChangedAlert[];
  readonly timeline: readonly NewTimelineEntry[];
  /** Definitions that the alerts refer to. The store may have them already, and keeps each once. */
  readonly definitions?: readonly IdentifiedDefinition[] | undefined;
  /** Queued in the same transaction as the change that they report. */
  readonly notifications?: readonly NewNotification[] | undefined;
  /** Stored in the same transaction, so that every event counts exactly once. */
  readonly detected?: DetectionProgress | undefined;
  /** The lease under which the change is made. If it is over, the commit rejects with LeaseLost, and nothing changes. */
  readonly fence?: Fence | undefined;
}

export interface AlertTotals {
  readonly total: number;
  readonly byStatus: Readonly<Record<Status, number>>;
  readonly bySeverity: Readonly<Record<Severity, number>>;
  /**
   * Means from creation to the first acknowledgement, including alerts that were reopened since, and to the current
   * resolution; null where there are none.
   */
  readonly acknowledgeMs: number | null;
  readonly resolveMs: number | null;
}

/** Intervals begin at multiples of their length since 1970. The first and the last may reach beyond the range. */
export interface TrendQuery {
  readonly fromMs: number;
  readonly toMs: number;
  readonly intervalMs: number;
  /** Rules that are counted by themselves. */
  readonly rulesMax: number;
}

export interface AlertTrends {
  /** The rules with the most alerts in the range; ties by name. */
  readonly rules: readonly { readonly name: string; readonly count: number }[];
  /** All intervals that overlap the range, empty ones included. Only alerts created in the range count. */
  readonly intervals: readonly {
    readonly startMs: number;
    readonly totals: AlertTotals;
    /** Alerts of each of the `rules`, and of all others. */
    readonly byRule: readonly number[];
    readonly otherRules: number;
  }[];
}

/** The times of the acknowledgements and resolutions that count, and how many of the handled alerts are returned. */
export interface WorkQuery {
  readonly fromMs: number;
  readonly toMs: number;
  readonly limit: number;
}

export interface SeverityTotals {
  readonly total: number;
  readonly bySeverity: Readonly<Record<Severity, number>>;
}

/** An alert with the last thing that was done about it in a range. */
export interface HandledAlert {
  readonly alert: AlertSummary;
  readonly kind: "acknowledged" | "resolved";
  readonly at: number;
  /** Who did it; null if the timeline does not tell. */
  readonly actor: string | null;
  /** The newest of all its comments. */
  readonly lastComment: Comment | null;
}

/** The work on alerts in a range, whenever they were created. */
export interface AlertWork {
  /** Alerts that were first acknowledged in the range. */
  readonly acknowledged: SeverityTotals;
  /** Alerts that are resolved, since a time in the range. */
  readonly resolved: SeverityTotals;
  readonly resolutions: Readonly<Record<Resolution, number>>;
  /**
   * Mean from creation to the first look, of those first looked at in the range; null if there are none. The first look is the
   * first acknowledgement, or the resolution of an alert that was never acknowledged.
   */
  readonly firstLookMs: number | null;
  /** Mean from creation to the resolution, of those `resolved`; null if there are none. */
  readonly resolveMs: number | null;
  /** Alerts that are not resolved now, and of these the ones that are open. */
  readonly unresolved: SeverityTotals;
  readonly unacknowledged: number;
  /** Alerts that were created before the range and not resolved before it. */
  readonly unresolvedBefore: number;
  /** Those acknowledged or resolved, the last handled first, then the one with the greater id. */
  readonly handled: { readonly total: number; readonly items: readonly HandledAlert[] };
}

/** Alerts of a rule with this key whose last event came after the one time and whose first came before the other. */
export interface UnresolvedQuery {
  readonly ruleId: string;
  readonly dedupKey: string;
  readonly endsAfterMs: number;
  readonly beginsBeforeMs: number;
}

export interface AlertStore {
  get(id: string): Promise<Alert | undefined>;
  /** Both as of one moment. */
  withTimeline(id: string): Promise<{ alert: Alert; timeline: TimelineEntry[] } | undefined>;
  /** Rejects with QueryRefused if `after` is not an event of the alert that can be listed. */
  events(id: string, query: AlertEventsQuery): Promise<AlertEventsPage | undefined>;
  getMany(ids: readonly string[]): Promise<(AlertSummary | null)[]>;
  /** The definition of a rule that an alert refers to. Definitions without an alert may be removed. */
  definition(id: string): Promise<RuleDefinition | undefined>;
  /** For each query, the matching unresolved alert with the newest last event. */
  unresolved(queries: readonly UnresolvedQuery[]): Promise<(Alert | null)[]>;
  /** Counts each rule's unresolved alerts whose keys do not begin with `besides`, up to `countMax`. */
  countUnresolved(ruleIds: readonly string[], besides: string, countMax: number): Promise<number[]>;
  /**
   * Makes the changes durable. If the stored version of an alert is not the expected one, nothing changes and the ids of
   * such alerts are returned. Consecutive `events_added` entries are merged into one.
   */
  commit(changes: AlertChanges): Promise<readonly string[]>;
  /** Alerts of older records that have no entities yet, the newest first. */
  withoutEntities(limit: number): Promise<readonly Pick<Alert, "id" | "group" | "relatedEvents">[]>;
  /** Adds the entities of such alerts. This is not a change: the alert was only not indexed by them. */
  fillEntities(found: readonly ({ readonly id: string } & AlertEntities)[]): Promise<void>;
  /** Rejects with StoreUnavailable when the client has too many searches in flight. */
  list(
    filter: AlertFilter,
    position: Position,
    sort: AlertSort,
    descending: boolean,
    context?: QueryContext,
  ): Promise<AlertPage>;
  /** Ids of the newest matching alerts by `createdAt`, newest first, and the number of all. */
  ids(filter: AlertFilter, limit: number, context?: QueryContext): Promise<AlertIds>;
  /**
   * Alerts that meet a condition, and aggregations over all of them. Rejects with StoreUnavailable when the client has too many
   * searches in flight, and with QueryRefused for an unknown cursor or a histogram with too many buckets.
   */
  search(query: AlertQuery, context?: QueryContext): Promise<AlertSearchResult>;
  totals(range: TimeRange): Promise<AlertTotals>;
  /** Totals by interval. */
  trends(query: TrendQuery): Promise<AlertTrends>;
  /** How alerts of a rule with this name were resolved. */
  resolutions(ruleName: string): Promise<Readonly<Record<Resolution, number>>>;
  /** The alerts of rules with these names, in this order, from one pass over the alerts. */
  outcomes(ruleNames: readonly string[], since: OutcomesSince): Promise<RuleOutcomes[]>;
  /** All as of one moment. */
  work(query: WorkQuery): Promise<AlertWork>;
  /** Changes are numbered in rising order. Alerts that changed after this number, as they are now. */
  changedSince(
    change: number,
    limit: number,
  ): Promise<readonly { readonly change: number; readonly alert: AlertSummary }[]>;
  /** The number of the last change. */
  lastChange(): Promise<number>;
  /** The greatest id of an alert; null when there is none. */
  lastId(): Promise<string | null>;
  /**
   * Removes alerts whose resolution lies before this time, with everything that belongs to them, except alerts with
   * notifications still to be sent. Works in small steps so that other calls are answered in between, until the signal
   * aborts. Returns how many it removed.
   */
  removeResolvedBefore(ms: number, signal: AbortSignal): Promise<number>;
  /** Calls the listener after each commit that changed alerts. Returns a function that removes it. */
  onChange(listener: () => void): () => void;
}
