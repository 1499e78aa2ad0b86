import { responseCharactersMax, responsesCharactersMax } from "../../../lib/memory.ts";
import { Thread, type ThreadResult } from "../../../lib/thread.ts";
import { DAY_MS, startOfDay } from "../../../lib/time.ts";
import type { Arrival, StoredEvent } from "../../ports/event-engine.ts";
import { QueryRefused, StoreUnavailable } from "../../ports/store-errors.ts";
import type { QueryContext } from "../../ports/query-context.ts";
import { QueryLanes } from "../../queries/query-lanes.ts";
import { readEventId } from "../../files/event-id.ts";
import { asStoreError } from "../../files/store-failure.ts";
import type { Layout } from "../../files/layout.ts";
import { arrivalOfRow } from "./arrived-row.ts";
import type { Term, TextSearch } from "../../search/text-search.ts";
import type { NumberedArrival } from "./arrivals.ts";
import type { Days } from "./journal-days.ts";
import type { ListPlace } from "./list-position.ts";
import type { CountPart, PagePart, FoundRow, DaySpan } from "./day-search.ts";
import type { Arrived, ReaderApi, ReaderData } from "./journal-reader-thread.ts";

// Queries of the journal. They run day by day in reader threads.

/** Threads for searches only, so that a long search does not delay a look-up by id. */
const SEARCHERS = 2;
/** A search that runs longer is stopped. */
const SEARCH_MS_MAX = 30_000;
const TOKEN_LIFE_MS = DAY_MS;
/** Reader threads only pass texts on: a small young generation is collected sooner and holds less. */
const SMALL_HEAP = { maxYoungGenerationSizeMb: 8 };
const CHUNK_EVENTS_MAX = 100;
const CHUNK_CHARACTERS_MAX = 1024 * 1024;

const NEVER = new AbortController().signal;

/** Throws if the search was cancelled or has taken too long. */
type StopCheck = () => void;

interface QuestionsOptions {
  readonly layout: Layout;
  readonly days: Days;
  readonly now: () => number;
  readonly onDeath: (error: Error) => void;
}

export class JournalQueries {
  readonly #days: Days;
  readonly #now: () => number;
  readonly #reader: Thread<ReaderApi>;
  /** Started on demand, because many sites are searched only now and then. */
  readonly #searchers = new Map<number, Thread<ReaderApi>>();
  readonly #newReader: (mapped: boolean) => Thread<ReaderApi>;
  readonly #gathering = new ResponseBudget();
  readonly #lanes = new QueryLanes();
  #isClosing = false;

  constructor({ layout, days, now, onDeath }: QuestionsOptions) {
    this.#days = days;
    this.#now = now;
    this.#newReader = (mapped) => {
      const data = { ...layout, mapped } satisfies ReaderData;
      return new Thread<ReaderApi>(new URL("./journal-reader-thread.ts", import.meta.url), data, onDeath, SMALL_HEAP);
    };
    this.#reader = this.#newReader(false);
  }

  /** Row count and end of a day, read from its file. The start needs it, so errors of a damaged file pass unchanged. */
  summary(day: number): Promise<ReturnType<ReaderApi["summary"]>> {
    return this.#reader.call("summary", day);
  }

  /** The next arrivals, merged from all days. An incomplete part of a day limits the others: later events have to wait. */
  async arrivals(after: number, upTo: number, eventsMax: number, charactersMax: number): Promise<NumberedArrival[]> {
    const days = this.#days.list().filter((day) => this.#days.lastSeqOf(day) > after);
    const parts = await Promise.all(
      days.map((day) => this.#call(this.#reader, "arrivals", day, after, upTo, eventsMax, charactersMax)),
    );
    const whole = Math.min(...parts.map(({ rows, isAll }) => (isAll ? upTo : rows.at(-1)!.seq)));
    return parts
      .flatMap(({ rows }) => rows)
      .filter(({ seq }) => seq <= whole)
      .sort((a, b) => a.seq - b.seq)
      .map((row) => ({ seq: row.seq, ...arrivalOfRow(row) }));
  }

  /** The place of the last stored event that arrived before this time. Reads days in the order of their latest arrivals. */
  async lastArrivalBefore(ms: number): Promise<string | null> {
    let last: Arrived | undefined;
    const ends = this.#days.list().sort((a, b) => this.#days.lastSeqOf(b) - this.#days.lastSeqOf(a));
    for (const day of ends) {
      if (last && last.seq > this.#days.lastSeqOf(day)) break;
      const found = await this.#call(this.#reader, "lastArrivalBefore", day, ms);
      if (found && (!last || found.seq > last.seq)) last = found;
    }
    return last?.place ?? null;
  }

  /** The event of an id that does not tell the sequence number. */
  getForeign(day: number, id: string): Promise<FoundRow | undefined> {
    return this.#call(this.#reader, "findForeign", day, id);
  }

  get(day: number, seq: number): Promise<FoundRow | undefined> {
    return this.#call(this.#reader, "find", day, seq);
  }

  /** The stored event with this token, if it arrived within the last day. */
  async findToken(token: string): Promise<StoredEvent | undefined> {
    const since = this.#now() - TOKEN_LIFE_MS;
    for (const day of this.#days.list()) {
      if (this.#days.writtenAt(day) < since) continue;
      const text = await this.#call(this.#reader, "findToken", day, token);
      if (text === undefined) continue;
      const { id } = JSON.parse(text) as { id: string };
      if (readEventId(id)!.arrivedMs > since) return { id, text };
    }
    return undefined;
  }

  /** The ids of events whose tokens are this one, a space and a number, by that number. */
  async findTokens(token: string): Promise<Map<number, string>> {
    const since = this.#now() - TOKEN_LIFE_MS;
    const found = new Map<number, string>();
    for (const day of this.#days.list()) {
      if (this.#days.writtenAt(day) < since) continue;
      for (const { number, id } of await this.#call(this.#reader, "findTokens", day, `${token} `)) {
        if (readEventId(id)!.arrivedMs > since) found.set(number, id);
      }
    }
    return found;
  }

  /** The texts of the newest events below a place, from the newest day back. An answer over the size limit is refused. */
  page(span: DaySpan, after: ListPlace | undefined, offset: number, limit: number): Promise<string[]> {
    return this.#gathering.gather(this.#pageChunks(span, after, offset, limit));
  }

  async *#pageChunks(
    span: DaySpan,
    after: ListPlace | undefined,
    offset: number,
    limit: number,
  ): AsyncIterable<string[]> {
    let skip = offset;
    let left = limit;
    let below = after;
    for (const day of this.#daysOf(span)) {
      if (after && day > after.ts) continue;
      // A day wholly within the range and the offset need not be read.
      const isWhole = span.from <= day && span.to >= day + DAY_MS && !after;
      if (isWhole && skip >= this.#days.rowsOf(day)) {
        skip -= this.#days.rowsOf(day);
        continue;
      }
      for (let isAll = false; !isAll && left > 0;) {
        const wanted = { offset: skip, limit: left, charactersMax: CHUNK_CHARACTERS_MAX };
        const part = await this.#call(this.#reader, "page", day, clip(span, day), below, wanted);
        ({ isAll } = part);
        // A day partly within the range returned no rows: count how many of them the offset skips.
        if (part.rows.length > 0) skip = 0;
        else if (skip > 0) skip -= Math.min(skip, await this.#countWithin(day, clip(span, day), after));
        left -= part.rows.length;
        below = part.rows.at(-1) ?? below;
        yield part.rows.map(({ body }) => body);
      }
      if (left === 0) return;
    }
  }

  async #countWithin(day: number, span: DaySpan, after: ListPlace | undefined): Promise<number> {
    return this.#call(this.#reader, "countSpan", day, span, after);
  }

  /** The texts of these events, in this order. An answer over the size limit is refused. */
  bodies(places: readonly ListPlace[]): Promise<string[]> {
    return this.#gathering.gather(this.chunks(places));
  }

  /** The same in chunks of bounded size. */
  async *chunks(places: readonly ListPlace[]): AsyncIterable<string[]> {
    for (let at = 0; at < places.length;) {
      const day = startOfDay(places[at]!.ts);
      const seqs: number[] = [];
      for (let i = at; i < places.length && seqs.length < CHUNK_EVENTS_MAX && startOfDay(places[i]!.ts) === day; i++) {
        seqs.push(places[i]!.seq);
      }
      const found = await this.#call(this.#reader, "bodies", day, seqs, CHUNK_CHARACTERS_MAX);
      at += found.length;
      // A day that retention has just removed leaves gaps.
      yield found.filter((text) => text !== undefined);
    }
  }

  /** These events with their places, in chunks of bounded size. */
  async *arrivalsAt(places: readonly ListPlace[]): AsyncIterable<Arrival[]> {
    for (const { day, seqs } of runsOf(places)) {
      for (let at = 0; at < seqs.length;) {
        const { rows, read } = await this.#call(
          this.#reader,
          "arrived",
          day,
          seqs.slice(at, at + CHUNK_EVENTS_MAX),
          CHUNK_CHARACTERS_MAX,
        );
        at += read;
        yield rows.map(arrivalOfRow);
      }
    }
  }

  /** Days are counted side by side, one for each thread, so that a search that is cancelled leaves none in line. */
  async textCount(throwIfStopped: StopCheck, search: TextSearch, span: DaySpan): Promise<number> {
    const days = this.#daysOf(span);
    let sum = 0;
    const countFrom = async (searcher: number) => {
      for (let i = searcher; i < days.length; i += SEARCHERS) {
        throwIfStopped();
        const day = days[i]!;
        const clipped = clip(span, day);
        const { count } = await inParts(throwIfStopped, (soFar: CountPart | undefined) =>
          this.#call(this.#searcher(searcher), "textCount", day, search, clipped, soFar),
        );
        sum += count;
      }
    };
    await Promise.all(Array.from({ length: SEARCHERS }, (_, searcher) => countFrom(searcher)));
    return sum;
  }

  async textPage(
    throwIfStopped: StopCheck,
    search: TextSearch,
    span: DaySpan,
    after: ListPlace | undefined,
    limit: number,
  ): Promise<ListPlace[]> {
    const places: ListPlace[] = [];
    for (const day of this.#daysOf(span)) {
      throwIfStopped();
      if (after && day > after.ts) continue;
      const searcher = this.#searcher(day / DAY_MS);
      const range = { span: clip(span, day), after };
      const wanted = limit - places.length;
      const found = await inParts(throwIfStopped, (soFar: PagePart | undefined) =>
        this.#call(searcher, "textPage", day, search, range, wanted, soFar),
      );
      places.push(...found.places);
      if (places.length >= limit) break;
    }
    return places;
  }

  async textHas(throwIfStopped: StopCheck, terms: readonly Term[], day: number, seq: number): Promise<boolean> {
    throwIfStopped();
    return this.#call(this.#searcher(seq), "textHas", day, terms, seq);
  }

  /** Runs a full-text search, which may be several calls, once its client has a slot. */
  search<T>({ client, signal = NEVER }: QueryContext, run: (throwIfStopped: StopCheck) => Promise<T>): Promise<T> {
    return this.#lanes.take({ name: client, lane: "text" }, signal, async () => {
      const until = performance.now() + SEARCH_MS_MAX;
      return run(() => {
        signal.throwIfAborted();
        if (this.#isClosing) throw new StoreUnavailable("closed", "the store is being closed");
        if (performance.now() <= until) return;
        throw new QueryRefused(
          "search",
          `took longer than ${SEARCH_MS_MAX / 1000} s: narrow the range of time, or add a word`,
        );
      });
    });
  }

  /** Searches that were refused because of too many others. */
  get refused(): number {
    return this.#lanes.refused;
  }

  /** Calls a reader, and converts its errors to those that the store's callers know. */
  async #call<M extends keyof ReaderApi>(
    reader: Thread<ReaderApi>,
    method: M,
    ...args: Parameters<ReaderApi[M]>
  ): Promise<ThreadResult<ReturnType<ReaderApi[M]>>> {
    try {
      return await reader.call(method, ...args);
    } catch (error) {
      throw asStoreError(error);
    }
  }

  #searcher(n: number): Thread<ReaderApi> {
    const place = n % SEARCHERS;
    let searcher = this.#searchers.get(place);
    if (!searcher) this.#searchers.set(place, (searcher = this.#newReader(true)));
    return searcher;
  }

  get #readers(): Thread<ReaderApi>[] {
    return [this.#reader, ...this.#searchers.values()];
  }

  /** Closes the day's file in all readers. */
  async closeDay(day: number): Promise<void> {
    await Promise.all(this.#readers.map((reader) => reader.call("closeDay", day)));
  }

  /** Rejects when the reader does not answer. Does not check searchers, which may be busy with a search. */
  async check(): Promise<void> {
    await this.#reader.call("summary", 0);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all(this.#readers.map((reader) => reader.call("close")));
    await Promise.all(this.#readers.map((reader) => reader.end()));
  }

  #daysOf(span: DaySpan): number[] {
    return this.#days.list().filter((day) => day < span.to && day + DAY_MS > span.from);
  }
}

/** Places of one day that follow each other. */
function* runsOf(places: readonly ListPlace[]): Generator<{ day: number; seqs: number[] }> {
  for (let at = 0; at < places.length;) {
    const day = startOfDay(places[at]!.ts);
    const seqs: number[] = [];
    for (; at < places.length && startOfDay(places[at]!.ts) === day; at++) seqs.push(places[at]!.seq);
    yield { day, seqs };
  }
}

/** Collects answers within memory limits: clients choose how many run at once, and each may contain the largest events. */
class ResponseBudget {
  readonly #answerMax = responseCharactersMax();
  readonly #allMax = responsesCharactersMax();
  #characters = 0;

  async gather(chunks: AsyncIterable<string[]>): Promise<string[]> {
    const texts: string[] = [];
    let characters = 0;
    try {
      for await (const chunk of chunks) {
        const more = chunk.reduce((sum, text) => sum + text.length, 0);
        characters += more;
        this.#characters += more;
        if (characters > this.#answerMax) {
          const message = `the answer would be larger than ${this.#answerMax} characters: request fewer`;
          throw new QueryRefused("limit", message);
        }
        if (this.#characters > this.#allMax) {
          throw new StoreUnavailable("queue_full", "too many large answers at once: try again later");
        }
        texts.push(...chunk);
      }
      return texts;
    } finally {
      this.#characters -= characters;
    }
  }
}

/** Runs one part after the other until there is no next one. */
async function inParts<Part extends { readonly next: number | undefined }>(
  throwIfStopped: StopCheck,
  ask: (soFar: Part | undefined) => Promise<Part>,
): Promise<Part> {
  for (let soFar: Part | undefined; ;) {
    soFar = await ask(soFar);
    throwIfStopped();
    if (soFar.next === undefined) return soFar;
  }
}

function clip(span: DaySpan, day: number): DaySpan {
  return { from: Math.max(span.from, day), to: Math.min(span.to, day + DAY_MS) };
}
