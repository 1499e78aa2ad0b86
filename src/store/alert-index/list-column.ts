import { Dictionary } from "./dictionary.ts";

const CODES_START = 4096;

/** A column whose cells are lists of texts. The codes of all lists are in one array, which a change leaves gaps in. */
export class ListColumn {
  readonly dictionary = new Dictionary();
  #starts: Uint32Array;
  #lengths: Uint8Array;
  #codes = new Uint32Array(CODES_START);
  #end = 0;
  #used = 0;

  /** `capacity` is the number of slots. Lists have at most 255 items. */
  constructor(capacity: number) {
    this.#starts = new Uint32Array(capacity);
    this.#lengths = new Uint8Array(capacity);
  }

  grow(capacity: number): void {
    const [starts, lengths] = [this.#starts, this.#lengths];
    this.#starts = new Uint32Array(capacity);
    this.#lengths = new Uint8Array(capacity);
    this.#starts.set(starts);
    this.#lengths.set(lengths);
  }

  /** The codes of a slot. The array is valid until the next change. */
  codesOf(slot: number): Uint32Array {
    const start = this.#starts[slot]!;
    return this.#codes.subarray(start, start + this.#lengths[slot]!);
  }

  /** True if the list of the slot has a code with a mark. */
  hasMark(slot: number, marks: Uint8Array): boolean {
    const start = this.#starts[slot]!;
    const end = start + this.#lengths[slot]!;
    for (let at = start; at < end; at++) if (marks[this.#codes[at]!] === 1) return true;
    return false;
  }

  countOf(slot: number): number {
    return this.#lengths[slot]!;
  }

  codeAt(slot: number, index: number): number {
    return this.#codes[this.#starts[slot]! + index]!;
  }

  set(slot: number, texts: readonly string[]): void {
    const before = [...this.codesOf(slot)];
    const codes = texts.map((text) => this.dictionary.acquire(text));
    for (const code of before) this.dictionary.release(code);
    this.#used += codes.length - before.length;
    if (codes.length > before.length) {
      // Before the slot has its new length, which the move would copy.
      this.#lengths[slot] = 0;
      this.#reserve(codes.length);
      this.#starts[slot] = this.#end;
      this.#end += codes.length;
    }
    this.#lengths[slot] = codes.length;
    this.#codes.set(codes, this.#starts[slot]);
  }

  /** Makes room at the end. Moves all lists together if at least half would be gaps, otherwise doubles the array. */
  #reserve(length: number): void {
    if (this.#end + length <= this.#codes.length) return;
    const old = this.#codes;
    let size = old.length;
    while (size < this.#used * 2) size *= 2;
    this.#codes = new Uint32Array(size);
    let end = 0;
    for (let slot = 0; slot < this.#lengths.length; slot++) {
      const start = this.#starts[slot]!;
      const count = this.#lengths[slot]!;
      this.#codes.set(old.subarray(start, start + count), end);
      this.#starts[slot] = end;
      end += count;
    }
    this.#end = end;
  }
}
