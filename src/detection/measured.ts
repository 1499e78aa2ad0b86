import type { Scalar } from "../model/condition.ts";
import { readWords } from "./event-words.ts";
import type { Groups } from "./groups.ts";
import type { Measure } from "./measure.ts";
import { isSameEvent } from "./shortening.ts";
import type { Spot, Window } from "./tracker.ts";

// The sum, the average or a percentile of a number over a sliding window of event time. A match fires when the bound holds
// for some window of that length that ends with a match and has this one in it, whatever the order in which they came.

/** Entries that a group keeps. Beyond them, those that lie close together become one. */
const ENTRIES_MAX = 256;
/** The finest part of a window within which entries become one, and how much coarser each further try is. */
const FINEST = 64;
const COARSER = 8;
/** What is dropped at once where nothing lies close together. */
const DROPPED_AT_ONCE = 32;

/** The words of an entry: its amount, a number of eight bytes, the values that it is of, and further events in it. */
export const MEASURED_WORDS = 4;
const AMOUNT = 0;
const VALUES = 2;
const EVENTS = 3;

export interface MeasuredOptions {
  readonly windowMs: number;
  readonly lateMs: number;
  readonly measure: Measure;
  /** With fewer events a window does not fire. */
  readonly eventsMin: number;
}

export class MeasuredWindow implements Window {
  readonly #groups: Groups;
  readonly #options: MeasuredOptions;
  readonly #number = new Float64Array(1);
  readonly #numberWords = new Uint32Array(this.#number.buffer);
  late = 0;
  /** Entries that were given up although they lay within a window of the newest. */
  dropped = 0;

  constructor(groups: Groups, options: MeasuredOptions) {
    this.#groups = groups;
    this.#options = options;
  }

  add(
    group: number,
    timestampMs: number,
    words: Uint32Array,
    values: readonly (readonly Scalar[])[],
  ): Spot | undefined {
    const groups = this.#groups;
    const { windowMs, lateMs, measure } = this.#options;
    const newestMs = this.#newestMs(group);
    if (timestampMs < newestMs - windowMs - lateMs) {
      this.late++;
      return undefined;
    }
    if (timestampMs > newestMs) this.#expire(group, timestampMs - windowMs - lateMs);
    for (const [value] of values) {
      if (groups.length(group) >= ENTRIES_MAX) this.#shorten(group);
      const at = groups.makeRoom(group, this.#placeAfter(group, timestampMs));
      groups.write(at, timestampMs, words);
      this.#setAmount(at, measure.amountOf(value as number));
      groups.setExtra(at, 1, VALUES);
      groups.setExtra(at, 0, EVENTS);
    }
    return this.#mark(group, this.#firingSpan(group, timestampMs));
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

  /** How many entries are no newer. */
  #placeAfter(group: number, ms: number): number {
    const from = this.#groups.begin(group);
    let place = this.#groups.length(group);
    while (place > 0 && this.#groups.time(from + place - 1) > ms) place--;
    return place;
  }

  /** The entries of all windows that fire, end with an entry and have this time in them: they make one stretch. */
  #firingSpan(group: number, timestampMs: number): { first: number; end: number } | undefined {
    const groups = this.#groups;
    const { windowMs } = this.#options;
    const from = groups.begin(group);
    const length = groups.length(group);
    let span: { first: number; end: number } | undefined;
    for (let end = this.#placeAfter(group, timestampMs); end <= length; end++) {
      const endMs = groups.time(from + end - 1);
      if (endMs - timestampMs > windowMs) break;
      // All of one moment are in the same windows.
      if (end < length && groups.time(from + end) === endMs) continue;
      const first = this.#placeAfter(group, endMs - windowMs - 1);
      if (this.#holds(from, first, end)) span = { first: Math.min(first, span?.first ?? first), end };
    }
    return span;
  }

  #holds(from: number, first: number, end: number): boolean {
    const groups = this.#groups;
    let amount = 0;
    let values = 0;
    let events = 0;
    for (let place = first; place < end; place++) {
      const at = from + place;
      amount += this.#amount(at);
      values += groups.extra(at, VALUES);
      events += groups.extra(at, EVENTS) + (place > first && isSameEvent(groups, at, at - 1) ? 0 : 1);
    }
    return events >= this.#options.eventsMin && this.#options.measure.holds({ amount, values });
  }

  #mark(group: number, span: { first: number; end: number } | undefined): Spot | undefined {
    if (!span) return undefined;
    const groups = this.#groups;
    const from = groups.begin(group);
    const marks: { id: string | number; timestampMs: number }[] = [];
    let count = 0;
    let firstMs = Infinity;
    let lastMs = -Infinity;
    for (let place = span.end - 1; place >= span.first && groups.uncounted(group) > 0; place--) {
      const at = from + place;
      if (groups.isCounted(at)) continue;
      groups.count(group, at);
      count += groups.extra(at, EVENTS);
      if (place + 1 < span.end && isSameEvent(groups, at, at + 1)) continue;
      count++;
      const timestampMs = groups.time(at);
      firstMs = Math.min(firstMs, timestampMs);
      lastMs = Math.max(lastMs, timestampMs);
      marks.push({ id: readWords((word) => groups.idWord(at, word)), timestampMs });
    }
    return { count, firstMs, lastMs, marks };
  }

  /** What has become one counts as if it had come with the last of it. */
  #shorten(group: number): void {
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
    const lengthOf = (place: number) => Math.floor(groups.time(from + place) / lengthMs);
    const dropped: number[] = [];
    let kept = groups.length(group) - 1;
    for (let place = kept - 1; place >= 0; place--) {
      const [at, into] = [from + place, from + kept];
      if (lengthOf(place) !== lengthOf(kept) || groups.isCounted(at) !== groups.isCounted(into)) {
        kept = place;
        continue;
      }
      const isSame = isSameEvent(groups, at, at + 1);
      this.#setAmount(into, this.#amount(into) + this.#amount(at));
      groups.setExtra(into, groups.extra(into, VALUES) + groups.extra(at, VALUES), VALUES);
      groups.setExtra(into, groups.extra(into, EVENTS) + groups.extra(at, EVENTS) + (isSame ? 0 : 1), EVENTS);
      dropped.push(place);
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
