import type { Scalar } from "../../model/condition.ts";
import type { WindowGroups } from "./window-groups.ts";
import type { ThresholdMeasure } from "./threshold-measure.ts";
import { isSameEvent } from "./threshold-compaction.ts";
import type { WindowFiring, MatchWindow } from "./tracked-match.ts";
import { countSpan, type EntrySpan } from "./uncounted-matches.ts";

// The sum, average or percentile of a number over a sliding window of event time. A match fires if the bound holds for some
// window that ends with a match and contains this one, regardless of the order of arrival.

/** Entries that a group keeps. Beyond that, entries close in time are merged. */
const ENTRIES_MAX = 256;
/** Merging starts within 1/64 of a window; each further attempt is 8 times as coarse. */
const FINEST = 64;
const COARSER = 8;
/** Entries dropped at once if no entries are close in time. */
const DROPPED_AT_ONCE = 32;

/** The words of an entry: its amount (a double), the number of values in it, and the number of further events. */
export const MEASURED_WORDS = 4;
const AMOUNT = 0;
const VALUES = 2;
const EVENTS = 3;

export interface MeasuredOptions {
  readonly windowMs: number;
  readonly lateMs: number;
  readonly measure: ThresholdMeasure;
  /** A window with fewer events does not fire. */
  readonly eventsMin: number;
}

export class MeasuredWindow implements MatchWindow {
  readonly #groups: WindowGroups;
  readonly #options: MeasuredOptions;
  readonly #number = new Float64Array(1);
  readonly #numberWords = new Uint32Array(this.#number.buffer);
  late = 0;
  /** Entries dropped although they lay within a window of the newest. */
  dropped = 0;

  constructor(groups: WindowGroups, options: MeasuredOptions) {
    this.#groups = groups;
    this.#options = options;
  }

  add(
    group: number,
    timestampMs: number,
    words: Uint32Array,
    values: readonly (readonly Scalar[])[],
  ): WindowFiring | undefined {
    const groups = this.#groups;
    const { windowMs, lateMs, measure } = this.#options;
    const newestMs = this.#newestMs(group);
    if (timestampMs < newestMs - windowMs - lateMs) {
      this.late++;
      return undefined;
    }
    if (timestampMs > newestMs) this.#expire(group, timestampMs - windowMs - lateMs);
    for (const [value] of values) {
      if (groups.length(group) >= ENTRIES_MAX) this.#compact(group);
      const at = groups.makeRoom(group, this.#countUpTo(group, timestampMs));
      groups.write(at, timestampMs, words);
      this.#setAmount(at, measure.amountOf(value as number));
      groups.setExtra(at, 1, VALUES);
      groups.setExtra(at, 0, EVENTS);
    }
    return countSpan(groups, group, this.#firingSpan(group, timestampMs), (entry) => groups.extra(entry, EVENTS));
  }

  #newestMs(group: number): number {
    const length = this.#groups.length(group);
    return length === 0 ? -Infinity : this.#groups.time(this.#groups.begin(group) + length - 1);
  }

  #expire(group: number, horizonMs: number): void {
    const groups = this.#groups;
    const from = groups.begin(group);
    let expired = 0;
    while (expired < groups.length(group) && groups.time(from + expired) < horizonMs) expired++;
    if (expired > 0) groups.dropFirst(group, expired);
  }

  /** Number of entries that are not newer. */
  #countUpTo(group: number, ms: number): number {
    const from = this.#groups.begin(group);
    let index = this.#groups.length(group);
    while (index > 0 && this.#groups.time(from + index - 1) > ms) index--;
    return index;
  }

  /** The entries of all firing windows that contain this time. They are contiguous. */
  #firingSpan(group: number, timestampMs: number): EntrySpan | undefined {
    const groups = this.#groups;
    const { windowMs } = this.#options;
    const from = groups.begin(group);
    const length = groups.length(group);
    let span: EntrySpan | undefined;
    for (let end = this.#countUpTo(group, timestampMs); end <= length; end++) {
      const endMs = groups.time(from + end - 1);
      if (endMs - timestampMs > windowMs) break;
      // Entries with one timestamp are in the same windows.
      if (end < length && groups.time(from + end) === endMs) continue;
      const first = this.#countUpTo(group, endMs - windowMs - 1);
      if (this.#holds(from, first, end)) span = { first: Math.min(first, span?.first ?? first), end };
    }
    return span;
  }

  #holds(from: number, first: number, end: number): boolean {
    const groups = this.#groups;
    let amount = 0;
    let values = 0;
    let events = 0;
    for (let index = first; index < end; index++) {
      const at = from + index;
      amount += this.#amount(at);
      values += groups.extra(at, VALUES);
      events += groups.extra(at, EVENTS) + (index > first && isSameEvent(groups, at, at - 1) ? 0 : 1);
    }
    return events >= this.#options.eventsMin && this.#options.measure.holds({ amount, values });
  }

  /** Merges entries; a merged entry has the time of its newest event. */
  #compact(group: number): void {
    const groups = this.#groups;
    const { windowMs } = this.#options;
    const most = ENTRIES_MAX - DROPPED_AT_ONCE;
    for (let part = FINEST; part >= 1 && groups.length(group) > most; part /= COARSER) {
      this.#merge(group, Math.max(1, windowMs / part));
    }
    const excess = groups.length(group) - most;
    if (excess <= 0) return;
    const oldestKept = groups.begin(group) + excess;
    if (groups.time(oldestKept) >= this.#newestMs(group) - windowMs) this.dropped += excess;
    groups.dropFirst(group, excess);
  }

  #merge(group: number, lengthMs: number): void {
    const groups = this.#groups;
    const from = groups.begin(group);
    const bucketOf = (index: number) => Math.floor(groups.time(from + index) / lengthMs);
    const dropped: number[] = [];
    let kept = groups.length(group) - 1;
    for (let index = kept - 1; index >= 0; index--) {
      const [at, into] = [from + index, from + kept];
      if (bucketOf(index) !== bucketOf(kept) || groups.isCounted(at) !== groups.isCounted(into)) {
        kept = index;
        continue;
      }
      const isSame = isSameEvent(groups, at, at + 1);
      this.#setAmount(into, this.#amount(into) + this.#amount(at));
      groups.setExtra(into, groups.extra(into, VALUES) + groups.extra(at, VALUES), VALUES);
      groups.setExtra(into, groups.extra(into, EVENTS) + groups.extra(at, EVENTS) + (isSame ? 0 : 1), EVENTS);
      dropped.push(index);
    }
    if (dropped.length > 0) groups.dropSome(group, dropped.reverse());
  }

  #amount(at: number): number {
    this.#numberWords[0] = this.#groups.extra(at, AMOUNT);
    this.#numberWords[1] = this.#groups.extra(at, AMOUNT + 1);
    return this.#number[0]!;
  }

  #setAmount(at: number, amount: number): void {
    this.#number[0] = amount;
    this.#groups.setExtra(at, this.#numberWords[0]!, AMOUNT);
    this.#groups.setExtra(at, this.#numberWords[1]!, AMOUNT + 1);
  }
}
