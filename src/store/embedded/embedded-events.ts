import { parseExact } from "../../lib/exact-json.ts";
import type { Thread } from "../../lib/thread.ts";
import { DAY_MS, startOfDay } from "../../lib/time.ts";
import type { Condition, Scalar } from "../../model/condition.ts";
import type { JsonObject } from "../../model/event.ts";
import type { Position, TextPage } from "../../model/page.ts";
import type { AggregationResult } from "../../model/aggregation.ts";
import type { SearchQuery, TimeRange } from "../../model/query.ts";
import {
  QuestionRefused,
  type Amendment,
  type Asking,
  type EventFilter,
  type EventStore,
  type LastArrivals,
  type NewEvent,
  type ProjectedEvents,
  type Projection,
  type StoredEvent,
  type ParquetTask,
} from "../ports/store.ts";
import type { ColumnFeed } from "./column-feed.ts";
import { projectionDecoder } from "../duckdb/columns/projection-decoder.ts";
import type { ProjectedRows } from "../duckdb/columns/projection.ts";
import type { ColumnsApi } from "../duckdb/columns/columns-thread.ts";
import { readEventId } from "./event-id.ts";
import type { Journal } from "../sqlite/journal/journal.ts";
import { idOfText } from "../sqlite/journal/journal-queries.ts";
import { newestFirst, type ListPlace } from "../sqlite/journal/list-position.ts";
import type { DaySpan } from "../sqlite/journal/day-search.ts";
import { cancellable, type WithoutAsking } from "./queries-in-flight.ts";
import type { PlatformWord } from "./platform-word.ts";
import type { DiskSpaceProbe } from "./disk-space-probe.ts";
import type { Manifest } from "./manifest.ts";
import type { StateDatabase } from "../sqlite/state-database.ts";
import { asStoreError } from "./store-failure.ts";
import { holdsPhrases, idTerm, parseSearch, type Term, type TextSearch } from "../search/text-search.ts";

// Which part answers what: the journal gives events by id, unfiltered lists and full text; the columns give filtered
// lists, totals and aggregations, and say where the rows lie; their texts always come from the journal.

const TIME_END = 8.64e15;
/** Up to here the engine keeps the first rows in a heap; a higher limit makes it sort everything, each time. */
const SCAN_PLACES = 5000;
/** Events of a chunk in the order of arrival. */
const LAST_EVENTS = 100;

export interface EventParts {
  readonly journal: Journal;
  readonly columns: Thread<ColumnsApi>;
  readonly news: ColumnFeed;
  readonly state: StateDatabase;
  readonly manifest: Manifest;
  readonly word: PlatformWord;
  readonly room: DiskSpaceProbe;
}

export class EmbeddedEvents implements EventStore {
  readonly #journal: Journal;
  readonly #columns: Thread<ColumnsApi>;
  readonly #news: ColumnFeed;
  readonly #state: StateDatabase;
  readonly #manifest: Manifest;
  readonly #word: PlatformWord;
  readonly #room: DiskSpaceProbe;
  #projections = 0;
  #questions = 0;

  constructor({ journal, columns, news, state, manifest, word, room }: EventParts) {
    this.#journal = journal;
    this.#columns = columns;
    this.#news = news;
    this.#state = state;
    this.#manifest = manifest;
    this.#word = word;
    this.#room = room;
  }

  append(events: readonly NewEvent[]): Promise<StoredEvent[]> {
    const stored = this.#word.isKept ? this.#journal.append(events) : this.#appendFirst(events);
    stored.catch((error: unknown) => this.#room.noteRefusal(error));
    return stored;
  }

  async #appendFirst(events: readonly NewEvent[]): Promise<StoredEvent[]> {
    this.#word.noteEvents(events);
    return this.#journal.append(events);
  }

  amend(amendments: readonly Amendment[]): Promise<void> {
    return this.#journal.amend(amendments);
  }

  async get(id: string): Promise<string | undefined> {
    return (await this.#find(id))?.body;
  }

  findByToken(token: string): Promise<StoredEvent | undefined> {
    return this.#journal.questions.findToken(token);
  }

  findByTokens(token: string): Promise<ReadonlyMap<number, string>> {
    return this.#journal.questions.findTokens(token);
  }

  async list(filter: EventFilter, position: Position, asking: Asking = {}): Promise<TextPage> {
    const after =
      position.mode === "cursor" && position.after !== undefined ? await this.#placeOf(position.after) : undefined;
    const offset = position.mode === "page" ? (position.page - 1) * position.size : 0;
    // One more than asked for tells whether the list goes on.
    const limit = position.mode === "cursor" ? position.size + 1 : position.size;
    const { total, texts } = await this.#listTexts(filter, after, offset, limit, asking);
    if (position.mode === "page") return { total, items: texts, nextCursor: null };
    const items = texts.slice(0, position.size);
    return { total, items, nextCursor: texts.length > position.size ? idOfText(items.at(-1)!) : null };
  }

  async #listTexts(
    filter: EventFilter,
    after: ListPlace | undefined,
    offset: number,
    limit: number,
    asking: Asking,
  ): Promise<{ total: number; texts: string[] }> {
    const span = { from: filter.fromMs ?? 0, to: filter.toMs ?? TIME_END };
    if (filter.search !== undefined) return this.#listWords(filter, filter.search, span, after, offset, limit, asking);
    const condition = listCondition(filter);
    if (condition.of.length > 0) {
      const { total, places } = await this.#question(asking, "list", condition, filter, after, offset, limit);
      return { total, texts: await this.#journal.questions.bodies(places) };
    }
    const isWhole = filter.fromMs === undefined && filter.toMs === undefined;
    const [texts, total] = await Promise.all([
      this.#journal.questions.page(span, after, offset, limit),
      isWhole ? this.#journal.count() : this.#question(asking, "count", condition, filter),
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
    asking: Asking,
  ) {
    const search = parseSearch(words, filter);
    if ("fault" in search) throw new QuestionRefused("search", search.fault);
    const ofWords = { ...search, terms: [...search.terms, ...search.ids.map(idTerm)] };
    const { questions } = this.#journal;
    const [total, places, named] = await questions.search(asking, (goOn) =>
      Promise.all([
        questions.textCount(goOn, ofWords, span),
        questions.textPage(goOn, ofWords, span, after, offset + limit),
        this.#named(goOn, search, span),
      ]),
    );
    const below = named.filter((place) => !after || newestFirst(after, place) < 0);
    const all = [...places, ...below].sort(newestFirst).slice(offset, offset + limit);
    return { total: total + named.length, texts: await questions.bodies(all) };
  }

  /** Events whose ids are among the words, but for those that have their own id for a word, too. */
  async #named(goOn: () => void, { terms, phrases, ids }: TextSearch, span: DaySpan): Promise<ListPlace[]> {
    const named: ListPlace[] = [];
    for (const id of new Set(ids)) {
      const found = await this.#find(id);
      if (!found || found.ts < span.from || found.ts >= span.to) continue;
      const has = (wanted: readonly Term[]) =>
        this.#journal.questions.textHas(goOn, wanted, startOfDay(found.ts), found.seq);
      const wanted = [...terms, ...ids.filter((other) => other !== id).map(idTerm)];
      const isFound =
        holdsPhrases(parseExact(found.body) as JsonObject, phrases) &&
        (wanted.length === 0 || (await has(wanted))) &&
        !(await has([idTerm(id)]));
      if (isFound) named.push({ ts: found.ts, seq: found.seq });
    }
    return named;
  }

  async search(
    query: SearchQuery,
    asking: Asking = {},
  ): Promise<{ total: number; items: string[]; aggregations: Record<string, AggregationResult> }> {
    const condition = await this.#withStoredIds(query.condition);
    const { total, places, aggregations } = await this.#question(asking, "search", { ...query, condition });
    return { total, items: await this.#journal.questions.bodies(places), aggregations };
  }

  async *scan(question: { condition: Condition } & TimeRange, signal: AbortSignal): AsyncIterable<string[]> {
    const upTo = this.#journal.committedSeq;
    const condition = await this.#withStoredIds(question.condition);
    let after: ListPlace | undefined;
    while (!signal.aborted) {
      const places: ListPlace[] = await this.#unlessAborted(
        { signal },
        "scan",
        condition,
        { fromMs: question.fromMs, toMs: question.toMs },
        after,
        upTo,
        SCAN_PLACES,
      );
      for await (const chunk of this.#journal.questions.chunks(places)) {
        if (signal.aborted) return;
        yield chunk;
      }
      if (places.length < SCAN_PLACES) return;
      after = places.at(-1);
    }
  }

  async *scanLast(
    { eventsMax, ...question }: LastArrivals,
    signal: AbortSignal,
  ): AsyncIterable<{ texts: string[]; isCut: boolean }> {
    const condition = await this.#withStoredIds(question.condition);
    const after = seqOfId("after", question.after);
    const upTo = seqOfId("upTo", question.upTo);
    if (signal.aborted) return;
    const places = await this.#unlessAborted({ signal }, "lastArrivals", condition, after, upTo, eventsMax + 1);
    const isCut = places.length > eventsMax;
    const inOrder = places.slice(0, eventsMax).reverse();
    for (let at = 0; at < inOrder.length && !signal.aborted; at += LAST_EVENTS) {
      // What arrived together may be of many days: those of one are read together.
      const block = inOrder.slice(at, at + LAST_EVENTS).sort((a, b) => a.ts - b.ts);
      const texts: string[] = [];
      for await (const chunk of this.#journal.questions.chunks(block)) texts.push(...chunk);
      yield { texts: texts.sort((a, b) => (idOfText(a) < idOfText(b) ? -1 : 1)), isCut };
    }
  }

  lastArrivalBefore(ms: number): Promise<string | null> {
    return this.#journal.questions.lastArrivalBefore(ms);
  }

  arrivals(after: string | null, signal: AbortSignal): AsyncIterable<StoredEvent[]> {
    return this.#journal.follow(seqOfId("after", after), signal);
  }

  lastArrival(): string | null {
    return this.#journal.lastId;
  }

  async *project(question: Projection & TimeRange, signal: AbortSignal): AsyncIterable<ProjectedEvents> {
    if (signal.aborted) return;
    const number = this.#projections++;
    const end = () => this.#columns.call("endProjection", number);
    // Whatever the engine is doing for it stops at once.
    const stop = () => void end().catch(() => undefined);
    signal.addEventListener("abort", stop, { once: true });
    let coming: Promise<ProjectedRows> | undefined;
    try {
      const condition = await this.#withStoredIds(question.condition);
      const tests = await Promise.all((question.tests ?? []).map((test) => this.#withStoredIds(test)));
      await this.#ask("beginProjection", number, { ...question, condition, tests });
      const projected = projectionDecoder();
      coming = this.#ask("projectedRows", number);
      for (let rows = await coming; rows.seqs.length > 0 && !signal.aborted; rows = await coming) {
        // The next part is made while this one is being looked at.
        coming = this.#ask("projectedRows", number);
        coming.catch(() => undefined);
        yield projected(rows);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      signal.removeEventListener("abort", stop);
      await end();
    }
  }

  async toParquet(task: ParquetTask, signal: AbortSignal): Promise<void> {
    await this.#question({ signal }, "toParquet", task);
  }

  async removeBefore(ms: number): Promise<{ days: number; events: number }> {
    const old = this.#journal.days().filter((day) => day + DAY_MS <= ms);
    let events = 0;
    if (old.length > 0) this.#state.used = this.#journal.used;
    this.#manifest.removing("events", ms);
    this.#news.tell();
    for (const day of old) {
      await this.#columns.call("removeDay", day);
      events += await this.#journal.remove(day);
    }
    return { days: old.length, events };
  }

  async count(): Promise<number> {
    return this.#journal.count();
  }

  async #find(id: string) {
    const place = readEventId(id);
    const row = place && (await this.#journal.questions.get(place.day, place.seq));
    return row && idOfText(row.body) === id ? row : undefined;
  }

  /** The columns know an event by its place alone, so that an id which only looks like one of ours is taken out before. */
  async #withStoredIds(condition: Condition): Promise<Condition> {
    if (condition.kind === "not") return { ...condition, of: await this.#withStoredIds(condition.of) };
    if (condition.kind !== "test") {
      return { ...condition, of: await Promise.all(condition.of.map((part) => this.#withStoredIds(part))) };
    }
    if (condition.field !== "id" || condition.operator === "exists") return condition;
    const stored = async (id: Scalar): Promise<Scalar> => {
      const spelled = condition.ignoreCase ? String(id).toLowerCase() : String(id);
      return (await this.#find(spelled)) ? spelled : "";
    };
    const { value } = condition;
    return {
      ...condition,
      value: typeof value === "object" ? await Promise.all(value.map(stored)) : await stored(value),
    };
  }

  async #placeOf(id: string): Promise<ListPlace> {
    const row = await this.#find(id);
    if (!row) throw new QuestionRefused("after", "is not the id of an event that is stored");
    return { ts: row.ts, seq: row.seq };
  }

  /** Asks the columns what can be cancelled. */
  async #question<M extends "list" | "count" | "search" | "scan" | "lastArrivals" | "toParquet">(
    { asker, signal }: Asking,
    method: M,
    ...args: WithoutAsking<Parameters<ColumnsApi[M]>>
  ): Promise<Awaited<ReturnType<ColumnsApi[M]>>> {
    const number = this.#questions++;
    return cancellable(
      signal,
      () => this.#columns.call("cancel", number),
      () => this.#ask(method, ...([{ number, asker }, ...args] as unknown as Parameters<ColumnsApi[M]>)),
    );
  }

  /** The same for a walk, which ends in silence when it is told to. */
  async #unlessAborted<M extends "scan" | "lastArrivals">(
    asking: Asking & { readonly signal: AbortSignal },
    method: M,
    ...args: WithoutAsking<Parameters<ColumnsApi[M]>>
  ): Promise<ListPlace[]> {
    try {
      return await this.#question(asking, method, ...args);
    } catch (error) {
      if (asking.signal.aborted) return [];
      throw error;
    }
  }

  async #ask<M extends keyof ColumnsApi>(
    method: M,
    ...args: Parameters<ColumnsApi[M]>
  ): Promise<Awaited<ReturnType<ColumnsApi[M]>>> {
    try {
      this.#news.tell();
      return await this.#columns.call(method, ...args);
    } catch (error) {
      throw asStoreError(error);
    }
  }
}

/** Where in the order of arrival the event lies; null: before all of them. */
function seqOfId(field: string, id: string | null): number {
  if (id === null) return 0;
  const place = readEventId(id);
  if (!place) throw new QuestionRefused(field, "is not the id of an event");
  return place.seq;
}

function listCondition(filter: EventFilter): Extract<Condition, { kind: "all" }> {
  const fields = ["source", "severity", "class", "type"] as const;
  return {
    kind: "all",
    of: fields.flatMap((field) =>
      filter[field] === undefined
        ? []
        : [{ kind: "test", field, operator: "equals", value: filter[field], ignoreCase: false } as const],
    ),
  };
}
