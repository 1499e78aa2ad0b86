import { randomInt } from "node:crypto";

// Rows found by keys of several words, in typed arrays: half a million of them are a few dozen megabytes and nothing that
// the garbage collector would have to look at.

const ROWS_USUAL = 1024;
const ROWS_MIN = 16;
const SLOTS_PER_ROW = 2;

export class KeyIndex {
  count = 0;
  /** Written by the caller before `find`. */
  readonly wanted: Uint32Array;
  /** All keys, one after the other. */
  keys: Uint32Array;
  readonly #width: number;
  /** So that nobody outside can choose keys that collide. */
  readonly #seed = randomInt(2 ** 32);
  #hashes: Uint32Array;
  #slots: Int32Array;
  #capacity: number;

  constructor(width: number, rows = ROWS_USUAL) {
    this.#width = width;
    this.#capacity = powerAbove(rows);
    this.wanted = new Uint32Array(width);
    this.keys = new Uint32Array(this.#capacity * width);
    this.#hashes = new Uint32Array(this.#capacity);
    this.#slots = new Int32Array(this.#capacity * SLOTS_PER_ROW);
  }

  get capacity(): number {
    return this.#capacity;
  }

  /** The row of the wanted key; -1 where there is none and `rowsMax` are there already. A new row is the last one. */
  find(rowsMax: number): number {
    const { wanted, keys } = this;
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
        while (word < width && keys[at + word] === wanted[word]) word++;
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
    this.keys.set(wanted, row * width);
    return row;
  }

  #hash(): number {
    const { wanted } = this;
    let hash = this.#seed;
    for (let index = 0; index < wanted.length; index++) {
      let word = Math.imul(wanted[index]!, 0xcc9e2d51);
      word = (word << 15) | (word >>> 17);
      hash ^= Math.imul(word, 0x1b873593);
      hash = Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64;
    }
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return (hash ^ (hash >>> 16)) >>> 0;
  }

  #grow(): void {
    this.#capacity *= 2;
    this.keys = grown(this.keys, this.#capacity * this.#width);
    this.#hashes = grown(this.#hashes, this.#capacity);
    this.#slots = new Int32Array(this.#capacity * SLOTS_PER_ROW);
    const mask = this.#slots.length - 1;
    for (let row = 0; row < this.count; row++) {
      let slot = this.#hashes[row]! & mask;
      while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
      this.#slots[slot] = row + 1;
    }
  }
}

function powerAbove(rows: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(ROWS_MIN, rows)));
}

export function grown<Column extends Uint32Array | Uint16Array | Uint8Array | Int32Array | Float64Array>(
  column: Column,
  length: number,
): Column {
  const larger = new (column.constructor as new (length: number) => Column)(length);
  larger.set(column);
  return larger;
}
