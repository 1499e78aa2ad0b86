import { setImmediate as nextTurn } from "node:timers/promises";
import type { DuckDBAppender, DuckDBConnection } from "@duckdb/node-api";
import { DAY_MS } from "../../../lib/time.ts";
import { Turns } from "../../../lib/turns.ts";
import type { Event } from "../../../model/event.ts";
import { onFile } from "../failure.ts";
import type { DayReaders } from "../journal/day-file.ts";
import { amendTable, readAmended, withChanges } from "./amend.ts";
import { appendRows } from "./chunk.ts";
import type { Engine } from "./engine.ts";
import { CHUNK_ROWS, RowsPacker, type PackedRows } from "./rows.ts";
import { columnList } from "./table.ts";

// Brings what the journal has committed into the columns. New rows go into a table in memory, the tail. A full tail
// becomes a lot: it moves to disk in one transaction with the marks that say how far each day of the journal is in,
// while the next tail fills. A question reads the lots that are on disk and the tails that are not, as it finds them.

/** A row group of the engine: a full tail is written to disk as it will lie there. */
export const TAIL_ROWS_MAX = 122_880;
/** Rows with more text than usual move sooner: the engine keeps what is less than a row group in memory until a checkpoint. */
const USUAL_TEXT_BYTES = 1024;
const TAIL_TEXT_BYTES_MAX = 32 * 1024 * 1024;
const TEXT_BYTES_PER_CHECKPOINT = 64 * 1024 * 1024;
/** Tails that could not be moved (a full disk) hold back the follower, and with it every question, beyond this. */
const TAILS_MAX = 8;

/** Read from the journal at a time, whatever the rows are. */
const READ_CHARACTERS_MAX = 8 * 1024 * 1024;

/** A full lot leaves little in the engine's own log: where its rows lie. */
const LOTS_PER_CHECKPOINT = 8;
/** Changed rows are kept in memory beside the old ones until then. */
const AMENDMENTS_PER_CHECKPOINT = 20_000;

interface Tail {
  readonly lot: number;
  readonly appender: DuckDBAppender;
  /** For each day in it, the last sequence number before it and the last in it. */
  readonly began: Map<number, number>;
  readonly marks: Map<number, number>;
  rows: number;
  textBytes: number;
  /** The latest time in it. */
  latest: number;
  rowsFlushed: number;
  readers: number;
  /** It is read no more: its rows are on disk, or have to be read from the journal again. */
  isOnDisk: boolean;
  isGivenUp: boolean;
}

/** Where a question's rows are; they stay there until it is released. */
export interface Snapshot {
  /** All rows, as SQL. */
  readonly from: string;
  /** Those on disk, and the word for a state of the disk: as long as it is the same, so are they. */
  readonly disk: string;
  readonly diskState: string;
  /** No row on disk is of a later time. */
  readonly diskLatest: number;
  /** Those in memory; undefined where there are none. */
  readonly tails: string | undefined;
  release(): void;
}

/** Events of one day that the journal has committed one after the other. */
export interface CommittedRows {
  readonly day: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly rows: number;
  /** Those of one or several groups of the day; undefined where they are to be read from the journal. */
  readonly packed: PackedRows | undefined;
}

/** How far a day of the journal goes. */
export interface DayEnd {
  readonly day: number;
  readonly rows: number;
  readonly lastSeq: number;
  /** The number of the last change to one of its events. */
  readonly lastAmendment: number;
}

export class Follower {
  readonly #connection: DuckDBConnection;
  readonly #mover: DuckDBConnection;
  readonly #journal: DayReaders;
  /** How far each day of the journal is known to go, and how far it has been read. */
  readonly #noted = new Map<number, number>();
  readonly #read = new Map<number, number>();
  /** The last change to events of each day that is known of, and the last that the rows have. */
  readonly #amendedNoted = new Map<number, number>();
  readonly #amended = new Map<number, number>();
  readonly #given = new Map<number, { after: number; lastSeq: number; rows: PackedRows }[]>();
  #packer = new RowsPacker();
  readonly #tails: Tail[] = [];
  readonly #tailRowsMax: number;
  #lotsOnDisk: number;
  #lotsChecked: number;
  #diskLatest: number;
  #nextLot: number;
  #removals = 0;
  #amendments = 0;
  #amendmentsChecked = 0;
  /** Of lots that are less than a row group. */
  #textBytesUnchecked = 0;
  readonly #turns = new Turns();
  /** What changes what lies in the tables does so alone. */
  readonly #changes = new Turns();
  #move: Promise<void> = Promise.resolve();
  #moveFailure: Error | undefined;
  /** Well-known fields that any row has in an unexpected form. */
  oddBits: number;
  /** Days of which the columns had more or fewer rows than the journal, all of which is read again. */
  readonly differing: number[] = [];
  /** Rows that the journal has and the columns have not. */
  lag = 0;
  /** Rows that came from the journal since the start, and those of them that are too large to be here as a whole. */
  rowsRead = 0;
  rowsLarge = 0;

  private constructor(engine: Engine, mover: DuckDBConnection, journal: DayReaders, tailRowsMax: number) {
    this.#connection = engine.connection;
    this.#mover = mover;
    this.#journal = journal;
    this.#tailRowsMax = tailRowsMax;
    this.#lotsOnDisk = engine.lots;
    this.#lotsChecked = engine.lots;
    this.#diskLatest = engine.latest;
    this.oddBits = engine.oddBits;
    this.#nextLot = engine.lots + 1;
  }

  static async start(
    engine: Engine,
    journal: DayReaders,
    days: readonly DayEnd[],
    tailRowsMax = TAIL_ROWS_MAX,
  ): Promise<Follower> {
    const follower = new Follower(engine, await engine.instance.connect(), journal, tailRowsMax);
    await follower.#dropPhantoms(engine, days);
    for (const { day, lastSeq, lastAmendment } of days) {
      follower.#noted.set(day, lastSeq);
      follower.#amendedNoted.set(day, lastAmendment);
      // What has yet to be read will be read as it is now.
      follower.#amended.set(day, follower.#read.has(day) ? (engine.amended.get(day) ?? 0) : lastAmendment);
    }
    await follower.#newTail();
    return follower;
  }

  /** A journal that lost its torn end, or a whole day, takes the columns back with it. */
  async #dropPhantoms(engine: Engine, days: readonly DayEnd[]): Promise<void> {
    const { marks, amended } = engine;
    const ends = new Map(days.map((end) => [end.day, end]));
    for (const [day, mark] of marks) {
      const { lastSeq = 0, lastAmendment = 0, rows = 0 } = ends.get(day) ?? {};
      if (mark === lastSeq && engine.rows.get(day) !== rows) this.differing.push(day);
      // Rows that have changes which the journal lost are read anew, all of the day.
      const isToBeRead = (amended.get(day) ?? 0) > lastAmendment || this.differing.includes(day);
      const end = isToBeRead ? 0 : lastSeq;
      this.#read.set(day, Math.min(mark, end));
      if (mark <= end) continue;
      await this.#mover.run(`DELETE FROM events WHERE ts >= ${day} AND ts < ${day + DAY_MS} AND seq > ${end}`);
      await this.#mover.run(`DELETE FROM marks WHERE day = ${day}`);
      if (end === 0) await this.#mover.run(`DELETE FROM amended WHERE day = ${day}`);
      if (end > 0) await this.#mover.run(`INSERT INTO marks VALUES (${day}, ${end})`);
      else this.#read.delete(day);
    }
  }

  /** The journal has committed more events; where their rows come along they need not be read from it. */
  note(committed: readonly CommittedRows[]): void {
    for (const { day, firstSeq, lastSeq, rows, packed } of committed) {
      this.#noted.set(day, Math.max(this.#noted.get(day) ?? 0, lastSeq));
      this.lag += rows;
      if (!packed) continue;
      // What lies between these and those before them are events of other days; should it be more, the journal has it.
      const part = { after: firstSeq - 1, lastSeq, rows: packed };
      const given = this.#given.get(day);
      if (given) given.push(part);
      else this.#given.set(day, [part]);
    }
  }

  /** The journal has changed events of a day that it had committed before. */
  noteAmended(day: number, lastAmendment: number): void {
    // A day that was removed a moment ago has nothing to change.
    if (this.#noted.has(day)) this.#amendedNoted.set(day, lastAmendment);
  }

  /** When it resolves, everything that was noted before the call is there for questions. */
  catchUp(): Promise<void> {
    // A failure belongs to those who wait for this turn; the next one tries again.
    return this.#turns.take(() => this.#catchUp());
  }

  async #catchUp(): Promise<void> {
    // Those that are noted meanwhile may be of rows that are noted meanwhile, and not there yet.
    const amended = [...this.#amendedNoted];
    for (const [day, end] of [...this.#noted].sort(([a], [b]) => a - b)) {
      for (let at = this.#read.get(day) ?? 0; at < end; at = this.#read.get(day)!) {
        await this.#haveRoom();
        const { rows, last } = this.#nextRows(day, at, end);
        const tail = this.#tails.at(-1)!;
        await this.#orGiveUp(tail, () => {
          if (rows.length > 0) this.#append(tail, rows, day, last);
          this.#read.set(day, last);
        });
        this.lag = Math.max(0, this.lag - rows.length);
        this.rowsRead += rows.length;
        // Questions and messages come in between.
        await nextTurn();
      }
    }
    await this.#flushTail(this.#tails.at(-1)!);
    for (const [day, upTo] of amended) {
      while ((this.#amended.get(day) ?? 0) < upTo) await this.#changes.take(() => this.#amend(day, upTo));
    }
  }

  /** Takes up changes to rows that are there: those that are still to come were read after them. */
  async #amend(day: number, upTo: number): Promise<void> {
    const reader = this.#journal.get(day);
    // Retention has removed it meanwhile.
    if (!reader) return void this.#amended.set(day, upTo);
    const after = this.#amended.get(day) ?? 0;
    const { rows, number } = onFile(this.#journal.pathOf(day), () => readAmended(reader, after, upTo));
    this.oddBits |= rows.oddBits;
    if (rows.length > 0) await withChanges(this.#mover, rows, () => this.#changeRows(rows, day, number));
    this.#amended.set(day, number);
    this.#amendments += rows.length;
  }

  async #changeRows(rows: PackedRows, day: number, number: number): Promise<void> {
    for (const { lot, isOnDisk, isGivenUp, marks } of this.#tails)
      if (!isOnDisk && !isGivenUp && marks.has(day)) await amendTable(this.#mover, `tail.t${lot}`, rows);
    await this.#transact(async () => {
      await amendTable(this.#mover, "events", rows);
      await this.#writeAmended(day, number);
    });
  }

  /** The next rows of a day, at most a chunk: as they were given, or else out of the journal. */
  #nextRows(day: number, after: number, upTo: number): { rows: PackedRows; last: number } {
    const given = this.#given.get(day) ?? [];
    // Of rows that are in already the journal tells the rest.
    while (given.length > 0 && given[0]!.after < after) given.shift();
    if (given[0]?.after !== after) return this.#readRows(day, after, Math.min(upTo, given[0]?.after ?? upTo));
    const { rows, lastSeq } = given.shift()!;
    return { rows, last: lastSeq };
  }

  #readRows(day: number, after: number, upTo: number): { rows: PackedRows; last: number } {
    const select = this.#journal
      .get(day)
      ?.sql(`SELECT seq, ts, body FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ${CHUNK_ROWS}`);
    select?.setReturnArrays(true);
    let last = after;
    let characters = 0;
    try {
      onFile(this.#journal.pathOf(day), () => {
        for (const row of select?.iterate(after, upTo) ?? []) {
          const [seq, ts, body] = row as unknown as [number, number, string];
          this.#packer.add(seq, ts, JSON.parse(body) as Event);
          last = seq;
          characters += body.length;
          if (this.#packer.isFull || characters >= READ_CHARACTERS_MAX) return;
        }
        last = upTo;
      });
      return { rows: this.#packer.take(), last };
    } catch (error) {
      this.#packer = new RowsPacker();
      throw error;
    }
  }

  #append(tail: Tail, rows: PackedRows, day: number, last: number): void {
    appendRows(tail.appender, rows);
    this.oddBits |= rows.oddBits;
    this.rowsLarge += rows.large;
    tail.latest = Math.max(tail.latest, rows.latestMs);
    tail.rows += rows.length;
    tail.textBytes += rows.texts.byteLength;
    if (!tail.began.has(day)) tail.began.set(day, this.#read.get(day) ?? 0);
    tail.marks.set(day, last);
  }

  /** Where the tail is full another one takes its place, and it begins to move. */
  async #haveRoom(): Promise<void> {
    const tail = this.#tails.at(-1)!;
    if (!this.#isFull(tail)) return;
    await this.#flushTail(tail);
    // The tail before this one must be on disk, or known not to get there, before the next one fills.
    await this.#move;
    if (this.#tails.length >= TAILS_MAX) {
      await this.#changes.take(() => this.#moveTails());
      if (this.#tails.length >= TAILS_MAX) throw this.#moveFailure ?? new Error("the columns cannot be moved to disk");
    }
    await this.#newTail();
    this.#move = this.#changes.take(() => this.#moveTails());
  }

  #isFull({ rows, textBytes }: Tail): boolean {
    return rows >= this.#tailRowsMax || (textBytes >= TAIL_TEXT_BYTES_MAX && textBytes > rows * USUAL_TEXT_BYTES);
  }

  /** Only now can questions see the rows; once for many costs half of once for each chunk. */
  async #flushTail(tail: Tail): Promise<void> {
    if (tail.rows === tail.rowsFlushed) return;
    await this.#orGiveUp(tail, () => tail.appender.flushSync());
    tail.rowsFlushed = tail.rows;
  }

  /** What has not got into a tail as a whole, for want of memory, say, is not in it at all: it is read again. */
  async #orGiveUp(tail: Tail, work: () => void): Promise<void> {
    try {
      work();
    } catch (error) {
      // Rows of a later tail lie behind those that are missing now.
      const lost = this.#tails.slice(this.#tails.indexOf(tail));
      for (const { began } of lost.toReversed())
        for (const [day, seq] of began) if (this.#read.has(day)) this.#read.set(day, seq);
      for (const one of lost) {
        one.isGivenUp = true;
        this.lag += one.rows;
      }
      await this.#newTail();
      await this.#dropDone();
      throw error;
    }
  }

  /** Moves what is in memory to disk, as far as there is anything. */
  async flush(): Promise<void> {
    await this.#move;
    const tail = this.#tails.at(-1)!;
    await this.#flushTail(tail);
    if (tail.rows > 0) await this.#newTail();
    this.#move = this.#changes.take(() => this.#moveTails());
    await this.#move;
    if (this.#moveFailure) throw this.#moveFailure;
  }

  get moveFailure(): Error | undefined {
    return this.#moveFailure;
  }

  async #moveTails(): Promise<void> {
    for (const tail of this.#tails.slice(0, -1)) {
      if (tail.isOnDisk || tail.isGivenUp) continue;
      try {
        await this.#moveTail(tail);
        this.#moveFailure = undefined;
      } catch (error) {
        // It stays in memory and is tried again with the next one.
        this.#moveFailure = error instanceof Error ? error : new Error(String(error));
        return;
      }
    }
    const isDue =
      this.#lotsOnDisk - this.#lotsChecked >= LOTS_PER_CHECKPOINT ||
      this.#amendments - this.#amendmentsChecked >= AMENDMENTS_PER_CHECKPOINT ||
      this.#textBytesUnchecked >= TEXT_BYTES_PER_CHECKPOINT;
    try {
      await this.#dropDone();
      if (isDue) await this.#checkpoint();
    } catch (error) {
      // The lots are safe in the engine's log; it is tried again with the next one.
      this.#moveFailure = error instanceof Error ? error : new Error(String(error));
    }
  }

  async #moveTail(tail: Tail): Promise<void> {
    await this.#flushTail(tail);
    tail.appender.closeSync();
    await this.#transact(async () => {
      await this.#mover.run(`INSERT INTO events SELECT *, ${tail.lot} FROM tail.t${tail.lot}`);
      for (const [day, seq] of tail.marks) {
        await this.#mover.run(`DELETE FROM marks WHERE day = ${day}`);
        await this.#mover.run(`INSERT INTO marks VALUES (${day}, ${seq})`);
        await this.#writeAmended(day, this.#amended.get(day) ?? 0);
      }
    });
    tail.isOnDisk = true;
    this.#lotsOnDisk = tail.lot;
    if (tail.rows < TAIL_ROWS_MAX) this.#textBytesUnchecked += tail.textBytes;
    this.#diskLatest = Math.max(this.#diskLatest, tail.latest);
  }

  async #transact(work: () => Promise<void>): Promise<void> {
    await this.#mover.run("BEGIN TRANSACTION");
    try {
      await work();
      await this.#mover.run("COMMIT");
    } catch (error) {
      await this.#mover.run("ROLLBACK").catch(() => undefined);
      throw error;
    }
  }

  async #writeAmended(day: number, number: number): Promise<void> {
    await this.#mover.run(`DELETE FROM amended WHERE day = ${day}`);
    if (number > 0) await this.#mover.run(`INSERT INTO amended VALUES (${day}, ${number})`);
  }

  async #newTail(): Promise<void> {
    const lot = this.#nextLot++;
    await this.#connection.run(`CREATE TABLE tail.t${lot}(${columnList})`);
    const appender = await this.#connection.createAppender(`t${lot}`, "main", "tail");
    this.#tails.push({
      lot,
      appender,
      began: new Map(),
      marks: new Map(),
      rows: 0,
      textBytes: 0,
      latest: 0,
      rowsFlushed: 0,
      readers: 0,
      isOnDisk: false,
      isGivenUp: false,
    });
  }

  async #dropDone(): Promise<void> {
    const isDone = ({ isOnDisk, isGivenUp, readers }: Tail) => (isOnDisk || isGivenUp) && readers === 0;
    const done = this.#tails.filter(isDone);
    for (const tail of done) this.#tails.splice(this.#tails.indexOf(tail), 1);
    for (const tail of done) {
      if (tail.isGivenUp) closeQuietly(tail.appender);
      await this.#connection.run(`DROP TABLE tail.t${tail.lot}`);
    }
  }

  /**
   * What a question put now may see. A lot that comes to disk later is left out there by its number, and is still read
   * from its tail, which is dropped only when the last such question is answered.
   */
  snapshot(): Snapshot {
    const tails = this.#tails.filter(({ isOnDisk, isGivenUp }) => !isOnDisk && !isGivenUp);
    for (const tail of tails) tail.readers++;
    const disk = `SELECT * EXCLUDE (lot) FROM events WHERE lot <= ${this.#lotsOnDisk}`;
    const inMemory = tails.filter(({ rows }) => rows > 0).map(({ lot }) => `SELECT * FROM tail.t${lot}`);
    return {
      from: `(${[disk, ...inMemory].join(" UNION ALL ")})`,
      disk: `(${disk})`,
      diskState: `${this.#lotsOnDisk} ${this.#removals} ${this.#amendments}`,
      diskLatest: this.#diskLatest,
      tails: inMemory.length > 0 ? `(${inMemory.join(" UNION ALL ")})` : undefined,
      release: () => {
        for (const tail of tails) tail.readers--;
      },
    };
  }

  /** Removes a day from the columns, on disk and in memory. */
  async removeDay(day: number): Promise<void> {
    await this.flush();
    await this.#changes.take(async () => {
      await this.#mover.run(`DELETE FROM events WHERE ts >= ${day} AND ts < ${day + DAY_MS}`);
      await this.#mover.run(`DELETE FROM marks WHERE day = ${day}`);
      await this.#mover.run(`DELETE FROM amended WHERE day = ${day}`);
    });
    this.#removals++;
    this.#amendedNoted.delete(day);
    this.#amended.delete(day);
    this.#noted.delete(day);
    this.#read.delete(day);
    this.#given.delete(day);
    this.#journal.close(day);
  }

  async checkpoint(): Promise<void> {
    await this.#move;
    await this.#changes.take(() => this.#checkpoint());
  }

  async #checkpoint(): Promise<void> {
    const lots = this.#lotsOnDisk;
    const amendments = this.#amendments;
    await this.#mover.run("CHECKPOINT");
    this.#lotsChecked = lots;
    this.#textBytesUnchecked = 0;
    this.#amendmentsChecked = amendments;
  }
}

/** What it still holds is nobody's any more. */
function closeQuietly(appender: DuckDBAppender): void {
  try {
    appender.closeSync();
  } catch {
    // It could not be flushed before either.
  }
}
