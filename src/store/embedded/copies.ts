import type { DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";

// An engine keeps what it has read of its files up to its memory limit, although the system caches the same pages. Under
// steady questions that alone would grow to the limit and stay there. So copies are released whenever nobody is reading:
// down to a bound under load, almost all of them at rest. The next question takes about a tenth longer, once.

/** Copies of what is on disk that stay in memory between questions. */
export const COPIES_BYTES_MAX = 64 * 1024 * 1024;
export const COPIES_BYTES_AT_REST = 4 * 1024 * 1024;

/** Leaves copies of so many bytes at most. Nothing else may be using the engine. */
export async function forgetCopies(
  connection: DuckDBConnection,
  memoryLimit: string,
  keptBytes: number,
): Promise<void> {
  const found = await connection.runAndReadAll(
    `SELECT coalesce(sum(memory_usage_bytes) FILTER (tag <> 'BASE_TABLE'), 0)::DOUBLE,
       coalesce(sum(memory_usage_bytes) FILTER (tag = 'BASE_TABLE'), 0)::DOUBLE FROM duckdb_memory()`,
  );
  const [[held, copies]] = found.getRows() as [[number, number]];
  if (copies <= keptBytes) return;
  try {
    await connection.run(`SET memory_limit = '${held + keptBytes} bytes'`);
  } catch (error) {
    // What is in no file stays.
    if (!(error instanceof Error) || !error.message.startsWith("Out of Memory Error")) throw error;
  } finally {
    await connection.run(`SET memory_limit = '${memoryLimit}'`);
  }
}

/** Bytes that the engine holds by its own account, tables in memory included. On a connection of its own: others may be within a transaction. */
export async function engineMemory(instance: DuckDBInstance): Promise<number> {
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

/** Knows whether anyone reads, and since when nobody does. */
export class Readers {
  readonly #all = new Set<Promise<unknown>>();
  #lastAt = 0;
  /** Starting reads as well. */
  #haveRead = true;

  async during<T>(work: () => Promise<T>): Promise<T> {
    const reading = work();
    this.#all.add(reading);
    this.#haveRead = true;
    try {
      return await reading;
    } finally {
      this.#all.delete(reading);
      this.#lastAt = performance.now();
    }
  }

  get areGone(): boolean {
    return this.#all.size === 0;
  }

  /** Resolves when those that read have their answers, whatever these are. */
  async haveGone(): Promise<void> {
    while (this.#all.size > 0) await Promise.allSettled(this.#all);
  }

  /** Once after each time that someone has read: nobody has for so long. */
  areGoneFor(ms: number): boolean {
    if (!this.#haveRead || this.#all.size > 0 || performance.now() - this.#lastAt < ms) return false;
    this.#haveRead = false;
    return true;
  }
}
