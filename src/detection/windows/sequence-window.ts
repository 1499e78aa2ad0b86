import type { Scalar } from "../../model/condition.ts";
import { AbsentSteps } from "./absent-steps.ts";
import type { WindowGroups } from "./window-groups.ts";
import { firstStep, SequenceSteps, type SequenceEntries } from "./sequence-steps.ts";
import { entriesToEvict } from "./sequence-eviction.ts";
import type { WindowFiring, MatchWindow } from "./tracked-match.ts";
import { markOf } from "./uncounted-matches.ts";

// Steps that must all happen within a window, in order or in any order. Entries are sorted by time, then by their first step,
// then by arrival. Of all sets of entries that complete the sequence, the window takes the first in that order and removes
// its entries, so that they do not complete a second one.

/** Enough for sequences of twenty events. */
const SPARE_ENTRIES = 256;

export interface SequenceOptions {
  readonly windowMs: number;
  readonly lateMs: number;
  /** Number of events of each step; 0 for an absent step. */
  readonly counts: readonly number[];
  readonly inOrder: boolean;
  /** Number of steps that suffice; default all. */
  readonly least?: number | null | undefined;
  /** Events before this time are unknown. */
  readonly fromMs?: number | undefined;
  /** Entries that a group keeps in addition to those of one sequence. */
  readonly spareEntries?: number;
}

export class SequenceWindow implements MatchWindow {
  readonly #groups: WindowGroups;
  readonly #options: SequenceOptions;
  readonly #steps: SequenceSteps;
  readonly #absentSteps: AbsentSteps | undefined;
  readonly #lastStep: number;
  readonly #spareEntries: number;
  late = 0;

  constructor(groups: WindowGroups, options: SequenceOptions) {
    this.#groups = groups;
    this.#options = options;
    const { counts, windowMs, inOrder, least, fromMs = -Infinity } = options;
    this.#steps = new SequenceSteps(counts, inOrder, least);
    const steps = counts.map((count) => ({ count, absent: count === 0 }));
    this.#absentSteps = this.#steps.absent === 0 ? undefined : new AbsentSteps(steps, { windowMs, fromMs });
    this.#lastStep = counts.findLastIndex((count) => count > 0);
    this.#spareEntries = options.spareEntries ?? SPARE_ENTRIES;
  }

  add(
    group: number,
    timestampMs: number,
    words: Uint32Array,
    _values: readonly (readonly Scalar[])[],
    given: number,
  ): WindowFiring | undefined {
    if (given === 0) return undefined;
    // An event that is both a required and an absent step counts as the required one.
    const steps = given & ~this.#steps.absent || given;
    const groups = this.#groups;
    const { windowMs, lateMs } = this.#options;
    const newest = groups.length(group) === 0 ? timestampMs : groups.time(this.#end(group) - 1);
    if (timestampMs < newest - windowMs - lateMs) {
      this.late++;
      return undefined;
    }
    if (timestampMs > newest) this.#expire(group, timestampMs - windowMs - lateMs);
    if (groups.length(group) >= this.#steps.needed + this.#spareEntries) this.#evict(group, timestampMs);
    const index = this.#insert(group, timestampMs, words, steps);
    const taken = this.#completion(group, timestampMs, index);
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

  #evict(group: number, timestampMs: number): void {
    const { windowMs } = this.#options;
    const length = this.#groups.length(group);
    const full = { entries: this.#entriesOf(group), length, steps: this.#steps, windowMs, timestampMs };
    this.#groups.dropSome(group, entriesToEvict(full, Math.ceil(this.#spareEntries / 4)));
  }

  #insert(group: number, timestampMs: number, words: Uint32Array, steps: number): number {
    const groups = this.#groups;
    const from = groups.begin(group);
    let index = groups.length(group);
    while (index > 0 && this.#comesBefore(timestampMs, steps, words, from + index - 1)) index--;
    const at = groups.makeRoom(group, index);
    groups.write(at, timestampMs, words);
    groups.setExtra(at, steps);
    return index;
  }

  #comesBefore(timestampMs: number, steps: number, words: Uint32Array, at: number): boolean {
    const groups = this.#groups;
    const held = groups.time(at);
    if (timestampMs !== held) return timestampMs < held;
    const [one, other] = [firstStep(steps), firstStep(groups.extra(at))];
    if (one !== other) return one < other;
    for (let i = 0; i < groups.idWords; i++) {
      if (words[i] !== groups.idWord(at, i)) return words[i]! < groups.idWord(at, i);
    }
    return false;
  }

  /** Indices of the entries that complete the sequence, if any do. Without the new entry there was no completion. */
  #completion(group: number, timestampMs: number, index: number): readonly number[] | undefined {
    const { windowMs, inOrder } = this.#options;
    const length = this.#groups.length(group);
    if (length < this.#steps.needed) return undefined;
    const entries = this.#entriesOf(group);
    if (inOrder && !this.#hasStep(entries, length, timestampMs, this.#lastStep)) return undefined;
    let start = 0;
    while (entries.time(start) < timestampMs - windowMs) start++;
    if (!this.#hasAllSteps(entries, start, length, timestampMs + windowMs)) return undefined;
    if (this.#absentSteps) return this.#completionWithAbsentSteps(this.#absentSteps, entries, { start, index, length });
    let end = start;
    while (start <= index) {
      const startMs = entries.time(start);
      while (end < length && entries.time(end) <= startMs + windowMs) end++;
      const found = this.#steps.completion(entries, start, end);
      if (found) return found;
      // A later start sees no more entries than this one.
      if (end === length) return undefined;
      while (entries.time(start) === startMs) start++;
    }
    return undefined;
  }

  /** The same for sequences with absent steps: a later start may succeed where an earlier one fails. */
  #completionWithAbsentSteps(
    absentSteps: AbsentSteps,
    entries: SequenceEntries,
    { start, index, length }: { readonly start: number; readonly index: number; readonly length: number },
  ): readonly number[] | undefined {
    const dead = new Set<number>();
    for (let first = start; first <= index;) {
      const found = absentSteps.completion(entries, first, length, dead);
      if (found) return found;
      const firstMs = entries.time(first);
      while (first < length && entries.time(first) === firstMs) first++;
    }
    return undefined;
  }

  #entriesOf(group: number): SequenceEntries {
    const groups = this.#groups;
    const from = groups.begin(group);
    return { time: (index) => groups.time(from + index), steps: (index) => groups.extra(from + index) };
  }

  /** True if an entry that is not older is this step. */
  #hasStep(entries: SequenceEntries, length: number, timestampMs: number, step: number): boolean {
    for (let i = length - 1; i >= 0 && entries.time(i) >= timestampMs; i--) {
      if (entries.steps(i) & (1 << step)) return true;
    }
    return false;
  }

  /** A cheap check that rejects almost every entry of a flood of one step. */
  #hasAllSteps(entries: SequenceEntries, start: number, length: number, untilMs: number): boolean {
    const missing = [...this.#options.counts];
    let steps = this.#options.least ?? missing.filter((count) => count > 0).length;
    for (let i = start; i < length && entries.time(i) <= untilMs; i++) {
      for (let bits = entries.steps(i); bits !== 0; bits &= bits - 1) {
        if (--missing[firstStep(bits)]! === 0 && --steps === 0) return true;
      }
    }
    return false;
  }

  #take(group: number, taken: readonly number[]): WindowFiring {
    const groups = this.#groups;
    const from = groups.begin(group);
    const marks = taken.toReversed().map((i) => markOf(groups, from + i));
    const firing = {
      count: taken.length,
      firstMs: groups.time(from + taken[0]!),
      lastMs: groups.time(from + taken.at(-1)!),
      marks,
    };
    groups.dropSome(group, taken);
    return firing;
  }
}
