import { statSync } from "node:fs";
import type { Registry } from "prom-client";
import { Thread } from "../../../lib/thread.ts";
import { DAY_MS, startOfDay } from "../../../lib/time.ts";
import { QuestionRefused, StoreUnavailable, type Amendment, type NewEvent, type StoredEvent } from "../../store.ts";
import type { DayEnd } from "../columns/follower.ts";
import { makeEventId, readEventId } from "../event-id.ts";
import { dayFile, listDays, type Layout } from "../layout.ts";
import type { Used } from "../state.ts";
import { asStoreError, notStored } from "../failure.ts";
import { eventWords } from "../indexed-words.ts";
import type { Term, TextSearch } from "../text-search.ts";
import { Amending } from "./amending.ts";
import { Arrivals, type Arrival } from "./arrivals.ts";
import { eventText, groupByDay, type DayEvents, type Prepared, type Waiting } from "./group.ts";
import { Logs } from "./logs.ts";
import { journalMetrics, type JournalMetrics } from "./metrics.ts";
import type { Arrived, ListPlace, ReaderApi, ReaderData, Row, Span } from "./reader.ts";
import type { WriterApi } from "./writer.ts";

// The journal: events in SQLite day files. Appends are gathered into groups; one thread commits them, others read.

const GROUP_EVENTS_MAX = 1000;
const GROUP_EVENTS_FULL = GROUP_EVENTS_MAX / 2;
const GATHER_TURNS_MAX = 8;
const QUEUE_EVENTS_MAX = 20_000;
const QUEUE_BYTES_MAX = 64 * 1024 * 1024;
/** The writer always finds its next group waiting. */
const GROUPS_IN_FLIGHT_MAX = 2;
/** Searches have threads of their own: however long one takes, an event by its id is at hand. */
const SEARCHERS = 2;
const SEARCHES_MAX = 100;
const TOKEN_LIFE_MS = DAY_MS;
/** Threads that hand texts on keep none: a small nursery is collected sooner and holds less. */
const SMALL_HEAP = { maxYoungGenerationSizeMb: 8 };
const CHUNK_EVENTS_MAX = 100;
const CHUNK_CHARACTERS_MAX = 1024 * 1024;
const ANSWER_CHARACTERS_MAX = 64 * 1024 * 1024;

export interface JournalOptions {
  readonly layout: Layout;
  readonly registry: Registry;
  readonly now: () => number;
  /** Ids up to here have been used, even where their events are gone. */
  readonly used: Used;
  /** Hears of each committed group, in order, before its senders do. */
  readonly onCommit: (day: number, events: readonly Prepared[]) => void;
  /** Hears of each day whose events were changed, before whoever changed them does. */
  readonly onAmend: (day: number, lastAmendment: number) => void;
}

export class Journal {
  readonly #options: JournalOptions;
  readonly #writer: Thread<WriterApi>;
  readonly #logs: Logs;
  readonly #reader: Thread<ReaderApi>;
  readonly #searchers: Thread<ReaderApi>[];
  readonly #rows = new Map<number, number>();
  readonly #lastWrite = new Map<number, number>();
  /** The last sequence number of each day. */
  readonly #lastSeqs = new Map<number, number>();
  readonly #metrics: JournalMetrics;
  readonly #queue: Waiting[] = [];
  #queuedEvents = 0;
  #queuedBytes = 0;
  /** Queued events that are in no group yet. */
  #ungrouped = 0;
  #lastGroupEvents = 0;
  #inFlight = 0;
  #isPumpDue = false;
  #searches = 0;
  #lastSeq = 0;
  #lastArrivalMs = 0;
  #committedSeq = 0;
  #lastId: string | null = null;
  #arrivals!: Arrivals;
  #amending!: Amending;
  #closing = false;
  #drained: (() => void) | undefined;

  private constructor(options: JournalOptions) {
    this.#options = options;
    // A thread of the store that dies is a bug: crash loudly, the journal is safe.
    const onDeath = (error: Error) =>
      queueMicrotask(() => {
        throw new Error("a thread of the journal died", { cause: error });
      });
    const here = (file: string) => new URL(file, import.meta.url);
    this.#writer = new Thread(here("./writer.ts"), options.layout, onDeath);
    const newReader = (mapped: boolean) =>
      new Thread<ReaderApi>(
        here("./reader.ts"),
        { ...options.layout, mapped } satisfies ReaderData,
        onDeath,
        SMALL_HEAP,
      );
    this.#reader = newReader(false);
    this.#searchers = Array.from({ length: SEARCHERS }, () => newReader(true));
    this.#metrics = journalMetrics(options.registry, this);
    this.#logs = new Logs(options.layout, this.#writer, new Thread(here("./keeper.ts"), options.layout, onDeath), () =>
      this.#metrics.checkpointFailures.inc(),
    );
  }

  static async open(options: JournalOptions): Promise<Journal> {
    const journal = new Journal(options);
    await journal.#load();
    return journal;
  }

  async #load(): Promise<void> {
    const days = listDays(this.#options.layout);
    const summaries = await Promise.all(days.map((day) => this.#reader.call("summary", day)));
    this.#lastSeq = this.#options.used.seq;
    this.#lastArrivalMs = this.#options.used.arrivedMs;
    for (const [i, { rows, lastSeq, lastBody, lastAmendment }] of summaries.entries()) {
      this.#rows.set(days[i]!, rows);
      this.#lastWrite.set(days[i]!, lastWriteOf(dayFile(this.#options.layout, days[i]!)));
      this.dayEnds.push({ day: days[i]!, rows, lastSeq, lastAmendment });
      this.#lastSeqs.set(days[i]!, lastSeq);
      if (lastSeq <= this.#lastSeq) continue;
      this.#lastSeq = lastSeq;
      const { id } = JSON.parse(lastBody!) as { id: string };
      this.#lastId = id;
      this.#lastArrivalMs = Math.max(this.#lastArrivalMs, readEventId(id)!.arrivedMs);
    }
    this.#committedSeq = this.#lastSeq;
    this.#lastId ??= this.#lastSeq > 0 ? makeEventId(this.#lastArrivalMs, { seq: this.#lastSeq, day: 0 }) : null;
    this.#arrivals = new Arrivals(this.#lastSeq, (...args) => this.#readArrivals(...args));
    this.#amending = new Amending({
      writer: this.#writer,
      arrivals: this.#arrivals,
      hasDay: (day) => this.#rows.has(day),
      onAmend: (day, amended) => {
        this.#logs.grew(day, amended.count);
        this.#options.onAmend(day, amended.lastAmendment);
        this.#logs.checkpointIfDue();
      },
    });
    this.#logs.tidy(days);
  }

  get queuedEvents(): number {
    return this.#queuedEvents;
  }

  /** What the next id must be above. */
  get used(): Used {
    return { seq: this.#lastSeq, arrivedMs: this.#lastArrivalMs };
  }

  get committedSeq(): number {
    return this.#committedSeq;
  }

  /** The id of the last event that came in and is stored. Where retention has removed it, one that sorts as it did. */
  get lastId(): string | null {
    return this.#lastId;
  }

  /** Stored events after this sequence number in the order of arrival, then those that come. */
  follow(after: number, signal: AbortSignal): AsyncIterable<Arrival[]> {
    return this.#arrivals.follow(after, signal);
  }

  /** Each day's file gives its next ones; what lies beyond the end of a part that is not whole must wait. */
  async #readArrivals(after: number, upTo: number, eventsMax: number, charactersMax: number): Promise<Arrival[]> {
    const days = this.days().filter((day) => (this.#lastSeqs.get(day) ?? 0) > after);
    const parts = await Promise.all(
      days.map((day) => this.#reader.call("arrivals", day, after, upTo, eventsMax, charactersMax)),
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
    const ends = [...this.#lastSeqs].sort(([, a], [, b]) => b - a);
    for (const [day, lastSeq] of ends) {
      if (last && last.seq > lastSeq) break;
      const found = await this.#reader.call("lastArrivalBefore", day, ms);
      if (found && (!last || found.seq > last.seq)) last = found;
    }
    return last?.id ?? null;
  }

  /** Days that have events, newest first. */
  days(): number[] {
    return [...this.#rows.keys()].sort((a, b) => b - a);
  }

  count(): number {
    let sum = 0;
    for (const rows of this.#rows.values()) sum += rows;
    return sum;
  }

  /** How far each day goes: known at the start. */
  readonly dayEnds: DayEnd[] = [];

  rowsOf(day: number): number {
    return this.#rows.get(day) ?? 0;
  }

  append(events: readonly NewEvent[]): Promise<StoredEvent[]> {
    if (this.#closing) return Promise.reject(new StoreUnavailable("closed", "the store is closing"));
    if (events.length === 0) return Promise.resolve([]);
    if (this.#queuedEvents >= QUEUE_EVENTS_MAX || this.#queuedBytes >= QUEUE_BYTES_MAX) {
      this.#metrics.refused.inc({ reason: "queue_full" }, events.length);
      return Promise.reject(new StoreUnavailable("queue_full", "too many events are waiting to be stored"));
    }
    // Ids never go back, whatever the clock does.
    this.#lastArrivalMs = Math.max(this.#lastArrivalMs, this.#options.now());
    const prepared = events.map((event) => this.#prepare(event));
    const bytes = prepared.reduce((sum, event) => sum + event.text.length + event.words.length, 0);
    this.#queuedEvents += prepared.length;
    this.#queuedBytes += bytes;
    return new Promise((resolve, reject) => {
      this.#ungrouped += prepared.length;
      this.#queue.push({ events: prepared, bytes, resolve, reject });
      this.#pumpSoon();
    });
  }

  amend(amendments: readonly Amendment[]): Promise<void> {
    if (this.#closing) return Promise.reject(new StoreUnavailable("closed", "the store is closing"));
    return this.#amending.amend(amendments);
  }

  /** What arrives together is committed together: a group is gathered for as long as every turn of the loop adds to it. */
  #pumpSoon(): void {
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    let turns = 0;
    let before = 0;
    const look = () => {
      const grows = this.#ungrouped > before && this.#ungrouped < GROUP_EVENTS_FULL;
      before = this.#ungrouped;
      if (grows && ++turns < GATHER_TURNS_MAX) {
        setImmediate(look);
        return;
      }
      this.#isPumpDue = false;
      this.#pump();
    };
    setImmediate(look);
  }

  #prepare({ draft, idempotencyToken }: NewEvent): Prepared {
    const seq = ++this.#lastSeq;
    const day = startOfDay(draft.timestampMs);
    const id = makeEventId(this.#lastArrivalMs, { seq, day });
    const { text: words, truncated } = eventWords(draft);
    if (truncated) this.#metrics.truncated.inc();
    const text = eventText(id, draft);
    return { id, text, seq, day, ts: draft.timestampMs, words, token: idempotencyToken ?? null, draft };
  }

  #pump(): void {
    while (this.#queue.length > 0 && this.#mayCommit()) {
      const group: Waiting[] = [];
      let size = 0;
      while (this.#queue.length > 0 && (size === 0 || size + this.#queue[0]!.events.length <= GROUP_EVENTS_MAX)) {
        const waiting = this.#queue.shift()!;
        group.push(waiting);
        size += waiting.events.length;
      }
      this.#ungrouped -= size;
      this.#lastGroupEvents = size;
      this.#inFlight++;
      void this.#commit(group, size);
    }
    if (this.#inFlight === 0) this.#drained?.();
  }

  /** A group that waits behind another one cannot grow any more: it goes there once it is half as large, not before. */
  #mayCommit(): boolean {
    if (this.#inFlight === 0) return true;
    const enough = Math.min(this.#lastGroupEvents / 2, GROUP_EVENTS_FULL);
    return this.#inFlight < GROUPS_IN_FLIGHT_MAX && this.#ungrouped >= enough;
  }

  /**
   * Day by day: what one day's file has taken is known to every part, whatever becomes of another day's. All days go to
   * the writer at once, before the next group does: within a day, events are committed in the order of their numbers.
   */
  async #commit(group: readonly Waiting[], size: number): Promise<void> {
    const arrived = this.#arrivals.begin(group.at(-1)!.events.at(-1)!.seq);
    const refused = new Map<number, StoreUnavailable>();
    const commitDay = async (events: DayEvents) => {
      const refusal = await this.#commitDay(events);
      if (refusal) refused.set(events.group.day, refusal);
    };
    await Promise.all(groupByDay(group).map(commitDay));
    this.#metrics.groupSize.observe(size);
    this.#committedSeq = group.at(-1)!.events.at(-1)!.seq;
    const stored = group.flatMap(({ events }) => events.filter(({ day }) => !refused.has(day)));
    const lastId = stored.at(-1)?.id;
    if (lastId !== undefined && (this.#lastId === null || lastId > this.#lastId)) this.#lastId = lastId;
    arrived(stored.map(({ seq, id, text }) => ({ seq, id, text })));
    for (const waiting of group) {
      const refusal = refused.size > 0 ? waiting.events.map(({ day }) => refused.get(day)).find(Boolean) : undefined;
      if (refusal) waiting.reject(refusal);
      else waiting.resolve(waiting.events.map(({ id, text }) => ({ id, text })));
      this.#queuedEvents -= waiting.events.length;
      this.#queuedBytes -= waiting.bytes;
    }
    this.#inFlight--;
    this.#pump();
    this.#logs.checkpointIfDue();
  }

  /** Why the day's events could not be stored, if they could not. */
  async #commitDay({ group, events }: DayEvents): Promise<StoreUnavailable | undefined> {
    const { day, seqs } = group;
    try {
      const ms = await this.#writer.call("commit", group);
      this.#metrics.groupSeconds.observe(ms / 1000);
    } catch (error) {
      const refusal = notStored(error);
      this.#metrics.refused.inc({ reason: refusal.reason }, seqs.length);
      return refusal;
    }
    this.#rows.set(day, this.rowsOf(day) + seqs.length);
    this.#lastSeqs.set(day, seqs.at(-1)!);
    this.#lastWrite.set(day, this.#options.now());
    this.#logs.grew(day, seqs.length);
    this.#options.onCommit(day, events);
    return undefined;
  }

  get(day: number, seq: number): Promise<Row | undefined> {
    return this.#reader.call("find", day, seq);
  }

  /** The stored event with this token, if it came within a day. */
  async findToken(token: string): Promise<StoredEvent | undefined> {
    const since = this.#options.now() - TOKEN_LIFE_MS;
    for (const day of this.days()) {
      if (this.#lastWrite.get(day)! < since) continue;
      const text = await this.#reader.call("findToken", day, token);
      if (text === undefined) continue;
      const { id } = JSON.parse(text) as { id: string };
      if (readEventId(id)!.arrivedMs > since) return { id, text };
    }
    return undefined;
  }

  /** The ids of events with tokens that are this one, a space and a number; by the number. */
  async findTokens(token: string): Promise<Map<number, string>> {
    const since = this.#options.now() - TOKEN_LIFE_MS;
    const found = new Map<number, string>();
    for (const day of this.days()) {
      if (this.#lastWrite.get(day)! < since) continue;
      for (const { number, id } of await this.#reader.call("findTokens", day, `${token} `)) {
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
      if (isWhole && skip >= this.rowsOf(day)) {
        skip -= this.rowsOf(day);
        continue;
      }
      const part = await this.#reader.call("page", day, clip(span, day), after, skip, limit - rows.length);
      rows.push(...part);
      // A day cut by the range gave nothing for the rows it skipped: how many were there must be known.
      if (part.length === 0 && skip > 0) skip -= Math.min(skip, await this.#countWithin(day, clip(span, day), after));
      else if (part.length > 0) skip = 0;
      if (rows.length >= limit) break;
    }
    return rows;
  }

  async #countWithin(day: number, span: Span, after: ListPlace | undefined): Promise<number> {
    return this.#reader.call("countSpan", day, span, after);
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
      const found = await this.#reader.call("bodies", day, seqs, CHUNK_CHARACTERS_MAX);
      at += found.length;
      // A day that retention removed meanwhile leaves gaps.
      yield found.filter((text) => text !== undefined);
    }
  }

  textCount(search: TextSearch, span: Span): Promise<number> {
    return this.#search(async () => {
      const counts = await Promise.all(
        this.#daysOf(span).map((day, i) => this.#searcher(i).call("textCount", day, search, clip(span, day))),
      );
      return counts.reduce((sum, count) => sum + count, 0);
    });
  }

  textPage(search: TextSearch, span: Span, after: ListPlace | undefined, limit: number): Promise<ListPlace[]> {
    return this.#search(async () => {
      const places: ListPlace[] = [];
      for (const day of this.#daysOf(span)) {
        if (after && day > after.ts) continue;
        const searcher = this.#searcher(day / DAY_MS);
        places.push(...(await searcher.call("textPage", day, search, clip(span, day), after, limit - places.length)));
        if (places.length >= limit) break;
      }
      return places;
    });
  }

  textHas(terms: readonly Term[], day: number, seq: number): Promise<boolean> {
    return this.#search(() => this.#searcher(seq).call("textHas", day, terms, seq));
  }

  async #search<T>(run: () => Promise<T>): Promise<T> {
    if (this.#searches >= SEARCHES_MAX) throw new StoreUnavailable("queue_full", "too many searches are waiting");
    this.#searches++;
    try {
      return await run();
    } catch (error) {
      throw asStoreError(error);
    } finally {
      this.#searches--;
    }
  }

  #searcher(n: number): Thread<ReaderApi> {
    return this.#searchers[n % SEARCHERS]!;
  }

  get #readers(): Thread<ReaderApi>[] {
    return [this.#reader, ...this.#searchers];
  }

  async remove(day: number): Promise<number> {
    const rows = this.rowsOf(day);
    this.#rows.delete(day);
    this.#lastSeqs.delete(day);
    this.#lastWrite.delete(day);
    this.#logs.forget(day);
    await Promise.all(this.#readers.map((reader) => reader.call("forget", day)));
    await this.#writer.call("remove", day);
    return rows;
  }

  /** Rejects when a thread does not answer. */
  async check(): Promise<void> {
    await Promise.all([
      ...this.#readers.map((reader) => reader.call("summary", 0)),
      this.#writer.call("checkpoint", 0),
    ]);
  }

  /** Refuses new events, commits those accepted, then ends the threads. */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.#inFlight > 0 || this.#queue.length > 0) {
      await new Promise<void>((resolve) => {
        this.#drained = resolve;
      });
    }
    await this.#logs.close();
    await Promise.all(this.#readers.map((reader) => reader.call("close")));
    await this.#writer.call("close");
    await Promise.all([...this.#readers, this.#writer].map((thread) => thread.end()));
  }

  #daysOf(span: Span): number[] {
    return this.days().filter((day) => day < span.to && day + DAY_MS > span.from);
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

function lastWriteOf(path: string): number {
  const times = [path, `${path}-wal`].map((file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  return Math.max(...times);
}
