import type { Scalar } from "../model/condition.ts";
import { readWords } from "./event-words.ts";
import { Gaps } from "./gaps.ts";
import type { Groups } from "./groups.ts";
import { firstStep, Steps, type Entries } from "./steps.ts";
import { entriesToDrop } from "./thinning.ts";
import type { Spot, Window } from "./tracker.ts";

// Steps that must all happen within a window, in their order or in any. Entries are sorted by time, those of one moment
// by the first step that they are, then by arrival. Of all sets of entries that complete the sequence, the one that
// comes first in that order is taken, and its entries are gone: they do not make a second one.

/** Enough for all that sequences of twenty events need of what came before. */
const SPARE_ENTRIES = 256;

export interface SequenceOptions {
  readonly windowMs: number;
  readonly lateMs: number;
  /** How many events make each step; 0: the step must not happen. */
  readonly counts: readonly number[];
  readonly inOrder: boolean;
  /** How many of the steps are enough; default all. */
  readonly least?: number | null | undefined;
  /** What happened before it is not known. */
  readonly fromMs?: number | undefined;
  /** Entries that a group keeps beyond those of one sequence. */
  readonly spareEntries?: number;
}

export class SequenceWindow implements Window {
  readonly #groups: Groups;
  readonly #options: SequenceOptions;
  readonly #steps: Steps;
  readonly #gaps: Gaps | undefined;
  readonly #lastStep: number;
  readonly #spareEntries: number;
  late = 0;

  constructor(groups: Groups, options: SequenceOptions) {
    this.#groups = groups;
    this.#options = options;
    const { counts, windowMs, inOrder, least, fromMs = -Infinity } = options;
    this.#steps = new Steps(counts, inOrder, least);
    const steps = counts.map((count) => ({ count, absent: count === 0 }));
    this.#gaps = this.#steps.absent === 0 ? undefined : new Gaps(steps, { windowMs, fromMs });
    this.#lastStep = counts.findLastIndex((count) => count > 0);
    this.#spareEntries = options.spareEntries ?? SPARE_ENTRIES;
  }

  add(
    group: number,
    timestampMs: number,
    words: Uint32Array,
    _values: readonly (readonly Scalar[])[],
    given: number,
  ): Spot | undefined {
    if (given === 0) return undefined;
    // What is also a step that must happen is that step.
    const steps = given & ~this.#steps.absent || given;
    const groups = this.#groups;
    const { windowMs, lateMs } = this.#options;
    const newest = groups.length(group) === 0 ? timestampMs : groups.time(this.#end(group) - 1);
    if (timestampMs < newest - windowMs - lateMs) {
      this.late++;
      return undefined;
    }
    if (timestampMs > newest) this.#expire(group, timestampMs - windowMs - lateMs);
    if (groups.length(group) >= this.#steps.needed + this.#spareEntries) this.#shorten(group, timestampMs);
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

  #shorten(group: number, timestampMs: number): void {
    const { windowMs } = this.#options;
    const length = this.#groups.length(group);
    const crowd = { entries: this.#entriesOf(group), length, steps: this.#steps, windowMs, timestampMs };
    this.#groups.dropSome(group, entriesToDrop(crowd, Math.ceil(this.#spareEntries / 4)));
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
    const [one, other] = [firstStep(steps), firstStep(groups.extra(at))];
    if (one !== other) return one < other;
    for (let i = 0; i < 4; i++) if (words[i] !== groups.idWord(at, i)) return words[i]! < groups.idWord(at, i);
    return false;
  }

  /** Places of the entries that complete the sequence, if any do. There was no completion without the new entry. */
  #completion(group: number, timestampMs: number, place: number): readonly number[] | undefined {
    const { windowMs, inOrder } = this.#options;
    const length = this.#groups.length(group);
    if (length < this.#steps.needed) return undefined;
    const entries = this.#entriesOf(group);
    if (inOrder && !this.#hasStep(entries, length, timestampMs, this.#lastStep)) return undefined;
    let start = 0;
    while (entries.time(start) < timestampMs - windowMs) start++;
    if (!this.#hasAllSteps(entries, start, length, timestampMs + windowMs)) return undefined;
    if (this.#gaps) return this.#unbroken(this.#gaps, entries, { start, place, length });
    let end = start;
    while (start <= place) {
      const startMs = entries.time(start);
      while (end < length && entries.time(end) <= startMs + windowMs) end++;
      const found = this.#steps.completion(entries, start, end);
      if (found) return found;
      // What was not found with everything up to the newest in reach is not found with less.
      if (end === length) return undefined;
      while (entries.time(start) === startMs) start++;
    }
    return undefined;
  }

  /** The same with steps that must not happen: where one beginning leads nowhere, a later one may. */
  #unbroken(
    gaps: Gaps,
    entries: Entries,
    { start, place, length }: { readonly start: number; readonly place: number; readonly length: number },
  ): readonly number[] | undefined {
    const dead = new Set<number>();
    for (let first = start; first <= place;) {
      const found = gaps.completion(entries, first, length, dead);
      if (found) return found;
      const firstMs = entries.time(first);
      while (first < length && entries.time(first) === firstMs) first++;
    }
    return undefined;
  }

  #entriesOf(group: number): Entries {
    const groups = this.#groups;
    const from = groups.begin(group);
    return { time: (place) => groups.time(from + place), steps: (place) => groups.extra(from + place) };
  }

  /** Whether one that is no older is this step. */
  #hasStep(entries: Entries, length: number, timestampMs: number, step: number): boolean {
    for (let i = length - 1; i >= 0 && entries.time(i) >= timestampMs; i--) {
      if (entries.steps(i) & (1 << step)) return true;
    }
    return false;
  }

  /** Cheap, and says no for almost every entry of a flood of one step. */
  #hasAllSteps(entries: Entries, start: number, length: number, untilMs: number): boolean {
    const missing = [...this.#options.counts];
    let steps = this.#options.least ?? missing.filter((count) => count > 0).length;
    for (let i = start; i < length && entries.time(i) <= untilMs; i++) {
      for (let bits = entries.steps(i); bits !== 0; bits &= bits - 1) {
        if (--missing[firstStep(bits)]! === 0 && --steps === 0) return true;
      }
    }
    return false;
  }

  #take(group: number, taken: readonly number[]): Spot {
    const groups = this.#groups;
    const from = groups.begin(group);
    const marks = taken
      .toReversed()
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
