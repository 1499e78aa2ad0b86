import type { Scalar } from "../../model/condition.ts";
import { carriedBy, DistinctValues, setValue } from "./distinct-values.ts";
import type { WindowGroups } from "./window-groups.ts";
import type { GroupHash } from "./group-hash.ts";
import { dropDense, dropRepeated } from "./threshold-compaction.ts";
import type { WindowFiring, MatchWindow } from "./tracked-match.ts";
import { countSpan, type EntrySpan } from "./uncounted-matches.ts";

// A threshold over a sliding window of event time. A match fires if some window that contains it has enough matches of its
// group (or enough distinct values), regardless of the order of arrival.

/**
 * Entries that a group keeps in addition to its count, for late matches. Each time the group grows by this number it is
 * compacted, unless memory is plentiful. With the maximum and the highest count of a rule, a quarter of the largest block
 * stays free, as window groups require.
 */
const SPARE_ENTRIES = 256;
const SPARE_ENTRIES_MAX = 8 * SPARE_ENTRIES;
/** Entries dropped at once if compaction frees nothing, so that not every match tries to compact. */
const DROPPED_AT_ONCE = 32;

export interface ThresholdOptions {
  readonly windowMs: number;
  readonly lateMs: number;
  readonly count: number;
  readonly isDistinct: boolean;
  readonly hash: GroupHash;
  readonly memoryLimit: { readonly hasPlenty: boolean };
}

export class ThresholdWindow implements MatchWindow {
  readonly #groups: WindowGroups;
  readonly #options: ThresholdOptions;
  readonly #entriesMax: number;
  readonly #values: DistinctValues;
  late = 0;

  constructor(groups: WindowGroups, options: ThresholdOptions) {
    this.#groups = groups;
    this.#options = options;
    this.#entriesMax = options.count + SPARE_ENTRIES;
    this.#values = new DistinctValues(groups, options.isDistinct ? this.#entriesMax : 1);
  }

  add(
    group: number,
    timestampMs: number,
    words: Uint32Array,
    distinct: readonly (readonly Scalar[])[],
  ): WindowFiring | undefined {
    const { isDistinct, hash, count } = this.#options;
    const length = this.#groups.length(group);
    if (!isDistinct && !this.#isCompactionDue(length)) {
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
      const index = this.#insert(group, timestampMs, words);
      return this.#mark(group, this.#firingSpan(group, timestampMs, index));
    }
    let index = 0;
    for (const values of distinct) {
      index = this.#insert(group, timestampMs, words);
      hash.of(values);
      setValue(this.#groups, this.#groups.begin(group) + index, hash);
    }
    return this.#mark(group, this.#firingSpanOfValues(group, timestampMs, index));
  }

  #isLate(group: number, timestampMs: number): boolean {
    const length = this.#groups.length(group);
    if (length === 0) return false;
    const newest = this.#groups.time(this.#groups.begin(group) + length - 1);
    return timestampMs < newest - this.#options.windowMs - this.#options.lateMs;
  }

  /** Returns the index of the new entry in the group. It comes last among equal times. */
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
    if (this.#isCompactionDue(groups.length(group))) this.#compact(group);
    from = groups.begin(group);
    const index = countUpTo(groups, from, groups.length(group), timestampMs);
    groups.write(groups.makeRoom(group, index), timestampMs, words);
    return index;
  }

  #isCompactionDue(length: number): boolean {
    return length >= this.#entriesMax && (length - this.#entriesMax) % SPARE_ENTRIES === 0;
  }

  #compact(group: number): void {
    const groups = this.#groups;
    const { windowMs, count, isDistinct, memoryLimit } = this.#options;
    const left = groups.length(group) - DROPPED_AT_ONCE;
    if (isDistinct) dropRepeated(groups, group, this.#values, { windowMs, left });
    else dropDense(groups, group, windowMs, count);
    const isAtMaximum = isDistinct || groups.length(group) >= count + SPARE_ENTRIES_MAX;
    if (this.#isCompactionDue(groups.length(group)) && (isAtMaximum || !memoryLimit.hasPlenty))
      groups.dropFirst(group, DROPPED_AT_ONCE);
  }

  /** The entries of all firing windows that contain this one. They are contiguous. */
  #firingSpan(group: number, timestampMs: number, index: number): EntrySpan | undefined {
    const groups = this.#groups;
    const { count, windowMs } = this.#options;
    const length = groups.length(group);
    if (length < count) return undefined;
    const from = groups.begin(group);
    const lastStart = Math.min(index, length - count);
    // Rejects almost every match with one comparison.
    if (groups.time(from + lastStart) <= timestampMs - windowMs - 1) return undefined;
    const isEnough = (start: number) => groups.time(from + start + count - 1) - groups.time(from + start) <= windowMs;
    let first = countUpTo(groups, from, length, timestampMs - windowMs - 1);
    while (first <= lastStart && !isEnough(first)) first++;
    if (first > lastStart) return undefined;
    let last = lastStart;
    while (!isEnough(last)) last--;
    return { first, end: countUpTo(groups, from, length, groups.time(from + last) + windowMs) };
  }

  #firingSpanOfValues(group: number, timestampMs: number, index: number): EntrySpan | undefined {
    const groups = this.#groups;
    const { count, windowMs } = this.#options;
    const length = groups.length(group);
    if (length < count) return undefined;
    const from = groups.begin(group);
    // Fewer entries than required values: true for almost every match.
    if (groups.time(from + length - count) <= timestampMs - windowMs - 1) return undefined;
    let span: EntrySpan | undefined;
    let end = countUpTo(groups, from, length, timestampMs - windowMs - 1);
    this.#values.clear();
    for (let start = end; start <= index; start++) {
      for (; end < length && groups.time(from + end) - groups.time(from + start) <= windowMs; end++) {
        this.#values.add(from + end);
      }
      if (this.#values.size >= count) span = { first: span?.first ?? start, end };
      // Windows that start later contain nothing new.
      if (end === length) break;
      this.#values.remove(from + start);
    }
    return span;
  }

  #mark(group: number, span: EntrySpan | undefined): WindowFiring | undefined {
    const groups = this.#groups;
    return countSpan(groups, group, span, this.#options.isDistinct ? (entry) => carriedBy(groups, entry) : undefined);
  }
}

/** Number of these sorted times that are not above the bound. The result is mostly near the end. */
function countUpTo(groups: WindowGroups, from: number, length: number, bound: number): number {
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
