import { randomFillSync } from "node:crypto";

const RANDOM_BYTES = 8;
// Drawing eight random bytes at a time would cost more than the rest of an id.
const POOL_BYTES = 512 * RANDOM_BYTES;

/**
 * Creates ids of a prefix and a UUIDv7 in lower-case hex. Each is greater than the one before and greater than `lastId`, the
 * last id of an earlier process, whose clock may have been ahead.
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
      // A clock that stands still or goes back must not repeat or reorder ids: use the next millisecond.
      lastMs++;
      counter = 0;
    }
    return prefix + uuid7(lastMs, counter, random());
  };
}

/** The latest of the ids; null if there are none. */
export function greatestId(ids: Iterable<string>): string | null {
  let greatest: string | null = null;
  for (const id of ids) if (greatest === null || id > greatest) greatest = id;
  return greatest;
}

/** The 32 hex digits of a UUIDv7 with a 12-bit counter in the `rand_a` field of RFC 9562. */
function uuid7(ms: number, counter: number, random: Buffer): string {
  random[0] = 0x80 | (random[0]! & 0x3f);
  return ms.toString(16).padStart(12, "0") + "7" + counter.toString(16).padStart(3, "0") + random.toString("hex");
}

/** The creation time of an id in milliseconds. */
export function timeOfId(id: string): number {
  const start = id.lastIndexOf("_") + 1;
  return Number.parseInt(id.slice(start, start + 12), 16);
}
