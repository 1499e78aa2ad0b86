import type { AggregationResult } from "../../model/aggregation.ts";
import type { Condition } from "../../model/condition.ts";
import type { EntityMatches, EntityQuery } from "../../model/entity-query.ts";
import type { EventClass, EventDraft, JsonObject, Severity } from "../../model/event.ts";
import type { Position, TextPage } from "../../model/page.ts";
import type { SearchQuery, TimeRange } from "../../model/query.ts";
import type { EventFields } from "./event-fields.ts";
import type { ProjectedEvents, Projection } from "./projection.ts";
import type { QueryContext } from "./query-context.ts";

export interface NewEvent {
  readonly draft: EventDraft;
  /** The same token within a day means the same submission. */
  readonly idempotencyToken?: string | undefined;
}

export interface StoredEvent {
  readonly id: string;
  /** The event as JSON text, as every read returns it. */
  readonly text: string;
}

/** An event that is read in the order of arrival. */
export interface Arrival extends StoredEvent {
  /**
   * Places rise in the order of arrival, and `timeOfId` reads the time of arrival from them. A store may use the ids, or
   * places of its own if ids from several machines cannot rise in that order.
   */
  readonly place: string;
}

/** An addition to an event after it was stored. */
export interface Amendment {
  readonly id: string;
  /** Each key replaces the one that the event has. */
  readonly enrichment: JsonObject;
}

/** One value, or any of several. */
export type OneOf<Value> = Value | readonly Value[];

export interface EventFilter extends TimeRange {
  readonly source?: OneOf<string> | undefined;
  readonly severity?: OneOf<Severity> | undefined;
  readonly class?: OneOf<EventClass> | undefined;
  readonly type?: OneOf<string> | undefined;
  /**
   * Words, prefixes and phrases that must all occur, as a person typed them. The list has exactly the events that
   * `textMatcher` in store/search accepts: that function defines what a word is, in every script.
   */
  readonly search?: string | undefined;
}

export type FieldFilter = Pick<EventFilter, "source" | "type" | "fromMs" | "toMs">;

export interface LastArrivals {
  readonly condition: Condition;
  /** Places. */
  readonly after: string | null;
  readonly upTo: string;
  readonly eventsMax: number;
}

export interface SearchResult {
  readonly total: number;
  readonly items: string[];
  /** The id of the last item, if more follow it. */
  readonly nextCursor: string | null;
  readonly aggregations: Record<string, AggregationResult>;
}

/** The engine that holds the events. */
export interface EventEngine {
  /**
   * True if the events of one UTC day in one `append` are stored together or not at all. Where it is false, a rejected call may
   * have stored some of them: whoever repeats it gives every event a token, with which `append` stores it once.
   */
  readonly storesWholeDays: boolean;
  /**
   * Stores the events. Once it resolves they survive a crash and every read sees them. If it rejects, with
   * StoreUnavailable, none of them is promised. Ids are unique, and readable by `timeOfId`.
   */
  append(events: readonly NewEvent[]): Promise<StoredEvent[]>;
  /**
   * Adds to the enrichment of stored events. Once it resolves the changes survive a crash and every read sees them; a read
   * in progress may see some. Ids of no event are ignored. Two things stay as they are: a reader of arrivals does not see
   * the event again, and full text still finds words that a change removed.
   */
  amend(amendments: readonly Amendment[]): Promise<void>;
  get(id: string): Promise<string | undefined>;
  /** The event that was stored with this token within the last 24 hours. */
  findByToken(token: string): Promise<StoredEvent | undefined>;
  /** The same for a batch, whose events have tokens of their own: this one, a space and a number. The ids by number. */
  findByTokens(token: string): Promise<ReadonlyMap<number, string>>;
  /** Newest first by timestamp, then id. An unknown cursor is a QueryRefused on `after`. */
  list(filter: EventFilter, position: Position, context?: QueryContext): Promise<TextPage>;
  /**
   * `after` continues after that event in the order of the sort, at its position of now; an unknown one is a QueryRefused.
   * Rejects with StoreUnavailable when the client has too many queries in flight.
   */
  search(query: SearchQuery, context?: QueryContext): Promise<SearchResult>;
  /** The fields that events have. Reads a bounded number of events, whatever their total. */
  fields(filter: FieldFilter, context?: QueryContext): Promise<EventFields>;
  /**
   * The entities whose values contain a text, quickly enough for a list that follows what someone types. A store may leave
   * out older days if the newer ones have many matches; its answer says so.
   */
  entities(query: EntityQuery, context?: QueryContext): Promise<EntityMatches>;
  /** Matching events that are stored now, oldest first, in chunks of bounded size, until the signal aborts. */
  scan(query: { condition: Condition } & TimeRange, signal: AbortSignal): AsyncIterable<string[]>;
  /**
   * The last `eventsMax` matching events after one place (null: from the very first) and up to another, regardless of their
   * timestamps: in the order of arrival, in chunks of bounded size. Each chunk says whether there were more. Ends when the
   * signal aborts.
   */
  scanLast(query: LastArrivals, signal: AbortSignal): AsyncIterable<{ arrivals: Arrival[]; isCut: boolean }>;
  /** The place of the last stored event that arrived before this time; null if there is none. */
  lastArrivalBefore(ms: number): Promise<string | null>;
  /**
   * Events after this place (null: from the very first) in the order of arrival, and then new ones as they come, until the
   * signal aborts. Chunks are of bounded size and produced on demand. An invalid place is a QueryRefused, thrown at once.
   */
  arrivals(after: string | null, signal: AbortSignal): AsyncIterable<Arrival[]>;
  /**
   * The place of the newest event by arrival that is or was stored; null if there never was one. Events whose `append` had
   * resolved before the call are at this place or before it.
   */
  lastArrival(): Promise<string | null>;
  /** The last place that `arrivals` would reach now. Events that were stored a moment ago may not have a place yet. */
  lastKnownArrival(): Promise<string | null>;
  /** For engines that read columns fast; simulations use `scan` where it is missing. */
  project?(query: Projection & TimeRange, signal: AbortSignal): AsyncIterable<ProjectedEvents>;
  /** Removes whole UTC days that lie before this time. */
  removeBefore(ms: number): Promise<{ days: number; events: number }>;
  count(): Promise<number>;
}
