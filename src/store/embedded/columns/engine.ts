import { mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { DuckDBInstance, type DuckDBConnection, type DuckDBValue } from "@duckdb/node-api";
import { memoryShare } from "../../../lib/memory.ts";
import { NewerFile } from "../../../lib/newer-file.ts";
import { DAY_MS } from "../../../lib/time.ts";
import { QuestionRefused, StoreUnavailable } from "../../store.ts";
import { columnsFile, columnsScratch } from "../layout.ts";
import type { SqlValue } from "./aggregate.ts";
import { FUNCTION_TOO_SLOW, registerFunctions, type ReadEvent } from "./functions.ts";
import { readDuckVersion, writeDuckVersion } from "../duckdb-version.ts";
import { columnList, COLUMNS_FORM, COLUMNS_VERSION } from "./table.ts";

// Opens DuckDB as the columns need it: one file on disk, a database in memory beside it, limits on both.

const MEBIBYTE = 2 ** 20;
/** Beyond it the engine goes on in files; what cannot go on there is refused. */
export const MEMORY_LIMIT = `${memoryShare({ min: 96 * MEBIBYTE, max: 384e6 })} bytes`;

export interface Engine {
  readonly instance: DuckDBInstance;
  readonly connection: DuckDBConnection;
  /** How many lots of rows have come to disk. */
  readonly lots: number;
  /** No row on disk is of a later time. */
  readonly latest: number;
  /** Well-known fields that any row on disk has in an unexpected form. */
  readonly oddBits: number;
  /** For each day of the journal, the last sequence number that is on disk. */
  readonly marks: ReadonlyMap<number, number>;
  /** How many rows of each day there are. */
  readonly rows: ReadonlyMap<number, number>;
  /** For each day of the journal, the number of the last change to its events that the rows on disk have. */
  readonly amended: ReadonlyMap<number, number>;
}

export interface EngineOptions {
  readonly onDropped: (reason: string) => void;
  readonly readEvent: ReadEvent;
}

/** A file that cannot be opened, or has another form, is dropped: the journal has everything. */
export async function openEngine(dataDir: string, { onDropped, readEvent }: EngineOptions): Promise<Engine> {
  const path = columnsFile(dataDir);
  mkdirSync(dirname(path), { recursive: true });
  rmSync(columnsScratch(dataDir), { recursive: true, force: true });
  mkdirSync(columnsScratch(dataDir), { recursive: true });
  try {
    return await open(path, dataDir, readEvent);
  } catch (error) {
    if (!isWrong(error)) throw error;
    onDropped((error as Error).message);
    for (const suffix of ["", ".wal"]) rmSync(path + suffix, { force: true });
    return open(path, dataDir, readEvent);
  }
}

/** The file itself is at fault: not we, nor the disk, nor its permissions, which dropping it would not mend. */
function isWrong(error: unknown): boolean {
  if (error instanceof NewerFile) return false;
  if (error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError) return false;
  return (
    error instanceof Error && !/No space left|Permission denied|Read-only file system|set lock/i.test(error.message)
  );
}

async function open(path: string, dataDir: string, readEvent: ReadEvent): Promise<Engine> {
  const instance = await DuckDBInstance.create(path, {
    memory_limit: MEMORY_LIMIT,
    temp_directory: columnsScratch(dataDir),
    threads: "2",
    // The follower says when. On its own the engine does it within a commit, even for the database in memory, and holds
    // up this thread, and with it every question, for most of a second.
    checkpoint_threshold: "1TB",
    storage_compatibility_version: "latest",
    // Nothing that a question holds can make the engine reach for the network or load code.
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "false",
    preserve_insertion_order: "false",
  });
  try {
    const connection = await instance.connect();
    const database = await databaseOf(connection);
    const version = await readDuckVersion(connection, database);
    if (version > COLUMNS_VERSION) throw new NewerFile(path, version, COLUMNS_VERSION);
    await connection.run("CREATE TABLE IF NOT EXISTS facts(form VARCHAR)");
    const [form] = await rowsOf(connection, "SELECT form FROM facts");
    if (form && form[0] !== COLUMNS_FORM) throw new Error("the columns have an older form");
    if (!form) {
      await connection.run(`CREATE TABLE events(${columnList}, lot INTEGER)`);
      await connection.run("CREATE TABLE marks(day BIGINT, seq BIGINT)");
      await connection.run("INSERT INTO facts VALUES ($1)", [COLUMNS_FORM]);
    }
    await connection.run("CREATE TABLE IF NOT EXISTS amended(day BIGINT, number BIGINT)");
    if (version < COLUMNS_VERSION) await writeDuckVersion(connection, database, COLUMNS_VERSION);
    // A damaged block shows itself when it is read: the narrow columns are read now, the others when a question does.
    const [[lots, oddBits, , latest]] = (await rowsOf(
      connection,
      "SELECT coalesce(max(lot), 0), coalesce(bit_or(odd), 0), max(seq), max(ts) FROM events",
    )) as [[number, number, bigint | null, bigint | null]];
    const byDay = async (sql: string) =>
      new Map((await rowsOf(connection, sql)).map(([day, number]) => [Number(day), Number(number)]));
    const marks = await byDay("SELECT day, seq FROM marks");
    const amended = await byDay("SELECT day, number FROM amended");
    const rows = await byDay(`SELECT ts - ts % ${DAY_MS} AS day, count(*) FROM events GROUP BY day`);
    await connection.run("ATTACH ':memory:' AS tail");
    registerFunctions(connection, readEvent);
    return { instance, connection, lots, oddBits, latest: Number(latest ?? 0), marks, amended, rows };
  } catch (error) {
    instance.closeSync();
    throw error;
  }
}

/** What the file is attached as: it goes by the file's name. */
async function databaseOf(connection: DuckDBConnection): Promise<string> {
  const [[name]] = (await rowsOf(connection, "SELECT current_database()")) as [[string]];
  return name;
}

export async function rowsOf(connection: DuckDBConnection, sql: string, values?: DuckDBValue[]): Promise<SqlValue[][]> {
  return (await connection.runAndReadAll(sql, values)).getRows() as SqlValue[][];
}

/**
 * What a question failed for, in words for whoever asked it: of memory there is not more on another day, unless other
 * questions had taken it. Anything but a want of memory or time stays what it is.
 */
export function whyFailed(error: unknown, isAlone: boolean): unknown {
  if (error instanceof Error && error.message.includes(FUNCTION_TOO_SLOW)) return functionTooSlow();
  if (!(error instanceof Error) || !/^Out of Memory Error/i.test(error.message)) return error;
  if (!isAlone) return new StoreUnavailable("queue_full", "questions at the same time take too much memory");
  return new QuestionRefused(
    "query",
    "takes more memory than there is for it: narrow the time range or the filters, or group by a field with fewer or shorter values",
  );
}

function functionTooSlow(): QuestionRefused {
  return new QuestionRefused(
    "query",
    "takes too long on some of the events, which are large: narrow the time range or the filters, or use simpler patterns",
  );
}

export function tookTooLong(msMax: number): QuestionRefused {
  return new QuestionRefused("query", `took longer than ${msMax / 1000} s: narrow the time range or the filters`);
}
