import type { Scalar } from "../model/condition.ts";
import { carriedBy, DifferentValues, setValue } from "./different-values.ts";
import { readWords } from "./event-words.ts";
import type { Groups } from "./groups.ts";
import type { Hash } from "./hash.ts";
import { dropDense, dropRepeated, isSameEvent } from "./shortening.ts";
import type { Spot, Window } from "./tracker.ts";

// A threshold over a sliding window of event time. A match fires when enough matches of its group (or enough different
// values) lie in some span of the window's length that it is in, whatever the order in which they came.

/**
 * Entries that a group keeps beyond those that make it fire: late ones find their neighbours among them. Each time that it
 * has so many more it is made shorter, unless there is plenty of room. With the most of them and the highest count that a
 * rule can have, a quarter of the largest block is free, as groups need it.
 */
const SPARE_ENTRIES = 256;
const SPARE_ENTRIES_MAX = 8 * SPARE_ENTRIES;
/** What is dropped when there is nothing to be made shorter: looking for that must not be done for each match. */
const DROPPED_AT_ONCE = 32;

export interface ThresholdOptions {
  readonly windowMs: number;
  readonly lateMs: number;
  readonly count: number;
  readonly isDistinct: boolean;
  readonly hash: Hash;
  readonly room: { readonly hasPlenty: boolean };
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
    this.#different = new DifferentValues(groups, options.isDistinct ? this.#entriesMax : 1);
  }

  add(
    group: number,
    timestampMs: number,
    words: Uint32Array,
    distinct: readonly (readonly Scalar[])[],
  ): Spot | undefined {
    const { isDistinct, hash, count } = this.#options;
    const length = this.#groups.length(group);
    if (!isDistinct && !this.#isLong(length)) {
      const horizonMs = timestampMs - this.#options.windowMs - this.#options.lateMs;
      if (this.#groups.append(group, timestampMs, words, horizonMs)) {
        if (length + 1 < count) return undefined;
        return this.#mark(group, this.#firingSpan(group, timestampMs, length));
      }
    }
    if (this.#isLate(group, timestampMs)) {
      this.late++;
      return undefined;
    }
    if (!isDistinct) {
      const place = this.#insert(group, timestampMs, words);
      return this.#mark(group, this.#firingSpan(group, timestampMs, place));
    }
    let place = 0;
    for (const values of distinct) {
      place = this.#insert(group, timestampMs, words);
      hash.of(values);
      setValue(this.#groups, this.#groups.begin(group) + place, hash);
    }
    return this.#mark(group, this.#firingSpanOfValues(group, timestampMs, place));
  }

  #isLate(group: number, timestampMs: number): boolean {
    const length = this.#groups.length(group);
    if (length === 0) return false;
    const newest = this.#groups.time(this.#groups.begin(group) + length - 1);
    return timestampMs < newest - this.#options.windowMs - this.#options.lateMs;
  }

  /** Gives the place of the entry, counted from the group's first. Among equal times it is the last. */
  #insert(group: number, timestampMs: number, words: Uint32Array): number {
    const groups = this.#groups;
    const held = groups.length(group);
    let from = groups.begin(group);
    if (held > 0 && timestampMs > groups.time(from + held - 1)) {
      const horizon = timestampMs - this.#options.windowMs - this.#options.lateMs;
      let expired = 0;
      while (expired < held && groups.time(from + expired) < horizon) expired++;
      if (expired > 0) groups.dropFirst(group, expired);
    }
    if (this.#isLong(groups.length(group))) this.#shorten(group);
    from = groups.begin(group);
    const place = firstAbove(groups, from, groups.length(group), timestampMs);
    groups.write(groups.makeRoom(group, place), timestampMs, words);
    return place;
  }

  #isLong(length: number): boolean {
    return length >= this.#entriesMax && (length - this.#entriesMax) % SPARE_ENTRIES === 0;
  }

  #shorten(group: number): void {
    const groups = this.#groups;
    const { windowMs, count, isDistinct, room } = this.#options;
    const left = groups.length(group) - DROPPED_AT_ONCE;
    if (isDistinct) dropRepeated(groups, group, this.#different, { windowMs, left });
    else dropDense(groups, group, windowMs, count);
    const isMost = isDistinct || groups.length(group) >= count + SPARE_ENTRIES_MAX;
    if (this.#isLong(groups.length(group)) && (isMost || !room.hasPlenty)) groups.dropFirst(group, DROPPED_AT_ONCE);
  }

  /** The entries of all spans that have enough and have this one in them: they make one stretch. */
  #firingSpan(group: number, timestampMs: number, place: number): { first: number; end: number } | undefined {
    const groups = this.#groups;
    const { count, windowMs } = this.#options;
    const length = groups.length(group);
    if (length < count) return undefined;
    const from = groups.begin(group);
    const lastStart = Math.min(place, length - count);
    // Says no for almost every match, with a single look.
    if (groups.time(from + lastStart) <= timestampMs - windowMs - 1) return undefined;
    const isEnough = (start: number) => groups.time(from + start + count - 1) - groups.time(from + start) <= windowMs;
    let first = firstAbove(groups, from, length, timestampMs - windowMs - 1);
    while (first <= lastStart && !isEnough(first)) first++;
    if (first > lastStart) return undefined;
    let last = lastStart;
    while (!isEnough(last)) last--;
    return { first, end: firstAbove(groups, from, length, groups.time(from + last) + windowMs) };
  }

  #firingSpanOfValues(group: number, timestampMs: number, place: number): { first: number; end: number } | undefined {
    const groups = this.#groups;
    const { count, windowMs } = this.#options;
    const length = groups.length(group);
    if (length < count) return undefined;
    const from = groups.begin(group);
    // Not even as many entries as values are asked for: so it is for almost every match.
    if (groups.time(from + length - count) <= timestampMs - windowMs - 1) return undefined;
    let span: { first: number; end: number } | undefined;
    let end = firstAbove(groups, from, length, timestampMs - windowMs - 1);
    this.#different.clear();
    for (let start = end; start <= place; start++) {
      for (; end < length && groups.time(from + end) - groups.time(from + start) <= windowMs; end++) {
        this.#different.add(from + end);
      }
      if (this.#different.size >= count) span = { first: span?.first ?? start, end };
      // Spans that begin later have nothing that this one does not have.
      if (end === length) break;
      this.#different.remove(from + start);
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
    for (let i = span.end - 1; i >= span.first && groups.uncounted(group) > 0; i--) {
      const at = from + i;
      if (groups.isCounted(at)) continue;
      groups.count(group, at);
      if (this.#options.isDistinct) {
        count += carriedBy(groups, at);
        if (i + 1 < span.end && isSameEvent(groups, at, at + 1)) continue;
      }
      count++;
      const timestampMs = groups.time(at);
      firstMs = Math.min(firstMs, timestampMs);
      lastMs = Math.max(lastMs, timestampMs);
      marks.push({ id: readWords((word) => groups.idWord(at, word)), timestampMs });
    }
    return { count, firstMs, lastMs, marks };
  }
}

/** How many of these sorted times are not above the bound. Most look for a place near the end. */
function firstAbove(groups: Groups, from: number, length: number, bound: number): number {
  if (length === 0 || groups.time(from + length - 1) <= bound) return length;
  let low = 0;
  let high = length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (groups.time(from + middle) <= bound) low = middle + 1;
    else high = middle;
  }
  return low;
}
