import type { DuckDBAppender, DuckDBConnection } from "@duckdb/node-api";
import { DAY_MS } from "../../../lib/time.ts";
import { SerialQueue } from "../../../lib/serial-queue.ts";
import { amendTable, withStagedChanges, type AmendedRows } from "./amended-rows.ts";
import { appendRows } from "./append-rows.ts";
import type { ColumnEngine } from "./column-engine.ts";
import { COLUMN_LIST } from "./column-table.ts";
import { appendEntities, type CountedEntities } from "./entity-counter.ts";
import { ENTITY_COLUMN_LIST } from "./entity-schema.ts";
import { openEntityTable, type EntityBacklog, type EntityTable } from "./entity-table.ts";
import { FIELD_ROWS_MIN, openFieldColumns, type FieldColumns } from "./field-columns.ts";
import type { PackedRows } from "./packed-rows.ts";
import { SEGMENTS } from "./sql.ts";

// The rows of the columns: memtables in memory, segments on disk. New rows go into the current memtable. A full memtable
// is flushed: it becomes a segment in one transaction with the checkpoint of each of its days, while the next memtable
// fills. A query reads the segments that are on disk and the memtables that are not, as of its snapshot.
//
// On disk, the `lot` column of `events` is the segment number, `marks` has the checkpoints, and `amended` has the last
// amendment of each day.

/** A row group of DuckDB: a full memtable is written as it will stay on disk. */
export const MEMTABLE_ROWS_MAX = 122_880;
/** Rows with more text are flushed earlier: DuckDB keeps less than a row group in memory until a checkpoint. */
const USUAL_TEXT_BYTES = 1024;
const MEMTABLE_TEXT_BYTES_MAX = 32 * 1024 * 1024;
const TEXT_BYTES_PER_CHECKPOINT = 64 * 1024 * 1024;
/** When this many memtables cannot be flushed, as on a full disk, the follower stops, and with it every query. */
const MEMTABLES_MAX = 8;

/** A full segment adds little to DuckDB's log: only the addresses of its rows. */
const SEGMENTS_PER_CHECKPOINT = 8;
/** DuckDB keeps the texts of filled columns in memory until a checkpoint: about 60 bytes a row. */
const ROWS_FILLED_PER_CHECKPOINT = 500_000;
/** DuckDB keeps amended rows in memory, next to the old ones, until a checkpoint. */
const AMENDMENTS_PER_CHECKPOINT = 20_000;

interface Memtable {
  /** The number of the segment that it will become. */
  readonly segment: number;
  readonly appender: DuckDBAppender;
  /** Of the entities of its rows. */
  readonly entityAppender: DuckDBAppender;
  /** For each of its days, the last sequence number before its rows. */
  readonly startedAfter: Map<number, number>;
  /** For each of its days, the last sequence number of its rows. */
  readonly checkpoints: Map<number, number>;
  rows: number;
  textBytes: number;
  /** The latest time of its rows. */
  latest: number;
  rowsPublished: number;
  readers: number;
  isOnDisk: boolean;
  /** Its rows were lost and have to be read from the journal again. */
  isDiscarded: boolean;
}

/** The rows of one query, which stay in place until it is released. */
export interface Snapshot {
  /** SQL of all rows; the parameter SEGMENTS has the value of `segments`. */
  readonly from: string;
  readonly segments: number;
  /** SQL of the rows on disk. */
  readonly disk: string;
  /** Changes whenever the rows on disk change. */
  readonly diskVersion: string;
  /** No row on disk has a later time. */
  readonly diskLatest: number;
  /** SQL of the rows in memory; undefined when there are none. */
  readonly memtables: string | undefined;
  /** SQL of the entities of the rows in memory; undefined when there are none. */
  readonly entities: string | undefined;
  /** The column of a field in `from`, if it has one: see field-columns.ts. */
  fieldColumn(path: string): string | undefined;
  release(): void;
}

/** Consecutive rows of one day of the journal. */
export interface RowsOfDay {
  readonly rows: PackedRows;
  readonly day: number;
  /** The last sequence number before them. */
  readonly after: number;
  /** Their last sequence number. */
  readonly last: number;
}

export interface MemtablesOptions {
  readonly engine: ColumnEngine;
  /** The connection that changes the tables on disk. */
  readonly writer: DuckDBConnection;
  readonly memtableRowsMax: number;
  /** For each day, the last amendment that its rows have, or will have because they have yet to be read. */
  readonly amended: ReadonlyMap<number, number>;
  /** Reports rows that were lost. They have to be read again, for each day after the given sequence number. */
  readonly onLost: (rows: number, startedAfter: ReadonlyMap<number, number>) => void;
}

export async function openMemtables(options: MemtablesOptions): Promise<Memtables> {
  const { writer, memtableRowsMax } = options;
  const fields = await openFieldColumns(writer, Math.min(FIELD_ROWS_MIN, memtableRowsMax));
  const memtables = new Memtables(options, await openEntityTable(writer), fields);
  await memtables.addMemtable();
  return memtables;
}

export class Memtables {
  /** The entities of the segments on disk. */
  readonly entities: EntityTable;
  /** The columns of fields that were aggregated, in the segments on disk. */
  readonly fields: FieldColumns;
  readonly #connection: DuckDBConnection;
  readonly #writer: DuckDBConnection;
  readonly #memtableRowsMax: number;
  readonly #onLost: MemtablesOptions["onLost"];
  readonly #memtables: Memtable[] = [];
  readonly #amended: Map<number, number>;
  #segmentsOnDisk: number;
  #segmentsCheckpointed: number;
  #diskLatest: number;
  #nextSegment: number;
  #removals = 0;
  #amendments = 0;
  #amendmentsCheckpointed = 0;
  #rowsFilled = 0;
  /** Counts only segments of less than a row group. */
  #textBytesNotCheckpointed = 0;
  /** Serialises changes to the tables. */
  readonly #changes = new SerialQueue();
  /** Never rejects: a failure goes to `#flushFailure`. */
  #flushing: Promise<void> = Promise.resolve();
  #flushFailure: Error | undefined;

  constructor(
    { engine, writer, memtableRowsMax, amended, onLost }: MemtablesOptions,
    entities: EntityTable,
    fields: FieldColumns,
  ) {
    this.entities = entities;
    this.fields = fields;
    this.#connection = engine.connection;
    this.#writer = writer;
    this.#memtableRowsMax = memtableRowsMax;
    this.#amended = new Map(amended);
    this.#onLost = onLost;
    this.#segmentsOnDisk = engine.segments;
    this.#segmentsCheckpointed = engine.segments;
    this.#diskLatest = engine.latest;
    this.#nextSegment = engine.segments + 1;
  }

  get flushFailure(): Error | undefined {
    return this.#flushFailure;
  }

  get isFlushing(): boolean {
    return this.#changes.waiting > 0;
  }

  amendedUpTo(day: number): number {
    return this.#amended.get(day) ?? 0;
  }

  /** Replaces a full memtable and starts to flush it. Call it before `append`. */
  async rotateIfFull(): Promise<void> {
    const memtable = this.#memtables.at(-1)!;
    if (!this.#isFull(memtable)) return;
    await this.#publish(memtable);
    // The flush of the previous memtable must have ended, well or not, before the next one fills.
    await this.#flushing;
    if (this.#memtables.length >= MEMTABLES_MAX) {
      await this.#changes.take(() => this.#flushMemtables());
      if (this.#memtables.length >= MEMTABLES_MAX)
        throw this.#flushFailure ?? new Error("the columns cannot be flushed to disk");
    }
    await this.addMemtable();
    this.#flushing = this.#changes.take(() => this.#flushMemtables());
  }

  #isFull({ rows, textBytes }: Memtable): boolean {
    return (
      rows >= this.#memtableRowsMax || (textBytes >= MEMTABLE_TEXT_BYTES_MAX && textBytes > rows * USUAL_TEXT_BYTES)
    );
  }

  /** Appends rows; queries see them after `publish`. */
  async append({ rows, day, after, last }: RowsOfDay): Promise<void> {
    const memtable = this.#memtables.at(-1)!;
    if (!memtable.startedAfter.has(day)) memtable.startedAfter.set(day, after);
    await this.#discardOnFailure(memtable, () => {
      appendRows(memtable.appender, rows);
      appendEntities(memtable.entityAppender, day, rows.entities);
      memtable.latest = Math.max(memtable.latest, rows.latestMs);
      memtable.rows += rows.length;
      memtable.textBytes += rows.texts.byteLength;
      memtable.checkpoints.set(day, last);
    });
  }

  /** Makes all appended rows visible to queries. Once for many chunks costs half as much as once for each. */
  async publish(): Promise<void> {
    await this.#publish(this.#memtables.at(-1)!);
  }

  async #publish(memtable: Memtable): Promise<void> {
    if (memtable.rows === memtable.rowsPublished) return;
    await this.#discardOnFailure(memtable, () => {
      memtable.appender.flushSync();
      memtable.entityAppender.flushSync();
    });
    memtable.rowsPublished = memtable.rows;
  }

  /** Discards a memtable that failed halfway, for example for lack of memory: its rows are read again. */
  async #discardOnFailure(memtable: Memtable, work: () => void): Promise<void> {
    try {
      work();
    } catch (error) {
      // Later memtables go too: their rows follow those that are missing now.
      for (const lost of this.#memtables.slice(this.#memtables.indexOf(memtable)).toReversed()) {
        lost.isDiscarded = true;
        this.#onLost(lost.rows, lost.startedAfter);
      }
      await this.addMemtable();
      await this.#dropFinished();
      throw error;
    }
  }

  /** Applies amendments to rows that are present; `read` returns those after a number. */
  async amend(day: number, read: (after: number) => AmendedRows): Promise<void> {
    await this.#changes.take(async () => {
      const { rows, number } = read(this.amendedUpTo(day));
      if (rows.length > 0) await withStagedChanges(this.#writer, rows, () => this.#amendRows(rows, day, number));
      this.#amended.set(day, number);
      this.#amendments += rows.length;
    });
  }

  async #amendRows(rows: PackedRows, day: number, number: number): Promise<void> {
    for (const { segment, isOnDisk, isDiscarded, checkpoints } of this.#memtables)
      if (!isOnDisk && !isDiscarded && checkpoints.has(day)) await amendTable(this.#writer, tableOf(segment), rows, []);
    await this.#transact(async () => {
      await amendTable(this.#writer, "events", rows, this.fields.amendable);
      await this.#writeAmended(day, number);
    });
  }

  /** Flushes all memtables that have rows. */
  async flush(): Promise<void> {
    await this.#flushing;
    const memtable = this.#memtables.at(-1)!;
    await this.#publish(memtable);
    if (memtable.rows > 0) await this.addMemtable();
    this.#flushing = this.#changes.take(() => this.#flushMemtables());
    await this.#flushing;
    if (this.#flushFailure) throw this.#flushFailure;
  }

  async #flushMemtables(): Promise<void> {
    for (const memtable of this.#memtables.slice(0, -1)) {
      if (memtable.isOnDisk || memtable.isDiscarded) continue;
      try {
        await this.#flushMemtable(memtable);
        this.#flushFailure = undefined;
      } catch (error) {
        // It stays in memory; the next flush retries.
        this.#flushFailure = error instanceof Error ? error : new Error(String(error));
        return;
      }
    }
    const isDue =
      this.#segmentsOnDisk - this.#segmentsCheckpointed >= SEGMENTS_PER_CHECKPOINT ||
      this.#amendments - this.#amendmentsCheckpointed >= AMENDMENTS_PER_CHECKPOINT ||
      this.#textBytesNotCheckpointed >= TEXT_BYTES_PER_CHECKPOINT;
    try {
      await this.#dropFinished();
      if (isDue) await this.#checkpoint();
    } catch (error) {
      // The segments are safe in DuckDB's log; the next flush retries.
      this.#flushFailure = error instanceof Error ? error : new Error(String(error));
    }
  }

  async #flushMemtable(memtable: Memtable): Promise<void> {
    const { segment } = memtable;
    await this.#publish(memtable);
    memtable.appender.closeSync();
    memtable.entityAppender.closeSync();
    await this.#transact(async () => {
      await this.#writer.run(`INSERT INTO events BY NAME SELECT *, ${segment} AS lot FROM ${tableOf(segment)}`);
      await this.entities.add(entityTableOf(segment), segment);
      for (const [day, seq] of memtable.checkpoints) {
        await this.#writer.run(`DELETE FROM marks WHERE day = ${day}`);
        await this.#writer.run(`INSERT INTO marks VALUES (${day}, ${seq})`);
        await this.#writeAmended(day, this.amendedUpTo(day));
      }
    });
    memtable.isOnDisk = true;
    this.#segmentsOnDisk = segment;
    if (memtable.rows < MEMTABLE_ROWS_MAX) this.#textBytesNotCheckpointed += memtable.textBytes;
    this.#diskLatest = Math.max(this.#diskLatest, memtable.latest);
    await this.#mergeEntities([...memtable.checkpoints.keys()]);
  }

  async #mergeEntities(days: readonly number[]): Promise<void> {
    for (const day of await this.entities.noteAdded(days)) {
      await this.#transact(() => this.entities.merge(day));
      await this.entities.noteMerged(day);
    }
  }

  /** Adds entities of rows on disk that had not been counted, up to this sequence number. */
  async addCounted(backlog: EntityBacklog, counted: CountedEntities, after: number): Promise<void> {
    await this.#changes.take(async () => {
      // The day may have been removed since its events were read.
      if (this.entities.backlogOf(backlog.day) !== backlog) return;
      await this.entities.stage(backlog, counted);
      await this.#transact(() => this.entities.addStaged(backlog, after));
      this.entities.noteCounted(backlog, after);
      await this.#mergeEntities([backlog.day]);
    });
  }

  /** Makes or fills columns of fields, one step. False when nothing is left to do. */
  async advanceFields(): Promise<boolean> {
    return this.#changes.take(async () => {
      const rows = await this.fields.advance(this.#segmentsOnDisk, (work) => this.#transact(work));
      this.#rowsFilled += rows ?? 0;
      if (this.#rowsFilled >= ROWS_FILLED_PER_CHECKPOINT) await this.#checkpoint();
      return rows !== undefined;
    });
  }

  async #transact(work: () => Promise<void>): Promise<void> {
    await this.#writer.run("BEGIN TRANSACTION");
    try {
      await work();
      await this.#writer.run("COMMIT");
    } catch (error) {
      await this.#writer.run("ROLLBACK").catch(() => undefined);
      throw error;
    }
  }

  async #writeAmended(day: number, number: number): Promise<void> {
    await this.#writer.run(`DELETE FROM amended WHERE day = ${day}`);
    if (number > 0) await this.#writer.run(`INSERT INTO amended VALUES (${day}, ${number})`);
  }

  /** Adds an empty memtable, which becomes the current one. */
  async addMemtable(): Promise<void> {
    const segment = this.#nextSegment++;
    await this.#connection.run(`CREATE TABLE ${tableOf(segment)}(${COLUMN_LIST})`);
    const appender = await this.#connection.createAppender(`t${segment}`, "main", "memtables");
    await this.#connection.run(`CREATE TABLE ${entityTableOf(segment)}(${ENTITY_COLUMN_LIST})`);
    const entityAppender = await this.#connection.createAppender(`e${segment}`, "main", "memtables");
    this.#memtables.push({
      segment,
      appender,
      entityAppender,
      startedAfter: new Map(),
      checkpoints: new Map(),
      rows: 0,
      textBytes: 0,
      latest: 0,
      rowsPublished: 0,
      readers: 0,
      isOnDisk: false,
      isDiscarded: false,
    });
  }

  /** Drops memtables that are flushed or discarded and that no snapshot reads. */
  async #dropFinished(): Promise<void> {
    const isFinished = ({ isOnDisk, isDiscarded, readers }: Memtable) => (isOnDisk || isDiscarded) && readers === 0;
    const finished = this.#memtables.filter(isFinished);
    for (const memtable of finished) this.#memtables.splice(this.#memtables.indexOf(memtable), 1);
    for (const { segment, appender, entityAppender, isDiscarded } of finished) {
      if (isDiscarded) for (const each of [appender, entityAppender]) closeDiscarded(each);
      for (const table of [tableOf(segment), entityTableOf(segment)]) await this.#connection.run(`DROP TABLE ${table}`);
    }
  }

  /**
   * The rows that a query may see from now on. Segments that are flushed later are excluded by their number; the query
   * still reads their memtables, which are dropped after the last such query.
   */
  snapshot(): Snapshot {
    const memtables = this.#memtables.filter(({ isOnDisk, isDiscarded }) => !isOnDisk && !isDiscarded);
    for (const memtable of memtables) memtable.readers++;
    const disk = `SELECT * EXCLUDE (lot) FROM events WHERE lot <= ${SEGMENTS}`;
    const filled = memtables.filter(({ rows }) => rows > 0);
    const unionOf = (table: (segment: number) => string) =>
      filled.map(({ segment }) => `SELECT * FROM ${table(segment)}`).join(" UNION ALL ");
    const inMemory = filled.length > 0 ? unionOf(tableOf) : undefined;
    const fields = this.fields.use();
    return {
      // By name: the columns of fields are null in memory.
      from: inMemory === undefined ? `(${disk})` : `(${disk} UNION ALL BY NAME SELECT * FROM (${inMemory}))`,
      segments: this.#segmentsOnDisk,
      disk: `(${disk})`,
      diskVersion: `${this.#segmentsOnDisk} ${this.#removals} ${this.#amendments}`,
      diskLatest: this.#diskLatest,
      memtables: inMemory && `(${inMemory})`,
      entities: inMemory && `(${unionOf(entityTableOf)})`,
      fieldColumn: (path) => fields.columnOf(path),
      release: () => {
        fields.release();
        for (const memtable of memtables) memtable.readers--;
      },
    };
  }

  /** Removes a day, on disk and in memory. */
  async removeDay(day: number): Promise<void> {
    await this.flush();
    await this.#changes.take(async () => {
      await this.#writer.run(`DELETE FROM events WHERE ts >= ${day} AND ts < ${day + DAY_MS}`);
      await this.#writer.run(`DELETE FROM marks WHERE day = ${day}`);
      await this.#writer.run(`DELETE FROM amended WHERE day = ${day}`);
      await this.entities.remove(day);
    });
    this.#removals++;
    this.#amended.delete(day);
  }

  /** Runs `work` while no table changes. */
  async exclusively(work: () => Promise<void>): Promise<void> {
    await this.#changes.take(work);
  }

  async checkpoint(): Promise<void> {
    await this.#flushing;
    await this.#changes.take(() => this.#checkpoint());
  }

  async #checkpoint(): Promise<void> {
    const segments = this.#segmentsOnDisk;
    const amendments = this.#amendments;
    await this.#writer.run("CHECKPOINT");
    this.#segmentsCheckpointed = segments;
    this.#textBytesNotCheckpointed = 0;
    this.#amendmentsCheckpointed = amendments;
    this.#rowsFilled = 0;
  }
}

/** The table, in the attached database in memory, of the memtable that becomes this segment. */
function tableOf(segment: number): string {
  return `memtables.t${segment}`;
}

/** The table of the entities of its rows. */
function entityTableOf(segment: number): string {
  return `memtables.e${segment}`;
}

function closeDiscarded(appender: DuckDBAppender): void {
  try {
    appender.closeSync();
  } catch {
    // Closing flushes, which has failed before; the rows are read from the journal again.
  }
}
