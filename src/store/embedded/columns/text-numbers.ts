// Numbers for texts that lie as bytes in the engine's memory. Most of them have come before, and then nothing is made of
// them: a string for each would cost more than all else that is done with a row.

/** Beyond these, numbers begin anew, or a text is not remembered. */
const TEXTS_MAX = 150_000;
const BYTES_MAX = 16 * 1024 * 1024;
const BYTES_MIN = 64 * 1024;
const SLOTS = 2 ** Math.ceil(Math.log2(TEXTS_MAX * 2));
/** Texts that are looked at for one: somebody may have chosen them so that they meet. */
const PROBES_MAX = 32;

/** A number stands for one text. A text may come to have several: whoever looks for one is not kept waiting for it. */
export class TextNumbers {
  /** By hash; 0 is none. */
  readonly #slots = new Int32Array(SLOTS);
  /** Where in the bytes the text of a number begins; it ends where the next one begins. */
  readonly #begins = new Int32Array(TEXTS_MAX + 2);
  readonly #seed = Math.floor(Math.random() * 2 ** 32);
  #bytes = new Uint8Array(BYTES_MIN);
  /** The highest number that was given. */
  last = 0;

  /** So many texts come together: among them a number keeps its meaning. */
  expect(texts: number): void {
    if (this.last + texts <= TEXTS_MAX && this.#begins[this.last + 1]! <= BYTES_MAX / 2) return;
    this.#slots.fill(0);
    this.last = 0;
    this.#begins[1] = 0;
  }

  /** Above `last` as it was before where the number is new. */
  of(bytes: Uint8Array, from: number, length: number): number {
    const slots = this.#slots;
    const mask = SLOTS - 1;
    let slot = hashOf(bytes, from, length, this.#seed) & mask;
    for (let probes = 0; probes < PROBES_MAX; probes++, slot = (slot + 1) & mask) {
      const number = slots[slot]!;
      if (number === 0) return this.#remember(slot, bytes, from, length);
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

  #remember(slot: number, bytes: Uint8Array, from: number, length: number): number {
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
