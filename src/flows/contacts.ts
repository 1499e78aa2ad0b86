import { grown, KeyIndex } from "./key-index.ts";

// The distinct values, peers or ports, that each host turned to in one minute, with the first and the last time it did. 60
// seconds that end in a minute cover the rest of the minute before and the beginning of this one. The last time in the one
// and the first in the other therefore decide whether a value falls into them, and every such interval is counted exactly.

/** Values that one host may have in one minute: every port there is, or a /16 of peers. */
export const HOST_CONTACTS_MAX = 65_536;

const NONE = -1;
const CAPACITY_MIN = 16;

// In the order in which changes of the same millisecond take effect.
const LEAVES = 0;
const JOINS = 1;
const STAYS = 2;
const KINDS = 4;

export class Contacts {
  /** Keys are the host's number, then the words of the value. */
  readonly index: KeyIndex;
  /** By entry, in milliseconds of the minute. */
  #first = new Uint16Array(CAPACITY_MIN);
  #last = new Uint16Array(CAPACITY_MIN);
  /** By entry: the same host's previous entry. */
  #next = new Int32Array(CAPACITY_MIN);
  /** By host: its latest entry, plus one. */
  #heads = new Int32Array(CAPACITY_MIN);
  #counts = new Uint32Array(CAPACITY_MIN);

  constructor(valueWords: number, capacity?: number) {
    this.index = new KeyIndex(1 + valueWords, capacity ?? CAPACITY_MIN);
  }

  countOf(host: number): number {
    return this.#counts[host] ?? 0;
  }

  /** Notes that the host turned to the value in `index.wanted`. False if the value is new and there is no room for it. */
  add(host: number, firstMs: number, lastMs: number, hasRoom: boolean): boolean {
    const { index } = this;
    if (host >= this.#counts.length) this.#growHosts(host);
    const before = index.count;
    index.wanted[0] = host;
    const entry = index.find(hasRoom && this.#counts[host]! < HOST_CONTACTS_MAX ? Number.MAX_SAFE_INTEGER : 0);
    if (entry < 0) return false;
    if (index.count === before) {
      if (firstMs < this.#first[entry]!) this.#first[entry] = firstMs;
      if (lastMs > this.#last[entry]!) this.#last[entry] = lastMs;
      return true;
    }
    if (entry >= this.#next.length) this.#growEntries();
    this.#first[entry] = firstMs;
    this.#last[entry] = lastMs;
    this.#next[entry] = this.#heads[host]! - 1;
    this.#heads[host] = entry + 1;
    this.#counts[host]!++;
    return true;
  }

  /**
   * The most distinct values that the host turned to within any 60 seconds that end with a contact in this minute.
   * `before` and `hostBefore` are the minute before, and the host's number there.
   */
  mostWithinMinute(host: number, before: Contacts, hostBefore: number): number {
    const count = this.countOf(host);
    const countBefore = before.countOf(hostBefore);
    if (count === 0 || countBefore === 0) return count;
    // Let the interval begin at millisecond t of the minute before, and so end at millisecond t of this one. A value of the
    // minute before leaves at its last time + 1, one of this minute joins at its first time + 1.
    const changes = new Uint32Array(2 * count + countBefore);
    let made = 0;
    for (let entry = before.#headOf(hostBefore); entry !== NONE; entry = before.#next[entry]!) {
      changes[made++] = (before.#last[entry]! + 1) * KINDS + LEAVES;
    }
    for (let entry = this.#headOf(host); entry !== NONE; entry = this.#next[entry]!) {
      const first = this.#first[entry]!;
      const earlier = before.#find(hostBefore, this.index, entry);
      // A value that has not left yet is counted already: it joins when it would leave.
      const stays = earlier !== NONE && before.#last[earlier]! >= first;
      if (stays) changes[made++] = (first + 1) * KINDS + STAYS;
      changes[made++] = ((stays ? before.#last[earlier]! : first) + 1) * KINDS + JOINS;
    }
    let present = countBefore;
    let most = count;
    for (const change of changes.subarray(0, made).sort()) {
      const kind = change % KINDS;
      if (kind === LEAVES) present--;
      else if (kind === JOINS) present++;
      if (kind !== LEAVES && present > most) most = present;
    }
    return most;
  }

  #headOf(host: number): number {
    return this.#heads[host]! - 1;
  }

  /** The entry of this host for the value that another index has in `entry`. */
  #find(host: number, other: KeyIndex, entry: number): number {
    const { wanted } = this.index;
    wanted[0] = host;
    for (let word = 1; word < wanted.length; word++) wanted[word] = other.keys[entry * wanted.length + word]!;
    return this.index.find(0);
  }

  #growEntries(): void {
    const { capacity } = this.index;
    this.#first = grown(this.#first, capacity);
    this.#last = grown(this.#last, capacity);
    this.#next = grown(this.#next, capacity);
  }

  #growHosts(host: number): void {
    const length = 2 ** Math.ceil(Math.log2(host + 1));
    this.#heads = grown(this.#heads, length);
    this.#counts = grown(this.#counts, length);
  }
}
