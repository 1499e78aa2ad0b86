import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import type { DuckDBConnection } from "@duckdb/node-api";
import { NewerFile } from "../../../lib/newer-file.ts";
import { DAY_MS } from "../../../lib/time.ts";
import { FileIdentity, goneAmong, type GoneFile } from "../file-identity.ts";
import { flowsFolder, flowUnitFile, listFlowDays, type Layout } from "../layout.ts";
import { readDuckVersion, writeDuckVersion } from "../duckdb-version.ts";
import { MIXED, UNIT_FORM, UNIT_MIGRATIONS } from "./table.ts";

// The units that flows are kept in: a file for each UTC day, so that a day that goes gives its room back at once.

export interface Unit {
  readonly day: number;
  /** How the engine calls it. */
  readonly name: string;
  lastSeq: number;
  /** Some row with an IPv4 address is not in the table for these. */
  isMixed: boolean;
  /** Batches that only its log has. */
  unwritten: number;
  unwrittenRows: number;
  /** When its last batch came, by the monotonic clock. */
  appendedAt: number;
  /** Its log, while it has one that holds batches. */
  log: FileIdentity | undefined;
}

// Each writing leaves columns that are not filled: twice as often, and a row takes a twelfth more room.
const WRITE_AFTER_BATCHES = 120;
const WRITE_AFTER_ROWS = 500_000;
/** A column's part of a row group begins a block of its own: with a quarter of what the engine takes by itself, less is left empty. */
const BLOCK_BYTES = 65_536;
/** Nothing comes any more: the day is over. */
const WRITE_AFTER_QUIET_MS = 600_000;

/** Who hears of units: of one that is open how many rows it has, of one that cannot be read why. */
export interface UnitNews {
  readonly opened: (day: number, rows: number) => void;
  readonly damage: (day: number, words: string) => void;
}

/** Which file each day had when it was found or made. Outlives the engine, which may have to be opened anew. */
export type UnitFiles = Map<number, FileIdentity>;

export class Units {
  readonly #layout: Layout;
  readonly #connection: DuckDBConnection;
  readonly #files: UnitFiles;
  readonly #on: UnitNews;
  /** Every day that has a file; those that nobody asked for yet are not opened. */
  readonly #days = new Map<number, Promise<Unit | undefined> | undefined>();

  constructor(layout: Layout, connection: DuckDBConnection, files: UnitFiles, on: UnitNews) {
    this.#layout = layout;
    this.#connection = connection;
    this.#files = files;
    this.#on = on;
    for (const day of listFlowDays(layout)) {
      this.#days.set(day, undefined);
      this.#remember(day);
    }
  }

  #remember(day: number): void {
    if (!this.#files.has(day))
      this.#files.set(day, new FileIdentity(flowUnitFile(this.#layout, day), { mayShrink: true }));
  }

  /** Runs a commit to the unit that may only be acknowledged when it resolves; the commit says whether it wrote anything. */
  async during(unit: Unit, commit: () => Promise<boolean>): Promise<void> {
    this.#verify(unit);
    const isWritten = await commit();
    if (isWritten) unit.log ??= new FileIdentity(`${flowUnitFile(this.#layout, unit.day)}.wal`, { mayShrink: true });
    this.#verify(unit);
  }

  #verify(unit: Unit): void {
    this.#files.get(unit.day)?.verify();
    unit.log?.verify();
  }

  /** Files that are not those any more that were found or made. */
  async gone(): Promise<GoneFile[]> {
    const logs = (await this.opened()).flatMap(({ log }) => (log ? [log] : []));
    return goneAmong([...this.#files.values(), ...logs]);
  }

  /** Those that have rows of these times, oldest first. */
  async within(fromMs = -Infinity, toMs = Infinity): Promise<Unit[]> {
    const days = [...this.#days.keys()].filter((day) => day + DAY_MS > fromMs && day < toMs).sort((a, b) => a - b);
    const units: Unit[] = [];
    for (const day of days) {
      const unit = await this.#open(day);
      if (unit) units.push(unit);
    }
    return units;
  }

  /** The day's unit, made if there is none. */
  async of(day: number): Promise<Unit> {
    const unit = (await this.#open(day)) ?? (await this.#open(day));
    if (!unit) throw new Error(`the flows of ${flowUnitFile(this.#layout, day)} cannot be opened`);
    return unit;
  }

  before(ms: number): number[] {
    return [...this.#days.keys()].filter((day) => day + DAY_MS <= ms).sort((a, b) => a - b);
  }

  /** Nobody finds it from now on; its file stays until it is dropped. */
  async take(day: number): Promise<Unit | undefined> {
    const unit = await this.#open(day);
    this.#days.delete(day);
    this.#files.delete(day);
    return unit;
  }

  /** Must not be asked for any more. */
  async drop(unit: Unit): Promise<void> {
    await this.#connection.run(`DETACH ${unit.name}`);
    const file = flowUnitFile(this.#layout, unit.day);
    for (const path of [file, `${file}.wal`]) rmSync(path, { force: true });
    this.sync();
  }

  /** Brings what the unit's log has into its columns, when that is much or must be. */
  async write(unit: Unit, now: boolean): Promise<void> {
    if (unit.unwritten === 0) return;
    const { unwritten, unwrittenRows, appendedAt } = unit;
    const isQuiet = performance.now() - appendedAt > WRITE_AFTER_QUIET_MS;
    if (!now && !isQuiet && unwritten < WRITE_AFTER_BATCHES && unwrittenRows < WRITE_AFTER_ROWS) return;
    await this.#connection.run(`CHECKPOINT ${unit.name}`);
    unit.log = undefined;
    unit.unwritten -= unwritten;
    unit.unwrittenRows -= unwrittenRows;
  }

  /** Those that are open. */
  async opened(): Promise<Unit[]> {
    const units = await Promise.all([...this.#days.values()].filter((unit) => unit !== undefined));
    return units.filter((unit) => unit !== undefined);
  }

  /** That a file is there must survive a loss of power, as its content does. */
  sync(): void {
    const folder = openSync(flowsFolder(this.#layout.dataDir), "r");
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  }

  #open(day: number): Promise<Unit | undefined> {
    let opening = this.#days.get(day);
    if (!opening) {
      opening = this.#attachOrSetAside(day);
      this.#days.set(day, opening);
      // A failure that is not the file's own is tried again by whoever asks next.
      opening.catch(() => this.#days.set(day, undefined));
    }
    return opening;
  }

  /** Undefined for a file that cannot be read: it is kept beside the others under a name that nothing looks for. */
  async #attachOrSetAside(day: number): Promise<Unit | undefined> {
    const file = flowUnitFile(this.#layout, day);
    try {
      return await this.#attach(day, file);
    } catch (error) {
      if (!isDamage(error)) throw error;
      for (const suffix of ["", ".wal"]) {
        if (existsSync(file + suffix)) renameSync(file + suffix, `${file}${suffix}.${Date.now()}.damaged`);
      }
      this.#days.delete(day);
      this.#files.delete(day);
      this.#on.damage(day, `${file}: ${(error as Error).message}`);
      return undefined;
    }
  }

  async #attach(day: number, file: string): Promise<Unit> {
    const name = `day${day / DAY_MS}`;
    this.#files.get(day)?.verify();
    const isNew = !existsSync(file);
    const hasLog = existsSync(`${file}.wal`);
    const form = isNew ? ` (BLOCK_SIZE ${BLOCK_BYTES})` : "";
    await this.#connection.run(`ATTACH '${file.replaceAll("'", "''")}' AS ${name}${form}`);
    try {
      const isMigrated = await this.#migrate(name, file);
      const [[lastFour, lastSix, mixed]] = await this.#read(
        `SELECT (SELECT coalesce(max(seq), 0) FROM ${name}.four), (SELECT coalesce(max(seq), 0) FROM ${name}.six),
           EXISTS (FROM ${name}.six WHERE ${MIXED})`,
      );
      if (isNew) this.sync();
      this.#remember(day);
      this.#on.opened(day, Math.max(Number(lastFour), Number(lastSix)));
      return {
        day,
        name,
        lastSeq: Math.max(Number(lastFour), Number(lastSix)),
        isMixed: mixed === true,
        unwritten: isMigrated || hasLog ? 1 : 0,
        unwrittenRows: 0,
        appendedAt: performance.now(),
        log: undefined,
      };
    } catch (error) {
      await this.#connection.run(`DETACH ${name}`);
      throw error;
    }
  }

  /** Brings the unit to the newest version, all of it or nothing. False where it has that already. */
  async #migrate(name: string, file: string): Promise<boolean> {
    const version = await readDuckVersion(this.#connection, name);
    const newest = UNIT_MIGRATIONS.length;
    if (version > newest) throw new NewerFile(file, version, newest);
    if (version === newest) return false;
    if (version === 0) await this.#refuseOtherForm(name, file);
    await this.#connection.run("BEGIN TRANSACTION");
    try {
      for (const step of UNIT_MIGRATIONS.slice(version)) await this.#connection.run(step(name));
      await writeDuckVersion(this.#connection, name, newest);
      await this.#connection.run("COMMIT");
      return true;
    } catch (error) {
      // A commit that failed has been rolled back already.
      await this.#connection.run("ROLLBACK").catch(() => undefined);
      throw error;
    }
  }

  /** Of a unit without a version: one that is not new says its form. */
  async #refuseOtherForm(name: string, file: string): Promise<void> {
    const [[tables]] = await this.#read(
      `SELECT count(*) FROM duckdb_tables() WHERE database_name = '${name}' AND table_name = 'facts'`,
    );
    if (Number(tables) === 0) return;
    const [[form]] = await this.#read(`SELECT form FROM ${name}.facts`);
    if (form !== UNIT_FORM) throw new Error(`${file} was written by another version of tocsin`);
  }

  async #read(sql: string): Promise<[unknown[]]> {
    return (await this.#connection.runAndReadAll(sql)).getRows() as [unknown[]];
  }
}

/** The file itself is at fault: not we, nor the disk, nor its permissions. */
function isDamage(error: unknown): boolean {
  const text = error instanceof Error ? error.message : String(error);
  return /corrupt|checksum|not a valid DuckDB|Serialization Error|could not read enough bytes|WAL file/i.test(text);
}
