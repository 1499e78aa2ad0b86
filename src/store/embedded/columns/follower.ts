import { setImmediate as nextTurn } from "node:timers/promises";
import type { DuckDBConnection } from "@duckdb/node-api";
import { parseExact } from "../../../lib/exact-json.ts";
import { DAY_MS } from "../../../lib/time.ts";
import { Turns } from "../../../lib/turns.ts";
import type { Event } from "../../../model/event.ts";
import { onFile } from "../failure.ts";
import type { DayReaders } from "../journal/day-file.ts";
import { readAmended, type AmendedRows } from "./amend.ts";
import type { Engine } from "./engine.ts";
import { CHUNK_ROWS, RowsPacker, type PackedRows } from "./rows.ts";
import { TAIL_ROWS_MAX, Tails } from "./tails.ts";

// Brings what the journal has committed into the columns: knows how far each day goes and how far it has been read.

/** Read from the journal at a time, whatever the rows are. */
const READ_CHARACTERS_MAX = 8 * 1024 * 1024;

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
  readonly #journal: DayReaders;
  /** Where the rows lie. */
  readonly tails: Tails;
  /** How far each day of the journal is known to go, and how far it has been read. */
  readonly #noted = new Map<number, number>();
  readonly #read: Map<number, number>;
  /** The last change to events of each day that is known of. */
  readonly #amendedNoted = new Map<number, number>();
  readonly #given = new Map<number, { after: number; lastSeq: number; rows: PackedRows }[]>();
  #packer = new RowsPacker();
  readonly #turns = new Turns();
  /** Well-known fields that any row has in an unexpected form. */
  oddBits: number;
  /** Days of which the columns had more or fewer rows than the journal, all of which is read again. */
  readonly differing: readonly number[];
  /** Days of which the columns had rows that the journal does not have any more: how many. */
  readonly lost: readonly (readonly [day: number, rows: number])[];
  /** Rows that the journal has and the columns have not. */
  lag = 0;
  /** Rows that came from the journal since the start, and those of them that are too large to be here as a whole. */
  rowsRead = 0;
  rowsLarge = 0;

  private constructor(engine: Engine, journal: DayReaders, tails: Tails, begin: Beginning) {
    this.#journal = journal;
    this.tails = tails;
    this.#read = begin.read;
    this.differing = begin.differing;
    this.lost = begin.lost;
    this.oddBits = engine.oddBits;
  }

  static async start(
    engine: Engine,
    journal: DayReaders,
    days: readonly DayEnd[],
    tailRowsMax = TAIL_ROWS_MAX,
  ): Promise<Follower> {
    const mover = await engine.instance.connect();
    const begin = await dropPhantoms(mover, engine, days);
    // What has yet to be read will be read as it is now.
    const amended = days.map(({ day, lastAmendment }): [number, number] => [
      day,
      begin.read.has(day) ? (engine.amended.get(day) ?? 0) : lastAmendment,
    ]);
    const onLost = (rows: number, began: ReadonlyMap<number, number>) => follower.#readAgain(rows, began);
    const tails = await Tails.open({ engine, mover, tailRowsMax, onLost }, new Map(amended));
    const follower = new Follower(engine, journal, tails, begin);
    for (const { day, lastSeq, lastAmendment } of days) {
      follower.#noted.set(day, lastSeq);
      follower.#amendedNoted.set(day, lastAmendment);
    }
    return follower;
  }

  #readAgain(rows: number, began: ReadonlyMap<number, number>): void {
    for (const [day, seq] of began) if (this.#read.has(day)) this.#read.set(day, seq);
    this.lag += rows;
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

  /** Does something while no row comes or goes. */
  alone(work: () => Promise<void>): Promise<void> {
    return this.#turns.take(() => this.tails.alone(work));
  }

  async #catchUp(): Promise<void> {
    // Those that are noted meanwhile may be of rows that are noted meanwhile, and not there yet.
    const amended = [...this.#amendedNoted];
    for (const [day, end] of [...this.#noted].sort(([a], [b]) => a - b)) {
      for (let at = this.#read.get(day) ?? 0; at < end; at = this.#read.get(day)!) {
        await this.tails.haveRoom();
        const { rows, last } = this.#nextRows(day, at, end);
        this.oddBits |= rows.oddBits;
        this.#read.set(day, last);
        if (rows.length > 0) await this.tails.add({ rows, day, after: at, last });
        this.rowsLarge += rows.large;
        this.lag = Math.max(0, this.lag - rows.length);
        this.rowsRead += rows.length;
        // Questions and messages come in between.
        await nextTurn();
      }
    }
    await this.tails.show();
    for (const [day, upTo] of amended) {
      while (this.tails.amendedUpTo(day) < upTo)
        await this.tails.amend(day, (after) => this.#readAmended(day, after, upTo));
    }
  }

  /** Changes to rows that are there: those that are still to come were read after them. */
  #readAmended(day: number, after: number, upTo: number): AmendedRows {
    const reader = this.#journal.get(day);
    // Retention has removed it meanwhile.
    if (!reader) return { rows: new RowsPacker().take(), number: upTo };
    const amended = onFile(this.#journal.pathOf(day), () => readAmended(reader, after, upTo));
    this.oddBits |= amended.rows.oddBits;
    return amended;
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
          this.#packer.add(seq, ts, parseExact(body) as Event);
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

  /** Removes a day from the columns, on disk and in memory. */
  async removeDay(day: number): Promise<void> {
    await this.tails.removeDay(day);
    this.#amendedNoted.delete(day);
    this.#noted.delete(day);
    this.#read.delete(day);
    this.#given.delete(day);
    this.#journal.close(day);
  }
}

/** How far each day has been read, and days that are read anew because they had not the rows of the journal. */
interface Beginning {
  readonly read: Map<number, number>;
  readonly differing: readonly number[];
  readonly lost: readonly (readonly [day: number, rows: number])[];
}

/** A journal that lost its torn end, or a whole day, takes the columns back with it. */
async function dropPhantoms(
  connection: DuckDBConnection,
  { marks, amended, rows: rowsThere }: Engine,
  days: readonly DayEnd[],
): Promise<Beginning> {
  const read = new Map<number, number>();
  const differing: number[] = [];
  const lost: [number, number][] = [];
  const ends = new Map(days.map((end) => [end.day, end]));
  for (const [day, mark] of marks) {
    const { lastSeq = 0, lastAmendment = 0, rows = 0 } = ends.get(day) ?? {};
    const isDiffering = mark === lastSeq && rowsThere.get(day) !== rows;
    if (isDiffering) differing.push(day);
    if (mark > lastSeq) lost.push([day, Math.max(0, (rowsThere.get(day) ?? 0) - rows)]);
    // Rows that have changes which the journal lost are read anew, all of the day.
    const end = isDiffering || (amended.get(day) ?? 0) > lastAmendment ? 0 : lastSeq;
    if (end > 0) read.set(day, Math.min(mark, end));
    if (mark <= end) continue;
    await connection.run(`DELETE FROM events WHERE ts >= ${day} AND ts < ${day + DAY_MS} AND seq > ${end}`);
    await connection.run(`DELETE FROM marks WHERE day = ${day}`);
    if (end === 0) await connection.run(`DELETE FROM amended WHERE day = ${day}`);
    else await connection.run(`INSERT INTO marks VALUES (${day}, ${end})`);
  }
  return { read, differing, lost };
}
