import { rmSync } from "node:fs";
import type { DuckDBConnection } from "@duckdb/node-api";
import { DigestCache } from "../../../lib/digest-cache.ts";
import { parseExact } from "../../../lib/exact-json.ts";
import { SerialQueue } from "../../../lib/serial-queue.ts";
import { startOfDay } from "../../../lib/time.ts";
import type { Event } from "../../../model/event.ts";
import { StoreUnavailable } from "../../ports/store-errors.ts";
import { columnsFile, type Layout } from "../../files/layout.ts";
import { DayReaders } from "../../sqlite/journal/day-file.ts";
import {
  ActiveReaders,
  CACHE_BYTES_MAX,
  IDLE_CACHE_BYTES_MAX,
  memoryUsedBytes,
  releaseCache,
} from "../cache-release.ts";
import { MEMORY_LIMIT, openColumnEngine, type ColumnEngine } from "./column-engine.ts";
import { openJournalFollower, type CommittedRows, type JournalFollower } from "./journal-follower.ts";
import type { DayEnd } from "../../sqlite/journal/journal-days.ts";

// The life cycle of the columns: open, follow the journal, flush, release caches, rebuild after damage, close.

export interface ColumnDatabaseOptions extends Layout {
  readonly platform: string;
  /** Rows of a full memtable; tests set few. */
  readonly memtableRowsMax?: number | undefined;
  /** Time without a query after which cached blocks are released; tests set it short. */
  readonly idleMs?: number | undefined;
}

const FOLLOW_MS = 100;
/** A memtable that gets no more rows is flushed too, so that a restart after a crash has little to read. */
const FLUSH_MS = 60_000;
const IDLE_MS = 5000;
const CACHED_COUNTS_MAX = 2000;
const CACHED_COSTS_MAX = 500;

/** The open columns. A rebuild replaces all of it. */
export interface OpenColumns {
  readonly engine: ColumnEngine;
  readonly follower: JournalFollower;
  readonly idleConnections: DuckDBConnection[];
  /** Row counts and highest row costs on disk, by version of the disk and SQL. */
  readonly diskCounts: DigestCache<number>;
  readonly diskCosts: DigestCache<number>;
}

export interface ColumnStatus {
  /** Rows that the journal has and the columns do not have yet. */
  readonly lag: number;
  readonly oversized: number;
  /** Columns of fields that were aggregated, and that are filled. */
  readonly fieldColumns: number;
  readonly flushFailure: string | undefined;
  /** The reason why the file was dropped, or days were copied again. */
  readonly dropped: string | undefined;
}

/** Opens the columns and starts to copy missing rows from the journal; queries wait for it. */
export async function openColumnDatabase(
  options: ColumnDatabaseOptions,
  days: readonly DayEnd[],
  canRelease: () => boolean,
): Promise<ColumnDatabase> {
  const database = new ColumnDatabase(options, days, canRelease);
  await database.open();
  return database;
}

export class ColumnDatabase {
  readonly options: ColumnDatabaseOptions;
  /** Queries that read the columns, except for projections that have started. */
  readonly readers = new ActiveReaders();
  readonly #journal: DayReaders;
  readonly #idleMs: number;
  readonly #canRelease: () => boolean;
  /** Memory readings do not count as readers: they are no reason to keep cached blocks. */
  readonly #memoryReadings = new SerialQueue();
  #days: DayEnd[];
  #columns: OpenColumns | undefined;
  /** Pending work that queries wait for: a rebuild, or a release of cached blocks. */
  #ready: Promise<void> = Promise.resolve();
  /** The damage that a rebuild has not repaired yet. */
  #damage: string | undefined;
  #dropped: string | undefined;
  #isClosing = false;
  #matchTables = 0;
  #followTimer: NodeJS.Timeout | undefined;
  #flushTimer: NodeJS.Timeout | undefined;
  #releaseTimer: NodeJS.Timeout | undefined;

  /** `canRelease` is false while something other than `readers` reads the columns. */
  constructor(options: ColumnDatabaseOptions, days: readonly DayEnd[], canRelease: () => boolean) {
    this.options = options;
    this.#days = [...days];
    this.#journal = new DayReaders(options);
    this.#idleMs = options.idleMs ?? IDLE_MS;
    this.#canRelease = canRelease;
  }

  async open(): Promise<void> {
    await this.#openColumns();
    this.#flushTimer = setInterval(() => {
      this.#ready.then(() => this.#follower.memtables.flush()).catch(() => undefined);
      this.#countEntityBacklog();
      this.#fillFieldColumns();
    }, FLUSH_MS);
    this.#countEntityBacklog();
    this.#releaseTimer = setInterval(() => this.#releaseCaches(), this.#idleMs);
    this.#scheduleFollow();
  }

  async #openColumns(): Promise<void> {
    const engine = await openColumnEngine(this.options.dataDir, {
      onDropped: (reason) => void (this.#dropped = reason),
      readEvent: (timestampMs, seq) => this.#readEvent(timestampMs, seq),
    });
    try {
      const { memtableRowsMax } = this.options;
      const follower = await openJournalFollower({ engine, journal: this.#journal, days: this.#days, memtableRowsMax });
      // The previous follower was notified of commits during the start.
      follower.noteCommitted(
        this.#days.map(({ day, lastSeq }) => ({ day, firstSeq: lastSeq, lastSeq, rows: 0, packed: undefined })),
      );
      for (const { day, lastAmendment } of this.#days) follower.noteAmended(day, lastAmendment);
      follower.memtables.fields.onWanted = () => this.#fillFieldColumns();
      const { length } = follower.mismatchedDays;
      if (length > 0) this.#dropped = `${length} days had other rows than the journal`;
      this.#columns = {
        engine,
        follower,
        idleConnections: [],
        diskCounts: new DigestCache(CACHED_COUNTS_MAX),
        diskCosts: new DigestCache(CACHED_COSTS_MAX),
      };
    } catch (error) {
      engine.instance.closeSync();
      throw error;
    }
  }

  #readEvent(timestampMs: number, seq: number): Event | undefined {
    const row = this.#journal.get(startOfDay(timestampMs))?.sql("SELECT body FROM events WHERE seq = ?").get(seq);
    return row && (parseExact((row as { body: string }).body) as Event);
  }

  get #follower(): JournalFollower {
    return this.current.follower;
  }

  get current(): OpenColumns {
    if (!this.#columns) throw new StoreUnavailable("failed", "the columns are not open");
    return this.#columns;
  }

  get lost(): JournalFollower["lost"] {
    return this.#follower.lost;
  }

  get rowsRead(): number {
    return this.#follower.rowsRead;
  }

  get status(): ColumnStatus {
    const { lag, rowsOversized: oversized, memtables } = this.#follower;
    const { flushFailure, fields } = memtables;
    return { lag, oversized, fieldColumns: fields.filled, flushFailure: flushFailure?.message, dropped: this.#dropped };
  }

  memoryBytes(): Promise<number> {
    return this.#memoryReadings.take(async () => {
      await this.#ready;
      this.throwIfClosing();
      return memoryUsedBytes(this.current.engine.instance);
    });
  }

  /** A new name for a table of matching rows, in the database of the memtables. */
  newMatchTable(): string {
    return `memtables.matches${++this.#matchTables}`;
  }

  noteCommitted(committed: readonly CommittedRows[]): void {
    for (const { day, lastSeq, rows } of committed) {
      const known = this.#days.findIndex((end) => end.day === day);
      if (known >= 0) this.#days[known] = { ...this.#days[known]!, lastSeq, rows: this.#days[known]!.rows + rows };
      else this.#days.push({ day, rows, lastSeq, lastAmendment: 0 });
    }
    this.#follower.noteCommitted(committed);
    this.#scheduleFollow();
  }

  /** The journal has changed events of this day that it had committed before. */
  noteAmended(day: number, lastAmendment: number): void {
    const known = this.#days.findIndex((end) => end.day === day);
    if (known >= 0) this.#days[known] = { ...this.#days[known]!, lastAmendment };
    this.#follower.noteAmended(day, lastAmendment);
    this.#scheduleFollow();
  }

  #scheduleFollow(): void {
    this.#followTimer ??= setTimeout(() => {
      this.#followTimer = undefined;
      // A failure shows in the lag; the next query meets it again, and the next events retry.
      this.#ready.then(() => this.#follower.catchUp()).catch(() => undefined);
    }, FOLLOW_MS);
  }

  /** After a failure, searches for entities are incomplete, and say so, until the next attempt. */
  #countEntityBacklog(): void {
    this.#ready.then(() => this.#follower.entityBacklog.continue()).catch(() => undefined);
  }

  /** After a failure, queries compute what is not filled, until the next attempt. */
  #fillFieldColumns(): void {
    this.#ready.then(() => this.#follower.fieldFiller.continue()).catch(() => undefined);
  }

  /** Resolves with the columns once they have everything that the journal had committed before the call. */
  async caughtUp(): Promise<OpenColumns> {
    await this.#ready;
    await this.#follower.catchUp();
    return this.current;
  }

  async removeDay(day: number): Promise<void> {
    await this.#ready;
    this.#days = this.#days.filter((end) => end.day !== day);
    await this.#follower.removeDay(day);
  }

  #releaseCaches(): void {
    // Unrepaired damage waits for a query: a failure here would not be reported.
    if (this.#damage !== undefined || !this.#canRelease() || !this.readers.isIdle) return;
    if (this.#follower.memtables.isFlushing) return;
    const keptBytes = this.readers.becameIdleFor(this.#idleMs) ? IDLE_CACHE_BYTES_MAX : CACHE_BYTES_MAX;
    const release = () => releaseCache(this.current.engine.connection, MEMORY_LIMIT, keptBytes);
    // Queries that arrive during the release wait. The next query meets damage again.
    this.#ready = this.#ready.then(() => this.#follower.exclusively(release).catch(() => undefined));
  }

  /** Runs a query. After damage it rebuilds the columns and runs the query once more. */
  async withRepair<T>(query: () => Promise<T>): Promise<T> {
    await this.#ready.catch(() => undefined);
    if (this.#damage !== undefined) this.#repair(this.#damage, this.#columns);
    const used = this.#columns;
    try {
      return await query();
    } catch (error) {
      if (!isDamage(error)) throw error;
      this.#repair(error instanceof Error ? error.message : String(error), used);
      return await query();
    }
  }

  /**
   * Several queries may meet the same damage: the first one triggers the rebuild for all. The next query retries a rebuild
   * that failed, for example on a full disk.
   */
  #repair(damage: string, damaged: OpenColumns | undefined): void {
    this.#ready = this.#ready
      .catch(() => undefined)
      .then(() => (this.#damage !== undefined || this.#columns === damaged ? this.#rebuild(damage) : undefined));
  }

  async #rebuild(damage: string): Promise<void> {
    this.#dropped = damage;
    // The closed columns stay for `noteCommitted` until the new ones are open.
    if (this.#damage === undefined) {
      await this.#follower.stopBackgroundWork();
      this.current.engine.instance.closeSync();
    }
    this.#damage = damage;
    for (const suffix of ["", ".wal"]) rmSync(columnsFile(this.options.dataDir) + suffix, { force: true });
    await this.#openColumns();
    this.#damage = undefined;
  }

  throwIfClosing(): void {
    if (this.#isClosing) throw new StoreUnavailable("closed", "the store is being closed");
  }

  /** Refuses new queries. */
  beginClose(): void {
    clearTimeout(this.#followTimer);
    clearInterval(this.#flushTimer);
    clearInterval(this.#releaseTimer);
    this.#isClosing = true;
  }

  /** Flushes and closes. No query may be running: closing an engine under a query crashes the process. */
  async close(): Promise<void> {
    await this.readers.whenIdle();
    await this.#memoryReadings.settled();
    const { engine, follower, idleConnections } = await this.caughtUp();
    await follower.stopBackgroundWork();
    await follower.memtables.flush();
    await follower.memtables.checkpoint();
    for (const connection of idleConnections) connection.closeSync();
    engine.connection.closeSync();
    engine.instance.closeSync();
    this.#journal.closeAll();
  }
}

function isDamage(error: unknown): boolean {
  const text = error instanceof Error ? error.message : String(error);
  return /corrupt|checksum|invalidated|Serialization Error|FATAL|INTERNAL Error|IO Error: Could not read/i.test(text);
}
