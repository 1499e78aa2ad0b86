import { statSync } from "node:fs";
import type { Registry } from "prom-client";
import { endingProcess, Thread } from "../../../lib/thread.ts";
import { startOfDay } from "../../../lib/time.ts";
import type { Amendment, NewEvent, StoredEvent } from "../../ports/event-engine.ts";
import { StoreUnavailable } from "../../ports/store-errors.ts";
import { makeEventId, readEventId } from "../../files/event-id.ts";
import { dayFile, listDays, type Layout } from "../../files/layout.ts";
import type { Used } from "../state-database.ts";
import { notStored } from "../../files/store-failure.ts";
import type { GoneFile } from "../../files/file-identity.ts";
import { eventWords } from "../../search/indexed-words.ts";
import { Amendments } from "./amendments.ts";
import { Arrivals, type NumberedArrival } from "./arrivals.ts";
import { Days } from "./journal-days.ts";
import { eventText } from "../../files/event-text.ts";
import { groupByDay, type DayEvents, type Prepared, type PendingAppend } from "./commit-group.ts";
import type { CheckpointerApi } from "./checkpointer-thread.ts";
import { WriteAheadLogs } from "./write-ahead-logs.ts";
import { journalMetrics, type JournalMetrics } from "./journal-metrics.ts";
import { JournalQueries } from "./journal-queries.ts";
import type { WriterApi } from "./journal-writer-thread.ts";
import type { DayEnd } from "./journal-days.ts";

// The journal: events in SQLite day files. Appends are collected into groups; one thread commits them, others read
// (journal-queries.ts).

const GROUP_EVENTS_MAX = 1000;
const GROUP_EVENTS_FULL = GROUP_EVENTS_MAX / 2;
/** A group is in memory four times: here, in the message, in the writer and in the file's cache. */
const GROUP_BYTES_MAX = 8 * 1024 * 1024;
const GATHER_TURNS_MAX = 8;
const QUEUE_EVENTS_MAX = 20_000;
const QUEUE_BYTES_MAX = 64 * 1024 * 1024;
/** Two, so that the writer always has its next group queued. */
const GROUPS_IN_FLIGHT_MAX = 2;

export interface JournalOptions {
  readonly layout: Layout;
  readonly registry: Registry;
  readonly now: () => number;
  /** The last sequence number and time of arrival in use, even if their events are gone. */
  readonly used: Used;
  /** Called for each committed group, in order, before its senders get their answer. */
  readonly onCommit: (day: number, events: readonly Prepared[]) => void;
  /** Called for each day with amended events, before the caller gets its answer. */
  readonly onAmend: (day: number, lastAmendment: number) => void;
}

export async function openJournal(options: JournalOptions): Promise<Journal> {
  const journal = new Journal(options);
  try {
    await journal.load();
    return journal;
  } catch (error) {
    // Its threads would keep the process alive.
    await journal.close();
    throw error;
  }
}

export class Journal {
  readonly #options: JournalOptions;
  readonly #writer: Thread<WriterApi>;
  readonly #logs: WriteAheadLogs;
  readonly #days = new Days();
  readonly queries: JournalQueries;
  readonly #metrics: JournalMetrics;
  readonly #queue: PendingAppend[] = [];
  #queuedEvents = 0;
  #queuedBytes = 0;
  /** Queued events that are in no group yet. */
  #ungrouped = 0;
  #lastGroupEvents = 0;
  #inFlight = 0;
  #isPumpDue = false;
  #lastSeq = 0;
  #lastArrivalMs = 0;
  #committedSeq = 0;
  #lastId: string | null = null;
  #arrivals!: Arrivals;
  #amending!: Amendments;
  #closing = false;
  #drained: (() => void) | undefined;

  constructor(options: JournalOptions) {
    this.#options = options;
    const onDeath = endingProcess("a thread of the journal");
    const urlOf = (file: string) => new URL(file, import.meta.url);
    this.#writer = new Thread(urlOf("./journal-writer-thread.ts"), options.layout, onDeath);
    this.queries = new JournalQueries({ ...options, days: this.#days, onDeath });
    this.#metrics = journalMetrics(options.registry, this);
    const newCheckpointer = () =>
      new Thread<CheckpointerApi>(urlOf("./checkpointer-thread.ts"), options.layout, onDeath);
    this.#logs = new WriteAheadLogs(options.layout, this.#writer, newCheckpointer, () =>
      this.#metrics.checkpointFailures.inc(),
    );
  }

  async load(): Promise<void> {
    const days = listDays(this.#options.layout);
    const summaries = await Promise.all(days.map((day) => this.queries.summary(day)));
    for (const [i, { isCurrent }] of summaries.entries()) {
      if (!isCurrent) await this.#writer.call("upgrade", days[i]!);
    }
    this.#lastSeq = this.#options.used.seq;
    this.#lastArrivalMs = this.#options.used.arrivedMs;
    for (const [i, { rows, lastSeq, lastPlace, lastAmendment }] of summaries.entries()) {
      const writtenAt = lastWriteOf(dayFile(this.#options.layout, days[i]!));
      this.#days.grew(days[i]!, { rows, lastSeq, writtenAt });
      this.dayEnds.push({ day: days[i]!, rows, lastSeq, lastAmendment });
      if (lastSeq <= this.#lastSeq) continue;
      this.#lastSeq = lastSeq;
      this.#lastId = lastPlace!;
      this.#lastArrivalMs = Math.max(this.#lastArrivalMs, readEventId(lastPlace!)!.arrivedMs);
    }
    this.#committedSeq = this.#lastSeq;
    this.#lastId ??= this.#lastSeq > 0 ? makeEventId(this.#lastArrivalMs, { seq: this.#lastSeq, day: 0 }) : null;
    this.#arrivals = new Arrivals(this.#lastSeq, (...args) => this.queries.arrivals(...args));
    this.#amending = new Amendments({
      writer: this.#writer,
      arrivals: this.#arrivals,
      hasDay: (day) => this.#days.has(day),
      onAmend: (day, amended) => {
        this.#logs.grew(day, amended.count);
        this.#options.onAmend(day, amended.lastAmendment);
        this.#logs.checkpointIfDue();
      },
    });
    this.#logs.truncateLarge(days);
  }

  get queuedEvents(): number {
    return this.#queuedEvents;
  }

  /** The last sequence number and time of arrival in use; the next id must be higher. */
  get used(): Used {
    return { seq: this.#lastSeq, arrivedMs: this.#lastArrivalMs };
  }

  get committedSeq(): number {
    return this.#committedSeq;
  }

  /** The id of the last stored event by arrival. If retention has removed that event, an id that sorts like it. */
  get lastId(): string | null {
    return this.#lastId;
  }

  /** Stored events after this sequence number in the order of arrival, then new ones. */
  follow(after: number, signal: AbortSignal): AsyncIterable<NumberedArrival[]> {
    return this.#arrivals.follow(after, signal);
  }

  /** Days that have events, newest first. */
  days(): readonly number[] {
    return this.#days.list();
  }

  count(): number {
    return this.#days.count();
  }

  /** The end of each day at the start. */
  readonly dayEnds: DayEnd[] = [];

  append(events: readonly NewEvent[]): Promise<StoredEvent[]> {
    if (this.#closing) return Promise.reject(new StoreUnavailable("closed", "the store is closing"));
    if (events.length === 0) return Promise.resolve([]);
    if (this.#queuedEvents >= QUEUE_EVENTS_MAX || this.#queuedBytes >= QUEUE_BYTES_MAX) {
      this.#metrics.refused.inc({ reason: "queue_full" }, events.length);
      return Promise.reject(new StoreUnavailable("queue_full", "too many events are waiting to be stored"));
    }
    // Ids never go back, even if the clock does.
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

  /** Events that arrive together are committed together: a group grows as long as every turn of the event loop adds to it. */
  #pumpSoon(): void {
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    let turns = 0;
    let before = 0;
    const pumpUnlessGrowing = () => {
      const grows = this.#ungrouped > before && this.#ungrouped < GROUP_EVENTS_FULL;
      before = this.#ungrouped;
      if (grows && ++turns < GATHER_TURNS_MAX) {
        setImmediate(pumpUnlessGrowing);
        return;
      }
      this.#isPumpDue = false;
      this.#pump();
    };
    setImmediate(pumpUnlessGrowing);
  }

  #prepare({ draft, idempotencyToken }: NewEvent): Prepared {
    const seq = ++this.#lastSeq;
    const day = startOfDay(draft.timestampMs);
    const id = makeEventId(this.#lastArrivalMs, { seq, day });
    const { text: words, truncated } = eventWords(draft, draft.timestampMs);
    if (truncated) this.#metrics.truncated.inc();
    const text = eventText(id, draft);
    return { id, text, seq, day, ts: draft.timestampMs, words, token: idempotencyToken ?? null, draft };
  }

  #pump(): void {
    while (this.#queue.length > 0 && this.#mayCommit()) {
      const group: PendingAppend[] = [];
      let size = 0;
      let bytes = 0;
      for (let next = this.#queue[0]; next; next = this.#queue[0]) {
        const isFull = size + next.events.length > GROUP_EVENTS_MAX || bytes + next.bytes > GROUP_BYTES_MAX;
        if (isFull && size > 0) break;
        group.push(next);
        size += next.events.length;
        bytes += next.bytes;
        this.#queue.shift();
      }
      this.#ungrouped -= size;
      this.#lastGroupEvents = size;
      this.#inFlight++;
      void this.#commit(group, size);
    }
    if (this.#inFlight === 0) this.#drained?.();
  }

  /** A group behind another in flight cannot grow any more, so it is sent only once it is half as large as that one. */
  #mayCommit(): boolean {
    if (this.#inFlight === 0) return true;
    const enough = Math.min(this.#lastGroupEvents / 2, GROUP_EVENTS_FULL);
    return this.#inFlight < GROUPS_IN_FLIGHT_MAX && this.#ungrouped >= enough;
  }

  /**
   * Commits a group day by day, so that a failure of one day does not affect another. All days go to the writer before the
   * next group does: within a day, events are committed in the order of their sequence numbers.
   */
  async #commit(group: readonly PendingAppend[], size: number): Promise<void> {
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
    arrived(stored.map(({ seq, id, text }) => ({ seq, id, text, place: id })));
    for (const append of group) {
      const refusal = refused.size > 0 ? append.events.map(({ day }) => refused.get(day)).find(Boolean) : undefined;
      if (refusal) append.reject(refusal);
      else append.resolve(append.events.map(({ id, text }) => ({ id, text })));
      this.#queuedEvents -= append.events.length;
      this.#queuedBytes -= append.bytes;
    }
    this.#inFlight--;
    this.#pump();
    this.#logs.checkpointIfDue();
  }

  /** Returns the reason if the day's events could not be stored. */
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
    this.#days.grew(day, { rows: seqs.length, lastSeq: seqs.at(-1)!, writtenAt: this.#options.now() });
    this.#logs.grew(day, seqs.length);
    this.#options.onCommit(day, events);
    return undefined;
  }

  /** Returns the number of events that are gone. Events that arrive afterwards begin the day anew. */
  async remove(day: number): Promise<number> {
    const rows = this.#days.remove(day);
    this.#logs.dropDay(day);
    await this.queries.closeDay(day);
    await this.#writer.call("remove", day);
    // Events that the writer committed before the removal.
    const late = this.#days.remove(day);
    if (late > 0) await this.queries.closeDay(day);
    return rows + late;
  }

  /** Days whose files were removed or replaced since they were opened. */
  goneFiles(): Promise<GoneFile[]> {
    return this.#writer.call("gone");
  }

  /** Rejects when a thread does not answer. */
  async check(): Promise<void> {
    await Promise.all([this.queries.check(), this.#writer.call("checkpoint", 0)]);
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
    await this.queries.close();
    try {
      await this.#writer.call("close");
    } finally {
      await this.#writer.end();
    }
  }
}

function lastWriteOf(path: string): number {
  const times = [path, `${path}-wal`].map((file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  return Math.max(...times);
}
