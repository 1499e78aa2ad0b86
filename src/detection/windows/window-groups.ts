import { KEY_WORDS } from "./event-key.ts";
import { copyWords, PagedRecords } from "./paged-records.ts";

// The groups of a rule, found by a 64-bit hash, each with the matches that may still count, sorted by time. Everything lies
// in typed arrays: a million small objects would need ten times the memory and stall the garbage collector. The words of a
// group are adjacent, and so are those of an entry, since with a million of them each access is a cache miss, and one miss
// is cheaper than eight. A group of one or two entries, as most are, stores them inline; their numbers are negative. Larger
// groups use a block of 4, 8, ... entries. Freed blocks are reused.

const INLINE_ENTRIES = 2;
const LEVELS = 14;
const FREE = 15;
const LOAD_MAX = 0.7;
const SLOTS_MIN = 16;
const SLOT_WORDS = 2;

/** The words of a group. The first two are its hash; its inline entries follow the head. */
const HEAD_WORDS = 4;
const LOW = 0;
const HIGH = 1;
const TOUCHED = 2;
const STATE = 3;
/** In place of inline entries: the block, and the number of unused entries at its start. */
const BLOCK = HEAD_WORDS;
const START = HEAD_WORDS + 1;

/** The bits of a state: the level, which is the size of the block, the number of entries, and the number of uncounted ones. */
const LEVEL_MASK = 15;
const LENGTH_SHIFT = 4;
const LENGTH_MASK = (1 << 14) - 1;
const UNCOUNTED_SHIFT = 18;
const ONE_ENTRY = 1 << LENGTH_SHIFT;
const ONE_UNCOUNTED = 1 << UNCOUNTED_SHIFT;
const GROUP_ENTRIES_MAX = LENGTH_MASK;

/** The words of an entry: its time, the event id, and extra words. */
const ID = 2;
/** Times are integers; an added half millisecond marks a counted entry. */
const COUNTED = 0.5;

/** A sink for prefetched words. Prefetching more at once would stall. */
const prefetched = new Uint32Array(1024);

/** Groups of all rules, and the capacity of their blocks in entries. */
export interface WindowTotals {
  groups: number;
  entries: number;
}

export class WindowGroups {
  /** Words that identify the event or occurrence of an entry. */
  readonly idWords: number;
  readonly #extra: number;
  readonly #entryWords: number;
  readonly #groups: PagedRecords;
  readonly #entries: PagedRecords;
  #entriesTop = 0;
  readonly #freeBlocks = new Int32Array(LEVELS).fill(-1);
  #groupsTop = 0;
  #freeGroup = -1;
  /** Each slot holds a group number plus one, and the low word of its hash, which avoids reading other groups. */
  #slots = new Uint32Array(SLOTS_MIN * SLOT_WORDS);
  readonly #totals: WindowTotals;
  live = 0;
  entries = 0;

  /** `extraWords`: words of an entry in addition to its time and event id. `idWords` includes the occurrence, if there is one. */
  constructor(extraWords: number, totals: WindowTotals, idWords: number = KEY_WORDS) {
    this.idWords = idWords;
    this.#extra = ID + idWords;
    // Times are doubles and must be aligned.
    this.#entryWords = Math.ceil((this.#extra + extraWords) / 2) * 2;
    this.#groups = new PagedRecords(HEAD_WORDS + INLINE_ENTRIES * this.#entryWords);
    this.#entries = new PagedRecords(this.#entryWords);
    this.#totals = totals;
  }

  /** Upper bound of group numbers; not all are in use. */
  get top(): number {
    return this.#groupsTop;
  }

  isLive(group: number): boolean {
    return (this.#groups.get(group, STATE) & LEVEL_MASK) !== FREE;
  }

  length(group: number): number {
    return lengthOf(this.#groups.get(group, STATE));
  }

  /** Entries that no firing has counted. */
  uncounted(group: number): number {
    return this.#groups.get(group, STATE) >>> UNCOUNTED_SHIFT;
  }

  /** Time of the last addition, in seconds of the caller's clock. */
  touched(group: number): number {
    return this.#groups.get(group, TOUCHED);
  }

  /** Updates the last use of the group if it has this hash; returns false otherwise. */
  touch(group: number, high: number, low: number, seconds: number): boolean {
    const words = this.#groups.words(group);
    const at = this.#groups.offset(group);
    if (words[at + HIGH] !== high || words[at + LOW] !== low || levelOf(words[at + STATE]!) === FREE) return false;
    words[at + TOUCHED] = seconds;
    return true;
  }

  /** The number of the group's first entry. Valid until the next insertion. */
  begin(group: number): number {
    const words = this.#groups.words(group);
    const at = this.#groups.offset(group);
    return levelOf(words[at + STATE]!) === 0 ? -INLINE_ENTRIES * (group + 1) : words[at + BLOCK]! + words[at + START]!;
  }

  time(entry: number): number {
    return Math.floor(this.#timeWord(entry));
  }

  extra(entry: number, word = 0): number {
    return this.#wordsOf(entry)[this.#at(entry) + this.#extra + word]!;
  }

  setExtra(entry: number, value: number, word = 0): void {
    this.#wordsOf(entry)[this.#at(entry) + this.#extra + word] = value;
  }

  isCounted(entry: number): boolean {
    return this.#timeWord(entry) !== this.time(entry);
  }

  count(group: number, entry: number): void {
    this.#setTimeWord(entry, this.#timeWord(entry) + COUNTED);
    this.#groups.set(group, STATE, this.#groups.get(group, STATE) - ONE_UNCOUNTED);
  }

  /** One of the words of the event id. */
  idWord(entry: number, word: number): number {
    return this.#wordsOf(entry)[this.#at(entry) + ID + word]!;
  }

  /** Writes an entry that `makeRoom` has allocated. */
  write(entry: number, timestampMs: number, id: Uint32Array): void {
    this.#setTimeWord(entry, timestampMs);
    const words = this.#wordsOf(entry);
    const at = this.#at(entry) + ID;
    for (let i = 0; i < this.idWords; i++) words[at + i] = id[i]!;
  }

  #timeWord(entry: number): number {
    const floats = entry < 0 ? this.#groups.floats(ownerOf(entry)) : this.#entries.floats(entry);
    return floats[this.#at(entry) >> 1]!;
  }

  #setTimeWord(entry: number, value: number): void {
    const floats = entry < 0 ? this.#groups.floats(ownerOf(entry)) : this.#entries.floats(entry);
    floats[this.#at(entry) >> 1] = value;
  }

  /** The page of an entry; `#at` is its offset. */
  #wordsOf(entry: number): Uint32Array {
    return entry < 0 ? this.#groups.words(ownerOf(entry)) : this.#entries.words(entry);
  }

  #at(entry: number): number {
    if (entry >= 0) return this.#entries.offset(entry);
    return this.#groups.offset(ownerOf(entry)) + HEAD_WORDS + (entry & 1) * this.#entryWords;
  }

  /**
   * Looks up the likely groups of `count` hashes (a high and a low word each), or -1. It reads all slots, then all groups, then
   * their entries: in such loops cache misses overlap, and the data is in the cache afterwards.
   */
  findAll(hashes: Uint32Array, count: number, groups: Int32Array): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let i = 0; i < count; i++) groups[i] = slots[homeOf(hashes[2 * i + 1]!, mask)]! - 1;
    for (let i = 0; i < count; i++) {
      const low = hashes[2 * i + 1]!;
      let slot = homeOf(low, mask);
      while (slots[slot]! > 0 && slots[slot + 1] !== low) slot = (slot + SLOT_WORDS) & mask;
      groups[i] = slots[slot]! - 1;
    }
    for (let i = 0; i < count; i++) {
      const group = groups[i]!;
      prefetched[i] = group < 0 ? 0 : this.#groups.get(group, STATE);
    }
    for (let i = 0; i < count; i++) {
      if (levelOf(prefetched[i]!) > 0)
        prefetched[i] = this.#entries.get(this.begin(groups[i]!) + lengthOf(prefetched[i]!) - 1, ID);
    }
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

  /** Adds an empty group. The caller has checked that there is none. */
  insert(high: number, low: number): number {
    if ((this.live + 1) * SLOT_WORDS > this.#slots.length * LOAD_MAX) this.#growSlots();
    let group = this.#freeGroup;
    if (group >= 0) this.#freeGroup = this.#groups.get(group, BLOCK) - 1;
    else {
      group = this.#groupsTop++;
      this.#groups.ensureCapacity(this.#groupsTop);
    }
    const words = this.#groups.words(group);
    const at = this.#groups.offset(group);
    words[at + LOW] = low;
    words[at + HIGH] = high;
    words[at + STATE] = 0;
    this.#insertSlot(group, low);
    this.#resize(1);
    this.live++;
    this.#totals.groups++;
    return group;
  }

  remove(group: number): void {
    const words = this.#groups.words(group);
    const at = this.#groups.offset(group);
    this.#release(words, at);
    this.#removeSlot(group, words[at + LOW]!);
    words[at + STATE] = FREE;
    words[at + BLOCK] = this.#freeGroup + 1;
    this.#freeGroup = group;
    this.live--;
    this.#totals.groups--;
  }

  /**
   * Appends an entry and returns true if no other entry has to expire or move: it is not older than the last entry, and the
   * first is not older than the horizon. This is so for almost every match.
   */
  append(group: number, timestampMs: number, id: Uint32Array, horizonMs: number): boolean {
    const own = this.#groups.words(group);
    const head = this.#groups.offset(group);
    const state = own[head + STATE]!;
    const level = levelOf(state);
    const length = lengthOf(state);
    const start = level === 0 ? 0 : own[head + START]!;
    let words = own;
    let floats = this.#groups.floats(group);
    let first = head + HEAD_WORDS;
    if (level > 0) {
      const entry = own[head + BLOCK]! + start;
      words = this.#entries.words(entry);
      floats = this.#entries.floats(entry);
      first = this.#entries.offset(entry);
    }
    let at = first + length * this.#entryWords;
    if (length > 0) {
      if (floats[first >> 1]! < horizonMs) return false;
      if (timestampMs < Math.floor(floats[(at - this.#entryWords) >> 1]!)) return false;
    }
    if (start + length === sizeOf(level)) {
      if (start > 0) return false;
      this.#growBlock(group);
      const entry = own[head + BLOCK]! + length;
      words = this.#entries.words(entry);
      floats = this.#entries.floats(entry);
      at = this.#entries.offset(entry);
    }
    floats[at >> 1] = timestampMs;
    for (let i = 0; i < this.idWords; i++) words[at + ID + i] = id[i]!;
    own[head + STATE]! += ONE_ENTRY + ONE_UNCOUNTED;
    return true;
  }

  /** Makes room for an entry at this index of the group and returns its number. */
  makeRoom(group: number, offset: number): number {
    const words = this.#groups.words(group);
    const at = this.#groups.offset(group);
    const level = levelOf(words[at + STATE]!);
    const length = lengthOf(words[at + STATE]!);
    if (level === 0) {
      if (length === INLINE_ENTRIES) this.#growBlock(group);
    } else if (words[at + START]! + length === sizeOf(level)) {
      if (words[at + START]! >= sizeOf(level) >> 2) {
        this.#entries.move(words[at + BLOCK]! + words[at + START]!, words[at + BLOCK]!, length);
        words[at + START] = 0;
      } else this.#growBlock(group);
    }
    const entry = this.begin(group) + offset;
    if (offset < length) this.#move(entry, entry + 1, length - offset);
    words[at + STATE]! += ONE_ENTRY + ONE_UNCOUNTED;
    return entry;
  }

  dropFirst(group: number, count: number): void {
    const from = this.begin(group);
    const words = this.#groups.words(group);
    const at = this.#groups.offset(group);
    for (let i = 0; i < count; i++) if (!this.isCounted(from + i)) words[at + STATE]! -= ONE_UNCOUNTED;
    words[at + STATE]! -= count * ONE_ENTRY;
    const length = lengthOf(words[at + STATE]!);
    if (from < 0) this.#move(from + count, from, length);
    else words[at + START] = length === 0 ? 0 : words[at + START]! + count;
  }

  /** Removes the entries at these indices (ascending). */
  dropSome(group: number, indices: readonly number[]): void {
    const from = this.begin(group);
    const words = this.#groups.words(group);
    const at = this.#groups.offset(group);
    const length = lengthOf(words[at + STATE]!);
    let next = 0;
    let kept = 0;
    for (let i = 0; i < length; i++) {
      if (i === indices[next]) {
        next++;
        if (!this.isCounted(from + i)) words[at + STATE]! -= ONE_UNCOUNTED;
        continue;
      }
      if (kept !== i) this.#move(from + i, from + kept, 1);
      kept++;
    }
    words[at + STATE]! -= (length - kept) * ONE_ENTRY;
    if (kept === 0 && from >= 0) words[at + START] = 0;
  }

  /** At most one inline entry can move at a time. */
  #move(from: number, to: number, count: number): void {
    if (from >= 0) this.#entries.move(from, to, count);
    else if (count > 0)
      copyWords(this.#wordsOf(from), this.#at(from), this.#wordsOf(to), this.#at(to), this.#entryWords);
  }

  #growBlock(group: number): void {
    const words = this.#groups.words(group);
    const at = this.#groups.offset(group);
    const state = words[at + STATE]!;
    const level = levelOf(state);
    const length = lengthOf(state);
    if (level + 1 >= LEVELS) throw new Error(`a window group exceeds ${GROUP_ENTRIES_MAX} entries`);
    const block = this.#allocate(level + 1);
    if (level > 0) this.#entries.move(words[at + BLOCK]! + words[at + START]!, block, length);
    else this.#entries.take(block, length, words, at + HEAD_WORDS);
    this.#release(words, at);
    words[at + BLOCK] = block;
    words[at + START] = 0;
    words[at + STATE]!++;
  }

  #allocate(level: number): number {
    const size = sizeOf(level);
    this.#resize(size);
    for (let larger = level; larger < LEVELS; larger++) {
      const block = this.#freeBlocks[larger]!;
      if (block < 0) continue;
      this.#freeBlocks[larger] = this.#entries.get(block, ID) - 1;
      // Split a larger block; its upper halves serve smaller groups.
      for (let half = larger - 1; half >= level; half--) this.#freeBlock(block + sizeOf(half), half);
      return block;
    }
    // Blocks are aligned to their size, so that none crosses a page boundary.
    while (this.#entriesTop % size !== 0) {
      const gap = this.#entriesTop & -this.#entriesTop;
      this.#entries.ensureCapacity(this.#entriesTop + gap);
      this.#freeBlock(this.#entriesTop, levelOfSize(gap));
      this.#entriesTop += gap;
    }
    const block = this.#entriesTop;
    this.#entriesTop += size;
    this.#entries.ensureCapacity(this.#entriesTop);
    return block;
  }

  /** Frees the entries of the group with these words. */
  #release(words: Uint32Array, at: number): void {
    const level = levelOf(words[at + STATE]!);
    this.#resize(-(level === 0 ? 1 : sizeOf(level)));
    if (level > 0) this.#freeBlock(words[at + BLOCK]!, level);
  }

  #resize(entries: number): void {
    this.entries += entries;
    this.#totals.entries += entries;
  }

  /** Free blocks form a linked list through their own words. */
  #freeBlock(block: number, level: number): void {
    this.#entries.set(block, ID, this.#freeBlocks[level]! + 1);
    this.#freeBlocks[level] = block;
  }

  #growSlots(): void {
    const old = this.#slots;
    this.#slots = new Uint32Array(old.length * 2);
    for (let slot = 0; slot < old.length; slot += SLOT_WORDS) {
      if (old[slot]! > 0) this.#insertSlot(old[slot]! - 1, old[slot + 1]!);
    }
  }

  #insertSlot(group: number, low: number): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = homeOf(low, mask);
    while (slots[slot]! > 0) slot = (slot + SLOT_WORDS) & mask;
    slots[slot] = group + 1;
    slots[slot + 1] = low;
  }

  /** Deletes by backward shift, so that there are no tombstones. */
  #removeSlot(group: number, low: number): void {
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

function levelOf(state: number): number {
  return state & LEVEL_MASK;
}

function lengthOf(state: number): number {
  return (state >>> LENGTH_SHIFT) & LENGTH_MASK;
}

/** The capacity of a block in entries. */
function sizeOf(level: number): number {
  return INLINE_ENTRIES << level;
}

function levelOfSize(size: number): number {
  return Math.log2(size / INLINE_ENTRIES);
}

/** The group of an inline entry. */
function ownerOf(entry: number): number {
  return ~entry >> 1;
}

function homeOf(low: number, mask: number): number {
  return (low << 1) & mask;
}
