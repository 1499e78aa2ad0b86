import { DAY_MS } from "../../lib/time.ts";
import type { ArrivalRow } from "../ports/arrival-log.ts";
import { keyOf, type ShardProgress } from "./event-shards.ts";

// The order of arrival of events that were written as a whole. Shards have numbered them in the order in which they were written;
// the log interleaves the shards by the times of arrival.

/** Events of this time are a row of each shard. */
const SLICE_MS = 60_000;
/** Numbers in one row, as the log has them otherwise. */
const ROW_NUMBERS_MAX = 500;
/** The log forgets rows after eight days. Those that detection needs must stay long enough to be read. */
const UNPROCESSED_MS_MAX = 6 * DAY_MS;

export interface ShardNumbers {
  readonly number: number;
  readonly arrivedMs: number;
}

export interface WrittenOrderOptions {
  readonly shards: readonly ShardProgress[];
  /** The last number of each shard at each mark and, last, at the end. */
  readonly ends: readonly ReadonlyMap<string, number>[];
  /** How many of them precede the events that detection has not processed yet. */
  readonly processed: number;
  /** Processed events that arrived earlier are left out. */
  readonly fromMs: number;
  readonly now: number;
  /** The first numbers from one to another, of events that arrived since a time. Empty at the end. */
  readonly read: (shard: ShardProgress, first: number, last: number, since: number) => Promise<readonly ShardNumbers[]>;
}

/** `endOf`: for each of the ends, how many rows precede it. */
export async function writtenOrder(
  options: WrittenOrderOptions,
): Promise<{ rows: ArrivalRow[]; endOf: readonly number[] }> {
  const { shards, ends, processed, fromMs, now, read } = options;
  const rows: ArrivalRow[] = [];
  const endOf: number[] = [];
  const reached = new Map<string, number>();
  let atMs = 0;
  for (const [part, end] of ends.entries()) {
    const isProcessed = part < processed;
    const readers = shards.map((shard) => {
      const last = end.get(keyOf(shard)) ?? -1;
      const first = (reached.get(keyOf(shard)) ?? -1) + 1;
      reached.set(keyOf(shard), Math.max(last, first - 1));
      const since = isProcessed ? fromMs : 0;
      return new NumberReader(shard, first, last, (from) => read(shard, from, last, since));
    });
    for (;;) {
      for (const reader of readers) await reader.fill();
      const open = readers.filter((reader) => reader.head !== undefined);
      if (open.length === 0) break;
      const until = Math.min(...open.map(({ head }) => head!.arrivedMs)) + SLICE_MS;
      for (const reader of open) {
        const taken = reader.take(until);
        if (taken.length === 0) continue;
        const latest = taken.reduce((most, { arrivedMs }) => Math.max(most, arrivedMs), 0);
        atMs = Math.max(atMs, latest, isProcessed ? 0 : now - UNPROCESSED_MS_MAX);
        const { index, incarnation, shard } = reader.shard;
        const [first, last] = [taken[0]!.number, taken.at(-1)!.number];
        rows.push({ row: rows.length + 1, atMs, index, incarnation, shard, first, last });
      }
    }
    endOf.push(rows.length);
  }
  return { rows, endOf };
}

/** Reads the numbers of a shard page by page. */
class NumberReader {
  readonly shard: ShardProgress;
  readonly #read: (from: number) => Promise<readonly ShardNumbers[]>;
  readonly #last: number;
  #next: number;
  #page: readonly ShardNumbers[] = [];
  #at = 0;

  constructor(
    shard: ShardProgress,
    first: number,
    last: number,
    read: (from: number) => Promise<readonly ShardNumbers[]>,
  ) {
    this.shard = shard;
    this.#next = first;
    this.#last = last;
    this.#read = read;
  }

  get head(): ShardNumbers | undefined {
    return this.#page[this.#at];
  }

  async fill(): Promise<void> {
    if (this.head || this.#next > this.#last) return;
    this.#page = await this.#read(this.#next);
    this.#at = 0;
    this.#next = (this.#page.at(-1)?.number ?? this.#last) + 1;
  }

  /** The next ones that arrived before this time and fit into a row. */
  take(untilMs: number): readonly ShardNumbers[] {
    const first = this.head!.number;
    const start = this.#at;
    while (this.head && this.head.arrivedMs < untilMs && this.head.number - first < ROW_NUMBERS_MAX) this.#at++;
    return this.#page.slice(start, this.#at);
  }
}
