// Firings that wait for a deadline: sequences whose last step must not happen, and windows with an upper bound.

const DEADLINES_PER_RULE_MAX = 10_000;

/** Deadlines that all rules hold together, and their limit. */
export interface DeadlineLimit {
  deadlines: number;
  readonly deadlinesMax: number;
}

export interface QueuedDeadline<Held> {
  /** The group as JSON. */
  readonly group: string;
  /** The step must not happen between these times, both inclusive. */
  readonly fromMs: number;
  readonly untilMs: number;
  /** The deadline passes after this time of the caller's clock. */
  readonly dueMs: number;
  readonly held: Held;
}

export class DeadlineQueue<Held> {
  readonly #limit: DeadlineLimit;
  /** Earliest deadline first. */
  readonly #queue: QueuedDeadline<Held>[] = [];
  readonly #byGroup = new Map<string, Set<QueuedDeadline<Held>>>();
  refused = 0;

  constructor(limit: DeadlineLimit) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#queue.length;
  }

  /** Returns false if the queue is full. */
  add(deadline: QueuedDeadline<Held>): boolean {
    if (this.#queue.length >= DEADLINES_PER_RULE_MAX || this.#limit.deadlines >= this.#limit.deadlinesMax) {
      this.refused++;
      return false;
    }
    this.#limit.deadlines++;
    this.#queue.splice(this.#indexFor(deadline.dueMs), 0, deadline);
    const known = this.#byGroup.get(deadline.group);
    if (known) known.add(deadline);
    else this.#byGroup.set(deadline.group, new Set([deadline]));
    return true;
  }

  /** Cancels deadlines of the group: the step has happened. */
  cancel(group: string, atMs: number): void {
    for (const deadline of this.#byGroup.get(group) ?? []) {
      if (atMs < deadline.fromMs || atMs > deadline.untilMs) continue;
      let index = this.#indexFor(deadline.dueMs) - 1;
      while (this.#queue[index] !== deadline) index--;
      this.#queue.splice(index, 1);
      this.#forget(deadline);
    }
  }

  /** Removes and returns deadlines that passed before `nowMs`, earliest first. */
  takeDue(nowMs: number): QueuedDeadline<Held>[] {
    let count = 0;
    while (count < this.#queue.length && this.#queue[count]!.dueMs < nowMs) count++;
    const due = count === 0 ? [] : this.#queue.splice(0, count);
    for (const deadline of due) this.#forget(deadline);
    return due;
  }

  close(): void {
    this.#limit.deadlines -= this.#queue.length;
    this.#queue.length = 0;
    this.#byGroup.clear();
  }

  #forget(deadline: QueuedDeadline<Held>): void {
    this.#limit.deadlines--;
    const group = this.#byGroup.get(deadline.group)!;
    group.delete(deadline);
    if (group.size === 0) this.#byGroup.delete(deadline.group);
  }

  /** Index after all deadlines that are not later. */
  #indexFor(dueMs: number): number {
    let low = 0;
    let high = this.#queue.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#queue[middle]!.dueMs <= dueMs) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
