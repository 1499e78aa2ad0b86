// Assigns entries of a group to the steps of a sequence. In an ordered sequence, times do not decrease from one step to the
// next. Entries with equal timestamps count in whichever order completes the sequence, since their order is unknown.

/** Steps are bits of a word. */
export const STEPS_MAX = 32;
/** Limits the work for sequences of thousands of events. */
const BEGINNINGS_MAX = 64;

/** Entries sorted by time, accessed by index. */
export interface SequenceEntries {
  time(index: number): number;
  /** Bit n is set if the entry is step n. */
  steps(index: number): number;
}

export class SequenceSteps {
  /** Number of events of each step, and of the sequence. */
  readonly counts: readonly number[];
  readonly needed: number;
  readonly inOrder: boolean;
  /** Absent steps, as bits; their counts are 0. */
  readonly absent: number;
  /** The step of each event of a complete sequence. */
  readonly #stepByEvent: readonly number[];

  /** `least`: this number of steps suffices, one event each, in any order. */
  constructor(counts: readonly number[], inOrder: boolean, least?: number | null) {
    this.counts = counts;
    this.inOrder = inOrder;
    this.absent = counts.reduce((bits, count, step) => (count === 0 ? bits | (1 << step) : bits), 0);
    this.#stepByEvent = counts.flatMap((count, step) => Array.from({ length: count }, () => step));
    this.needed = least ?? this.#stepByEvent.length;
  }

  /** The first set of entries in this range that completes the sequence. */
  completion(entries: SequenceEntries, start: number, end: number): readonly number[] | undefined {
    const taken = this.inOrder
      ? follow(entries, this.#stepByEvent, start, end)
      : fill(entries, this.counts, this.needed, start, end);
    return taken.length === this.needed ? taken : undefined;
  }

  /**
   * Partial sequences in this range that newer entries could complete. Every sequence that starts in the range can start with
   * one of these sets, and no earlier. The longest sets come first.
   *
   * Without order it is one set, filled from the newest entry back: an entry that does not fit beside newer ones adds
   * nothing. With order it is, for each possible length so far, the set that starts last.
   */
  beginnings(entries: SequenceEntries, start: number, end: number): (readonly number[])[] {
    if (!this.inOrder) return [fill(entries, this.counts, this.needed, end - 1, start - 1)];
    const furthest = follow(entries, this.#stepByEvent, start, end).length;
    // Sets with fewer events of the first step are subsets of the full one.
    const nearest = Math.min(furthest, this.counts[0]!);
    const stride = Math.ceil((furthest - nearest + 1) / BEGINNINGS_MAX);
    const found: (readonly number[])[] = [];
    for (let events = furthest; events >= nearest && events > 0; events -= stride) {
      found.push(follow(entries, this.#stepByEvent.slice(0, events).reverse(), end - 1, start - 1));
    }
    return found;
  }

  /** Number of entries with these steps that one sequence can take. */
  usable(steps: number): number {
    return this.counts.reduce((sum, count, step) => (steps & (1 << step) ? sum + count : sum), 0);
  }
}

/** Takes every entry that fits beside the earlier ones, until there are enough. Walks down if `end` is below `start`. */
function fill(
  entries: SequenceEntries,
  counts: readonly number[],
  needed: number,
  start: number,
  end: number,
): number[] {
  const assignment = new StepAssignment(entries, counts);
  const direction = start < end ? 1 : -1;
  for (let i = start; i !== end && assignment.taken.size < needed; i += direction) assignment.take(i);
  return [...assignment.taken];
}

/**
 * Takes as many of these steps in order as possible. Each timestamp contributes all that it can. Walks down if `end` is below
 * `start`.
 */
function follow(entries: SequenceEntries, steps: readonly number[], start: number, end: number): number[] {
  const taken: number[] = [];
  const direction = start < end ? 1 : -1;
  for (let next = start; next !== end && taken.length < steps.length;) {
    const first = next;
    do next += direction;
    while (next !== end && entries.time(next) === entries.time(first));
    if (direction > 0) takeTimestamp(entries, steps, first, next, taken);
    else takeTimestamp(entries, steps, next + 1, first + 1, taken);
  }
  return taken;
}

/** Takes as many further steps as the entries of one timestamp provide. */
export function takeTimestamp(
  entries: SequenceEntries,
  steps: readonly number[],
  first: number,
  end: number,
  taken: number[],
): void {
  const bit = 1 << steps[taken.length]!;
  let begins = first;
  while (begins < end && (entries.steps(begins) & bit) === 0) begins++;
  if (begins === end) return;
  if (end - first === 1) {
    taken.push(first);
    return;
  }
  // First find the number of steps, one by one; then choose the earliest entries that provide them.
  const counts = Array.from({ length: STEPS_MAX }, () => 0);
  const assignment = new StepAssignment(entries, counts);
  for (let from = taken.length, to = from; from < steps.length; from = to) {
    const step = steps[from]!;
    while (steps[to] === step) to++;
    const before = assignment.taken.size;
    counts[step] = to - from;
    for (let i = first; i < end; i++) assignment.take(i);
    counts[step] = assignment.taken.size - before;
    if (counts[step] < to - from) break;
  }
  for (const i of fill(entries, counts, assignment.taken.size, first, end)) taken.push(i);
}

/** An assignment of entries to steps. An entry that fits several steps moves to make room for another. */
class StepAssignment {
  readonly #entries: SequenceEntries;
  readonly #counts: readonly number[];
  readonly #members: number[][] = [];
  #tried = 0;
  readonly taken = new Set<number>();

  constructor(entries: SequenceEntries, counts: readonly number[]) {
    this.#entries = entries;
    this.#counts = counts;
  }

  take(index: number): void {
    if (this.taken.has(index)) return;
    this.#tried = 0;
    if (this.#assign(index)) this.taken.add(index);
  }

  #assign(index: number): boolean {
    const steps = this.#entries.steps(index);
    for (let bits = steps & ~this.#tried; bits !== 0; bits = steps & ~this.#tried) {
      const step = firstStep(bits);
      this.#tried |= 1 << step;
      const members = (this.#members[step] ??= []);
      if (members.length < this.#counts[step]!) {
        members.push(index);
        return true;
      }
      const moved = members.findIndex(
        (other) => (this.#entries.steps(other) & ~this.#tried) !== 0 && this.#assign(other),
      );
      if (moved >= 0) {
        members[moved] = index;
        return true;
      }
    }
    return false;
  }
}

export function firstStep(bits: number): number {
  return 31 - Math.clz32(bits & -bits);
}
