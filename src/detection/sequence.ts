import type { Scalar } from "../model/condition.ts";
import { RELATED_EVENTS_MAX } from "../model/finding.ts";
import { readWords } from "./event-words.ts";
import type { Groups } from "./groups.ts";
import type { Spot, Window } from "./tracker.ts";

// Steps that must all happen within a window, in their order or in any. Entries are sorted by time, those of one moment
// by the first step that they are, then by arrival. Of all sets of entries that complete the sequence, the one that
// comes first in that order is taken, and its entries are gone: they do not make a second one.

/** Entries that a group keeps beyond those that complete the sequence. */
const SPARE_ENTRIES = 256;
const DROPPED_AT_ONCE = 32;

export interface SequenceOptions {
  readonly windowMs: number;
  readonly lateMs: number;
  /** How many events make each step. */
  readonly counts: readonly number[];
  readonly inOrder: boolean;
}

export class SequenceWindow implements Window {
  readonly #groups: Groups;
  readonly #options: SequenceOptions;
  readonly #needed: number;
  /** For each place in the sequence, the bit of its step. */
  readonly #places: readonly number[];
  late = 0;

  constructor(groups: Groups, options: SequenceOptions) {
    this.#groups = groups;
    this.#options = options;
    this.#places = options.counts.flatMap((count, step) => Array.from({ length: count }, () => 1 << step));
    this.#needed = this.#places.length;
  }

  add(
    group: number,
    timestampMs: number,
    words: Uint32Array,
    _distinct: readonly Scalar[],
    steps: number,
  ): Spot | undefined {
    if (steps === 0) return undefined;
    const groups = this.#groups;
    const { windowMs, lateMs } = this.#options;
    const newest = groups.length(group) === 0 ? timestampMs : groups.time(this.#end(group) - 1);
    if (timestampMs < newest - windowMs - lateMs) {
      this.late++;
      return undefined;
    }
    if (timestampMs > newest) this.#expire(group, timestampMs - windowMs - lateMs);
    if (groups.length(group) >= this.#needed + SPARE_ENTRIES) this.#shorten(group);
    const place = this.#insert(group, timestampMs, words, steps);
    const taken = this.#completion(group, timestampMs, place);
    return taken && this.#take(group, taken);
  }

  #end(group: number): number {
    return this.#groups.begin(group) + this.#groups.length(group);
  }

  #expire(group: number, horizon: number): void {
    const groups = this.#groups;
    const from = groups.begin(group);
    let expired = 0;
    while (expired < groups.length(group) && groups.time(from + expired) < horizon) expired++;
    if (expired > 0) groups.dropFirst(group, expired);
  }

  /**
   * A step that happens again and again must not push the others out. Of a long run of one kind only both ends matter:
   * what could be done with one from its middle can be done with one of those, or nearly always.
   */
  #shorten(group: number): void {
    const { start, length } = this.#longestRun(group);
    const kind = this.#groups.extra(this.#groups.begin(group) + start);
    const kept = this.#options.counts.reduce((sum, count, step) => (kind & (1 << step) ? sum + count : sum), 0);
    const dropped = Math.min(DROPPED_AT_ONCE, length - 2 * kept);
    if (dropped <= 0) return this.#groups.dropFirst(group, 1);
    this.#groups.dropSome(
      group,
      Array.from({ length: dropped }, (_, i) => start + kept + i),
    );
  }

  #longestRun(group: number): { start: number; length: number } {
    const groups = this.#groups;
    const from = this.#groups.begin(group);
    let longest = { start: 0, length: 0 };
    for (let start = 0, i = 0; i < this.#groups.length(group); i++) {
      if (groups.extra(from + i) !== groups.extra(from + start)) start = i;
      if (i + 1 - start > longest.length) longest = { start, length: i + 1 - start };
    }
    return longest;
  }

  #insert(group: number, timestampMs: number, words: Uint32Array, steps: number): number {
    const groups = this.#groups;
    const from = groups.begin(group);
    let place = groups.length(group);
    while (place > 0 && this.#comesBefore(timestampMs, steps, words, from + place - 1)) place--;
    const at = groups.makeRoom(group, place);
    groups.write(at, timestampMs, words);
    groups.setExtra(at, steps);
    return place;
  }

  #comesBefore(timestampMs: number, steps: number, words: Uint32Array, at: number): boolean {
    const groups = this.#groups;
    const held = groups.time(at);
    if (timestampMs !== held) return timestampMs < held;
    const [one, other] = [firstBit(steps), firstBit(groups.extra(at))];
    if (one !== other) return one < other;
    for (let i = 0; i < 4; i++) if (words[i] !== groups.idWord(at, i)) return words[i]! < groups.idWord(at, i);
    return false;
  }

  /** Places of the entries that complete the sequence, if any do. There was no completion without the new entry. */
  #completion(group: number, timestampMs: number, place: number): number[] | undefined {
    const groups = this.#groups;
    const { windowMs, inOrder } = this.#options;
    const length = this.#groups.length(group);
    if (length < this.#needed) return undefined;
    const from = this.#groups.begin(group);
    if (inOrder && place === length - 1 && (groups.extra(from + place) & this.#places.at(-1)!) === 0) return undefined;
    let start = 0;
    while (groups.time(from + start) < timestampMs - windowMs) start++;
    if (!this.#hasAllSteps(from, start, length, timestampMs + windowMs)) return undefined;
    for (; start <= place; start++) {
      if (inOrder && (groups.extra(from + start) & this.#places[0]!) === 0) continue;
      const untilMs = groups.time(from + start) + windowMs;
      const found = inOrder
        ? this.#followSteps(from, start, length, untilMs)
        : this.#fillSteps(from, start, length, untilMs);
      if (found) return found;
      // What was not found with everything up to the newest in reach is not found with less.
      if (groups.time(from + length - 1) <= untilMs) return undefined;
    }
    return undefined;
  }

  /** Cheap, and says no for almost every entry of a flood of one step. */
  #hasAllSteps(from: number, start: number, length: number, untilMs: number): boolean {
    const groups = this.#groups;
    const missing = [...this.#options.counts];
    let steps = missing.length;
    for (let i = start; i < length && groups.time(from + i) <= untilMs; i++) {
      for (let bits = groups.extra(from + i); bits !== 0; bits &= bits - 1) {
        if (--missing[firstBit(bits)]! === 0 && --steps === 0) return true;
      }
    }
    return false;
  }

  #followSteps(from: number, start: number, length: number, untilMs: number): number[] | undefined {
    const groups = this.#groups;
    const taken: number[] = [];
    for (let i = start; i < length && groups.time(from + i) <= untilMs; i++) {
      if ((groups.extra(from + i) & this.#places[taken.length]!) === 0) continue;
      taken.push(i);
      if (taken.length === this.#needed) return taken;
    }
    return undefined;
  }

  /** Takes every entry that fits beside those before it; one that could be several steps moves over where that helps. */
  #fillSteps(from: number, start: number, length: number, untilMs: number): number[] | undefined {
    const groups = this.#groups;
    const { counts } = this.#options;
    const members: number[][] = counts.map(() => []);
    let seen = 0;
    const settle = (i: number): boolean => {
      for (let bits = groups.extra(from + i) & ~seen; bits !== 0; bits = groups.extra(from + i) & ~seen) {
        const step = firstBit(bits);
        seen |= 1 << step;
        const held = members[step]!;
        if (held.length < counts[step]!) {
          held.push(i);
          return true;
        }
        const moved = held.findIndex((other) => (groups.extra(from + other) & ~seen) !== 0 && settle(other));
        if (moved >= 0) {
          held[moved] = i;
          return true;
        }
      }
      return false;
    };
    const taken: number[] = [];
    for (let i = start; i < length && groups.time(from + i) <= untilMs; i++) {
      seen = 0;
      if (!settle(i)) continue;
      taken.push(i);
      if (taken.length === this.#needed) return taken;
    }
    return undefined;
  }

  #take(group: number, taken: readonly number[]): Spot {
    const groups = this.#groups;
    const from = groups.begin(group);
    const marks = taken
      .slice(-RELATED_EVENTS_MAX)
      .reverse()
      .map((i) => ({ id: readWords((word) => groups.idWord(from + i, word)), timestampMs: groups.time(from + i) }));
    const spot = {
      count: taken.length,
      firstMs: groups.time(from + taken[0]!),
      lastMs: groups.time(from + taken.at(-1)!),
      marks,
    };
    groups.dropSome(group, taken);
    return spot;
  }
}

function firstBit(bits: number): number {
  return 31 - Math.clz32(bits & -bits);
}
