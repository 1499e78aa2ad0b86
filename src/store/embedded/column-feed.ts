import type { Thread } from "../../lib/thread.ts";
import type { CommittedRows } from "../duckdb/columns/journal-follower.ts";
import { RowPacker } from "../duckdb/columns/packed-rows.ts";
import type { ColumnsApi } from "../duckdb/columns/columns-thread.ts";
import type { Prepared } from "../sqlite/journal/commit-group.ts";

/** Rows that may be on their way to the columns; beyond that they are told only how far the journal goes, and read it. */
const ROWS_ON_THEIR_WAY_MAX = 20_000;
const CHARACTERS_ON_THEIR_WAY_MAX = 64 * 1024 * 1024;
/**
 * Characters of an event that is made a row in the main thread. A larger one may have thousands of fields: the columns' own
 * thread reads it from the journal, while others have their requests answered here.
 */
const EVENT_CHARACTERS_MAX = 64 * 1024;
const TELL_MS = 20;

/**
 * Tells the columns what the journal has committed: now and then, and always before a question is put to them, so that
 * small commits do not cost a message each.
 */
export class ColumnFeed {
  readonly #columns: Thread<ColumnsApi>;
  readonly #packer = new RowPacker();
  readonly #ready: CommittedRows[] = [];
  /** The day of the rows that are being packed, and the first and the last of them. */
  #day = 0;
  #firstSeq = 0;
  #lastSeq = 0;
  #timer: NodeJS.Timeout | undefined;
  #onTheirWay: Load = { rows: 0, characters: 0 };
  /** Of these, what is yet to be told. */
  #untold: Load = { rows: 0, characters: 0 };

  constructor(columns: Thread<ColumnsApi>) {
    this.#columns = columns;
  }

  add(day: number, events: readonly Prepared[]): void {
    const load = { rows: events.length, characters: events.reduce((sum, { text }) => sum + text.length, 0) };
    this.#onTheirWay = plus(this.#onTheirWay, load);
    this.#untold = plus(this.#untold, load);
    const { rows, characters } = this.#onTheirWay;
    const isLarge = events.some(({ text }) => text.length > EVENT_CHARACTERS_MAX);
    if (isLarge || rows > ROWS_ON_THEIR_WAY_MAX || characters > CHARACTERS_ON_THEIR_WAY_MAX) {
      this.#seal();
      const [firstSeq, lastSeq] = [events[0]!.seq, events.at(-1)!.seq];
      this.#ready.push({ day, firstSeq, lastSeq, rows: events.length, packed: undefined });
    } else {
      if (day !== this.#day) this.#seal();
      this.#day = day;
      for (const { seq, ts, draft } of events) {
        if (this.#packer.isFull) this.#seal();
        if (this.#packer.length === 0) this.#firstSeq = seq;
        this.#packer.add(seq, ts, draft);
        this.#lastSeq = seq;
      }
    }
    this.#timer ??= setTimeout(() => this.tell(), TELL_MS);
  }

  #seal(): void {
    if (this.#packer.length === 0) return;
    const packed = this.#packer.take();
    const [day, firstSeq, lastSeq] = [this.#day, this.#firstSeq, this.#lastSeq];
    this.#ready.push({ day, firstSeq, lastSeq, rows: packed.length, packed });
  }

  /** What it was told to change it must have been told of before. */
  amended(day: number, lastAmendment: number): void {
    this.tell();
    void this.#columns.call("amended", day, lastAmendment);
  }

  tell(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#seal();
    if (this.#ready.length === 0) return;
    const told = this.#ready.splice(0);
    const { rows, characters } = this.#untold;
    this.#untold = { rows: 0, characters: 0 };
    const buffers = told.flatMap(({ packed }) => (packed ? [packed.fixed, packed.texts.buffer] : []));
    void this.#columns.callWith(buffers, "committed", told).finally(() => {
      this.#onTheirWay = plus(this.#onTheirWay, { rows: -rows, characters: -characters });
    });
  }
}

interface Load {
  readonly rows: number;
  readonly characters: number;
}

function plus(one: Load, other: Load): Load {
  return { rows: one.rows + other.rows, characters: one.characters + other.characters };
}
