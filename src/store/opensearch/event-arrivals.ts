import { setTimeout as sleep } from "node:timers/promises";
import { parseExact } from "../../lib/exact-json.ts";
import { compileCondition } from "../../model/condition.ts";
import type { Event } from "../../model/event.ts";
import type { ArrivalLog, ArrivalRow } from "../ports/arrival-log.ts";
import type { Arrival, LastArrivals } from "../ports/event-engine.ts";
import { StoreUnavailable } from "../ports/store-errors.ts";
import { boundsOf } from "./event-condition.ts";
import { makePlace, readPlace, type ArrivalPlace } from "./event-place.ts";
import { ALL, both, isExact, withPartial, type Query } from "./event-query.ts";
import { textOf } from "./event-search.ts";
import { keyOf, numbered, numberOf, type EventShards } from "./event-shards.ts";

// Reads events in the order of the log of arrivals.

/** Numbers whose events are read at once. */
const NUMBERS_AT_ONCE = 500;
/** The same where most events are filtered out. */
const SCANNED_NUMBERS_AT_ONCE = 5000;
const ROWS_AT_ONCE = 200;
const YIELDED_EVENTS = 100;
/** New rows are looked for so often in case that their notice was lost. */
const LOOK_MS = 1000;
const RETRY_MS = 500;
/** How long a node waits for the one that continues the order of arrival. */
const LAST_MS_MAX = 15_000;
const LAST_LOOK_MS = 100;

export interface EventArrivalsOptions {
  readonly shards: EventShards;
  readonly arrivals: ArrivalLog;
  /** Called when this node has stored events. */
  readonly onStored?: (() => void) | undefined;
}

interface PlacedEvent {
  readonly place: string;
  readonly text: string;
}

export class EventArrivals {
  readonly #shards: EventShards;
  readonly #log: ArrivalLog;
  readonly #onStored: (() => void) | undefined;

  constructor({ shards, arrivals, onStored }: EventArrivalsOptions) {
    this.#shards = shards;
    this.#log = arrivals;
    this.#onStored = onStored;
  }

  stored(): void {
    this.#onStored?.();
  }

  follow(after: string | null, signal: AbortSignal): AsyncIterable<Arrival[]> {
    return this.#follow(after === null ? undefined : readPlace("after", after), signal);
  }

  async *#follow(after: ArrivalPlace | undefined, signal: AbortSignal): AsyncGenerator<Arrival[]> {
    const news = new Notice(this.#log);
    try {
      let next = after?.row ?? 0;
      while (!signal.aborted) {
        news.clear();
        const rows = await this.#untilAnswered(() => this.#log.rows(next, ROWS_AT_ONCE), signal);
        for (const block of blocksOf(rows, NUMBERS_AT_ONCE)) {
          const events = await this.#untilAnswered(() => this.#read(block, ALL), signal);
          const arrivals = events.filter(({ place }) => !after || isAfter(place, after)).map(arrivalOf);
          if (signal.aborted) return;
          if (arrivals.length > 0) yield arrivals;
          next = block.at(-1)!.row + 1;
        }
        if (rows.length < ROWS_AT_ONCE) await news.wait(LOOK_MS, signal);
      }
    } finally {
      news.close();
    }
  }

  /** Who follows waits while an engine is unavailable. Returns nothing once the signal aborts. */
  async #untilAnswered<T>(ask: () => Promise<readonly T[]>, signal: AbortSignal): Promise<readonly T[]> {
    while (!signal.aborted) {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || error.reason === "closed") throw error;
        await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined);
      }
    }
    return [];
  }

  async *scanLast(
    { condition, after, upTo, eventsMax }: LastArrivals,
    signal: AbortSignal,
  ): AsyncGenerator<{ arrivals: Arrival[]; isCut: boolean }> {
    const from = after === null ? undefined : readPlace("after", after);
    const end = readPlace("upTo", upTo);
    const bounds = withPartial(boundsOf(condition));
    const matches = isExact(bounds) ? () => true : compileCondition(condition);
    /** The last one first. */
    const found: PlacedEvent[] = [];
    for (let row = end.row; found.length <= eventsMax && row >= (from?.row ?? 0) && !signal.aborted;) {
      const rows = await this.#log.rowsBack(row, ROWS_AT_ONCE);
      for (const block of blocksOf(rows, SCANNED_NUMBERS_AT_ONCE)) {
        if (found.length > eventsMax || block[0]!.row < (from?.row ?? 0) || signal.aborted) break;
        const events = await this.#read(block.toReversed(), bounds.may);
        const inside = events.filter(
          ({ place, text }) =>
            !isAfter(place, end) && (!from || isAfter(place, from)) && matches(parseExact(text) as Event),
        );
        found.push(...inside.toReversed());
      }
      if (rows.length < ROWS_AT_ONCE) break;
      row = rows.at(-1)!.row - 1;
    }
    const isCut = found.length > eventsMax;
    const inOrder = found.slice(0, eventsMax).toReversed();
    for (let at = 0; at < inOrder.length && !signal.aborted; at += YIELDED_EVENTS)
      yield { arrivals: inOrder.slice(at, at + YIELDED_EVENTS).map(arrivalOf), isCut };
  }

  async lastBefore(ms: number): Promise<string | null> {
    return placeOfEnd(await this.#log.lastBefore(ms));
  }

  async lastKnown(): Promise<string | null> {
    return placeOfEnd(await this.#log.head());
  }

  /** Waits until the log has everything that was stored before the call. */
  async last(): Promise<string | null> {
    let wanted = (await this.#shards.progress()).filter(({ newest }) => newest >= 0);
    const news = new Notice(this.#log);
    const until = performance.now() + LAST_MS_MAX;
    try {
      for (;;) {
        news.clear();
        const next = new Map((await this.#log.positions()).map((position) => [keyOf(position), position.next]));
        wanted = wanted.filter((shard) => (next.get(keyOf(shard)) ?? 0) <= shard.newest);
        if (wanted.length === 0) return placeOfEnd(await this.#log.head());
        if (performance.now() > until)
          throw new StoreUnavailable("failed", "no node continues the order of arrival: try again later");
        await this.#log.request();
        await news.wait(LAST_LOOK_MS);
        // Nobody can follow a day that retention has removed meanwhile.
        const stored = new Set((await this.#shards.progress()).map(keyOf));
        wanted = wanted.filter((shard) => stored.has(keyOf(shard)));
      }
    } finally {
      news.close();
    }
  }

  /** The events of these rows, in their order. Rows of indices that were removed have none. */
  async #read(rows: readonly ArrivalRow[], filter: Query): Promise<PlacedEvent[]> {
    const groups = [...Map.groupBy(rows, ({ incarnation, shard }) => `${incarnation} ${shard}`).values()];
    const searches = groups.map((group) => {
      const first = Math.min(...group.map((row) => row.first));
      const last = Math.max(...group.map((row) => row.last));
      const size = group.reduce((sum, row) => sum + row.last - row.first + 1, 0);
      const query = both(numbered(first, last), filter);
      return { on: group[0]!, body: { query, size, track_total_hits: false, seq_no_primary_term: true } };
    });
    const answers = await this.#shards.searchMany(searches);
    // If an index has the same incarnation after the search, the search has seen that one.
    const incarnations = await this.#shards.incarnations(rows.map(({ index }) => index));
    const placed: PlacedEvent[] = [];
    for (const [nth, group] of groups.entries()) {
      if (incarnations.get(group[0]!.index) !== group[0]!.incarnation) continue;
      for (const hit of answers[nth]?.hits.hits ?? []) {
        const number = numberOf(hit);
        const row = group.find(({ first, last }) => number >= first && number <= last);
        if (row) placed.push({ place: makePlace(row.atMs, row.row, number), text: textOf(hit) });
      }
    }
    return placed.sort((a, b) => (a.place < b.place ? -1 : 1));
  }
}

/** The place of the last event of a row. */
function placeOfEnd(row: ArrivalRow | null): string | null {
  return row && makePlace(row.atMs, row.row, row.last);
}

function arrivalOf({ place, text }: PlacedEvent): Arrival {
  return { place, text, id: (parseExact(text) as Event).id };
}

function isAfter(place: string, { row, number }: ArrivalPlace): boolean {
  const own = readPlace("place", place);
  return own.row > row || (own.row === row && own.number > number);
}

/** Rows whose events are read at once. */
function* blocksOf(rows: readonly ArrivalRow[], numbersMax: number): Generator<ArrivalRow[]> {
  let block: ArrivalRow[] = [];
  let numbers = 0;
  for (const row of rows) {
    const own = row.last - row.first + 1;
    if (block.length > 0 && numbers + own > numbersMax) {
      yield block;
      block = [];
      numbers = 0;
    }
    block.push(row);
    numbers += own;
  }
  if (block.length > 0) yield block;
}

/** Remembers that rows were added since the last look. */
class Notice {
  readonly close: () => void;
  #isNew = false;
  #wake: (() => void) | undefined;

  constructor(log: ArrivalLog) {
    this.close = log.listen("added", () => {
      this.#isNew = true;
      this.#wake?.();
    });
  }

  clear(): void {
    this.#isNew = false;
  }

  async wait(ms: number, signal?: AbortSignal): Promise<void> {
    if (this.#isNew) return;
    const stop = new AbortController();
    this.#wake = () => stop.abort();
    const signals = signal ? [signal, stop.signal] : [stop.signal];
    await sleep(ms, undefined, { signal: AbortSignal.any(signals) }).catch(() => undefined);
    this.#wake = undefined;
  }
}
