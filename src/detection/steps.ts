// Which entries of a group make the steps of a sequence. In order means that times do not fall from one step to the next:
// of one moment, entries count in whichever order completes it, since nobody knows which of them came first.

/** Steps are bits of a word. */
export const STEPS_MAX = 32;
/** More ways to begin are not told apart, so that a sequence of thousands of events does not take long. */
const BEGINNINGS_MAX = 64;

/** Entries sorted by time, known by their places. */
export interface Entries {
  time(place: number): number;
  /** Bit n is set when the entry is step n. */
  steps(place: number): number;
}

export class Steps {
  /** How many events make each step, and all of them. */
  readonly counts: readonly number[];
  readonly needed: number;
  readonly inOrder: boolean;
  /** Steps that must not happen, as bits; their counts are 0. */
  readonly absent: number;
  /** The step of each event of a whole sequence. */
  readonly #inTurn: readonly number[];

  /** `least`: so many of the steps are enough, of one event each and in any order. */
  constructor(counts: readonly number[], inOrder: boolean, least?: number | null) {
    this.counts = counts;
    this.inOrder = inOrder;
    this.absent = counts.reduce((bits, count, step) => (count === 0 ? bits | (1 << step) : bits), 0);
    this.#inTurn = counts.flatMap((count, step) => Array.from({ length: count }, () => step));
    this.needed = least ?? this.#inTurn.length;
  }

  /** The first set of entries between these places that is a whole sequence. */
  completion(entries: Entries, start: number, end: number): readonly number[] | undefined {
    const taken = this.inOrder
      ? follow(entries, this.#inTurn, start, end)
      : fill(entries, this.counts, this.needed, start, end);
    return taken.length === this.needed ? taken : undefined;
  }

  /**
   * What the entries between these places have to offer to a sequence that ends with newer ones: sets of them, of which
   * each sequence that any of the entries can begin can be begun with one, no earlier. The sets that come furthest are first.
   *
   * In any order it is one set, found from the newest on: an entry that does not fit beside the newer ones adds nothing
   * to them. In order it is, for each number of events that there could be so far, the one that begins last.
   */
  beginnings(entries: Entries, start: number, end: number): (readonly number[])[] {
    if (!this.inOrder) return [fill(entries, this.counts, this.needed, end - 1, start - 1)];
    const furthest = follow(entries, this.#inTurn, start, end).length;
    // Fewer of the first step are among as many as it counts.
    const nearest = Math.min(furthest, this.counts[0]!);
    const stride = Math.ceil((furthest - nearest + 1) / BEGINNINGS_MAX);
    const found: (readonly number[])[] = [];
    for (let events = furthest; events >= nearest && events > 0; events -= stride) {
      found.push(follow(entries, this.#inTurn.slice(0, events).reverse(), end - 1, start - 1));
    }
    return found;
  }

  /** How many entries that are these steps one sequence can take. */
  usable(steps: number): number {
    return this.counts.reduce((sum, count, step) => (steps & (1 << step) ? sum + count : sum), 0);
  }
}

/** Takes every entry that fits beside those before it, until there are enough. Goes down where the end is below the start. */
function fill(entries: Entries, counts: readonly number[], needed: number, start: number, end: number): number[] {
  const filling = new Filling(entries, counts);
  const way = start < end ? 1 : -1;
  for (let i = start; i !== end && filling.taken.size < needed; i += way) filling.take(i);
  return [...filling.taken];
}

/**
 * Takes as many of these steps as there are, one after the other. Each moment gives all that it can. Goes down where the
 * end is below the start.
 */
function follow(entries: Entries, steps: readonly number[], start: number, end: number): number[] {
  const taken: number[] = [];
  const way = start < end ? 1 : -1;
  for (let next = start; next !== end && taken.length < steps.length;) {
    const first = next;
    do next += way;
    while (next !== end && entries.time(next) === entries.time(first));
    if (way > 0) takeMoment(entries, steps, first, next, taken);
    else takeMoment(entries, steps, next + 1, first + 1, taken);
  }
  return taken;
}

/** Takes as many of the steps, behind those that are taken, as the entries of one moment can be. */
export function takeMoment(
  entries: Entries,
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
  // How far it goes is found step by step; only then is known which of its entries come first among those that will do.
  const counts = Array.from({ length: STEPS_MAX }, () => 0);
  const filling = new Filling(entries, counts);
  for (let from = taken.length, to = from; from < steps.length; from = to) {
    const step = steps[from]!;
    while (steps[to] === step) to++;
    const before = filling.taken.size;
    counts[step] = to - from;
    for (let i = first; i < end; i++) filling.take(i);
    counts[step] = filling.taken.size - before;
    if (counts[step] < to - from) break;
  }
  for (const i of fill(entries, counts, filling.taken.size, first, end)) taken.push(i);
}

/** Entries and the steps that they are. One that could be several moves over where that lets another in. */
class Filling {
  readonly #entries: Entries;
  readonly #counts: readonly number[];
  readonly #members: number[][] = [];
  #tried = 0;
  readonly taken = new Set<number>();

  constructor(entries: Entries, counts: readonly number[]) {
    this.#entries = entries;
    this.#counts = counts;
  }

  take(place: number): void {
    if (this.taken.has(place)) return;
    this.#tried = 0;
    if (this.#settle(place)) this.taken.add(place);
  }

  #settle(place: number): boolean {
    const steps = this.#entries.steps(place);
    for (let bits = steps & ~this.#tried; bits !== 0; bits = steps & ~this.#tried) {
      const step = firstStep(bits);
      this.#tried |= 1 << step;
      const members = (this.#members[step] ??= []);
      if (members.length < this.#counts[step]!) {
        members.push(place);
        return true;
      }
      const moved = members.findIndex(
        (other) => (this.#entries.steps(other) & ~this.#tried) !== 0 && this.#settle(other),
      );
      if (moved >= 0) {
        members[moved] = place;
        return true;
      }
    }
    return false;
  }
}

export function firstStep(bits: number): number {
  return 31 - Math.clz32(bits & -bits);
}
