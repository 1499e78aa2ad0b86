import type { Thread } from "../../lib/thread.ts";
import type { CommittedRows } from "./columns/follower.ts";
import { RowsPacker } from "./columns/rows.ts";
import type { ColumnsApi } from "./columns/worker.ts";
import type { Prepared } from "./journal/group.ts";

/** Rows that may be on their way to the columns; beyond that they are told only how far the journal goes, and read it. */
const ROWS_ON_THEIR_WAY_MAX = 20_000;
/**
 * Characters of an event, and of a group, that are made rows in the main thread. What is larger may have thousands of
 * fields: the columns' own thread reads it from the journal, while others have their requests answered here.
 */
export const EVENT_CHARACTERS_MAX = 64 * 1024;
const GROUP_CHARACTERS_MAX = 1024 * 1024;
const TELL_MS = 20;

/**
 * Tells the columns what the journal has committed: now and then, and always before a question is put to them, so that
 * small commits do not cost a message each.
 */
export class CommitNews {
  readonly #columns: Thread<ColumnsApi>;
  readonly #packer = new RowsPacker();
  readonly #ready: CommittedRows[] = [];
  /** The day of the rows that are being packed, and the first and the last of them. */
  #day = 0;
  #firstSeq = 0;
  #lastSeq = 0;
  #timer: NodeJS.Timeout | undefined;
  #onTheirWay = 0;

  constructor(columns: Thread<ColumnsApi>) {
    this.#columns = columns;
  }

  add(day: number, events: readonly Prepared[]): void {
    this.#onTheirWay += events.length;
    if (this.#onTheirWay > ROWS_ON_THEIR_WAY_MAX || isLarge(events)) {
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
    const rows = told.reduce((sum, part) => sum + part.rows, 0);
    const buffers = told.flatMap(({ packed }) => (packed ? [packed.fixed, packed.texts.buffer] : []));
    void this.#columns.callWith(buffers, "committed", told).finally(() => {
      this.#onTheirWay -= rows;
    });
  }
}

function isLarge(events: readonly Prepared[]): boolean {
  let characters = 0;
  for (const { text } of events) {
    if (text.length > EVENT_CHARACTERS_MAX) return true;
    characters += text.length;
  }
  return characters > GROUP_CHARACTERS_MAX;
}
