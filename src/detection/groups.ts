// The memory of a rule: groups found by a 64-bit hash, and for each the matches that may still count, sorted by time.
// Everything lies in typed arrays, since a million small objects would cost ten times the room and stall the collector.
// A group's entries lie side by side in a block of 1, 2, 4, ... entries; a block that is given back serves the next one.

const LEVELS = 15;
/** Entries that one group can hold at all. */
const GROUP_ENTRIES_MAX = 1 << (LEVELS - 1);
const FREE = 255;
const ID_WORDS = 4;
const LOAD_MAX = 0.7;
const CAPACITY_MIN = 16;

/** Groups, and entries that blocks in use have room for, of all rules together. */
export interface Totals {
  groups: number;
  entries: number;
}

export class Groups {
  /** Columns of entries; `extra` has as many words per entry as its user asked for. */
  times = new Float64Array(0);
  ids = new Uint32Array(0);
  extra = new Uint32Array(0);
  /** 1: a finding has counted this entry. */
  counted = new Uint8Array(0);
  readonly #extraWords: number;
  #entriesTop = 0;
  readonly #freeBlocks = new Int32Array(LEVELS).fill(-1);

  /** Columns of groups. */
  lengths = new Uint16Array(0);
  /** When the group was last added to, in seconds of whatever clock its user has. */
  touched = new Uint32Array(0);
  /** Entries that no finding has counted. */
  uncounted = new Uint16Array(0);
  #blocks = new Uint32Array(0);
  #starts = new Uint16Array(0);
  #levels = new Uint8Array(0);
  #high = new Uint32Array(0);
  #low = new Uint32Array(0);
  #groupsTop = 0;
  #freeGroup = -1;
  #slots = new Int32Array(CAPACITY_MIN).fill(-1);

  readonly #totals: Totals;
  live = 0;
  entries = 0;

  constructor(extraWords: number, totals: Totals) {
    this.#extraWords = extraWords;
    this.#totals = totals;
  }

  /** Numbers of groups lie below this; not all of them are in use. */
  get top(): number {
    return this.#groupsTop;
  }

  isLive(group: number): boolean {
    return this.#levels[group] !== FREE;
  }

  find(high: number, low: number): number {
    const mask = this.#slots.length - 1;
    for (let slot = low & mask; ; slot = (slot + 1) & mask) {
      const group = this.#slots[slot]!;
      if (group < 0) return -1;
      if (this.#low[group] === low && this.#high[group] === high) return group;
    }
  }

  /** A new group, without entries. The caller has seen that there is none. */
  insert(high: number, low: number): number {
    if (this.live + 1 > this.#slots.length * LOAD_MAX) this.#growSlots();
    let group = this.#freeGroup;
    if (group >= 0) this.#freeGroup = this.#blocks[group]! - 1;
    else {
      group = this.#groupsTop++;
      if (group >= this.#levels.length) this.#growGroups();
    }
    this.#high[group] = high;
    this.#low[group] = low;
    this.#levels[group] = 0;
    this.#blocks[group] = this.#allocate(0);
    this.#starts[group] = 0;
    this.lengths[group] = 0;
    this.uncounted[group] = 0;
    this.#place(group);
    this.live++;
    this.#totals.groups++;
    return group;
  }

  remove(group: number): void {
    this.#release(this.#blocks[group]!, this.#levels[group]!);
    this.#unplace(group);
    this.#levels[group] = FREE;
    this.#blocks[group] = this.#freeGroup + 1;
    this.#freeGroup = group;
    this.live--;
    this.#totals.groups--;
  }

  /** Where the group's entries begin in the columns. Good until the next insertion. */
  begin(group: number): number {
    return this.#blocks[group]! + this.#starts[group]!;
  }

  /** Makes room for an entry so many places from the group's first, and gives its place in the columns. */
  makeRoom(group: number, offset: number): number {
    let at = this.begin(group);
    const length = this.lengths[group]!;
    const size = 1 << this.#levels[group]!;
    if (this.#starts[group]! + length === size) {
      if (this.#starts[group]! >= Math.max(1, size >> 2)) {
        this.#move(at, this.#blocks[group]!, length);
        this.#starts[group] = 0;
      } else this.#growBlock(group);
      at = this.begin(group);
    }
    if (offset < length) this.#move(at + offset, at + offset + 1, length - offset);
    this.lengths[group] = length + 1;
    this.counted[at + offset] = 0;
    this.uncounted[group]!++;
    return at + offset;
  }

  dropFirst(group: number, count: number): void {
    const at = this.begin(group);
    for (let i = 0; i < count; i++) if (this.counted[at + i] === 0) this.uncounted[group]!--;
    this.lengths[group]! -= count;
    this.#starts[group] = this.lengths[group] === 0 ? 0 : this.#starts[group]! + count;
  }

  /** Takes out the entries at these places (counted from the group's first, rising). */
  dropSome(group: number, offsets: readonly number[]): void {
    const at = this.begin(group);
    const length = this.lengths[group]!;
    let next = 0;
    let kept = 0;
    for (let i = 0; i < length; i++) {
      if (i === offsets[next]) {
        next++;
        if (this.counted[at + i] === 0) this.uncounted[group]!--;
        continue;
      }
      if (kept !== i) this.#move(at + i, at + kept, 1);
      kept++;
    }
    this.lengths[group] = kept;
    if (kept === 0) this.#starts[group] = 0;
  }

  #growBlock(group: number): void {
    const level = this.#levels[group]!;
    if (level + 1 >= LEVELS) throw new Error(`a group of more than ${GROUP_ENTRIES_MAX} entries`);
    const from = this.begin(group);
    const old = this.#blocks[group]!;
    const block = this.#allocate(level + 1);
    this.#move(from, block, this.lengths[group]!);
    this.#release(old, level);
    this.#blocks[group] = block;
    this.#starts[group] = 0;
    this.#levels[group] = level + 1;
  }

  #move(from: number, to: number, count: number): void {
    const words = this.#extraWords;
    if (count === 1) {
      this.times[to] = this.times[from]!;
      this.counted[to] = this.counted[from]!;
      for (let i = 0; i < ID_WORDS; i++) this.ids[to * ID_WORDS + i] = this.ids[from * ID_WORDS + i]!;
      for (let i = 0; i < words; i++) this.extra[to * words + i] = this.extra[from * words + i]!;
      return;
    }
    this.times.copyWithin(to, from, from + count);
    this.counted.copyWithin(to, from, from + count);
    this.ids.copyWithin(to * ID_WORDS, from * ID_WORDS, (from + count) * ID_WORDS);
    if (words > 0) this.extra.copyWithin(to * words, from * words, (from + count) * words);
  }

  #allocate(level: number): number {
    this.entries += 1 << level;
    this.#totals.entries += 1 << level;
    for (let larger = level; larger < LEVELS; larger++) {
      const block = this.#freeBlocks[larger]!;
      if (block < 0) continue;
      this.#freeBlocks[larger] = this.ids[block * ID_WORDS]! - 1;
      // The upper halves of a block that is too large serve smaller groups.
      for (let half = larger - 1; half >= level; half--) this.#giveBack(block + (1 << half), half);
      return block;
    }
    const block = this.#entriesTop;
    this.#entriesTop += 1 << level;
    if (this.#entriesTop > this.times.length) this.#growEntries();
    return block;
  }

  #release(block: number, level: number): void {
    this.entries -= 1 << level;
    this.#totals.entries -= 1 << level;
    this.#giveBack(block, level);
  }

  /** Free blocks are a list that runs through their own first words. */
  #giveBack(block: number, level: number): void {
    this.ids[block * ID_WORDS] = this.#freeBlocks[level]! + 1;
    this.#freeBlocks[level] = block;
  }

  #growEntries(): void {
    const capacity = grown(this.times.length, this.#entriesTop);
    this.times = enlarged(this.times, new Float64Array(capacity));
    this.ids = enlarged(this.ids, new Uint32Array(capacity * ID_WORDS));
    this.extra = enlarged(this.extra, new Uint32Array(capacity * this.#extraWords));
    this.counted = enlarged(this.counted, new Uint8Array(capacity));
  }

  #growGroups(): void {
    const capacity = grown(this.#levels.length, this.#groupsTop);
    this.lengths = enlarged(this.lengths, new Uint16Array(capacity));
    this.touched = enlarged(this.touched, new Uint32Array(capacity));
    this.uncounted = enlarged(this.uncounted, new Uint16Array(capacity));
    this.#blocks = enlarged(this.#blocks, new Uint32Array(capacity));
    this.#starts = enlarged(this.#starts, new Uint16Array(capacity));
    this.#levels = enlarged(this.#levels, new Uint8Array(capacity).fill(FREE));
    this.#high = enlarged(this.#high, new Uint32Array(capacity));
    this.#low = enlarged(this.#low, new Uint32Array(capacity));
  }

  #growSlots(): void {
    this.#slots = new Int32Array(this.#slots.length * 2).fill(-1);
    for (let group = 0; group < this.#groupsTop; group++) if (this.isLive(group)) this.#place(group);
  }

  #place(group: number): void {
    const mask = this.#slots.length - 1;
    let slot = this.#low[group]! & mask;
    while (this.#slots[slot]! >= 0) slot = (slot + 1) & mask;
    this.#slots[slot] = group;
  }

  /** Closes the gap by moving what had to give way back: no tombstones, however many groups come and go. */
  #unplace(group: number): void {
    const mask = this.#slots.length - 1;
    let gap = this.#low[group]! & mask;
    while (this.#slots[gap] !== group) gap = (gap + 1) & mask;
    for (let slot = (gap + 1) & mask; this.#slots[slot]! >= 0; slot = (slot + 1) & mask) {
      const home = this.#low[this.#slots[slot]!]! & mask;
      if (((slot - home) & mask) < ((slot - gap) & mask)) continue;
      this.#slots[gap] = this.#slots[slot]!;
      gap = slot;
    }
    this.#slots[gap] = -1;
  }
}

/** Doubling is for small things: a quarter more wastes less where it is many megabytes. */
function grown(capacity: number, needed: number): number {
  const more = capacity < 65_536 ? capacity * 2 : Math.ceil(capacity * 1.25);
  return Math.max(CAPACITY_MIN, more, needed);
}

function enlarged<Column extends Float64Array | Uint32Array | Uint16Array | Uint8Array>(
  column: Column,
  larger: Column,
): Column {
  larger.set(column);
  return larger;
}
