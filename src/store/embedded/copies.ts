import type { DuckDBConnection } from "@duckdb/node-api";

// What an engine has read of its files stays in its memory up to its limit, however long nobody asks, and the system keeps
// the same for it. So it is forgotten when nobody has asked for a while: the next question takes about a tenth longer, once.

/** Of what is on disk, kept in memory at rest. */
const KEPT_BYTES = 4 * 1024 * 1024;

/** Nothing else may be using the engine. */
export async function forgetCopies(connection: DuckDBConnection, memoryLimit: string): Promise<void> {
  const found = await connection.runAndReadAll(
    "SELECT coalesce(sum(memory_usage_bytes), 0)::DOUBLE FROM duckdb_memory() WHERE tag <> 'BASE_TABLE'",
  );
  const [[held]] = found.getRows() as [[number]];
  try {
    await connection.run(`SET memory_limit = '${held + KEPT_BYTES} bytes'`);
  } catch (error) {
    // What is in no file stays.
    if (!(error instanceof Error) || !error.message.startsWith("Out of Memory Error")) throw error;
  } finally {
    await connection.run(`SET memory_limit = '${memoryLimit}'`);
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
