import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import type { DuckDBConnection } from "@duckdb/node-api";
import { NewerFile } from "../../../lib/newer-file.ts";
import { DAY_MS } from "../../../lib/time.ts";
import { FileIdentity, goneAmong, type GoneFile } from "../../files/file-identity.ts";
import { flowsFolder, flowUnitFile, listFlowDays, type Layout } from "../../files/layout.ts";
import { readSchemaVersion, writeSchemaVersion } from "../schema-version.ts";
import { MIXED, FLOW_DAY_FORMAT, FLOW_DAY_MIGRATIONS } from "./flow-table.ts";

// The days of flows: one file for each UTC day, so that removing a day frees its disk space at once.

export interface FlowDay {
  readonly day: number;
  /** The name under which the file is attached. */
  readonly name: string;
  lastSeq: number;
  /** Some row with an IPv4 address is not in the table `four`. */
  isMixed: boolean;
  /** Batches, and their rows, that are only in the log. */
  batchesInLog: number;
  rowsInLog: number;
  /** The time of the last batch, by the monotonic clock. */
  appendedAt: number;
  /** The log, while it has batches. */
  log: FileIdentity | undefined;
}

// Each checkpoint leaves partially filled columns: with twice as many checkpoints a row takes a twelfth more space.
const CHECKPOINT_AFTER_BATCHES = 120;
const CHECKPOINT_AFTER_ROWS = 500_000;
/** Each column of a row group starts a new block: with a quarter of DuckDB's default size, less space stays empty. */
const BLOCK_BYTES = 65_536;
/** After this time without a batch the day is considered complete. */
const CHECKPOINT_AFTER_QUIET_MS = 600_000;

/** Receives the number of rows of a day that was opened, and the failure of one that cannot be read. */
export interface FlowDayListener {
  readonly opened: (day: number, rows: number) => void;
  readonly damage: (day: number, reason: string) => void;
}

/** The identity of each day's file, as it was found or created. Outlives the engine, which may have to be reopened. */
export type FlowDayFiles = Map<number, FileIdentity>;

export class FlowDays {
  readonly #layout: Layout;
  readonly #connection: DuckDBConnection;
  readonly #files: FlowDayFiles;
  readonly #on: FlowDayListener;
  /** All days that have a file; undefined for those that are not open. */
  readonly #days = new Map<number, Promise<FlowDay | undefined> | undefined>();

  constructor(layout: Layout, connection: DuckDBConnection, files: FlowDayFiles, on: FlowDayListener) {
    this.#layout = layout;
    this.#connection = connection;
    this.#files = files;
    this.#on = on;
    for (const day of listFlowDays(layout)) {
      this.#days.set(day, undefined);
      this.#trackFile(day);
    }
  }

  #trackFile(day: number): void {
    if (!this.#files.has(day))
      this.#files.set(day, new FileIdentity(flowUnitFile(this.#layout, day), { mayShrink: true }));
  }

  /** Runs a commit, which may be acknowledged when this resolves. The commit returns whether it wrote anything. */
  async commit(flowDay: FlowDay, commit: () => Promise<boolean>): Promise<void> {
    this.#verify(flowDay);
    const isWritten = await commit();
    if (isWritten)
      flowDay.log ??= new FileIdentity(`${flowUnitFile(this.#layout, flowDay.day)}.wal`, { mayShrink: true });
    this.#verify(flowDay);
  }

  #verify(flowDay: FlowDay): void {
    this.#files.get(flowDay.day)?.verify();
    flowDay.log?.verify();
  }

  /** Files that were removed or replaced. */
  async goneFiles(): Promise<GoneFile[]> {
    const logs = (await this.openDays()).flatMap(({ log }) => (log ? [log] : []));
    return goneAmong([...this.#files.values(), ...logs]);
  }

  /** The days with rows in this time range, oldest first. */
  async inRange(fromMs = -Infinity, toMs = Infinity): Promise<FlowDay[]> {
    const days = [...this.#days.keys()].filter((day) => day + DAY_MS > fromMs && day < toMs).sort((a, b) => a - b);
    const flowDays: FlowDay[] = [];
    for (const day of days) {
      const flowDay = await this.#open(day);
      if (flowDay) flowDays.push(flowDay);
    }
    return flowDays;
  }

  /** Opens the day, or creates it. */
  async openOrCreate(day: number): Promise<FlowDay> {
    const flowDay = (await this.#open(day)) ?? (await this.#open(day));
    if (!flowDay) throw new Error(`the flows in ${flowUnitFile(this.#layout, day)} cannot be opened`);
    return flowDay;
  }

  daysBefore(ms: number): number[] {
    return [...this.#days.keys()].filter((day) => day + DAY_MS <= ms).sort((a, b) => a - b);
  }

  /** Hides the day from new queries; its file stays until `drop`. */
  async retire(day: number): Promise<FlowDay | undefined> {
    const flowDay = await this.#open(day);
    this.#days.delete(day);
    this.#files.delete(day);
    return flowDay;
  }

  /** Deletes a day that no query uses any more. */
  async drop(flowDay: FlowDay): Promise<void> {
    await this.#connection.run(`DETACH ${flowDay.name}`);
    const file = flowUnitFile(this.#layout, flowDay.day);
    for (const path of [file, `${file}.wal`]) rmSync(path, { force: true });
    this.syncFolder();
  }

  /** Moves the batches of the log into the columns, if there are many or `now` is set. */
  async checkpoint(flowDay: FlowDay, now: boolean): Promise<void> {
    if (flowDay.batchesInLog === 0) return;
    const { batchesInLog, rowsInLog, appendedAt } = flowDay;
    const isQuiet = performance.now() - appendedAt > CHECKPOINT_AFTER_QUIET_MS;
    if (!now && !isQuiet && batchesInLog < CHECKPOINT_AFTER_BATCHES && rowsInLog < CHECKPOINT_AFTER_ROWS) return;
    await this.#connection.run(`CHECKPOINT ${flowDay.name}`);
    flowDay.log = undefined;
    flowDay.batchesInLog -= batchesInLog;
    flowDay.rowsInLog -= rowsInLog;
  }

  /** The days that are open. */
  async openDays(): Promise<FlowDay[]> {
    const flowDays = await Promise.all([...this.#days.values()].filter((flowDay) => flowDay !== undefined));
    return flowDays.filter((flowDay) => flowDay !== undefined);
  }

  /** Makes created and removed files survive a power loss. */
  syncFolder(): void {
    const folder = openSync(flowsFolder(this.#layout.dataDir), "r");
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  }

  #open(day: number): Promise<FlowDay | undefined> {
    let opening = this.#days.get(day);
    if (!opening) {
      opening = this.#attachOrQuarantine(day);
      this.#days.set(day, opening);
      // The next call retries a failure that is not the fault of the file.
      opening.catch(() => this.#days.set(day, undefined));
    }
    return opening;
  }

  /** Returns undefined for a damaged file, which is renamed so that nothing opens it. */
  async #attachOrQuarantine(day: number): Promise<FlowDay | undefined> {
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

  async #attach(day: number, file: string): Promise<FlowDay> {
    const name = `day${day / DAY_MS}`;
    this.#files.get(day)?.verify();
    const isNew = !existsSync(file);
    const hasLog = existsSync(`${file}.wal`);
    const options = isNew ? ` (BLOCK_SIZE ${BLOCK_BYTES})` : "";
    await this.#connection.run(`ATTACH '${file.replaceAll("'", "''")}' AS ${name}${options}`);
    try {
      const isMigrated = await this.#migrate(name, file);
      const [[lastFour, lastSix, mixed]] = await this.#read(
        `SELECT (SELECT coalesce(max(seq), 0) FROM ${name}.four), (SELECT coalesce(max(seq), 0) FROM ${name}.six),
           EXISTS (FROM ${name}.six WHERE ${MIXED})`,
      );
      if (isNew) this.syncFolder();
      this.#trackFile(day);
      this.#on.opened(day, Math.max(Number(lastFour), Number(lastSix)));
      return {
        day,
        name,
        lastSeq: Math.max(Number(lastFour), Number(lastSix)),
        isMixed: mixed === true,
        batchesInLog: isMigrated || hasLog ? 1 : 0,
        rowsInLog: 0,
        appendedAt: performance.now(),
        log: undefined,
      };
    } catch (error) {
      await this.#connection.run(`DETACH ${name}`);
      throw error;
    }
  }

  /** Migrates the day to the newest version in one transaction. False if it has that version already. */
  async #migrate(name: string, file: string): Promise<boolean> {
    const version = await readSchemaVersion(this.#connection, name);
    const newest = FLOW_DAY_MIGRATIONS.length;
    if (version > newest) throw new NewerFile(file, version, newest);
    if (version === newest) return false;
    if (version === 0) await this.#refuseOtherFormat(name, file);
    await this.#connection.run("BEGIN TRANSACTION");
    try {
      for (const step of FLOW_DAY_MIGRATIONS.slice(version)) await this.#connection.run(step(name));
      await writeSchemaVersion(this.#connection, name, newest);
      await this.#connection.run("COMMIT");
      return true;
    } catch (error) {
      // A commit that failed has been rolled back already.
      await this.#connection.run("ROLLBACK").catch(() => undefined);
      throw error;
    }
  }

  /** Refuses a day without a version that has another format. */
  async #refuseOtherFormat(name: string, file: string): Promise<void> {
    const [[tables]] = await this.#read(
      `SELECT count(*) FROM duckdb_tables() WHERE database_name = '${name}' AND table_name = 'facts'`,
    );
    if (Number(tables) === 0) return;
    const [[format]] = await this.#read(`SELECT form FROM ${name}.facts`);
    if (format !== FLOW_DAY_FORMAT) throw new Error(`${file} was written by another version of tocsin`);
  }

  async #read(sql: string): Promise<[unknown[]]> {
    return (await this.#connection.runAndReadAll(sql)).getRows() as [unknown[]];
  }
}

/** True for a fault of the file itself, but not of our code, the disk or permissions. */
function isDamage(error: unknown): boolean {
  const text = error instanceof Error ? error.message : String(error);
  return /corrupt|checksum|not a valid DuckDB|Serialization Error|could not read enough bytes|WAL file/i.test(text);
}
