import { takeTimestamp, type SequenceEntries } from "./sequence-steps.ts";

// Sequences with absent steps: steps that must not happen. The search walks the other steps timestamp by timestamp. An
// entry of an absent step, a blocker, ends every walk within its gap: after the step before it and not yet past the step
// behind it. A blocker with the timestamp of either step counts as between them, since their order is unknown.

export class AbsentSteps {
  /** The step of each event of a complete sequence. */
  readonly #stepByEvent: readonly number[];
  /** Absent steps that block the walk, as bits, by the number of events taken so far. */
  readonly #blockers = new Map<number, number>();
  /** Numbers of events after which a gap follows, descending. */
  readonly #edges: readonly number[];
  readonly #windowMs: number;
  readonly #fromMs: number;

  /** Events before `fromMs` are unknown. */
  constructor(
    steps: readonly { readonly count: number; readonly absent: boolean }[],
    { windowMs, fromMs }: { readonly windowMs: number; readonly fromMs: number },
  ) {
    this.#windowMs = windowMs;
    this.#fromMs = fromMs;
    const stepByEvent: number[] = [];
    for (const [step, { count, absent }] of steps.entries()) {
      if (!absent) for (let i = 0; i < count; i++) stepByEvent.push(step);
      else this.#blockers.set(stepByEvent.length, (this.#blockers.get(stepByEvent.length) ?? 0) | (1 << step));
    }
    this.#stepByEvent = stepByEvent;
    this.#edges = [...this.#blockers.keys()].sort((a, b) => b - a);
  }

  /**
   * Returns the first set of entries that completes the sequence and starts at the timestamp of `start`. If several entries
   * share a timestamp, the walk takes as many as possible first. Taking fewer helps only if a gap would be entered too early,
   * so the walk tries nothing else. `dead` memoises dead ends, by index and number of events taken, that do not depend on the
   * start: many starts before one blocker then cost no more than one.
   */
  completion(
    entries: SequenceEntries,
    start: number,
    length: number,
    dead: Set<number>,
  ): readonly number[] | undefined {
    const startMs = entries.time(start);
    const untilMs = startMs + this.#windowMs;
    const needed = this.#stepByEvent.length;
    const beforeMs = startMs - this.#windowMs;
    if (this.#blockers.has(0) && beforeMs < this.#fromMs) return undefined;
    if (this.#hasBlocker(entries, length, 0, beforeMs, startMs)) return undefined;
    const deadHere = new Set<number>();
    /** Number of dead ends that depend on the start of this sequence. */
    let bounds = 0;
    const walk = (first: number, taken: readonly number[]): readonly number[] | undefined => {
      const walked = first * (needed + 1) + taken.length;
      if (first >= length || dead.has(walked)) return undefined;
      if (entries.time(first) > untilMs || deadHere.has(walked)) {
        bounds++;
        return undefined;
      }
      const boundsBefore = bounds;
      let next = first + 1;
      while (next < length && entries.time(next) === entries.time(first)) next++;
      let done = this.#take(entries, first, next, taken, needed).length;
      for (; done >= taken.length && done > 0; done = this.#fewer(done)) {
        if (!this.#isPassable(entries, first, next, taken.length, done)) continue;
        const chosen = this.#take(entries, first, next, taken, done);
        if (done < needed) {
          const found = walk(next, chosen);
          if (found) return found;
        } else if (!this.#hasBlocker(entries, length, needed, entries.time(first), untilMs)) return chosen;
        else bounds++;
      }
      (bounds === boundsBefore ? dead : deadHere).add(walked);
      return undefined;
    };
    return walk(start, []);
  }

  #take(entries: SequenceEntries, first: number, next: number, taken: readonly number[], most: number): number[] {
    const chosen = [...taken];
    if (taken.length < most) takeTimestamp(entries, this.#stepByEvent.slice(0, most), first, next, chosen);
    return chosen;
  }

  /** The next lower number of events that ends just before a gap. */
  #fewer(done: number): number {
    const edge = this.#edges.find((at) => at > 0 && at - 1 < done);
    return edge === undefined ? -1 : edge - 1;
  }

  /** True if the entries of this timestamp block no gap that the walk enters, leaves or is in. */
  #isPassable(entries: SequenceEntries, first: number, next: number, before: number, after: number): boolean {
    for (const [edge, bits] of this.#blockers) {
      if (edge === 0 || edge === this.#stepByEvent.length || edge < before || edge > after) continue;
      for (let index = first; index < next; index++) if (entries.steps(index) & bits) return false;
    }
    return true;
  }

  /** True if a blocker of the gap after `edge` events lies between these times, both inclusive. */
  #hasBlocker(entries: SequenceEntries, length: number, edge: number, fromMs: number, toMs: number): boolean {
    const bits = this.#blockers.get(edge);
    if (bits === undefined) return false;
    for (let index = 0; index < length && entries.time(index) <= toMs; index++) {
      if (entries.time(index) >= fromMs && entries.steps(index) & bits) return true;
    }
    return false;
  }
}
