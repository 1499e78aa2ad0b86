import type { Thread } from "../../lib/thread.ts";
import type { CommittedRows } from "../duckdb/columns/journal-follower.ts";
import { RowPacker } from "../duckdb/columns/packed-rows.ts";
import type { ColumnsApi } from "../duckdb/columns/columns-thread.ts";
import type { Prepared } from "../sqlite/journal/commit-group.ts";

/** Rows in flight to the columns. Past the limit the columns get only the range of new rows, and read the journal. */
const ROWS_IN_FLIGHT_MAX = 20_000;
const CHARACTERS_IN_FLIGHT_MAX = 64 * 1024 * 1024;
/**
 * Characters of an event that is packed in the main thread. A larger one may have thousands of fields and would hold up other
 * requests: the columns' thread reads it from the journal.
 */
const EVENT_CHARACTERS_MAX = 64 * 1024;
const SEND_MS = 20;

/**
 * Sends committed rows from the journal to the columns: at short intervals and before every query, so that small commits do
 * not cost a message each.
 */
export class ColumnFeed {
  readonly #columns: Thread<ColumnsApi>;
  readonly #packer = new RowPacker();
  readonly #ready: CommittedRows[] = [];
  /** The day of the rows being packed, and the first and last of them. */
  #day = 0;
  #firstSeq = 0;
  #lastSeq = 0;
  #timer: NodeJS.Timeout | undefined;
  #inFlight: Load = { rows: 0, characters: 0 };
  /** The part of `#inFlight` that has not been sent yet. */
  #unsent: Load = { rows: 0, characters: 0 };

  constructor(columns: Thread<ColumnsApi>) {
    this.#columns = columns;
  }

  add(day: number, events: readonly Prepared[]): void {
    const load = { rows: events.length, characters: events.reduce((sum, { text }) => sum + text.length, 0) };
    this.#inFlight = plus(this.#inFlight, load);
    this.#unsent = plus(this.#unsent, load);
    const { rows, characters } = this.#inFlight;
    const isLarge = events.some(({ text }) => text.length > EVENT_CHARACTERS_MAX);
    if (isLarge || rows > ROWS_IN_FLIGHT_MAX || characters > CHARACTERS_IN_FLIGHT_MAX) {
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
    this.#timer ??= setTimeout(() => this.send(), SEND_MS);
  }

  #seal(): void {
    if (this.#packer.length === 0) return;
    const packed = this.#packer.take();
    const [day, firstSeq, lastSeq] = [this.#day, this.#firstSeq, this.#lastSeq];
    this.#ready.push({ day, firstSeq, lastSeq, rows: packed.length, packed });
  }

  /** Announces amendments. The rows that they change are sent first. */
  amended(day: number, lastAmendment: number): void {
    this.send();
    void this.#columns.call("amended", day, lastAmendment);
  }

  send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#seal();
    if (this.#ready.length === 0) return;
    const batches = this.#ready.splice(0);
    const { rows, characters } = this.#unsent;
    this.#unsent = { rows: 0, characters: 0 };
    const buffers = batches.flatMap(({ packed }) => (packed ? [packed.fixed, packed.texts.buffer] : []));
    void this.#columns.callWith(buffers, "committed", batches).finally(() => {
      this.#inFlight = plus(this.#inFlight, { rows: -rows, characters: -characters });
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
