import type { DuckDBAppender, DuckDBConnection } from "@duckdb/node-api";
import { DAY_MS } from "../../../lib/time.ts";
import { Turns } from "../../../lib/turns.ts";
import { amendTable, withChanges, type AmendedRows } from "./amend.ts";
import { appendRows } from "./chunk.ts";
import type { Engine } from "./engine.ts";
import type { PackedRows } from "./rows.ts";
import { LOTS } from "./sql.ts";
import { columnList } from "./table.ts";

// Where the rows of the columns lie. New ones go into a table in memory, the tail. A full tail becomes a lot: it moves to
// disk in one transaction with the marks that say how far each day of the journal is in, while the next tail fills. A
// question reads the lots that are on disk and the tails that are not, as it finds them.

/** A row group of the engine: a full tail is written to disk as it will lie there. */
export const TAIL_ROWS_MAX = 122_880;
/** Rows with more text than usual move sooner: the engine keeps what is less than a row group in memory until a checkpoint. */
const USUAL_TEXT_BYTES = 1024;
const TAIL_TEXT_BYTES_MAX = 32 * 1024 * 1024;
const TEXT_BYTES_PER_CHECKPOINT = 64 * 1024 * 1024;
/** Tails that could not be moved (a full disk) hold back the follower, and with it every question, beyond this. */
const TAILS_MAX = 8;

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
  /** All rows, as SQL whose LOTS are these. */
  readonly from: string;
  readonly lots: number;
  /** Those on disk, and the word for a state of the disk: as long as it is the same, so are they. */
  readonly disk: string;
  readonly diskState: string;
  /** No row on disk is of a later time. */
  readonly diskLatest: number;
  /** Those in memory; undefined where there are none. */
  readonly tails: string | undefined;
  release(): void;
}

/** Rows of one day that the journal has one after the other. */
export interface RowsOfDay {
  readonly rows: PackedRows;
  readonly day: number;
  /** The last sequence number before them and the last of them. */
  readonly after: number;
  readonly last: number;
}

export interface TailsOptions {
  readonly engine: Engine;
  /** The connection that changes what is on disk. */
  readonly mover: DuckDBConnection;
  readonly tailRowsMax: number;
  /** So many rows, of these days from the first number on, are not in any table after all: they are to be read again. */
  readonly onLost: (rows: number, began: ReadonlyMap<number, number>) => void;
}

export class Tails {
  readonly #connection: DuckDBConnection;
  readonly #mover: DuckDBConnection;
  readonly #tailRowsMax: number;
  readonly #onLost: TailsOptions["onLost"];
  readonly #tails: Tail[] = [];
  /** For each day, the number of the last change to its events that the rows have. */
  readonly #amended = new Map<number, number>();
  #lotsOnDisk: number;
  #lotsChecked: number;
  #diskLatest: number;
  #nextLot: number;
  #removals = 0;
  #amendments = 0;
  #amendmentsChecked = 0;
  /** Of lots that are less than a row group. */
  #textBytesUnchecked = 0;
  /** What changes what lies in the tables does so alone. */
  readonly #changes = new Turns();
  /** Never rejects: `moveFailure` says what failed. */
  #move: Promise<void> = Promise.resolve();
  #moveFailure: Error | undefined;

  private constructor({ engine, mover, tailRowsMax, onLost }: TailsOptions) {
    this.#connection = engine.connection;
    this.#mover = mover;
    this.#tailRowsMax = tailRowsMax;
    this.#onLost = onLost;
    this.#lotsOnDisk = engine.lots;
    this.#lotsChecked = engine.lots;
    this.#diskLatest = engine.latest;
    this.#nextLot = engine.lots + 1;
  }

  /** `amended`: for each day, the last change that its rows have, or will have because they have yet to be read. */
  static async open(options: TailsOptions, amended: ReadonlyMap<number, number>): Promise<Tails> {
    const tails = new Tails(options);
    for (const [day, number] of amended) tails.#amended.set(day, number);
    await tails.#newTail();
    return tails;
  }

  get moveFailure(): Error | undefined {
    return this.#moveFailure;
  }

  get areMoving(): boolean {
    return this.#changes.waiting > 0;
  }

  amendedUpTo(day: number): number {
    return this.#amended.get(day) ?? 0;
  }

  /** Before rows are added: where the tail is full another one takes its place, and it begins to move. */
  async haveRoom(): Promise<void> {
    const tail = this.#tails.at(-1)!;
    if (!this.#isFull(tail)) return;
    await this.#show(tail);
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

  /** Questions see them once they are shown. */
  async add({ rows, day, after, last }: RowsOfDay): Promise<void> {
    const tail = this.#tails.at(-1)!;
    if (!tail.began.has(day)) tail.began.set(day, after);
    await this.#orGiveUp(tail, () => {
      appendRows(tail.appender, rows);
      tail.latest = Math.max(tail.latest, rows.latestMs);
      tail.rows += rows.length;
      tail.textBytes += rows.texts.byteLength;
      tail.marks.set(day, last);
    });
  }

  /** From now on questions see all that was added; once for many costs half of once for each chunk. */
  async show(): Promise<void> {
    await this.#show(this.#tails.at(-1)!);
  }

  async #show(tail: Tail): Promise<void> {
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
      for (const lost of this.#tails.slice(this.#tails.indexOf(tail)).toReversed()) {
        lost.isGivenUp = true;
        this.#onLost(lost.rows, lost.began);
      }
      await this.#newTail();
      await this.#dropDone();
      throw error;
    }
  }

  /** Takes up changes to rows that are there; `read` gives those after a number. */
  async amend(day: number, read: (after: number) => AmendedRows): Promise<void> {
    await this.#changes.take(async () => {
      const { rows, number } = read(this.amendedUpTo(day));
      if (rows.length > 0) await withChanges(this.#mover, rows, () => this.#changeRows(rows, day, number));
      this.#amended.set(day, number);
      this.#amendments += rows.length;
    });
  }

  async #changeRows(rows: PackedRows, day: number, number: number): Promise<void> {
    for (const { lot, isOnDisk, isGivenUp, marks } of this.#tails)
      if (!isOnDisk && !isGivenUp && marks.has(day)) await amendTable(this.#mover, `tail.t${lot}`, rows);
    await this.#transact(async () => {
      await amendTable(this.#mover, "events", rows);
      await this.#writeAmended(day, number);
    });
  }

  /** Moves what is in memory to disk, as far as there is anything. */
  async flush(): Promise<void> {
    await this.#move;
    const tail = this.#tails.at(-1)!;
    await this.#show(tail);
    if (tail.rows > 0) await this.#newTail();
    this.#move = this.#changes.take(() => this.#moveTails());
    await this.#move;
    if (this.#moveFailure) throw this.#moveFailure;
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
    await this.#show(tail);
    tail.appender.closeSync();
    await this.#transact(async () => {
      await this.#mover.run(`INSERT INTO events SELECT *, ${tail.lot} FROM tail.t${tail.lot}`);
      for (const [day, seq] of tail.marks) {
        await this.#mover.run(`DELETE FROM marks WHERE day = ${day}`);
        await this.#mover.run(`INSERT INTO marks VALUES (${day}, ${seq})`);
        await this.#writeAmended(day, this.amendedUpTo(day));
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
    const disk = `SELECT * EXCLUDE (lot) FROM events WHERE lot <= ${LOTS}`;
    const inMemory = tails.filter(({ rows }) => rows > 0).map(({ lot }) => `SELECT * FROM tail.t${lot}`);
    return {
      from: `(${[disk, ...inMemory].join(" UNION ALL ")})`,
      lots: this.#lotsOnDisk,
      disk: `(${disk})`,
      diskState: `${this.#lotsOnDisk} ${this.#removals} ${this.#amendments}`,
      diskLatest: this.#diskLatest,
      tails: inMemory.length > 0 ? `(${inMemory.join(" UNION ALL ")})` : undefined,
      release: () => {
        for (const tail of tails) tail.readers--;
      },
    };
  }

  /** Removes a day, on disk and in memory. */
  async removeDay(day: number): Promise<void> {
    await this.flush();
    await this.#changes.take(async () => {
      await this.#mover.run(`DELETE FROM events WHERE ts >= ${day} AND ts < ${day + DAY_MS}`);
      await this.#mover.run(`DELETE FROM marks WHERE day = ${day}`);
      await this.#mover.run(`DELETE FROM amended WHERE day = ${day}`);
    });
    this.#removals++;
    this.#amended.delete(day);
  }

  /** Does something while nothing moves. */
  async alone(work: () => Promise<void>): Promise<void> {
    await this.#changes.take(work);
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
