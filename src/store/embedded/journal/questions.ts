import { Thread } from "../../../lib/thread.ts";
import { DAY_MS, startOfDay } from "../../../lib/time.ts";
import { QuestionRefused, StoreUnavailable, type StoredEvent } from "../../store.ts";
import { readEventId } from "../event-id.ts";
import { asStoreError } from "../failure.ts";
import type { Layout } from "../layout.ts";
import type { Term, TextSearch } from "../text-search.ts";
import type { Arrival } from "./arrivals.ts";
import type { Days } from "./days.ts";
import type { ListPlace } from "./list-place.ts";
import type { CountPart, PagePart, Row, Span } from "./day-search.ts";
import type { Arrived, ReaderApi, ReaderData } from "./reader.ts";

// Questions to the journal, day by day, each to a thread that reads.

/** Searches have threads of their own: however long one takes, an event by its id is at hand. */
const SEARCHERS = 2;
const SEARCHES_MAX = 100;
/** A search that runs or waits longer is stopped. */
const SEARCH_MS_MAX = 30_000;
const TOKEN_LIFE_MS = DAY_MS;
/** Threads that hand texts on keep none: a small nursery is collected sooner and holds less. */
const SMALL_HEAP = { maxYoungGenerationSizeMb: 8 };
const CHUNK_EVENTS_MAX = 100;
const CHUNK_CHARACTERS_MAX = 1024 * 1024;
const ANSWER_CHARACTERS_MAX = 64 * 1024 * 1024;

interface QuestionsOptions {
  readonly layout: Layout;
  readonly days: Days;
  readonly now: () => number;
  readonly onDeath: (error: Error) => void;
}

export class Questions {
  readonly #days: Days;
  readonly #now: () => number;
  readonly #reader: Thread<ReaderApi>;
  /** Started when they are first needed: many a site is searched now and then. */
  readonly #searchers = new Map<number, Thread<ReaderApi>>();
  readonly #newReader: (mapped: boolean) => Thread<ReaderApi>;
  #searches = 0;
  #isClosing = false;

  constructor({ layout, days, now, onDeath }: QuestionsOptions) {
    this.#days = days;
    this.#now = now;
    this.#newReader = (mapped) => {
      const data = { ...layout, mapped } satisfies ReaderData;
      return new Thread<ReaderApi>(new URL("./reader.ts", import.meta.url), data, onDeath, SMALL_HEAP);
    };
    this.#reader = this.#newReader(false);
  }

  /** What a day's file holds, as it says itself. Asked at the start, which a damaged file refuses in its own words. */
  summary(day: number): Promise<ReturnType<ReaderApi["summary"]>> {
    return this.#reader.call("summary", day);
  }

  /** Each day's file gives its next ones; what lies beyond the end of a part that is not whole must wait. */
  async arrivals(after: number, upTo: number, eventsMax: number, charactersMax: number): Promise<Arrival[]> {
    const days = this.#days.list().filter((day) => this.#days.lastSeqOf(day) > after);
    const parts = await Promise.all(
      days.map((day) => this.#ask(this.#reader, "arrivals", day, after, upTo, eventsMax, charactersMax)),
    );
    const whole = Math.min(...parts.map(({ rows, isAll }) => (isAll ? upTo : rows.at(-1)!.seq)));
    return parts
      .flatMap(({ rows }) => rows)
      .filter(({ seq }) => seq <= whole)
      .sort((a, b) => a.seq - b.seq)
      .map(({ seq, body }) => ({ seq, id: idOfText(body), text: body }));
  }

  /** The id of the last stored event that arrived before this time. Days with the latest arrivals first: mostly one or two. */
  async lastArrivalBefore(ms: number): Promise<string | null> {
    let last: Arrived | undefined;
    const ends = this.#days.list().sort((a, b) => this.#days.lastSeqOf(b) - this.#days.lastSeqOf(a));
    for (const day of ends) {
      if (last && last.seq > this.#days.lastSeqOf(day)) break;
      const found = await this.#ask(this.#reader, "lastArrivalBefore", day, ms);
      if (found && (!last || found.seq > last.seq)) last = found;
    }
    return last?.id ?? null;
  }

  get(day: number, seq: number): Promise<Row | undefined> {
    return this.#ask(this.#reader, "find", day, seq);
  }

  /** The stored event with this token, if it came within a day. */
  async findToken(token: string): Promise<StoredEvent | undefined> {
    const since = this.#now() - TOKEN_LIFE_MS;
    for (const day of this.#days.list()) {
      if (this.#days.writtenAt(day) < since) continue;
      const text = await this.#ask(this.#reader, "findToken", day, token);
      if (text === undefined) continue;
      const { id } = JSON.parse(text) as { id: string };
      if (readEventId(id)!.arrivedMs > since) return { id, text };
    }
    return undefined;
  }

  /** The ids of events with tokens that are this one, a space and a number; by the number. */
  async findTokens(token: string): Promise<Map<number, string>> {
    const since = this.#now() - TOKEN_LIFE_MS;
    const found = new Map<number, string>();
    for (const day of this.#days.list()) {
      if (this.#days.writtenAt(day) < since) continue;
      for (const { number, id } of await this.#ask(this.#reader, "findTokens", day, `${token} `)) {
        if (readEventId(id)!.arrivedMs > since) found.set(number, id);
      }
    }
    return found;
  }

  /** The newest events below a place, walking the days back. */
  async page(span: Span, after: ListPlace | undefined, offset: number, limit: number): Promise<Row[]> {
    const rows: Row[] = [];
    let skip = offset;
    for (const day of this.#daysOf(span)) {
      if (after && day > after.ts) continue;
      // A day that lies wholly in the range and in what is skipped need not be read.
      const isWhole = span.from <= day && span.to >= day + DAY_MS && !after;
      if (isWhole && skip >= this.#days.rowsOf(day)) {
        skip -= this.#days.rowsOf(day);
        continue;
      }
      const part = await this.#ask(this.#reader, "page", day, clip(span, day), after, skip, limit - rows.length);
      rows.push(...part);
      // A day cut by the range gave nothing for the rows it skipped: how many were there must be known.
      if (part.length === 0 && skip > 0) skip -= Math.min(skip, await this.#countWithin(day, clip(span, day), after));
      else if (part.length > 0) skip = 0;
      if (rows.length >= limit) break;
    }
    return rows;
  }

  async #countWithin(day: number, span: Span, after: ListPlace | undefined): Promise<number> {
    return this.#ask(this.#reader, "countSpan", day, span, after);
  }

  /** The texts of these events, in this order. More than fits in an answer is refused. */
  async bodies(places: readonly ListPlace[]): Promise<string[]> {
    const texts: string[] = [];
    let room = ANSWER_CHARACTERS_MAX;
    for await (const chunk of this.chunks(places)) {
      for (const text of chunk) {
        texts.push(text);
        room -= text.length;
      }
      if (room < 0) {
        throw new QuestionRefused(
          "limit",
          `the answer would be larger than ${ANSWER_CHARACTERS_MAX} characters: ask for fewer`,
        );
      }
    }
    return texts;
  }

  /** The same in chunks of bounded size, however large the events are. */
  async *chunks(places: readonly ListPlace[]): AsyncIterable<string[]> {
    for (let at = 0; at < places.length;) {
      const day = startOfDay(places[at]!.ts);
      const seqs: number[] = [];
      for (let i = at; i < places.length && seqs.length < CHUNK_EVENTS_MAX && startOfDay(places[i]!.ts) === day; i++) {
        seqs.push(places[i]!.seq);
      }
      const found = await this.#ask(this.#reader, "bodies", day, seqs, CHUNK_CHARACTERS_MAX);
      at += found.length;
      // A day that retention removed meanwhile leaves gaps.
      yield found.filter((text) => text !== undefined);
    }
  }

  /** Days are counted side by side, one for each thread, so that a search that is cancelled leaves none in line. */
  textCount(search: TextSearch, span: Span, signal?: AbortSignal): Promise<number> {
    return this.#search(signal, async (goOn) => {
      const days = this.#daysOf(span);
      let sum = 0;
      const countFrom = async (searcher: number) => {
        for (let i = searcher; i < days.length; i += SEARCHERS) {
          goOn();
          const day = days[i]!;
          const clipped = clip(span, day);
          const { count } = await inParts(goOn, (soFar: CountPart | undefined) =>
            this.#ask(this.#searcher(searcher), "textCount", day, search, clipped, soFar),
          );
          sum += count;
        }
      };
      await Promise.all(Array.from({ length: SEARCHERS }, (_, searcher) => countFrom(searcher)));
      return sum;
    });
  }

  textPage(
    search: TextSearch,
    span: Span,
    after: ListPlace | undefined,
    limit: number,
    signal?: AbortSignal,
  ): Promise<ListPlace[]> {
    return this.#search(signal, async (goOn) => {
      const places: ListPlace[] = [];
      for (const day of this.#daysOf(span)) {
        goOn();
        if (after && day > after.ts) continue;
        const searcher = this.#searcher(day / DAY_MS);
        const range = { span: clip(span, day), after };
        const wanted = limit - places.length;
        const found = await inParts(goOn, (soFar: PagePart | undefined) =>
          this.#ask(searcher, "textPage", day, search, range, wanted, soFar),
        );
        places.push(...found.places);
        if (places.length >= limit) break;
      }
      return places;
    });
  }

  textHas(terms: readonly Term[], day: number, seq: number): Promise<boolean> {
    return this.#search(undefined, () => this.#ask(this.#searcher(seq), "textHas", day, terms, seq));
  }

  /** `goOn` throws when the search has been stopped, or has taken too long. */
  async #search<T>(signal: AbortSignal | undefined, run: (goOn: () => void) => Promise<T>): Promise<T> {
    if (this.#searches >= SEARCHES_MAX) throw new StoreUnavailable("queue_full", "too many searches are waiting");
    const until = performance.now() + SEARCH_MS_MAX;
    const goOn = () => {
      signal?.throwIfAborted();
      if (this.#isClosing) throw new StoreUnavailable("closed", "the store is being closed");
      if (performance.now() <= until) return;
      throw new QuestionRefused(
        "search",
        `took longer than ${SEARCH_MS_MAX / 1000} s: narrow the range of time, or add a word`,
      );
    };
    this.#searches++;
    try {
      return await run(goOn);
    } finally {
      this.#searches--;
    }
  }

  /** Damage, or whatever else keeps a thread from an answer, is what every caller of the store is ready for. */
  async #ask<M extends keyof ReaderApi>(
    reader: Thread<ReaderApi>,
    method: M,
    ...args: Parameters<ReaderApi[M]>
  ): Promise<Awaited<ReturnType<ReaderApi[M]>>> {
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

  /** Nobody reads the day any more. */
  async forget(day: number): Promise<void> {
    await Promise.all(this.#readers.map((reader) => reader.call("forget", day)));
  }

  /** Rejects when the reader does not answer. Searchers are not asked: they may be busy for as long as a search takes. */
  async check(): Promise<void> {
    await this.#reader.call("summary", 0);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all(this.#readers.map((reader) => reader.call("close")));
    await Promise.all(this.#readers.map((reader) => reader.end()));
  }

  #daysOf(span: Span): number[] {
    return this.#days.list().filter((day) => day < span.to && day + DAY_MS > span.from);
  }
}

/** Asks for one part after the other until there is no next one. */
async function inParts<Part extends { readonly next: number | undefined }>(
  goOn: () => void,
  ask: (soFar: Part | undefined) => Promise<Part>,
): Promise<Part> {
  for (let soFar: Part | undefined; ;) {
    soFar = await ask(soFar);
    goOn();
    if (soFar.next === undefined) return soFar;
  }
}

function clip(span: Span, day: number): Span {
  return { from: Math.max(span.from, day), to: Math.min(span.to, day + DAY_MS) };
}

/** Every stored text begins with the id: `{"id":"evt_…`. */
const ID_START = 7;
const ID_LENGTH = 36;

export function idOfText(text: string): string {
  return text.slice(ID_START, ID_START + ID_LENGTH);
}
