import type { WindowGroups } from "./window-groups.ts";
import type { GroupHash } from "./group-hash.ts";

// The value of an entry, for thresholds that count distinct values, and counts per value. An entry stores its value in two
// words: 40 bits hold the hash of the value, the other 24 the number of dropped events that the entry represents.

export const VALUE_WORDS = 2;
const CARRIED_BITS = 24;
const CARRIED_MAX = 2 ** CARRIED_BITS - 1;

/** Sets the value hash of an entry; the entry represents no other event. */
export function setValue(groups: WindowGroups, entry: number, hash: GroupHash): void {
  groups.setExtra(entry, hash.low, 0);
  groups.setExtra(entry, hash.high << CARRIED_BITS, 1);
}

/** Events that the entry represents besides its own. */
export function carriedBy(groups: WindowGroups, entry: number): number {
  return groups.extra(entry, 1) & CARRIED_MAX;
}

export function carry(groups: WindowGroups, entry: number, events: number): void {
  const carried = Math.min(carriedBy(groups, entry) + events, CARRIED_MAX);
  groups.setExtra(entry, (groups.extra(entry, 1) & ~CARRIED_MAX) | carried, 1);
}

/** Counts per value, initially 0. A new round number empties the table without clearing it. */
export class DistinctValues {
  readonly #groups: WindowGroups;
  readonly #high: Uint32Array;
  readonly #low: Uint32Array;
  readonly #rounds: Uint32Array;
  readonly #numbers: Int32Array;
  #round = 0;
  /** Number of values with a count above 0. */
  size = 0;

  constructor(groups: WindowGroups, entriesMax: number) {
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

  /** Returns true if the entry's value is new. */
  add(entry: number): boolean {
    const isNew = this.#numbers[this.#slot(entry)]!++ === 0;
    if (isNew) this.size++;
    return isNew;
  }

  remove(entry: number): void {
    if (--this.#numbers[this.#slot(entry)]! === 0) this.size--;
  }

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
