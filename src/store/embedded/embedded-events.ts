import { parseExact } from "../../lib/exact-json.ts";
import type { Thread, ThreadResult } from "../../lib/thread.ts";
import { DAY_MS, startOfDay } from "../../lib/time.ts";
import type { Condition, Scalar } from "../../model/condition.ts";
import type { EntityMatches, EntityQuery } from "../../model/entity-query.ts";
import type { JsonObject } from "../../model/event.ts";
import type { Position, TextPage } from "../../model/page.ts";
import type { SearchQuery, TimeRange } from "../../model/query.ts";
import type {
  Amendment,
  EventFilter,
  FieldFilter,
  EventEngine,
  LastArrivals,
  NewEvent,
  SearchResult,
  StoredEvent,
  Arrival,
} from "../ports/event-engine.ts";
import type { EventFields } from "../ports/event-fields.ts";
import type { ProjectedEvents, Projection } from "../ports/projection.ts";
import type { QueryContext } from "../ports/query-context.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import type { ColumnFeed } from "./column-feed.ts";
import { projectionDecoder } from "../duckdb/columns/projection-decoder.ts";
import type { ProjectedRows } from "../duckdb/columns/column-projection.ts";
import type { ColumnsApi } from "../duckdb/columns/columns-thread.ts";
import { makeEventPlace, readEventId } from "../files/event-id.ts";
import type { Journal } from "../sqlite/journal/journal.ts";
import { idOfText } from "../sqlite/journal/arrived-row.ts";
import { newestFirst, type ListPlace } from "../sqlite/journal/list-position.ts";
import type { DaySpan } from "../sqlite/journal/day-search.ts";
import { cancellable, type WithoutContext } from "../queries/queries-in-flight.ts";
import { TimeSlices } from "../queries/time-slices.ts";
import { FieldTally } from "../queries/field-tally.ts";
import type { PlatformWord } from "./platform-word.ts";
import type { DiskSpaceProbe } from "./disk-space-probe.ts";
import type { Manifest } from "../sqlite/manifest.ts";
import type { StateDatabase } from "../sqlite/state-database.ts";
import { asStoreError } from "../files/store-failure.ts";
import { containsPhrases, idTerm, parseSearch, type Term, type TextSearch } from "../search/text-search.ts";

// The journal serves look-ups by id, unfiltered lists and full text. The columns serve filtered lists, totals and
// aggregations; they return the places of rows, and the texts always come from the journal.

const TIME_END = 8.64e15;
/** Up to this limit the engine keeps the first rows in a heap; past it, it sorts all of them each time. */
const SCAN_PLACES = 5000;
/** Limits of the events whose fields are counted. */
const SAMPLED_EVENTS_MAX = 2000;
const SAMPLED_CHARACTERS_MAX = 8_000_000;
/** Counting takes hundreds of milliseconds for long events, on the thread that answers requests. */
const TALLY_SLICE_MS = 10;
/** Events in one chunk of arrivals. */
const LAST_EVENTS = 100;

export interface EventParts {
  readonly journal: Journal;
  readonly columns: Thread<ColumnsApi>;
  readonly feed: ColumnFeed;
  readonly state: StateDatabase;
  readonly manifest: Manifest;
  readonly platformWord: PlatformWord;
  readonly diskSpace: DiskSpaceProbe;
}

export class EmbeddedEvents implements EventEngine {
  readonly storesWholeDays = true;
  readonly #journal: Journal;
  readonly #columns: Thread<ColumnsApi>;
  readonly #feed: ColumnFeed;
  readonly #state: StateDatabase;
  readonly #manifest: Manifest;
  readonly #platformWord: PlatformWord;
  readonly #diskSpace: DiskSpaceProbe;
  #projections = 0;
  #queries = 0;

  constructor({ journal, columns, feed, state, manifest, platformWord, diskSpace }: EventParts) {
    this.#journal = journal;
    this.#columns = columns;
    this.#feed = feed;
    this.#state = state;
    this.#manifest = manifest;
    this.#platformWord = platformWord;
    this.#diskSpace = diskSpace;
  }

  append(events: readonly NewEvent[]): Promise<StoredEvent[]> {
    const stored = this.#platformWord.isKept ? this.#journal.append(events) : this.#appendFirst(events);
    stored.catch((error: unknown) => this.#diskSpace.noteRefusal(error));
    return stored;
  }

  async #appendFirst(events: readonly NewEvent[]): Promise<StoredEvent[]> {
    await this.#platformWord.noteEvents(events);
    return this.#journal.append(events);
  }

  amend(amendments: readonly Amendment[]): Promise<void> {
    return this.#journal.amend(amendments);
  }

  async get(id: string): Promise<string | undefined> {
    return (await this.#find(id))?.body;
  }

  findByToken(token: string): Promise<StoredEvent | undefined> {
    return this.#journal.queries.findToken(token);
  }

  findByTokens(token: string): Promise<ReadonlyMap<number, string>> {
    return this.#journal.queries.findTokens(token);
  }

  async list(filter: EventFilter, position: Position, context: QueryContext = {}): Promise<TextPage> {
    const after =
      position.mode === "cursor" && position.after !== undefined ? await this.#placeOf(position.after) : undefined;
    const offset = position.mode === "page" ? (position.page - 1) * position.size : 0;
    // One more than requested shows whether there is a next page.
    const limit = position.mode === "cursor" ? position.size + 1 : position.size;
    const { total, texts } = await this.#listTexts(filter, after, offset, limit, context);
    if (position.mode === "page") return { total, items: texts, nextCursor: null };
    const items = texts.slice(0, position.size);
    return { total, items, nextCursor: texts.length > position.size ? idOfText(items.at(-1)!) : null };
  }

  async #listTexts(
    filter: EventFilter,
    after: ListPlace | undefined,
    offset: number,
    limit: number,
    context: QueryContext,
  ): Promise<{ total: number; texts: string[] }> {
    const span = { from: filter.fromMs ?? 0, to: filter.toMs ?? TIME_END };
    if (filter.search !== undefined) return this.#listWords(filter, filter.search, span, after, offset, limit, context);
    const condition = listCondition(filter);
    if (condition.of.length > 0) {
      const { total, places } = await this.#query(context, "list", condition, filter, after, offset, limit);
      return { total, texts: await this.#journal.queries.bodies(places) };
    }
    const isWhole = filter.fromMs === undefined && filter.toMs === undefined;
    const [texts, total] = await Promise.all([
      this.#journal.queries.page(span, after, offset, limit),
      isWhole ? this.#journal.count() : this.#query(context, "count", condition, filter),
    ]);
    return { total, texts };
  }

  async #listWords(
    filter: EventFilter,
    words: string,
    span: DaySpan,
    after: ListPlace | undefined,
    offset: number,
    limit: number,
    context: QueryContext,
  ) {
    const search = parseSearch(words, filter);
    if ("fault" in search) throw new QueryRefused("search", search.fault);
    const withIdWords = { ...search, terms: [...search.terms, ...search.ids.map(idTerm)] };
    const { queries } = this.#journal;
    const [total, places, named] = await queries.search(context, (throwIfStopped) =>
      Promise.all([
        queries.textCount(throwIfStopped, withIdWords, span),
        queries.textPage(throwIfStopped, withIdWords, span, after, offset + limit),
        this.#named(throwIfStopped, search, span),
      ]),
    );
    const below = named.filter((place) => !after || newestFirst(after, place) < 0);
    const all = [...places, ...below].sort(newestFirst).slice(offset, offset + limit);
    return { total: total + named.length, texts: await queries.bodies(all) };
  }

  /** Events whose ids are among the search words, except those that also contain their own id as a word. */
  async #named(throwIfStopped: () => void, { terms, phrases, ids }: TextSearch, span: DaySpan): Promise<ListPlace[]> {
    const named: ListPlace[] = [];
    for (const id of new Set(ids)) {
      const found = await this.#find(id);
      if (!found || found.ts < span.from || found.ts >= span.to) continue;
      const has = (wanted: readonly Term[]) =>
        this.#journal.queries.textHas(throwIfStopped, wanted, startOfDay(found.ts), found.seq);
      const wanted = [...terms, ...ids.filter((other) => other !== id).map(idTerm)];
      const isFound =
        containsPhrases(parseExact(found.body) as JsonObject, phrases) &&
        (wanted.length === 0 || (await has(wanted))) &&
        !(await has([idTerm(id)]));
      if (isFound) named.push({ ts: found.ts, seq: found.seq });
    }
    return named;
  }

  async search(query: SearchQuery, context: QueryContext = {}): Promise<SearchResult> {
    const condition = await this.#withStoredIds(query.condition);
    const after = query.after === undefined ? undefined : await this.#placeOf(query.after);
    const { total, places, aggregations } = await this.#query(context, "search", { ...query, condition }, after);
    const items = await this.#journal.queries.bodies(places.slice(0, query.limit));
    const last = items.at(-1);
    const nextCursor = places.length > query.limit && last !== undefined ? idOfText(last) : null;
    return { total, items, nextCursor, aggregations };
  }

  async fields(filter: FieldFilter, context: QueryContext = {}): Promise<EventFields> {
    const condition = listCondition(filter);
    const { total, strata } = await this.#query(context, "sample", condition, filter, SAMPLED_EVENTS_MAX);
    const tally = new FieldTally();
    const slices = new TimeSlices(context.signal ?? new AbortController().signal, TALLY_SLICE_MS);
    const charactersMax = SAMPLED_CHARACTERS_MAX / strata.length;
    for (const stratum of strata) {
      const texts: string[] = [];
      let characters = 0;
      // Events of one day are read together.
      const places = stratum.places.toSorted((a, b) => b.ts - a.ts);
      for await (const chunk of this.#journal.queries.chunks(places)) {
        context.signal?.throwIfAborted();
        for (const text of chunk) {
          if (characters < charactersMax) texts.push(text);
          characters += text.length;
        }
        if (characters >= charactersMax) break;
      }
      for (const text of texts) {
        if (slices.isOver) await slices.next();
        tally.add(text, stratum.total / texts.length);
      }
    }
    return { total, examined: tally.examined, fields: tally.fields() };
  }

  entities(query: EntityQuery, context: QueryContext = {}): Promise<EntityMatches> {
    return this.#query(context, "entities", query);
  }

  async *scan(query: { condition: Condition } & TimeRange, signal: AbortSignal): AsyncIterable<string[]> {
    const { fromMs, toMs } = query;
    const upTo = this.#journal.committedSeq;
    const condition = await this.#withStoredIds(query.condition);
    let after: ListPlace | undefined;
    while (!signal.aborted) {
      const from = after;
      const places = await this.#unlessAborted(signal, () =>
        this.#query({ signal }, "scan", condition, { fromMs, toMs }, from, upTo, SCAN_PLACES),
      );
      for await (const chunk of this.#journal.queries.chunks(places)) {
        if (signal.aborted) return;
        yield chunk;
      }
      if (places.length < SCAN_PLACES) return;
      after = places.at(-1);
    }
  }

  async *scanLast(
    { eventsMax, ...query }: LastArrivals,
    signal: AbortSignal,
  ): AsyncIterable<{ arrivals: Arrival[]; isCut: boolean }> {
    const condition = await this.#withStoredIds(query.condition);
    const after = seqOfId("after", query.after);
    const upTo = seqOfId("upTo", query.upTo);
    if (signal.aborted) return;
    const places = await this.#unlessAborted(signal, () =>
      this.#query({ signal }, "lastArrivals", condition, after, upTo, eventsMax + 1),
    );
    const isCut = places.length > eventsMax;
    const inOrder = places.slice(0, eventsMax).reverse();
    for (let at = 0; at < inOrder.length && !signal.aborted; at += LAST_EVENTS) {
      // Events that arrived together may belong to many days; those of one day are read together.
      const block = inOrder.slice(at, at + LAST_EVENTS).sort((a, b) => a.ts - b.ts);
      const arrivals: Arrival[] = [];
      for await (const chunk of this.#journal.queries.arrivalsAt(block)) arrivals.push(...chunk);
      yield { arrivals: arrivals.sort((a, b) => (a.place < b.place ? -1 : 1)), isCut };
    }
  }

  lastArrivalBefore(ms: number): Promise<string | null> {
    return this.#journal.queries.lastArrivalBefore(ms);
  }

  arrivals(after: string | null, signal: AbortSignal): AsyncIterable<Arrival[]> {
    return this.#journal.follow(seqOfId("after", after), signal);
  }

  async lastArrival(): Promise<string | null> {
    return this.#journal.lastId;
  }

  lastKnownArrival(): Promise<string | null> {
    return this.lastArrival();
  }

  async *project(query: Projection & TimeRange, signal: AbortSignal): AsyncIterable<ProjectedEvents> {
    if (signal.aborted) return;
    const number = this.#projections++;
    const end = () => this.#columns.call("endProjection", number);
    const stop = () => void end().catch(() => undefined);
    signal.addEventListener("abort", stop, { once: true });
    let next: Promise<ProjectedRows> | undefined;
    try {
      const condition = await this.#withStoredIds(query.condition);
      const tests = await Promise.all((query.tests ?? []).map((test) => this.#withStoredIds(test)));
      await this.#callColumns("beginProjection", number, { ...query, condition, tests });
      const projected = projectionDecoder();
      next = this.#callColumns("projectedRows", number);
      for (let rows = await next; rows.seqs.length > 0 && !signal.aborted; rows = await next) {
        // The engine prepares the next part in the meantime.
        next = this.#callColumns("projectedRows", number);
        next.catch(() => undefined);
        yield projected(rows);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      signal.removeEventListener("abort", stop);
      await end();
    }
  }

  async removeBefore(ms: number): Promise<{ days: number; events: number }> {
    const old = this.#journal.days().filter((day) => day + DAY_MS <= ms);
    let events = 0;
    if (old.length > 0) this.#state.used = this.#journal.used;
    this.#manifest.removing("events", ms);
    for (const day of old) {
      events += await this.#journal.remove(day);
      // Events of the day that were being stored are gone with its file. Their rows reach the columns before the removal.
      this.#manifest.removing("events", ms);
      this.#feed.send();
      await this.#columns.call("removeDay", day);
    }
    return { days: old.length, events };
  }

  async count(): Promise<number> {
    return this.#journal.count();
  }

  async #find(id: string) {
    const place = readEventId(id);
    if (!place) return undefined;
    const row = await this.#journal.queries.get(place.day, place.seq);
    return row && idOfText(row.body) === id ? row : this.#journal.queries.getForeign(place.day, id);
  }

  /** The columns find an event by its place alone, so ids that merely look like stored ones are removed first. */
  async #withStoredIds(condition: Condition): Promise<Condition> {
    if (condition.kind === "not") return { ...condition, of: await this.#withStoredIds(condition.of) };
    if (condition.kind !== "test") {
      return { ...condition, of: await Promise.all(condition.of.map((part) => this.#withStoredIds(part))) };
    }
    if (condition.field !== "id" || condition.operator === "exists") return condition;
    const stored = async (id: Scalar): Promise<Scalar> => {
      const spelled = condition.ignoreCase ? String(id).toLowerCase() : String(id);
      const found = await this.#find(spelled);
      if (!found) return "";
      const isOwn = readEventId(spelled)?.seq === found.seq;
      return isOwn ? spelled : makeEventPlace(0, { seq: found.seq, day: startOfDay(found.ts) });
    };
    const { value } = condition;
    return {
      ...condition,
      value: typeof value === "object" ? await Promise.all(value.map(stored)) : await stored(value),
    };
  }

  async #placeOf(id: string): Promise<ListPlace> {
    const row = await this.#find(id);
    if (!row) throw new QueryRefused("after", "is not the id of a stored event");
    return { ts: row.ts, seq: row.seq };
  }

  /** Runs a query of the columns that the signal cancels. */
  async #query<M extends "list" | "count" | "search" | "sample" | "entities" | "scan" | "lastArrivals">(
    { client, signal }: QueryContext,
    method: M,
    ...args: WithoutContext<Parameters<ColumnsApi[M]>>
  ): Promise<ThreadResult<ReturnType<ColumnsApi[M]>>> {
    const number = this.#queries++;
    return cancellable(
      signal,
      () => this.#columns.call("cancel", number),
      () => this.#callColumns(method, ...([{ number, client }, ...args] as unknown as Parameters<ColumnsApi[M]>)),
    );
  }

  /** Returns no places once the signal aborts, so that a scan ends without an error. */
  async #unlessAborted(signal: AbortSignal, places: () => Promise<ListPlace[]>): Promise<ListPlace[]> {
    try {
      return await places();
    } catch (error) {
      if (signal.aborted) return [];
      throw error;
    }
  }

  async #callColumns<M extends keyof ColumnsApi>(
    method: M,
    ...args: Parameters<ColumnsApi[M]>
  ): Promise<ThreadResult<ReturnType<ColumnsApi[M]>>> {
    try {
      this.#feed.send();
      return await this.#columns.call(method, ...args);
    } catch (error) {
      throw asStoreError(error);
    }
  }
}

/** The event's sequence number; 0 for null, which is before the first event. */
function seqOfId(field: string, id: string | null): number {
  if (id === null) return 0;
  const place = readEventId(id);
  if (!place) throw new QueryRefused(field, "is not the id of an event");
  return place.seq;
}

function listCondition(filter: EventFilter): Extract<Condition, { kind: "all" }> {
  const fields = ["source", "severity", "class", "type"] as const;
  return {
    kind: "all",
    of: fields.flatMap((field): Condition[] => {
      const values = [filter[field] ?? []].flat();
      if (values.length === 0) return [];
      const test = { kind: "test", field, ignoreCase: false } as const;
      return values.length === 1
        ? [{ ...test, operator: "equals", value: values[0]! }]
        : [{ ...test, operator: "in", value: values }];
    }),
  };
}
