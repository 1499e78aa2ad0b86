import { setImmediate as nextTurn } from "node:timers/promises";
import type { DuckDBConnection } from "@duckdb/node-api";
import { parseExact } from "../../../lib/exact-json.ts";
import { DAY_MS } from "../../../lib/time.ts";
import { SerialQueue } from "../../../lib/serial-queue.ts";
import type { Event } from "../../../model/event.ts";
import { onFile } from "../../files/store-failure.ts";
import type { DayReaders } from "../../sqlite/journal/day-file.ts";
import { VECTOR_ROWS } from "../vectors/vector-layout.ts";
import { readAmended, type AmendedRows } from "./amended-rows.ts";
import type { ColumnEngine } from "./column-engine.ts";
import { EntityBacklogReader } from "./entity-backlog.ts";
import { FieldColumnFiller } from "./field-column-filler.ts";
import { recountDay } from "./entity-table.ts";
import { MEMTABLE_ROWS_MAX, openMemtables, type Memtables } from "./memtables.ts";
import { RowPacker, type PackedRows } from "./packed-rows.ts";
import type { DayEnd } from "../../sqlite/journal/journal-days.ts";

// Copies committed events from the journal into the columns. For each day it tracks the end of the journal, and the position
// up to which it has read.

/** Characters that are read from the journal at a time, regardless of the number of rows. */
const READ_CHARACTERS_MAX = 8 * 1024 * 1024;

/** Consecutive events of one day that the journal has committed. */
export interface CommittedRows {
  readonly day: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly rows: number;
  /** The rows of one or several commit groups; undefined when they have to be read from the journal. */
  readonly packed: PackedRows | undefined;
}

export interface JournalFollowerOptions {
  readonly engine: ColumnEngine;
  readonly journal: DayReaders;
  readonly days: readonly DayEnd[];
  readonly memtableRowsMax?: number | undefined;
}

export async function openJournalFollower({
  engine,
  journal,
  days,
  memtableRowsMax = MEMTABLE_ROWS_MAX,
}: JournalFollowerOptions): Promise<JournalFollower> {
  const writer = await engine.instance.connect();
  const start = await dropRowsNotInJournal(writer, engine, days);
  const amended = new Map(
    days.map(({ day, lastAmendment }) => [
      day,
      // Events that have yet to be read are read with their amendments.
      start.read.has(day) ? (engine.amended.get(day) ?? 0) : lastAmendment,
    ]),
  );
  const memtables = await openMemtables({
    engine,
    writer,
    memtableRowsMax,
    amended,
    onLost: (rows, startedAfter) => follower.readAgain(rows, startedAfter),
  });
  const follower = new JournalFollower(engine, journal, memtables, start, days);
  return follower;
}

export class JournalFollower {
  readonly #journal: DayReaders;
  readonly memtables: Memtables;
  readonly entityBacklog: EntityBacklogReader;
  readonly fieldFiller: FieldColumnFiller;
  /** For each day, the last sequence number that the journal is known to have. */
  readonly #committed: Map<number, number>;
  /** For each day, the last sequence number that has been read. */
  readonly #read: Map<number, number>;
  /** For each day, the last amendment that the journal is known to have. */
  readonly #amended: Map<number, number>;
  /** For each day, rows that came along with a commit and have not been appended yet. */
  readonly #packed = new Map<number, { after: number; lastSeq: number; rows: PackedRows }[]>();
  #packer = new RowPacker();
  readonly #queue = new SerialQueue();
  /** The irregular bits of all rows. */
  irregularBits: number;
  /** Days that are read again because the columns had more or fewer rows than the journal. */
  readonly mismatchedDays: readonly number[];
  /** Days of which the journal has lost rows that the columns had, and how many. */
  readonly lost: readonly (readonly [day: number, rows: number])[];
  /** Rows that the journal has and the columns do not have yet. */
  lag = 0;
  /** Rows that came from the journal since the start. */
  rowsRead = 0;
  /** Of these, rows that are too large for the `rest` column. */
  rowsOversized = 0;

  constructor(
    engine: ColumnEngine,
    journal: DayReaders,
    memtables: Memtables,
    start: StartPosition,
    days: readonly DayEnd[],
  ) {
    this.#journal = journal;
    this.memtables = memtables;
    this.entityBacklog = new EntityBacklogReader(journal, memtables);
    this.fieldFiller = new FieldColumnFiller(memtables);
    this.#read = start.read;
    this.mismatchedDays = start.mismatchedDays;
    this.lost = start.lost;
    this.irregularBits = engine.irregularBits;
    this.#committed = new Map(days.map(({ day, lastSeq }) => [day, lastSeq]));
    this.#amended = new Map(days.map(({ day, lastAmendment }) => [day, lastAmendment]));
  }

  /** Rows that were lost from memory are read again, for each day after the given sequence number. */
  readAgain(rows: number, startedAfter: ReadonlyMap<number, number>): void {
    for (const [day, seq] of startedAfter) if (this.#read.has(day)) this.#read.set(day, seq);
    this.lag += rows;
  }

  /** The journal has committed more events. Rows that come along need not be read from it. */
  noteCommitted(committed: readonly CommittedRows[]): void {
    for (const { day, firstSeq, lastSeq, rows, packed } of committed) {
      this.#committed.set(day, Math.max(this.#committed.get(day) ?? 0, lastSeq));
      this.lag += rows;
      if (!packed) continue;
      // Numbers between these rows and the previous ones belong to other days; if not, the journal has those rows.
      const part = { after: firstSeq - 1, lastSeq, rows: packed };
      const parts = this.#packed.get(day);
      if (parts) parts.push(part);
      else this.#packed.set(day, [part]);
    }
  }

  /** The journal has amended events of a day that it had committed before. */
  noteAmended(day: number, lastAmendment: number): void {
    // A day that was just removed has nothing to amend.
    if (this.#committed.has(day)) this.#amended.set(day, lastAmendment);
  }

  /** Resolves when queries see everything that was noted before the call. */
  catchUp(): Promise<void> {
    // A failure rejects this call; the next call retries.
    return this.#queue.take(() => this.#catchUp());
  }

  /** Runs `work` while no rows are added, amended or removed. */
  exclusively(work: () => Promise<void>): Promise<void> {
    return this.#queue.take(() => this.memtables.exclusively(work));
  }

  /** Resolves when nothing is running in the background, and nothing will be. */
  async stopBackgroundWork(): Promise<void> {
    await Promise.all([this.entityBacklog.stop(), this.fieldFiller.stop()]);
  }

  async #catchUp(): Promise<void> {
    // Amendments that are noted during the copy may be to rows that are not here yet.
    const amended = [...this.#amended];
    for (const [day, end] of [...this.#committed].sort(([a], [b]) => a - b)) {
      for (let at = this.#read.get(day) ?? 0; at < end; at = this.#read.get(day)!) {
        await this.memtables.rotateIfFull();
        const { rows, last } = this.#nextRows(day, at, end);
        this.irregularBits |= rows.irregularBits;
        this.#read.set(day, last);
        if (rows.length > 0) await this.memtables.append({ rows, day, after: at, last });
        this.rowsOversized += rows.oversized;
        this.lag = Math.max(0, this.lag - rows.length);
        this.rowsRead += rows.length;
        // Queries and messages get a turn.
        await nextTurn();
      }
    }
    await this.memtables.publish();
    // Rows of a removed day never arrive.
    if (this.#isCaughtUp()) this.lag = 0;
    for (const [day, upTo] of amended) {
      while (this.memtables.amendedUpTo(day) < upTo)
        await this.memtables.amend(day, (after) => this.#readAmended(day, after, upTo));
    }
  }

  #isCaughtUp(): boolean {
    return this.#committed.entries().every(([day, end]) => (this.#read.get(day) ?? 0) >= end);
  }

  #readAmended(day: number, after: number, upTo: number): AmendedRows {
    const reader = this.#journal.get(day);
    // Retention has removed the day in the meantime.
    if (!reader) return { rows: new RowPacker().take(), number: upTo };
    const amended = onFile(this.#journal.pathOf(day), () => readAmended(reader, after, upTo));
    this.irregularBits |= amended.rows.irregularBits;
    return amended;
  }

  /** The next rows of a day, at most one vector: those that came with a commit, otherwise from the journal. */
  #nextRows(day: number, after: number, upTo: number): { rows: PackedRows; last: number } {
    const parts = this.#packed.get(day) ?? [];
    // A part that was read partially from the journal is read from there to its end.
    while (parts.length > 0 && parts[0]!.after < after) parts.shift();
    if (parts[0]?.after !== after) return this.#readRows(day, after, Math.min(upTo, parts[0]?.after ?? upTo));
    const { rows, lastSeq } = parts.shift()!;
    return { rows, last: lastSeq };
  }

  #readRows(day: number, after: number, upTo: number): { rows: PackedRows; last: number } {
    const select = this.#journal
      .get(day)
      ?.sql(`SELECT seq, ts, body FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ${VECTOR_ROWS}`);
    select?.setReturnArrays(true);
    let last = after;
    let characters = 0;
    try {
      onFile(this.#journal.pathOf(day), () => {
        for (const row of select?.iterate(after, upTo) ?? []) {
          const [seq, ts, body] = row as unknown as [number, number, string];
          this.#packer.add(seq, ts, parseExact(body) as Event);
          last = seq;
          characters += body.length;
          if (this.#packer.isFull || characters >= READ_CHARACTERS_MAX) return;
        }
        last = upTo;
      });
      return { rows: this.#packer.take(), last };
    } catch (error) {
      this.#packer = new RowPacker();
      throw error;
    }
  }

  /** Removes a day that the journal has removed from the columns, on disk and in memory. */
  removeDay(day: number): Promise<void> {
    // A copy in progress would bring rows of the day back.
    return this.#queue.take(async () => {
      await this.memtables.removeDay(day);
      this.#read.delete(day);
      this.#packed.delete(day);
      this.#journal.close(day);
      // Late events have begun the day anew: all of them are read from the journal.
      if (this.#journal.get(day)) return;
      this.#amended.delete(day);
      this.#committed.delete(day);
    });
  }
}

/** The state in which the follower starts. */
interface StartPosition {
  /** For each day, the last sequence number that the columns have. */
  readonly read: Map<number, number>;
  readonly mismatchedDays: readonly number[];
  readonly lost: readonly (readonly [day: number, rows: number])[];
}

/** Removes rows that the journal does not have: it may have lost its torn end or a whole day. */
async function dropRowsNotInJournal(
  connection: DuckDBConnection,
  { checkpoints, amended, rows: rowsInColumns }: ColumnEngine,
  days: readonly DayEnd[],
): Promise<StartPosition> {
  const read = new Map<number, number>();
  const mismatchedDays: number[] = [];
  const lost: [number, number][] = [];
  const ends = new Map(days.map((end) => [end.day, end]));
  for (const [day, checkpoint] of checkpoints) {
    const { lastSeq = 0, lastAmendment = 0, rows = 0 } = ends.get(day) ?? {};
    const isMismatched = checkpoint === lastSeq && rowsInColumns.get(day) !== rows;
    if (isMismatched) mismatchedDays.push(day);
    if (checkpoint > lastSeq) lost.push([day, Math.max(0, (rowsInColumns.get(day) ?? 0) - rows)]);
    // A day with amendments that the journal has lost is read again as a whole.
    const end = isMismatched || (amended.get(day) ?? 0) > lastAmendment ? 0 : lastSeq;
    if (end > 0) read.set(day, Math.min(checkpoint, end));
    if (checkpoint <= end) continue;
    await connection.run(`DELETE FROM events WHERE ts >= ${day} AND ts < ${day + DAY_MS} AND seq > ${end}`);
    await connection.run(`DELETE FROM marks WHERE day = ${day}`);
    await recountDay(connection, day, end);
    if (end === 0) await connection.run(`DELETE FROM amended WHERE day = ${day}`);
    else await connection.run(`INSERT INTO marks VALUES (${day}, ${end})`);
  }
  return { read, mismatchedDays, lost };
}
