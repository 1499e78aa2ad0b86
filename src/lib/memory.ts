import { totalmem } from "node:os";

// How much memory the process may use, and what share of it an engine gets.

const MIB = 2 ** 20;
/** What the service needs beside its engines: code, the heaps of its threads, caches of SQLite, requests in flight. */
const SERVICE_BYTES = 512 * MIB;
/** Each of the two column engines, and the answers on their way to clients. The last quarter is for what nobody accounts for. */
const SHARE = 0.25;

/** The machine's memory, or the limit of the container or unit that the process runs in. */
export function allowedMemory(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

/** At most `max` bytes; less where the process may not use much, but never less than `min`, without which nothing works. */
export function memoryShare({ min, max }: { min: number; max: number }, allowed = allowedMemory()): number {
  const share = Math.floor(Math.max(0, allowed - SERVICE_BYTES) * SHARE);
  return Math.min(max, Math.max(min, share));
}
