import { mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { DuckDBInstance, type DuckDBConnection, type DuckDBValue } from "@duckdb/node-api";
import { memoryShare } from "../../../lib/memory.ts";
import { NewerFile } from "../../../lib/newer-file.ts";
import { DAY_MS } from "../../../lib/time.ts";
import { QueryRefused, StoreUnavailable } from "../../ports/store-errors.ts";
import { columnsFile, columnsScratch } from "../../files/layout.ts";
import type { SqlValue } from "./aggregate.ts";
import { ENTITY_TABLES, RECOUNT_ENTITIES } from "./entity-schema.ts";
import { FUNCTION_TOO_SLOW, registerScalarFunctions, type EventReader } from "./scalar-functions.ts";
import { readSchemaVersion, writeSchemaVersion } from "../schema-version.ts";
import { FIELD_COLUMN_TABLE } from "./field-column-schema.ts";
import { COLUMN_LIST, COLUMNS_FORMAT, COLUMNS_VERSION, ENTITIES_VERSION } from "./column-table.ts";

// Opens DuckDB for the columns: one file on disk, one database in memory, and limits on both.

const MEBIBYTE = 2 ** 20;
/** Above this limit DuckDB spills to temporary files; a query that cannot spill is refused. */
export const MEMORY_LIMIT = `${memoryShare({ min: 96 * MEBIBYTE, max: 384e6 })} bytes`;

export interface ColumnEngine {
  readonly instance: DuckDBInstance;
  readonly connection: DuckDBConnection;
  /** The number of segments on disk. */
  readonly segments: number;
  /** No row on disk has a later time. */
  readonly latest: number;
  /** The `odd` bits of all rows on disk. */
  readonly irregularBits: number;
  /** For each day of the journal, the last sequence number on disk. */
  readonly checkpoints: ReadonlyMap<number, number>;
  /** For each day, the number of rows on disk. */
  readonly rows: ReadonlyMap<number, number>;
  /** For each day of the journal, the number of the last amendment that the rows on disk have. */
  readonly amended: ReadonlyMap<number, number>;
}

export interface ColumnEngineOptions {
  readonly onDropped: (reason: string) => void;
  readonly readEvent: EventReader;
}

/** Opens the file. One that is damaged or has another format is dropped: the journal has everything. */
export async function openColumnEngine(
  dataDir: string,
  { onDropped, readEvent }: ColumnEngineOptions,
): Promise<ColumnEngine> {
  const path = columnsFile(dataDir);
  mkdirSync(dirname(path), { recursive: true });
  rmSync(columnsScratch(dataDir), { recursive: true, force: true });
  mkdirSync(columnsScratch(dataDir), { recursive: true });
  try {
    return await open(path, dataDir, readEvent);
  } catch (error) {
    if (!isDamagedFile(error)) throw error;
    onDropped((error as Error).message);
    for (const suffix of ["", ".wal"]) rmSync(path + suffix, { force: true });
    return open(path, dataDir, readEvent);
  }
}

/** True for a fault of the file itself, but not of our code, the disk or permissions, where dropping it would not help. */
function isDamagedFile(error: unknown): boolean {
  if (error instanceof NewerFile) return false;
  if (error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError) return false;
  return (
    error instanceof Error && !/No space left|Permission denied|Read-only file system|set lock/i.test(error.message)
  );
}

async function open(path: string, dataDir: string, readEvent: EventReader): Promise<ColumnEngine> {
  const instance = await DuckDBInstance.create(path, {
    memory_limit: MEMORY_LIMIT,
    temp_directory: columnsScratch(dataDir),
    threads: "2",
    // The follower checkpoints. On its own DuckDB does it within a commit, even for the database in memory, and blocks this
    // thread, and with it all queries, for most of a second.
    checkpoint_threshold: "1TB",
    storage_compatibility_version: "latest",
    // No query can make DuckDB access the network or load code.
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "false",
    preserve_insertion_order: "false",
  });
  try {
    const connection = await instance.connect();
    const database = await databaseName(connection);
    const version = await readSchemaVersion(connection, database);
    if (version > COLUMNS_VERSION) throw new NewerFile(path, version, COLUMNS_VERSION);
    // `facts` has the format, `marks` the checkpoints; `lot` is the segment of a row.
    await connection.run("CREATE TABLE IF NOT EXISTS facts(form VARCHAR)");
    const [format] = await queryRows(connection, "SELECT form FROM facts");
    if (format && format[0] !== COLUMNS_FORMAT) throw new Error("the columns have an older format");
    if (!format) {
      await connection.run(`CREATE TABLE events(${COLUMN_LIST}, lot INTEGER)`);
      await connection.run("CREATE TABLE marks(day BIGINT, seq BIGINT)");
      await connection.run("INSERT INTO facts VALUES ($1)", [COLUMNS_FORMAT]);
    }
    await connection.run("CREATE TABLE IF NOT EXISTS amended(day BIGINT, number BIGINT)");
    await connection.run(ENTITY_TABLES);
    await connection.run(FIELD_COLUMN_TABLE);
    if (version < COLUMNS_VERSION) {
      if (version < ENTITIES_VERSION) await connection.run(RECOUNT_ENTITIES);
      await writeSchemaVersion(connection, database, COLUMNS_VERSION);
    }
    // Damage to a block shows when it is read: the narrow columns are read now, the others by queries.
    const [[segments, irregularBits, , latest]] = (await queryRows(
      connection,
      "SELECT coalesce(max(lot), 0), coalesce(bit_or(odd), 0), max(seq), max(ts) FROM events",
    )) as [[number, number, bigint | null, bigint | null]];
    const byDay = async (sql: string) =>
      new Map((await queryRows(connection, sql)).map(([day, number]) => [Number(day), Number(number)]));
    const checkpoints = await byDay("SELECT day, seq FROM marks");
    const amended = await byDay("SELECT day, number FROM amended");
    const rows = await byDay(`SELECT ts - ts % ${DAY_MS} AS day, count(*) FROM events GROUP BY day`);
    await connection.run("ATTACH ':memory:' AS memtables");
    registerScalarFunctions(connection, readEvent);
    return { instance, connection, segments, irregularBits, latest: Number(latest ?? 0), checkpoints, amended, rows };
  } catch (error) {
    instance.closeSync();
    throw error;
  }
}

/** The name under which the file is attached, which follows the file name. */
async function databaseName(connection: DuckDBConnection): Promise<string> {
  const [[name]] = (await queryRows(connection, "SELECT current_database()")) as [[string]];
  return name;
}

export async function queryRows(
  connection: DuckDBConnection,
  sql: string,
  values?: DuckDBValue[],
): Promise<SqlValue[][]> {
  return (await connection.runAndReadAll(sql, values)).getRows() as SqlValue[][];
}

/**
 * Turns a lack of memory or time into an error for the client. A query that lacked memory next to others may be retried; one
 * that ran alone will fail again. Other errors stay as they are.
 */
export function explainFailure(error: unknown, isAlone: boolean): unknown {
  if (error instanceof Error && error.message.includes(FUNCTION_TOO_SLOW)) return functionTooSlow();
  if (!(error instanceof Error) || !/^Out of Memory Error/i.test(error.message)) return error;
  if (!isAlone) return new StoreUnavailable("queue_full", "concurrent queries take too much memory");
  return new QueryRefused(
    "query",
    "takes more memory than is available: narrow the time range or the filters, or group by a field with fewer or shorter values",
  );
}

function functionTooSlow(): QueryRefused {
  return new QueryRefused(
    "query",
    "takes too long on some large events: narrow the time range or the filters, or use simpler patterns",
  );
}

export function queryTimedOut(msMax: number): QueryRefused {
  return new QueryRefused("query", `took longer than ${msMax / 1000} s: narrow the time range or the filters`);
}
