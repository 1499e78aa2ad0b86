import type { EventClass, EventDraft, Severity } from "../model/event.ts";
import type { ExportJob } from "../model/export.ts";
import type { ApiKey } from "../model/key.ts";
import type { Position, TextPage } from "../model/page.ts";
import type { AggregationResult, SearchQuery, TimeRange } from "../model/query.ts";
import type { Condition } from "../model/condition.ts";

// What the service asks of whatever keeps its data. contract.ts says the same in tests.

/** The store cannot take or answer this now: try again later. `reason` is a word for metrics. */
export class StoreUnavailable extends Error {
  readonly reason: "queue_full" | "disk_full" | "failed" | "closed";
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

export interface EventFilter extends TimeRange {
  readonly source?: string | undefined;
  readonly severity?: Severity | undefined;
  readonly class?: EventClass | undefined;
  readonly type?: string | undefined;
  /** Words that must all occur, as a person typed them. */
  readonly search?: string | undefined;
}

export interface EventStore {
  /**
   * Stores the events. When it resolves they survive a crash and every read sees them. When it rejects, with
   * StoreUnavailable, none of them is promised. Ids rise in the order of arrival.
   */
  append(events: readonly NewEvent[]): Promise<StoredEvent[]>;
  get(id: string): Promise<string | undefined>;
  /** The event that was stored with this token within the last 24 hours. */
  findByToken(token: string): Promise<StoredEvent | undefined>;
  /** Newest first by timestamp, then id. An unknown cursor is a QuestionRefused on `after`. */
  list(filter: EventFilter, position: Position): Promise<TextPage>;
  search(
    query: SearchQuery,
  ): Promise<{ total: number; items: string[]; aggregations: Record<string, AggregationResult> }>;
  /** Matching events that are stored now, oldest first, in chunks of bounded size. Stops when the signal says so. */
  scan(question: { condition: Condition } & TimeRange, signal: AbortSignal): AsyncIterable<string[]>;
  /** Removes whole UTC days that lie before this time. */
  removeBefore(ms: number): Promise<{ days: number; events: number }>;
  count(): Promise<number>;
}

export interface KeyStore {
  /** Cheap enough for every request: answered from memory unless the keys have changed, by whomever. */
  find(id: string): ApiKey | undefined;
  list(): ApiKey[];
  put(key: ApiKey): void;
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
}

export interface ExportStore {
  list(): ExportJob[];
  get(id: string): ExportJob | undefined;
  put(job: ExportJob): void;
  remove(id: string): void;
  /** Where an export's content is written and read; belongs to the store since it outlives the process. */
  readonly folder: string;
  /** Turns newline-separated JSON at one path into Parquet at another. */
  toParquet(ndjsonPath: string, parquetPath: string, columns: readonly string[]): Promise<void>;
}

export interface Store {
  readonly events: EventStore;
  readonly keys: KeyStore;
  readonly exports: ExportStore;
  /** Rejects with the reason when the store does not answer. */
  check(): Promise<void>;
  /** Finishes what is accepted, then releases everything. */
  close(): Promise<void>;
}
