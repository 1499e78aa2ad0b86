import { Pages } from "./pages.ts";

// The memory of a rule: groups found by a 64-bit hash, and for each the matches that may still count, sorted by time.
// Everything lies in typed arrays, since a million small objects would cost ten times the room and stall the collector.
// All of a group lies side by side, and so does all of an entry: with a million of them each look is a wait for memory,
// and one wait is less than eight. A group that has one entry, as most have, has it with itself, and its number is below 0;
// more lie in a block of 2, 4, ... entries. A block that is given back serves the next one.

const LEVELS = 15;
/** Entries that one group can hold at all. */
const GROUP_ENTRIES_MAX = 1 << (LEVELS - 1);
const FREE = 255;
const LOAD_MAX = 0.7;
const SLOTS_MIN = 16;
const SLOT_WORDS = 2;

/** The words of a group; the hash that it is found by is the first two. Those of its only entry come after them. */
const GROUP_WORDS = 8;
const LOW = 0;
const HIGH = 1;
const BLOCK = 2;
const START = 3;
const LENGTH = 4;
const UNCOUNTED = 5;
const TOUCHED = 6;
const LEVEL = 7;

/** The words of an entry: its time, its event's id, whether a finding has counted it, and what its user asked for. */
const TIME_WORDS = 2;
const ID = TIME_WORDS;
const COUNTED = ID + 4;
const EXTRA = COUNTED + 1;

/** Groups, and entries that blocks in use have room for, of all rules together. */
export interface Totals {
  groups: number;
  entries: number;
}

export class Groups {
  readonly #groups: Pages;
  readonly #entries: Pages;
  #entriesTop = 0;
  readonly #freeBlocks = new Int32Array(LEVELS).fill(-1);
  #groupsTop = 0;
  #freeGroup = -1;
  /** For each slot the number of its group, plus one, and the low word of its hash: other groups are not looked at. */
  #slots = new Uint32Array(SLOTS_MIN * SLOT_WORDS);
  readonly #totals: Totals;
  live = 0;
  entries = 0;

  /** `extraWords`: what the user keeps of an entry beside its time and its event. */
  constructor(extraWords: number, totals: Totals) {
    // Times are eight bytes and must lie on a multiple of them.
    const entryWords = Math.ceil((EXTRA + extraWords) / 2) * 2;
    this.#groups = new Pages(GROUP_WORDS + entryWords);
    this.#entries = new Pages(entryWords);
    this.#totals = totals;
  }

  /** Numbers of groups lie below this; not all of them are in use. */
  get top(): number {
    return this.#groupsTop;
  }

  isLive(group: number): boolean {
    return this.#groups.get(group, LEVEL) !== FREE;
  }

  length(group: number): number {
    return this.#groups.get(group, LENGTH);
  }

  /** Entries that no finding has counted. */
  uncounted(group: number): number {
    return this.#groups.get(group, UNCOUNTED);
  }

  /** When the group was last added to, in seconds of whatever clock its user has. */
  touched(group: number): number {
    return this.#groups.get(group, TOUCHED);
  }

  touch(group: number, seconds: number): void {
    this.#groups.set(group, TOUCHED, seconds);
  }

  /** Where the group's entries begin. Good until the next insertion. */
  begin(group: number): number {
    const words = this.#groups.page(group);
    const at = this.#groups.offset(group);
    return words[at + LEVEL] === 0 ? ~group : words[at + BLOCK]! + words[at + START]!;
  }

  time(entry: number): number {
    return entry < 0 ? this.#groups.float(~entry, GROUP_WORDS) : this.#entries.float(entry, 0);
  }

  extra(entry: number, word = 0): number {
    return this.#word(entry, EXTRA + word);
  }

  setExtra(entry: number, value: number, word = 0): void {
    this.#setWord(entry, EXTRA + word, value);
  }

  isCounted(entry: number): boolean {
    return this.#word(entry, COUNTED) === 1;
  }

  count(group: number, entry: number): void {
    this.#setWord(entry, COUNTED, 1);
    this.#groups.set(group, UNCOUNTED, this.uncounted(group) - 1);
  }

  /** One of the four words of the event's id. */
  idWord(entry: number, word: number): number {
    return this.#word(entry, ID + word);
  }

  #word(entry: number, word: number): number {
    return entry < 0 ? this.#groups.get(~entry, GROUP_WORDS + word) : this.#entries.get(entry, word);
  }

  #setWord(entry: number, word: number, value: number): void {
    if (entry < 0) this.#groups.set(~entry, GROUP_WORDS + word, value);
    else this.#entries.set(entry, word, value);
  }

  /** Writes an entry in the room that was made for it. */
  write(entry: number, timestampMs: number, id: Uint32Array): void {
    const pages = entry < 0 ? this.#groups : this.#entries;
    const record = entry < 0 ? ~entry : entry;
    const first = entry < 0 ? GROUP_WORDS : 0;
    pages.setFloat(record, first, timestampMs);
    const words = pages.page(record);
    const at = pages.offset(record) + first;
    for (let i = 0; i < 4; i++) words[at + ID + i] = id[i]!;
    words[at + COUNTED] = 0;
  }

  find(high: number, low: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let slot = homeOf(low, mask); ; slot = (slot + SLOT_WORDS) & mask) {
      const group = slots[slot]! - 1;
      if (group < 0) return -1;
      if (slots[slot + 1] === low && this.#groups.get(group, HIGH) === high) return group;
    }
  }

  /** A new group, without entries. The caller has seen that there is none. */
  insert(high: number, low: number): number {
    if ((this.live + 1) * SLOT_WORDS > this.#slots.length * LOAD_MAX) this.#growSlots();
    let group = this.#freeGroup;
    if (group >= 0) this.#freeGroup = this.#groups.get(group, BLOCK) - 1;
    else {
      group = this.#groupsTop++;
      this.#groups.reach(this.#groupsTop);
    }
    const words = this.#groups.page(group);
    const at = this.#groups.offset(group);
    words[at + LOW] = low;
    words[at + HIGH] = high;
    words[at + START] = words[at + LENGTH] = words[at + UNCOUNTED] = words[at + LEVEL] = 0;
    this.#place(group, low);
    this.#resize(1);
    this.live++;
    this.#totals.groups++;
    return group;
  }

  remove(group: number): void {
    const words = this.#groups.page(group);
    const at = this.#groups.offset(group);
    this.#release(words, at);
    this.#unplace(group, words[at + LOW]!);
    words[at + LEVEL] = FREE;
    words[at + BLOCK] = this.#freeGroup + 1;
    this.#freeGroup = group;
    this.live--;
    this.#totals.groups--;
  }

  /** Makes room for an entry so many places from the group's first, and gives its number. */
  makeRoom(group: number, offset: number): number {
    const words = this.#groups.page(group);
    const at = this.#groups.offset(group);
    const length = words[at + LENGTH]!;
    const size = 1 << words[at + LEVEL]!;
    if (words[at + START]! + length === size) {
      if (words[at + START]! >= Math.max(1, size >> 2)) {
        this.#entries.move(words[at + BLOCK]! + words[at + START]!, words[at + BLOCK]!, length);
        words[at + START] = 0;
      } else this.#growBlock(group);
    }
    const entry = this.begin(group) + offset;
    if (offset < length) this.#entries.move(entry, entry + 1, length - offset);
    words[at + LENGTH] = length + 1;
    words[at + UNCOUNTED]!++;
    return entry;
  }

  dropFirst(group: number, count: number): void {
    const from = this.begin(group);
    const words = this.#groups.page(group);
    const at = this.#groups.offset(group);
    for (let i = 0; i < count; i++) if (!this.isCounted(from + i)) words[at + UNCOUNTED]!--;
    words[at + LENGTH]! -= count;
    words[at + START] = words[at + LENGTH] === 0 ? 0 : words[at + START]! + count;
  }

  /** Takes out the entries at these places (counted from the group's first, rising). */
  dropSome(group: number, offsets: readonly number[]): void {
    const from = this.begin(group);
    const words = this.#groups.page(group);
    const at = this.#groups.offset(group);
    const length = words[at + LENGTH]!;
    let next = 0;
    let kept = 0;
    for (let i = 0; i < length; i++) {
      if (i === offsets[next]) {
        next++;
        if (!this.isCounted(from + i)) words[at + UNCOUNTED]!--;
        continue;
      }
      if (kept !== i) this.#entries.move(from + i, from + kept, 1);
      kept++;
    }
    words[at + LENGTH] = kept;
    if (kept === 0) words[at + START] = 0;
  }

  #growBlock(group: number): void {
    const words = this.#groups.page(group);
    const at = this.#groups.offset(group);
    const level = words[at + LEVEL]!;
    if (level + 1 >= LEVELS) throw new Error(`a group of more than ${GROUP_ENTRIES_MAX} entries`);
    const block = this.#allocate(level + 1);
    if (level > 0) this.#entries.move(words[at + BLOCK]! + words[at + START]!, block, words[at + LENGTH]!);
    else this.#entries.take(block, words, at + GROUP_WORDS);
    this.#release(words, at);
    words[at + BLOCK] = block;
    words[at + START] = 0;
    words[at + LEVEL] = level + 1;
  }

  #allocate(level: number): number {
    const size = 1 << level;
    this.#resize(size);
    for (let larger = level; larger < LEVELS; larger++) {
      const block = this.#freeBlocks[larger]!;
      if (block < 0) continue;
      this.#freeBlocks[larger] = this.#entries.get(block, ID) - 1;
      // The upper halves of a block that is too large serve smaller groups.
      for (let half = larger - 1; half >= level; half--) this.#giveBack(block + (1 << half), half);
      return block;
    }
    // A block lies on a multiple of its size, so that none reaches over the end of a page.
    while (this.#entriesTop % size !== 0) {
      const gap = 31 - Math.clz32(this.#entriesTop & -this.#entriesTop);
      this.#entries.reach(this.#entriesTop + (1 << gap));
      this.#giveBack(this.#entriesTop, gap);
      this.#entriesTop += 1 << gap;
    }
    const block = this.#entriesTop;
    this.#entriesTop += size;
    this.#entries.reach(this.#entriesTop);
    return block;
  }

  /** Gives up the room of the entries of the group whose words these are. */
  #release(words: Uint32Array, at: number): void {
    const level = words[at + LEVEL]!;
    this.#resize(-(1 << level));
    if (level > 0) this.#giveBack(words[at + BLOCK]!, level);
  }

  #resize(entries: number): void {
    this.entries += entries;
    this.#totals.entries += entries;
  }

  /** Free blocks are a list that runs through their own words. */
  #giveBack(block: number, level: number): void {
    this.#entries.set(block, ID, this.#freeBlocks[level]! + 1);
    this.#freeBlocks[level] = block;
  }

  #growSlots(): void {
    const old = this.#slots;
    this.#slots = new Uint32Array(old.length * 2);
    for (let slot = 0; slot < old.length; slot += SLOT_WORDS) {
      if (old[slot]! > 0) this.#place(old[slot]! - 1, old[slot + 1]!);
    }
  }

  #place(group: number, low: number): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = homeOf(low, mask);
    while (slots[slot]! > 0) slot = (slot + SLOT_WORDS) & mask;
    slots[slot] = group + 1;
    slots[slot + 1] = low;
  }

  /** Closes the gap by moving what had to give way back: no tombstones, however many groups come and go. */
  #unplace(group: number, low: number): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let gap = homeOf(low, mask);
    while (slots[gap] !== group + 1) gap = (gap + SLOT_WORDS) & mask;
    for (let slot = (gap + SLOT_WORDS) & mask; slots[slot]! > 0; slot = (slot + SLOT_WORDS) & mask) {
      const home = homeOf(slots[slot + 1]!, mask);
      if (((slot - home) & mask) < ((slot - gap) & mask)) continue;
      slots[gap] = slots[slot]!;
      slots[gap + 1] = slots[slot + 1]!;
      gap = slot;
    }
    slots[gap] = 0;
  }
}

function homeOf(low: number, mask: number): number {
  return (low << 1) & mask;
}
