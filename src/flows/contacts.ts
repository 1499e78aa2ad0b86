import { freeColumns, growColumn, KeyIndex } from "./key-index.ts";

// The distinct peers or ports that each host contacted in one minute, with the first and the last time of each. Any 60 seconds
// that end in a minute consist of the end of the previous minute and the start of this one. Whether a value falls into them
// follows from its last time in the previous minute and its first time in this one, so every such interval is counted exactly.

/** Values of one host in one minute: all ports, or a /16 of peers. */
export const HOST_CONTACTS_MAX = 65_536;

const NONE = -1;
const CAPACITY_MIN = 16;

// The order in which changes of the same millisecond take effect.
const LEAVES = 0;
const JOINS = 1;
const STAYS = 2;
const KINDS = 4;

export class Contacts {
  /** Keys are the host's index, then the words of the value. */
  readonly index: KeyIndex;
  /** By entry: milliseconds within the minute. */
  #first = new Uint16Array(CAPACITY_MIN);
  #last = new Uint16Array(CAPACITY_MIN);
  /** By entry: the host's previous entry. */
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

  /** Adds a contact of the host with the value in `index.lookupKey`. Returns false if the value is new and does not fit. */
  add(host: number, firstMs: number, lastMs: number, hasRoom: boolean): boolean {
    const { index } = this;
    if (host >= this.#counts.length) this.#growHosts(host);
    const before = index.count;
    index.lookupKey[0] = host;
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
   * The most distinct values that the host contacted within any 60 seconds that end with a contact in this minute. `before` and
   * `hostBefore` are the previous minute and the host's index in it.
   */
  mostWithinMinute(host: number, before: Contacts, hostBefore: number): number {
    const count = this.countOf(host);
    const countBefore = before.countOf(hostBefore);
    if (count === 0 || countBefore === 0) return count;
    // An interval that begins at millisecond t of the previous minute ends at millisecond t of this one. As t grows, a value of
    // the previous minute leaves at its last time + 1, and a value of this minute joins at its first time + 1.
    const changes = new Uint32Array(2 * count + countBefore);
    let made = 0;
    for (let entry = before.#headOf(hostBefore); entry !== NONE; entry = before.#next[entry]!) {
      changes[made++] = (before.#last[entry]! + 1) * KINDS + LEAVES;
    }
    for (let entry = this.#headOf(host); entry !== NONE; entry = this.#next[entry]!) {
      const first = this.#first[entry]!;
      const earlier = before.#find(hostBefore, this.index, entry);
      // A value that has not left yet is already counted: it joins when it would leave.
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

  /** Frees the memory at once. Nothing may be used any more. */
  free(): void {
    this.index.free();
    freeColumns(this.#first, this.#last, this.#next, this.#heads, this.#counts);
  }

  #headOf(host: number): number {
    return this.#heads[host]! - 1;
  }

  /** The entry of the host for the value of another index's entry. */
  #find(host: number, other: KeyIndex, entry: number): number {
    const { lookupKey } = this.index;
    lookupKey[0] = host;
    for (let word = 1; word < lookupKey.length; word++) lookupKey[word] = other.keys[entry * lookupKey.length + word]!;
    return this.index.find(0);
  }

  #growEntries(): void {
    const { capacity } = this.index;
    this.#first = growColumn(this.#first, capacity);
    this.#last = growColumn(this.#last, capacity);
    this.#next = growColumn(this.#next, capacity);
  }

  #growHosts(host: number): void {
    const length = 2 ** Math.ceil(Math.log2(host + 1));
    this.#heads = growColumn(this.#heads, length);
    this.#counts = growColumn(this.#counts, length);
  }
}
