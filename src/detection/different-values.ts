import type { Groups } from "./groups.ts";
import type { Hash } from "./hash.ts";

// The value that an entry counts as, where a threshold counts different ones, and tables over these. Of the two words that
// an entry has for it, 40 bits are the value's hash; the others say how many events were dropped that it stands for.

export const VALUE_WORDS = 2;
const CARRIED_BITS = 24;
const CARRIED_MAX = 2 ** CARRIED_BITS - 1;

/** The entry is of the value whose hash this is, and stands for no other. */
export function setValue(groups: Groups, entry: number, hash: Hash): void {
  groups.setExtra(entry, hash.low, 0);
  groups.setExtra(entry, hash.high << CARRIED_BITS, 1);
}

/** Events, beside its own, that the entry stands for. */
export function carriedBy(groups: Groups, entry: number): number {
  return groups.extra(entry, 1) & CARRIED_MAX;
}

export function carry(groups: Groups, entry: number, events: number): void {
  const carried = Math.min(carriedBy(groups, entry) + events, CARRIED_MAX);
  groups.setExtra(entry, (groups.extra(entry, 1) & ~CARRIED_MAX) | carried, 1);
}

/** A number for each of some values, 0 at first; emptied by counting up. */
export class DifferentValues {
  readonly #groups: Groups;
  readonly #high: Uint32Array;
  readonly #low: Uint32Array;
  readonly #rounds: Uint32Array;
  readonly #numbers: Int32Array;
  #round = 0;
  /** Values that were added more often than removed. */
  size = 0;

  constructor(groups: Groups, entriesMax: number) {
    this.#groups = groups;
    const slots = 2 ** Math.ceil(Math.log2(entriesMax * 2));
    this.#high = new Uint32Array(slots);
    this.#low = new Uint32Array(slots);
    this.#rounds = new Uint32Array(slots);
    this.#numbers = new Int32Array(slots);
  }

  clear(): void {
    this.size = 0;
    this.#round = (this.#round + 1) >>> 0;
    if (this.#round === 0) {
      this.#rounds.fill(0);
      this.#round = 1;
    }
  }

  /** Whether the entry's value is new. */
  add(entry: number): boolean {
    const isNew = this.#numbers[this.#slot(entry)]!++ === 0;
    if (isNew) this.size++;
    return isNew;
  }

  remove(entry: number): void {
    if (--this.#numbers[this.#slot(entry)]! === 0) this.size--;
  }

  /** Gives the number of the entry's value. */
  get(entry: number): number {
    return this.#numbers[this.#slot(entry)]!;
  }

  set(entry: number, number: number): void {
    this.#numbers[this.#slot(entry)] = number;
  }

  #slot(entry: number): number {
    const low = this.#groups.extra(entry, 0);
    const high = this.#groups.extra(entry, 1) >>> CARRIED_BITS;
    const mask = this.#rounds.length - 1;
    for (let slot = low & mask; ; slot = (slot + 1) & mask) {
      if (this.#rounds[slot] !== this.#round) {
        this.#rounds[slot] = this.#round;
        this.#high[slot] = high;
        this.#low[slot] = low;
        this.#numbers[slot] = 0;
        return slot;
      }
      if (this.#low[slot] === low && this.#high[slot] === high) return slot;
    }
  }
}
