import type { DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";

// DuckDB caches blocks of its files up to its memory limit, although the operating system caches the same pages. Under a
// steady load that cache would grow to the limit and stay there. It is therefore released whenever no query is running: down
// to a bound under load, almost completely when idle. The next query takes about a tenth longer, once.

/** Cached blocks that stay in memory between queries. */
export const CACHE_BYTES_MAX = 64 * 1024 * 1024;
/** The same when idle. */
export const IDLE_CACHE_BYTES_MAX = 4 * 1024 * 1024;

/** Releases cached blocks down to this many bytes. Nothing else may be using the engine. */
export async function releaseCache(
  connection: DuckDBConnection,
  memoryLimit: string,
  keptBytes: number,
): Promise<void> {
  const found = await connection.runAndReadAll(
    `SELECT coalesce(sum(memory_usage_bytes) FILTER (tag <> 'BASE_TABLE'), 0)::DOUBLE,
       coalesce(sum(memory_usage_bytes) FILTER (tag = 'BASE_TABLE'), 0)::DOUBLE FROM duckdb_memory()`,
  );
  const [[otherBytes, cachedBytes]] = found.getRows() as [[number, number]];
  if (cachedBytes <= keptBytes) return;
  try {
    await connection.run(`SET memory_limit = '${otherBytes + keptBytes} bytes'`);
  } catch (error) {
    // Data that is in no file stays in memory.
    if (!(error instanceof Error) || !error.message.startsWith("Out of Memory Error")) throw error;
  } finally {
    await connection.run(`SET memory_limit = '${memoryLimit}'`);
  }
}

/** The bytes that DuckDB reports as used, memtables included. Uses its own connection: others may be in a transaction. */
export async function memoryUsedBytes(instance: DuckDBInstance): Promise<number> {
  const connection = await instance.connect();
  try {
    const found = await connection.runAndReadAll(
      "SELECT coalesce(sum(memory_usage_bytes), 0)::DOUBLE FROM duckdb_memory()",
    );
    return (found.getRows() as [[number]])[0][0];
  } finally {
    connection.closeSync();
  }
}

/** Tracks running reads, and the time since the last one. */
export class ActiveReaders {
  readonly #all = new Set<Promise<unknown>>();
  #lastReadAt = 0;
  /** Starts true: opening a database reads as well. */
  #hasReadSinceIdle = true;

  async track<T>(work: () => Promise<T>): Promise<T> {
    const reading = work();
    this.#all.add(reading);
    this.#hasReadSinceIdle = true;
    try {
      return await reading;
    } finally {
      this.#all.delete(reading);
      this.#lastReadAt = performance.now();
    }
  }

  get isIdle(): boolean {
    return this.#all.size === 0;
  }

  /** Resolves when all running reads have ended, well or not. */
  async whenIdle(): Promise<void> {
    while (this.#all.size > 0) await Promise.allSettled(this.#all);
  }

  /** True once after each period of reads, when nothing has read for this long. */
  becameIdleFor(ms: number): boolean {
    if (!this.#hasReadSinceIdle || this.#all.size > 0 || performance.now() - this.#lastReadAt < ms) return false;
    this.#hasReadSinceIdle = false;
    return true;
  }
}
