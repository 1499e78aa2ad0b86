import type { Alert, AlertSummary, TimelineEntry } from "../../model/alert.ts";
import type { Resolution, Status } from "../../model/alert-state.ts";
import type { Event, EventClass, EventDraft, JsonObject, Severity } from "../../model/event.ts";
import type { ExportJob } from "../../model/export.ts";
import type {
  Flow,
  FlowFilter,
  FlowOrder,
  TalkersQuery,
  Timeseries,
  TimeseriesQuery,
  Traffic,
} from "../../model/flow-query.ts";
import type { FlowRows } from "../../model/flow.ts";
import type { ApiKey } from "../../model/key.ts";
import type { EventMark, SeenEvent } from "../../model/finding.ts";
import type { NewNotification } from "../../model/notification.ts";
import type { Position, TextPage } from "../../model/page.ts";
import type { AggregationResult } from "../../model/aggregation.ts";
import type { SearchQuery, TimeRange } from "../../model/query.ts";
import type { Condition, Scalar } from "../../model/condition.ts";
import type { Rule, RuleStats } from "../../model/rule.ts";
import type { AnalysisStore, NotificationStore } from "./notification-store.ts";

// What the service asks of whatever keeps its data. contract.ts says the same in tests.

export type * from "./notification-store.ts";

/** The store cannot take or answer this now: try again later. `reason` is a word for metrics. */
export class StoreUnavailable extends Error {
  readonly reason: "queue_full" | "disk_full" | "file_gone" | "failed" | "closed";
  readonly retryAfterSeconds: number;
  constructor(reason: StoreUnavailable["reason"], message: string, retryAfterSeconds = 1, options?: ErrorOptions) {
    super(message, options);
    this.name = "StoreUnavailable";
    this.reason = reason;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** A question that cannot be answered as it stands; `field` is the place in the question. */
export class QuestionRefused extends Error {
  readonly field: string;
  constructor(field: string, message: string) {
    super(message);
    this.name = "QuestionRefused";
    this.field = field;
  }
}

export interface NewEvent {
  readonly draft: EventDraft;
  /** The same token within a day means the same submission. */
  readonly idempotencyToken?: string | undefined;
}

export interface StoredEvent {
  readonly id: string;
  /** The event as JSON text, as every read gives it. */
  readonly text: string;
}

/** What was found out about an event after it was stored. */
export interface Amendment {
  readonly id: string;
  /** Each key takes the place of the one that the event has. */
  readonly enrichment: JsonObject;
}

/** Who asks a question, and for how long they want the answer. */
export interface Asking {
  /** A client: of its questions that take long, only some run at a time. Undefined: the service itself. */
  readonly asker?: string | undefined;
  /** Stops the question, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface EventFilter extends TimeRange {
  readonly source?: string | undefined;
  readonly severity?: Severity | undefined;
  readonly class?: EventClass | undefined;
  readonly type?: string | undefined;
  /** Words that must all occur, as a person typed them. */
  readonly search?: string | undefined;
}

export interface LastArrivals {
  readonly condition: Condition;
  readonly after: string | null;
  readonly upTo: string;
  readonly eventsMax: number;
}

export interface EventStore {
  /**
   * Stores the events. When it resolves they survive a crash and every read sees them. When it rejects, with
   * StoreUnavailable, none of them is promised. Ids rise in the order of arrival.
   */
  append(events: readonly NewEvent[]): Promise<StoredEvent[]>;
  /**
   * Adds to the enrichment of stored events. When it resolves the changes survive a crash and every read sees them; a read
   * that is under way may see some. Ids that no event has (any more) are passed over. Two things stay as they are: who has
   * seen the event as an arrival does not see it again, and full text still finds words that a change took away.
   */
  amend(amendments: readonly Amendment[]): Promise<void>;
  get(id: string): Promise<string | undefined>;
  /** The event that was stored with this token within the last 24 hours. */
  findByToken(token: string): Promise<StoredEvent | undefined>;
  /** The same for a batch, whose events have tokens of their own: this one, a space and a number. The ids by number. */
  findByTokens(token: string): Promise<ReadonlyMap<number, string>>;
  /** Newest first by timestamp, then id. An unknown cursor is a QuestionRefused on `after`. */
  list(filter: EventFilter, position: Position, asking?: Asking): Promise<TextPage>;
  /** Rejects with StoreUnavailable when the client has too many questions under way. */
  search(
    query: SearchQuery,
    asking?: Asking,
  ): Promise<{ total: number; items: string[]; aggregations: Record<string, AggregationResult> }>;
  /** Matching events that are stored now, oldest first, in chunks of bounded size. Stops when the signal says so. */
  scan(question: { condition: Condition } & TimeRange, signal: AbortSignal): AsyncIterable<string[]>;
  /**
   * Matching events that arrived after the one event (null: from the very first) and no later than the other, whatever their
   * times: of the last so many to arrive, the first to arrive first, in chunks of bounded size. Each chunk says whether there
   * were more. Stops when the signal says so.
   */
  scanLast(question: LastArrivals, signal: AbortSignal): AsyncIterable<{ texts: string[]; isCut: boolean }>;
  /** The id of the last stored event that arrived before this time; null where there is none. */
  lastArrivalBefore(ms: number): Promise<string | null>;
  /**
   * What is stored after the event with this id (null: from the very first), in the order of arrival, and then whatever
   * comes, for as long as the signal lets it. Chunks are of bounded size and wait to be asked for.
   */
  arrivals(after: string | null, signal: AbortSignal): AsyncIterable<StoredEvent[]>;
  /** The id of the newest event by arrival that is stored or was; null when there never was one. */
  lastArrival(): string | null;
  /** Of the matching events, oldest first by timestamp and id, only the values of these fields: what a simulation needs. */
  project(question: Projection & TimeRange, signal: AbortSignal): AsyncIterable<ProjectedEvents>;
  /** Removes whole UTC days that lie before this time. */
  removeBefore(ms: number): Promise<{ days: number; events: number }>;
  count(): Promise<number>;
}

export interface Projection {
  readonly condition: Condition;
  readonly fields: readonly string[];
  /** For each event it is also said which of these it passes; at most 31. */
  readonly tests?: readonly Condition[] | undefined;
}

/** Some of the events, by their place; in columns, since an object for each of millions is more work than all the rest. */
export interface ProjectedEvents {
  readonly length: number;
  /** Rise in the order of arrival. */
  readonly seqs: Float64Array;
  readonly timesMs: Float64Array;
  /** Bit n is set when the event passes test n. */
  readonly passed: Int32Array;
  /** For each field, in the order asked for. */
  readonly columns: readonly ProjectedColumn[];
}

export interface ProjectedColumn {
  /** For each event a number that stands for what it has there. Two numbers may stand for the same; 0 is nothing. */
  readonly numbers: Int32Array;
  /** For each number the different values that the field's path reaches. Another list where numbers begin anew. */
  readonly values: readonly (readonly Scalar[])[];
}

/** What one of them has in each field. */
export function projectedValues({ columns }: ProjectedEvents, place: number): readonly (readonly Scalar[])[] {
  return columns.map(({ numbers, values }) => values[numbers[place]!]!);
}

export interface AlertFilter {
  readonly status?: readonly Status[] | undefined;
  readonly severity?: readonly Severity[] | undefined;
  readonly ruleName?: readonly string[] | undefined;
  readonly source?: readonly string[] | undefined;
  /** Addresses, in upper or lower case. */
  readonly assignee?: readonly string[] | undefined;
  /** Of `createdAt`. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
  /** Words that must all occur in title, description, rule name, group value or assignee. */
  readonly search?: string | undefined;
}

export type AlertSort = "created_at" | "last_event_at" | "severity" | "event_count";

export interface AlertPage {
  readonly total: number;
  readonly items: readonly AlertSummary[];
  readonly nextCursor: string | null;
}

/** New alerts have version 1; a changed one has the version after the one that must be stored now. */
export type ChangedAlert = AlertSummary & {
  /** Left out, those that are stored stay. */
  readonly relatedEvents?: readonly EventMark[] | undefined;
};

/** Changes that become visible together or not at all. */
export interface AlertChanges {
  readonly alerts: readonly ChangedAlert[];
  readonly timeline: readonly { readonly alertId: string; readonly entry: TimelineEntry }[];
  /** Who is to be told of it: in line as soon as what they are told of is true. */
  readonly notifications?: readonly NewNotification[] | undefined;
  /** How far detection has come with it: stored in the same breath, so that no event counts twice or never. */
  readonly detected?: Detected | undefined;
}

export interface Detected {
  /** The id of the last event that was looked at. */
  readonly upTo: string;
  /** The timestamps of events that rules matched. */
  readonly matches: readonly { readonly ruleId: string; readonly timesMs: readonly number[] }[];
  /** When what an absence rule waits for was last seen, where that has changed. */
  readonly seen: readonly SeenRow[];
}

/** `atMs` 0: it is not waited for any more. */
export interface SeenRow {
  readonly ruleId: string;
  readonly group: string;
  readonly atMs: number;
  readonly last: SeenEvent | null;
}

/** A time during which detection was not at work. */
export interface Outage {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface AlertTotals {
  readonly total: number;
  readonly byStatus: Readonly<Record<Status, number>>;
  readonly bySeverity: Readonly<Record<Severity, number>>;
  /**
   * Means from creation to the first acknowledgement, also of those that were reopened since, and to the resolution that
   * stands; null where there are none.
   */
  readonly acknowledgeMs: number | null;
  readonly resolveMs: number | null;
}

/** Alerts of a rule with this key whose last event came after the one time, and whose first came before the other. */
export interface UnresolvedQuestion {
  readonly ruleId: string;
  readonly dedupKey: string;
  readonly endsAfterMs: number;
  readonly beginsBeforeMs: number;
}

export interface AlertStore {
  get(id: string): Promise<Alert | undefined>;
  /** Both as of one moment. */
  withTimeline(id: string): Promise<{ alert: Alert; timeline: TimelineEntry[] } | undefined>;
  getMany(ids: readonly string[]): Promise<(AlertSummary | undefined)[]>;
  /** For each question, of the unresolved alerts that it is about, the one whose last event is the newest. */
  unresolved(questions: readonly UnresolvedQuestion[]): Promise<(Alert | undefined)[]>;
  /** How many unresolved alerts each of these rules has whose keys begin otherwise, counted no further than so many. */
  countUnresolved(ruleIds: readonly string[], besides: string, countMax: number): Promise<number[]>;
  /**
   * Makes the changes durable. Where an alert has another version than expected nothing is changed and the ids of those
   * are given; none: all is done. Consecutive `events_added` entries fold into one.
   */
  commit(changes: AlertChanges): Promise<readonly string[]>;
  /** Rejects with StoreUnavailable when the client has too many searches under way. */
  list(
    filter: AlertFilter,
    position: Position,
    sort: AlertSort,
    descending: boolean,
    asking?: Asking,
  ): Promise<AlertPage>;
  totals(range: TimeRange): Promise<AlertTotals>;
  /** How alerts of a rule with this name were resolved. */
  resolutions(ruleName: string): Promise<Readonly<Record<Resolution, number>>>;
  /** Every change has a number, each greater than the one before; alerts that changed after this one, as they are now. */
  changedSince(
    change: number,
    limit: number,
  ): Promise<readonly { readonly change: number; readonly alert: AlertSummary }[]>;
  /** The number of the last change. */
  lastChange(): Promise<number>;
  /** The greatest id of an alert; null when there is none. */
  lastId(): Promise<string | null>;
  /**
   * Removes alerts whose resolution lies before this time, with all that belongs to them; not while somebody is yet to be told of
   * one. In small steps, between which others are answered; stops when the signal says so. Gives how many.
   */
  removeResolvedBefore(ms: number, signal: AbortSignal): Promise<number>;
  /** Called after each commit that changed alerts. Gives the way to stop it. */
  onChange(listener: () => void): () => void;
}

/** The name of a rule, or its revision, is not what the caller thought. */
export class RuleConflict extends Error {
  readonly kind: "name_taken" | "changed";
  constructor(kind: RuleConflict["kind"], message: string) {
    super(message);
    this.name = "RuleConflict";
    this.kind = kind;
  }
}

export interface RuleStore {
  /** All of them, built-in ones only where something about them was changed. */
  list(): Promise<Rule[]>;
  /** Rejects with RuleConflict when the name belongs to another rule, or the stored revision is not the one before. */
  put(rule: Rule): Promise<void>;
  /** The same for several at once, all or none. */
  putMany(rules: readonly Rule[]): Promise<void>;
  remove(id: string): Promise<void>;
  stats(ids: readonly string[], nowMs: number): Promise<RuleStats[]>;
}

export interface DetectionStore {
  /** The id of the last event that detection looked at; null before the first. */
  position(): Promise<string | null>;
  /** What absence rules have seen since they became active, what was seen longest ago first. */
  seen(): Promise<SeenRow[]>;
  /** Detection begins: from the last commit with its progress until now it was not at work. Gives every such time. */
  begin(nowMs: number): Promise<Outage[]>;
}

export interface FlowStore {
  /**
   * Stores the rows. When it resolves they survive a crash and every read sees them. When it rejects, with
   * StoreUnavailable, some of them may be stored: the same rows under the same batch id again store what is missing, and
   * rows that are stored already are not stored twice, also after a restart.
   */
  append(rows: FlowRows, batchId: string): Promise<void>;
  list(
    filter: FlowFilter,
    order: FlowOrder,
    offset: number,
    limit: number,
    asking?: Asking,
  ): Promise<{ readonly total: number; readonly flows: readonly Flow[] }>;
  topTalkers(question: TalkersQuery, asking?: Asking): Promise<readonly Traffic[]>;
  /** By protocol name, most bytes first. */
  protocols(filter: FlowFilter, asking?: Asking): Promise<readonly Traffic[]>;
  /** A question of more than TIMESERIES_POINTS_MAX points is a QuestionRefused on `interval`. */
  timeseries(question: TimeseriesQuery, asking?: Asking): Promise<Timeseries>;
  /** Removes whole UTC days of `timestamp` that lie before this time. */
  removeBefore(ms: number): Promise<{ days: number; flows: number }>;
  count(): Promise<number>;
}

export interface KeyStore {
  /** Whether there were keys once, by what is stored beside them, and they were gone when the store was opened. */
  readonly wereLost: boolean;
  /** Cheap enough for every request: answered from memory unless the keys have changed, by whomever. */
  find(id: string): ApiKey | undefined;
  list(): ApiKey[];
  put(key: ApiKey): void;
  /**
   * What becomes of the key as it is stored now, whoever changed it last: nobody changes it in between. Undefined where
   * there is none; what `alter` throws leaves it as it is.
   */
  change(id: string, alter: (key: ApiKey) => ApiKey): ApiKey | undefined;
  /** Removes keys and what they have used; answers the ids that it was given. */
  remove(ids: readonly string[]): readonly string[];
  /** What each key has used: written now and then, read at start and by people. */
  usage(): KeyUsage[];
  saveUsage(usage: readonly KeyUsage[]): void;
}

export interface KeyUsage {
  readonly keyId: string;
  readonly lastUsedAt: number;
  /** UTC day, in milliseconds, that the count belongs to. */
  readonly day: number;
  readonly dayCount: number;
  /** When the minute that the count belongs to is over. */
  readonly minuteEndsAt: number;
  readonly minuteCount: number;
}

/** What others have reported of an address. */
export interface Reputation {
  readonly address: string;
  readonly checkedAt: number;
  /** As it stands in the enrichment of events. */
  readonly report: JsonObject;
}

/** Reputations of addresses that were asked for, for as long as they are believed, and how many were asked for. */
export interface ReputationStore {
  /** Found out at this time or later, the newest first, at most so many. */
  since(ms: number, limit: number): Reputation[];
  put(reputation: Reputation): void;
  removeBefore(ms: number): void;
  /** Look-ups of the UTC day that begins at this time. */
  lookups(day: number): number;
  /** Forgets the days before it. */
  saveLookups(day: number, count: number): void;
}

export interface ExportStore {
  list(): ExportJob[];
  get(id: string): ExportJob | undefined;
  put(job: ExportJob): void;
  remove(id: string): void;
  /** Where an export's content is written and read; belongs to the store since it outlives the process. */
  readonly folder: string;
  /** Rejects with the signal's reason when it aborts. */
  toParquet(task: ParquetTask, signal: AbortSignal): Promise<void>;
}

/** Turns newline-separated JSON at one path into Parquet at another. */
export interface ParquetTask {
  readonly from: string;
  readonly to: string;
  readonly columns: readonly string[];
  /** No line is longer. */
  readonly rowBytesMax: number;
}

export interface Searchable {
  /** Its words as the index would have them, each between spaces. */
  readonly words: string;
  /** Where a phrase must stand in one text. */
  readonly values: { readonly [key: string]: unknown };
  /** An event is found by its own id, too. */
  readonly eventId: string | undefined;
}

export type RetentionKind = "events" | "flows" | "alerts";

/** What retention must know from one start to the next. */
export interface RetentionNotes {
  /** The clock at the last run that trusted it. */
  readonly ranAt: number | null;
  /** The clock at the last run that held something back. */
  readonly heldAt: number | null;
  /** The clock that a person has confirmed. */
  readonly confirmedAt: number | null;
  /** Up to which time the last run removed. */
  readonly before: Readonly<Record<RetentionKind, number | null>>;
}

export interface RetentionStore {
  readonly notes: RetentionNotes;
  save(notes: Partial<RetentionNotes>): void;
  /** How much lies before this time and would go, of how much in all. */
  due(kind: RetentionKind, beforeMs: number): Promise<{ readonly rows: number; readonly total: number }>;
}

/** A day that has held more rows than are there now. */
export interface MissingDay {
  readonly kind: "events" | "flows";
  readonly day: number;
  readonly rows: number;
}

export interface Store {
  readonly events: EventStore;
  readonly alerts: AlertStore;
  readonly rules: RuleStore;
  readonly detection: DetectionStore;
  readonly notifications: NotificationStore;
  readonly analysis: AnalysisStore;
  readonly flows: FlowStore;
  readonly keys: KeyStore;
  readonly exports: ExportStore;
  readonly reputations: ReputationStore;
  readonly retention: RetentionStore;
  /** Why words cannot be searched for, in events or in alerts; a list that is asked for them refuses on `search`. */
  searchFault(words: string): string | undefined;
  /** What is at hand, ready to be searched: made once, for however many searches. */
  readonly searchable: {
    event(event: Event): Searchable;
    alert(alert: AlertSummary): Searchable;
    texts(texts: readonly string[]): Searchable;
  };
  /** Whether a search finds what is at hand: it finds what a list would. Refuses on `search` as a list does. */
  searchIn(words: string): (what: Searchable) => boolean;
  /** Days in this range of which rows are missing that were stored: an answer over it leaves them out. */
  missing(kind: MissingDay["kind"], range?: TimeRange): readonly MissingDay[];
  /** Rejects with the reason when the store does not answer. */
  check(): Promise<void>;
  /** Finishes what is accepted, then releases everything. */
  close(): Promise<void>;
}
