import { randomFillSync } from "node:crypto";

const RANDOM_BYTES = 8;
// Asking the system for eight bytes at a time costs more than all the rest of an id.
const POOL_BYTES = 512 * RANDOM_BYTES;

/**
 * Makes ids of one kind: a prefix and a UUIDv7 in lower-case hex, each greater than the one before, and greater than `lastId`,
 * the last one that an earlier process made: its clock may have been ahead of ours.
 */
export function idMaker(prefix: string, now: () => number = Date.now, lastId?: string | null): () => string {
  let lastMs = lastId ? timeOfId(lastId) + 1 : 0;
  let counter = 0;
  const pool = Buffer.alloc(POOL_BYTES);
  let drawn = POOL_BYTES;
  const random = (): Buffer => {
    if (drawn === POOL_BYTES) {
      randomFillSync(pool);
      drawn = 0;
    }
    return pool.subarray(drawn, (drawn += RANDOM_BYTES));
  };
  return () => {
    const ms = now();
    if (ms > lastMs) {
      lastMs = ms;
      counter = 0;
    } else if (++counter > 0xfff) {
      // A clock that stands still or goes back must not repeat or reorder ids: borrow the next millisecond.
      lastMs++;
      counter = 0;
    }
    return prefix + uuid7(lastMs, counter, random());
  };
}

/** The last one that was made of these; null when there are none. */
export function greatestId(ids: Iterable<string>): string | null {
  let greatest: string | null = null;
  for (const id of ids) if (greatest === null || id > greatest) greatest = id;
  return greatest;
}

/** The 32 hex digits of a UUIDv7 whose 12-bit counter stands where RFC 9562 puts `rand_a`. */
function uuid7(ms: number, counter: number, random: Buffer): string {
  random[0] = 0x80 | (random[0]! & 0x3f);
  return ms.toString(16).padStart(12, "0") + "7" + counter.toString(16).padStart(3, "0") + random.toString("hex");
}

/** When an id of this form was made, in milliseconds. */
export function timeOfId(id: string): number {
  const start = id.lastIndexOf("_") + 1;
  return Number.parseInt(id.slice(start, start + 12), 16);
}
