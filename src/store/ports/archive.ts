import type { Flow } from "../../model/flow-query.ts";
import type { FlowRows } from "../../model/flow.ts";
import type { JsonValue } from "../../model/event.ts";

// Everything that a store holds, in a form that another store can take over. Nobody else uses either store meanwhile.

/** In the order in which they are written: a key comes before its secrets, an alert before its notifications. */
export const CASE_KINDS = [
  "keys",
  "previous_secrets",
  "key_usage",
  "sessions",
  "views",
  "lists",
  "list_entries",
  "exports",
  "reputations",
  "reputation_lookups",
  "analysis_tokens",
  "retention_notes",
  "rule_definitions",
  "alerts",
  "alert_changes",
  "notifications",
  "rules",
  "rule_matches",
  "rule_match_hours",
  "rule_match_moments",
  "absence_sightings",
  "detection_outages",
  "detection",
] as const;
export type CaseKind = (typeof CASE_KINDS)[number];

/** One row of a kind: the same fields, in the same order, in every store. */
export type CaseRecord = Readonly<Record<string, JsonValue>>;

export interface CaseArchive {
  count(kind: CaseKind): Promise<number>;
  /** All records of a kind in an order of the store's own, in pages of bounded size. */
  read(kind: CaseKind): AsyncIterable<readonly CaseRecord[]>;
  /** Stores records as they are, durably. One that is stored already stays the same one. */
  write(kind: CaseKind, records: readonly CaseRecord[]): Promise<void>;
  /** The platform word that the stored data use, empty for none; undefined if the store does not tell. */
  platformWord(): Promise<string | undefined>;
  keepPlatformWord(word: string): Promise<void>;
}

export interface ArchivedEvent {
  readonly id: string;
  /** The event as JSON text. */
  readonly text: string;
  /** The idempotency token that it was submitted with. */
  readonly token: string | null;
}

export interface ArrivedEvent extends ArchivedEvent {
  /** Its place in the order of arrival; null if it arrived so long ago that the store does not keep its place. */
  readonly place: string | null;
}

/** The rows of a UTC day. */
export interface DayRows {
  readonly day: number;
  readonly rows: number;
}

/** Where to go on, to be kept as JSON and given back. Its content is the store's own. */
export type ArchiveCursor = JsonValue;

export interface EventArchive {
  /** Days that have events, oldest first. */
  days(): Promise<readonly DayRows[]>;
  /** Events in the order of arrival, those without a place first. Each page has the cursor that continues after it. */
  read(
    after: ArchiveCursor,
  ): AsyncIterable<{ readonly events: readonly ArrivedEvent[]; readonly cursor: ArchiveCursor }>;
  /** All events of a day, in any order. */
  readDay(day: number): AsyncIterable<readonly ArchivedEvent[]>;
  /**
   * Stores events after those that the cursor stands for (null: none), in this order, durably, and returns the next cursor.
   * Ids and tokens stay. The same events after the same cursor are stored once.
   */
  write(events: readonly ArchivedEvent[], after: ArchiveCursor): Promise<ArchiveCursor>;
  /** Stands for the events that are stored up to the cursor. */
  mark(after: ArchiveCursor): Promise<ArchiveCursor>;
  /** Completes what was written: returns the place of the last event of each mark. May be called again. */
  finish(order: ArrivalOrder): Promise<readonly string[]>;
}

export interface ArrivalOrder {
  /** In the order in which they were made. `atMs`: the time of the place that is returned if no event precedes it. */
  readonly marks: readonly { readonly mark: ArchiveCursor; readonly atMs: number }[];
  /** How many of them precede the events that detection has not processed yet. */
  readonly processed: number;
  /** Processed events that arrived earlier need no place. */
  readonly fromMs: number;
}

export interface FlowArchive {
  /** Days that have flows, oldest first. */
  days(): Promise<readonly DayRows[]>;
  /** All flows of a day in pages whose content is always the same. */
  readDay(day: number): AsyncIterable<readonly Flow[]>;
  /** As in a FlowEngine. */
  append(rows: FlowRows, batchId: string): Promise<void>;
}

/** Text that says what a migration has done, kept beside the data that it writes. */
export interface MigrationNotes {
  read(): Promise<string | undefined>;
  save(text: string): Promise<void>;
}

/** All of a store, or only its cases if the events and flows stay where they are. */
export interface StoreArchive {
  readonly cases: CaseArchive;
  readonly data: { readonly events: EventArchive; readonly flows: FlowArchive } | undefined;
  readonly notes: MigrationNotes;
  /** Makes the store ready for the service, which would otherwise do it at its first start. */
  prepare(onProgress: (done: number, total: number) => void): Promise<void>;
  close(): Promise<void>;
}
