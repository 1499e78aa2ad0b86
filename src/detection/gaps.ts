import { takeMoment, type Entries } from "./steps.ts";

// Sequences with steps that must not happen. The other steps are walked moment by moment. An entry of an absent step, a
// blocker, ends every walk that stands in its gap: after the step before it and not yet past the step behind it. A blocker of
// the same moment as either of these steps counts as between them, since nobody knows which came first.

export class Gaps {
  /** The step of each event that a whole sequence takes. */
  readonly #inTurn: readonly number[];
  /** For a number of events taken so far, the absent steps that may not happen then, as bits. */
  readonly #blockers = new Map<number, number>();
  /** Numbers of events after which a gap comes, falling. */
  readonly #edges: readonly number[];
  readonly #windowMs: number;
  readonly #fromMs: number;

  /** `fromMs`: what happened before it is not known. */
  constructor(
    steps: readonly { readonly count: number; readonly absent: boolean }[],
    { windowMs, fromMs }: { readonly windowMs: number; readonly fromMs: number },
  ) {
    this.#windowMs = windowMs;
    this.#fromMs = fromMs;
    const inTurn: number[] = [];
    for (const [step, { count, absent }] of steps.entries()) {
      if (!absent) for (let i = 0; i < count; i++) inTurn.push(step);
      else this.#blockers.set(inTurn.length, (this.#blockers.get(inTurn.length) ?? 0) | (1 << step));
    }
    this.#inTurn = inTurn;
    this.#edges = [...this.#blockers.keys()].sort((a, b) => b - a);
  }

  /**
   * The first set of entries that is a whole sequence and begins in the moment of this place. Where a moment offers several
   * entries, taking most comes first. Taking fewer helps only where a gap would be entered too early, so that is all that is
   * tried besides. `dead` are the ways, by place and number of events taken, that lead nowhere whatever the beginning is: with
   * it, many beginnings before one blocker cost no more than one.
   */
  completion(entries: Entries, start: number, length: number, dead: Set<number>): readonly number[] | undefined {
    const startMs = entries.time(start);
    const untilMs = startMs + this.#windowMs;
    const needed = this.#inTurn.length;
    const beforeMs = startMs - this.#windowMs;
    if (this.#blockers.has(0) && beforeMs < this.#fromMs) return undefined;
    if (this.#hasBlocker(entries, length, 0, beforeMs, startMs)) return undefined;
    const deadHere = new Set<number>();
    /** Counts what depends on when this sequence began. */
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

  #take(entries: Entries, first: number, next: number, taken: readonly number[], most: number): number[] {
    const chosen = [...taken];
    if (taken.length < most) takeMoment(entries, this.#inTurn.slice(0, most), first, next, chosen);
    return chosen;
  }

  /** The next lower number of events that stays short of a gap. */
  #fewer(done: number): number {
    const edge = this.#edges.find((at) => at > 0 && at - 1 < done);
    return edge === undefined ? -1 : edge - 1;
  }

  /** Whether no gap that is entered, left or stood in during the moment has a blocker in it. */
  #isPassable(entries: Entries, first: number, next: number, before: number, after: number): boolean {
    for (const [edge, bits] of this.#blockers) {
      if (edge === 0 || edge === this.#inTurn.length || edge < before || edge > after) continue;
      for (let place = first; place < next; place++) if (entries.steps(place) & bits) return false;
    }
    return true;
  }

  /** Whether a blocker of the gap after so many events lies between these times, both included. */
  #hasBlocker(entries: Entries, length: number, edge: number, fromMs: number, toMs: number): boolean {
    const bits = this.#blockers.get(edge);
    if (bits === undefined) return false;
    for (let place = 0; place < length && entries.time(place) <= toMs; place++) {
      if (entries.time(place) >= fromMs && entries.steps(place) & bits) return true;
    }
    return false;
  }
}
