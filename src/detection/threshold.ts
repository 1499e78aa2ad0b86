import type { Scalar } from "../model/condition.ts";
import { RELATED_EVENTS_MAX } from "../model/finding.ts";
import { readWords } from "./event-words.ts";
import type { Groups } from "./groups.ts";
import type { Hash } from "./hash.ts";
import type { Spot, Window } from "./tracker.ts";

// A threshold over a sliding window of event time. A match fires when enough matches of its group (or enough different
// values) lie in some span of the window's length that it is in, whatever the order in which they came.

/** Entries that a group keeps beyond those that make it fire: late ones find their neighbours among them. */
const SPARE_ENTRIES = 256;

export interface ThresholdOptions {
  readonly windowMs: number;
  readonly lateMs: number;
  readonly count: number;
  readonly isDistinct: boolean;
  readonly hash: Hash;
}

export class ThresholdWindow implements Window {
  readonly #groups: Groups;
  readonly #options: ThresholdOptions;
  readonly #entriesMax: number;
  readonly #different: DifferentValues;
  late = 0;

  constructor(groups: Groups, options: ThresholdOptions) {
    this.#groups = groups;
    this.#options = options;
    this.#entriesMax = options.count + SPARE_ENTRIES;
    this.#different = new DifferentValues(options.isDistinct ? this.#entriesMax : 1);
  }

  add(group: number, timestampMs: number, words: Uint32Array, distinct: readonly Scalar[]): Spot | undefined {
    const { isDistinct, hash } = this.#options;
    if (this.#isLate(group, timestampMs)) {
      this.late++;
      return undefined;
    }
    if (!isDistinct) {
      const place = this.#insert(group, timestampMs, words);
      return this.#mark(group, this.#firingSpan(group, timestampMs, place));
    }
    let place = 0;
    for (const value of distinct) {
      place = this.#insert(group, timestampMs, words);
      hash.of([value]);
      const at = (this.#groups.begin(group) + place) * 2;
      this.#groups.extra[at] = hash.high;
      this.#groups.extra[at + 1] = hash.low;
    }
    return this.#mark(group, this.#firingSpanOfValues(group, timestampMs, place));
  }

  #isLate(group: number, timestampMs: number): boolean {
    const length = this.#groups.lengths[group]!;
    if (length === 0) return false;
    const newest = this.#groups.times[this.#groups.begin(group) + length - 1]!;
    return timestampMs < newest - this.#options.windowMs - this.#options.lateMs;
  }

  /** Gives the place of the entry, counted from the group's first. Among equal times it is the last. */
  #insert(group: number, timestampMs: number, words: Uint32Array): number {
    const groups = this.#groups;
    let length = groups.lengths[group]!;
    let from = groups.begin(group);
    if (length > 0 && timestampMs > groups.times[from + length - 1]!) {
      const horizon = timestampMs - this.#options.windowMs - this.#options.lateMs;
      let expired = 0;
      while (expired < length && groups.times[from + expired]! < horizon) expired++;
      if (expired > 0) groups.dropFirst(group, expired);
    }
    if (groups.lengths[group]! >= this.#entriesMax) this.#shorten(group);
    length = groups.lengths[group]!;
    from = groups.begin(group);
    const place = firstAbove(groups.times, from, length, timestampMs);
    const at = groups.makeRoom(group, place);
    groups.times[at] = timestampMs;
    groups.ids.set(words, at * 4);
    return place;
  }

  /** A value that comes again and again must not push others out: the older ones of a value go first. */
  #shorten(group: number): void {
    const groups = this.#groups;
    if (this.#options.isDistinct) {
      const from = groups.begin(group);
      const repeated: number[] = [];
      this.#different.clear();
      for (let i = groups.lengths[group]! - 1; i >= 0; i--) {
        if (!this.#different.add(groups.extra[(from + i) * 2]!, groups.extra[(from + i) * 2 + 1]!)) repeated.push(i);
      }
      if (repeated.length > 0) return groups.dropSome(group, repeated.reverse());
    }
    groups.dropFirst(group, groups.lengths[group]! - this.#entriesMax + 1);
  }

  /** The entries of all spans that have enough and have this one in them: they make one stretch. */
  #firingSpan(group: number, timestampMs: number, place: number): { first: number; end: number } | undefined {
    const { times } = this.#groups;
    const { count, windowMs } = this.#options;
    const length = this.#groups.lengths[group]!;
    if (length < count) return undefined;
    const from = this.#groups.begin(group);
    const lastStart = Math.min(place, length - count);
    const isEnough = (start: number) => times[from + start + count - 1]! - times[from + start]! <= windowMs;
    let first = firstAbove(times, from, length, timestampMs - windowMs - 1);
    while (first <= lastStart && !isEnough(first)) first++;
    if (first > lastStart) return undefined;
    let last = lastStart;
    while (!isEnough(last)) last--;
    return { first, end: firstAbove(times, from, length, times[from + last]! + windowMs) };
  }

  #firingSpanOfValues(group: number, timestampMs: number, place: number): { first: number; end: number } | undefined {
    const { times, extra } = this.#groups;
    const { count, windowMs } = this.#options;
    const length = this.#groups.lengths[group]!;
    if (length < count) return undefined;
    const from = this.#groups.begin(group);
    let span: { first: number; end: number } | undefined;
    let end = firstAbove(times, from, length, timestampMs - windowMs - 1);
    this.#different.clear();
    for (let start = end; start <= place; start++) {
      for (; end < length && times[from + end]! - times[from + start]! <= windowMs; end++) {
        this.#different.add(extra[(from + end) * 2]!, extra[(from + end) * 2 + 1]!);
      }
      if (this.#different.size >= count) span = { first: span?.first ?? start, end };
      // Spans that begin later have nothing that this one does not have.
      if (end === length) break;
      this.#different.remove(extra[(from + start) * 2]!, extra[(from + start) * 2 + 1]!);
    }
    return span;
  }

  #mark(group: number, span: { first: number; end: number } | undefined): Spot | undefined {
    if (!span) return undefined;
    const groups = this.#groups;
    const from = groups.begin(group);
    const marks: { id: string | number; timestampMs: number }[] = [];
    let count = 0;
    let firstMs = Infinity;
    let lastMs = -Infinity;
    for (let i = span.end - 1; i >= span.first && groups.uncounted[group]! > 0; i--) {
      const at = from + i;
      if (groups.counted[at] === 1) continue;
      groups.counted[at] = 1;
      groups.uncounted[group]!--;
      // Several values of one event are several entries, side by side.
      if (this.#options.isDistinct && i + 1 < span.end && isSameEvent(groups.ids, at, at + 1)) continue;
      count++;
      const timestampMs = groups.times[at]!;
      firstMs = Math.min(firstMs, timestampMs);
      lastMs = Math.max(lastMs, timestampMs);
      if (marks.length < RELATED_EVENTS_MAX) marks.push({ id: readWords(groups.ids, at * 4), timestampMs });
    }
    return { count, firstMs, lastMs, marks };
  }
}

function isSameEvent(ids: Uint32Array, one: number, other: number): boolean {
  for (let i = 0; i < 4; i++) if (ids[one * 4 + i] !== ids[other * 4 + i]) return false;
  return true;
}

/** How many of these sorted times are not above the bound. Most look for a place near the end. */
function firstAbove(times: Float64Array, from: number, length: number, bound: number): number {
  if (length === 0 || times[from + length - 1]! <= bound) return length;
  let low = 0;
  let high = length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[from + middle]! <= bound) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** How often each of some hashes occurs; emptied by counting up. */
class DifferentValues {
  readonly #high: Uint32Array;
  readonly #low: Uint32Array;
  readonly #rounds: Uint32Array;
  readonly #counts: Uint16Array;
  #round = 0;
  size = 0;

  constructor(entriesMax: number) {
    const slots = 2 ** Math.ceil(Math.log2(entriesMax * 2));
    this.#high = new Uint32Array(slots);
    this.#low = new Uint32Array(slots);
    this.#rounds = new Uint32Array(slots);
    this.#counts = new Uint16Array(slots);
  }

  clear(): void {
    this.size = 0;
    this.#round = (this.#round + 1) >>> 0;
    if (this.#round === 0) {
      this.#rounds.fill(0);
      this.#round = 1;
    }
  }

  /** Whether it is new. */
  add(high: number, low: number): boolean {
    const slot = this.#slot(high, low);
    const isNew = this.#counts[slot]!++ === 0;
    if (isNew) this.size++;
    return isNew;
  }

  remove(high: number, low: number): void {
    if (--this.#counts[this.#slot(high, low)]! === 0) this.size--;
  }

  #slot(high: number, low: number): number {
    const mask = this.#rounds.length - 1;
    for (let slot = low & mask; ; slot = (slot + 1) & mask) {
      if (this.#rounds[slot] !== this.#round) {
        this.#rounds[slot] = this.#round;
        this.#high[slot] = high;
        this.#low[slot] = low;
        this.#counts[slot] = 0;
        return slot;
      }
      if (this.#low[slot] === low && this.#high[slot] === high) return slot;
    }
  }
}
