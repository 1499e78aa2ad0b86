import { randomInt } from "node:crypto";

// A hash index of rows by keys of several words, in typed arrays: half a million rows take a few dozen megabytes that the garbage
// collector does not scan.

const ROWS_DEFAULT = 1024;
const ROWS_MIN = 16;
const SLOTS_PER_ROW = 2;

export class KeyIndex {
  count = 0;
  /** The key that `find` looks up; the caller fills it in. */
  readonly lookupKey: Uint32Array;
  /** All keys, one after the other. */
  keys: Uint32Array;
  readonly #width: number;
  /** Random, so that senders cannot choose keys that collide. */
  readonly #seed = randomInt(2 ** 32);
  #hashes: Uint32Array;
  #slots: Int32Array;
  #capacity: number;

  constructor(width: number, rows = ROWS_DEFAULT) {
    this.#width = width;
    this.#capacity = nextPowerOfTwo(rows);
    this.lookupKey = new Uint32Array(width);
    this.keys = new Uint32Array(this.#capacity * width);
    this.#hashes = new Uint32Array(this.#capacity);
    this.#slots = new Int32Array(this.#capacity * SLOTS_PER_ROW);
  }

  get capacity(): number {
    return this.#capacity;
  }

  /** Returns the row of the lookup key, which it appends if new; -1 if it is new and there are `rowsMax` rows already. */
  find(rowsMax: number): number {
    const { lookupKey, keys } = this;
    const width = this.#width;
    const mask = this.#slots.length - 1;
    const hash = this.#hash();
    let slot = hash & mask;
    for (;;) {
      const row = this.#slots[slot]! - 1;
      if (row < 0) break;
      if (this.#hashes[row] === hash) {
        let word = 0;
        const at = row * width;
        while (word < width && keys[at + word] === lookupKey[word]) word++;
        if (word === width) return row;
      }
      slot = (slot + 1) & mask;
    }
    if (this.count >= rowsMax) return -1;
    if (this.count === this.#capacity) {
      this.#grow();
      return this.find(rowsMax);
    }
    const row = this.count++;
    this.#slots[slot] = row + 1;
    this.#hashes[row] = hash;
    this.keys.set(lookupKey, row * width);
    return row;
  }

  #hash(): number {
    const { lookupKey } = this;
    let hash = this.#seed;
    for (let index = 0; index < lookupKey.length; index++) {
      let word = Math.imul(lookupKey[index]!, 0xcc9e2d51);
      word = (word << 15) | (word >>> 17);
      hash ^= Math.imul(word, 0x1b873593);
      hash = Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64;
    }
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return (hash ^ (hash >>> 16)) >>> 0;
  }

  /** Frees the memory at once. The index must not be used any more. */
  free(): void {
    freeColumns(this.keys, this.#hashes, this.#slots);
  }

  #grow(): void {
    this.#capacity *= 2;
    this.keys = growColumn(this.keys, this.#capacity * this.#width);
    this.#hashes = growColumn(this.#hashes, this.#capacity);
    freeColumns(this.#slots);
    this.#slots = new Int32Array(this.#capacity * SLOTS_PER_ROW);
    const mask = this.#slots.length - 1;
    for (let row = 0; row < this.count; row++) {
      let slot = this.#hashes[row]! & mask;
      while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
      this.#slots[slot] = row + 1;
    }
  }
}

function nextPowerOfTwo(rows: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(ROWS_MIN, rows)));
}

type Column = Uint32Array | Uint16Array | Uint8Array | Int32Array | Float64Array;

/** A longer column with the same values. The old one must not be used any more. */
export function growColumn<Kind extends Column>(column: Kind, length: number): Kind {
  const larger = new (column.constructor as new (length: number) => Kind)(length);
  larger.set(column);
  freeColumns(column);
  return larger;
}

/**
 * Frees unused columns at once. Left to the garbage collector, 64 MB of them would accumulate: a thread that allocates little
 * else is not collected before.
 */
export function freeColumns(...columns: readonly Column[]): void {
  for (const { buffer } of columns) (buffer as ArrayBuffer).transfer(0);
}
