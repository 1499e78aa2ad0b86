// Numbers for texts that are bytes in DuckDB's memory. Most texts recur, and then no string is created for them: that would
// cost more than everything else that is done with a row.

/** Past these limits the numbers start over, or a text is not stored. */
const TEXTS_MAX = 150_000;
const BYTES_MAX = 16 * 1024 * 1024;
const BYTES_MIN = 64 * 1024;
const SLOTS = 2 ** Math.ceil(Math.log2(TEXTS_MAX * 2));
/** The limit of slots that a lookup probes: a client may choose texts that collide. */
const PROBES_MAX = 32;

/** Each number stands for one text. A text may have several numbers: a lookup that takes long assigns a new one. */
export class TextDictionary {
  /** Numbers by hash; 0 is a free slot. */
  readonly #slots = new Int32Array(SLOTS);
  /** The start of a number's text in `#bytes`; it ends at the start of the next. */
  readonly #begins = new Int32Array(TEXTS_MAX + 2);
  readonly #seed = Math.floor(Math.random() * 2 ** 32);
  #bytes = new Uint8Array(BYTES_MIN);
  /** The highest number that was assigned. */
  last = 0;

  /** Prepares for this many texts, among which a number keeps its meaning. */
  reserve(texts: number): void {
    if (this.last + texts <= TEXTS_MAX && this.#begins[this.last + 1]! <= BYTES_MAX / 2) return;
    this.#slots.fill(0);
    this.last = 0;
    this.#begins[1] = 0;
  }

  /** The number of a text. A number above the previous `last` is new. */
  numberOf(bytes: Uint8Array, from: number, length: number): number {
    const slots = this.#slots;
    const mask = SLOTS - 1;
    let slot = hashOf(bytes, from, length, this.#seed) & mask;
    for (let probes = 0; probes < PROBES_MAX; probes++, slot = (slot + 1) & mask) {
      const number = slots[slot]!;
      if (number === 0) return this.#store(slot, bytes, from, length);
      if (this.#isText(number, bytes, from, length)) return number;
    }
    return this.#next(0);
  }

  #isText(number: number, bytes: Uint8Array, from: number, length: number): boolean {
    const begin = this.#begins[number]!;
    if (this.#begins[number + 1]! - begin !== length) return false;
    const known = this.#bytes;
    for (let i = 0; i < length; i++) if (known[begin + i] !== bytes[from + i]) return false;
    return true;
  }

  #store(slot: number, bytes: Uint8Array, from: number, length: number): number {
    const begin = this.#begins[this.last + 1]!;
    const end = begin + length;
    if (end > BYTES_MAX) return this.#next(0);
    if (end > this.#bytes.length) {
      const larger = new Uint8Array(Math.min(2 ** Math.ceil(Math.log2(end)), BYTES_MAX));
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    this.#bytes.set(bytes.subarray(from, from + length), begin);
    return (this.#slots[slot] = this.#next(length));
  }

  #next(length: number): number {
    const number = ++this.last;
    this.#begins[number + 1] = this.#begins[number]! + length;
    return number;
  }
}

function hashOf(bytes: Uint8Array, from: number, length: number, seed: number): number {
  let hash = seed;
  for (let i = 0; i < length; i++) hash = Math.imul(hash ^ bytes[from + i]!, 0x01000193);
  return hash ^ (hash >>> 15);
}
