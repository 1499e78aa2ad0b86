// What fires, or may fire, when a time is over: sequences whose last step must not happen, and windows with an upper bound.

/** Of one rule. */
const PENDING_PER_RULE_MAX = 10_000;

/** How many sequences are pending in all rules together, and how many may be. */
export interface PendingRoom {
  pending: number;
  readonly pendingMax: number;
}

export interface Waiting<Held> {
  /** The group, spelled out. */
  readonly group: string;
  /** The step must not happen between these times, both included. */
  readonly fromMs: number;
  readonly untilMs: number;
  /** By the clock of whoever asks: it fires after this. */
  readonly dueMs: number;
  readonly held: Held;
}

export class Pending<Held> {
  readonly #room: PendingRoom;
  /** The first to be due stands first. */
  readonly #waiting: Waiting<Held>[] = [];
  readonly #byGroup = new Map<string, Set<Waiting<Held>>>();
  refused = 0;

  constructor(room: PendingRoom) {
    this.#room = room;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** False where there is no room for it. */
  add(waiting: Waiting<Held>): boolean {
    if (this.#waiting.length >= PENDING_PER_RULE_MAX || this.#room.pending >= this.#room.pendingMax) {
      this.refused++;
      return false;
    }
    this.#room.pending++;
    this.#waiting.splice(this.#placeFor(waiting.dueMs), 0, waiting);
    const known = this.#byGroup.get(waiting.group);
    if (known) known.add(waiting);
    else this.#byGroup.set(waiting.group, new Set([waiting]));
    return true;
  }

  /** The step has happened in the group after all. */
  cancel(group: string, atMs: number): void {
    for (const waiting of this.#byGroup.get(group) ?? []) {
      if (atMs < waiting.fromMs || atMs > waiting.untilMs) continue;
      let place = this.#placeFor(waiting.dueMs) - 1;
      while (this.#waiting[place] !== waiting) place--;
      this.#waiting.splice(place, 1);
      this.#forget(waiting);
    }
  }

  /** Those whose time was over before this, the first to be due first. */
  takeDue(nowMs: number): Waiting<Held>[] {
    let count = 0;
    while (count < this.#waiting.length && this.#waiting[count]!.dueMs < nowMs) count++;
    const due = count === 0 ? [] : this.#waiting.splice(0, count);
    for (const waiting of due) this.#forget(waiting);
    return due;
  }

  end(): void {
    this.#room.pending -= this.#waiting.length;
    this.#waiting.length = 0;
    this.#byGroup.clear();
  }

  #forget(waiting: Waiting<Held>): void {
    this.#room.pending--;
    const group = this.#byGroup.get(waiting.group)!;
    group.delete(waiting);
    if (group.size === 0) this.#byGroup.delete(waiting.group);
  }

  /** Behind all that are due no later. */
  #placeFor(dueMs: number): number {
    let low = 0;
    let high = this.#waiting.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#waiting[middle]!.dueMs <= dueMs) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
