import { totalmem } from "node:os";

// The memory available to the process, and the share of an engine.

const MIB = 2 ** 20;
/** Memory of the service without its engines: code, thread heaps, SQLite caches, requests in flight. */
const SERVICE_BYTES = 512 * MIB;
/** The share of each of the two column engines. The other half is for responses, exports and the unaccounted rest. */
const SHARE = 0.25;

/** The memory of the machine, or the limit of the container or systemd unit. */
export function allowedMemory(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

interface ShareBounds {
  readonly min: number;
  readonly max: number;
  /** The share of the memory beyond the service's own. */
  readonly share?: number;
}

/** A share of the memory beyond the service's own, but at least `min` bytes, without which nothing works, and at most `max`. */
export function memoryShare({ min, max, share = SHARE }: ShareBounds, allowed = allowedMemory()): number {
  const bytes = Math.floor(Math.max(0, allowed - SERVICE_BYTES) * share);
  return Math.min(max, Math.max(min, bytes));
}

/** The limit of all responses that are being built, and of all that are being sent. */
export function responsesCharactersMax(allowed = allowedMemory()): number {
  return memoryShare({ min: 64 * MIB, max: 256 * MIB, share: SHARE / 2 }, allowed);
}

/** The limit of one response; one client may use half of the limit of all. */
export function responseCharactersMax(allowed = allowedMemory()): number {
  return Math.min(64 * MIB, Math.floor(responsesCharactersMax(allowed) / 3));
}
