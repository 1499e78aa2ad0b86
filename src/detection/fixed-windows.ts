import type { Scalar } from "../model/condition.ts";
import { newestEvents, RELATED_EVENTS_MAX } from "../model/finding.ts";
import type { EventKey } from "./event-words.ts";
import { lowerMeasure, upperBound, upperMeasure, type Measure, type Threshold } from "./measure.ts";
import { Pending, type PendingRoom } from "./pending.ts";
import type { Firing, HeldFiring, Match } from "./tracker.ts";

// Thresholds with an upper bound. Whether there are few events is known only when no more can come, so time is cut into
// windows on a grid, the same ones after every start, and a window is decided some time after its end.

/** How long after its end a window still takes events that arrive late. */
export const CLOSING_MS = 60_000;
/** Different values that the open windows of one rule hold. */
const DISTINCT_VALUES_MAX = 200_000;

interface OpenWindow<Key extends EventKey> {
  readonly key: string;
  readonly group: readonly Scalar[];
  match: Match<Key>;
  events: number;
  firstMs: number;
  lastMs: number;
  marks: Firing<Key>["marks"][number][];
  values: number;
  lower: number;
  upper: number;
  /** Of the different values so far; undefined when there are more than the bound admits. */
  distinct: Set<string> | undefined;
}

/** By when something is decided, and whether it was before a start. */
export interface Deadline {
  readonly dueMs: number;
  readonly isDecided: boolean;
}

export class FixedWindows<Key extends EventKey> {
  readonly #threshold: Threshold;
  readonly #windowMs: number;
  readonly #fromMs: number;
  readonly #lower: Measure | undefined;
  readonly #upper: Measure | undefined;
  readonly #admits: (count: number) => boolean;
  readonly #open = new Map<string, OpenWindow<Key>>();
  readonly #pending: Pending<OpenWindow<Key>>;
  #distinctValues = 0;
  late = 0;
  #refused = 0;

  /** Events before `fromMs` are not known: a window that began before it would seem to have few. */
  constructor(threshold: Threshold, windowMs: number, { room, fromMs }: { room: PendingRoom; fromMs: number }) {
    this.#fromMs = fromMs;
    this.#threshold = threshold;
    this.#windowMs = windowMs;
    this.#lower = lowerMeasure(threshold);
    this.#upper = upperMeasure(threshold);
    const bound = upperBound(threshold);
    const isCounted = !this.#upper;
    this.#admits = (count) => !isCounted || !bound || bound.admits(count);
    this.#pending = new Pending(room);
  }

  get size(): number {
    return this.#pending.size;
  }

  get refused(): number {
    return this.#refused + this.#pending.refused;
  }

  end(): void {
    this.#pending.end();
    this.#open.clear();
  }

  /** `values`: what the match counts as, where not as one event. */
  add(
    group: readonly Scalar[],
    match: Match<Key>,
    values: readonly (readonly Scalar[])[],
    { arrivedMs, deadline }: { readonly arrivedMs: number; deadline(endMs: number): Deadline },
  ): void {
    const cell = Math.floor(match.timestampMs / this.#windowMs);
    const endMs = (cell + 1) * this.#windowMs;
    const { dueMs, isDecided } = deadline(endMs);
    if (arrivedMs > dueMs) {
      this.late++;
      return;
    }
    if (isDecided || endMs - this.#windowMs < this.#fromMs) return;
    const key = `${cell} ${JSON.stringify(group)}`;
    let open = this.#open.get(key);
    if (!open) {
      open = openWindow(key, group, match, this.#threshold.distinct !== undefined);
      const isTaken = this.#pending.add({ group: key, fromMs: 0, untilMs: endMs, dueMs, held: open });
      if (!isTaken) return;
      this.#open.set(key, open);
    }
    this.#count(open, match, values);
  }

  #count(open: OpenWindow<Key>, match: Match<Key>, values: readonly (readonly Scalar[])[]): void {
    const { timestampMs } = match;
    open.events++;
    open.firstMs = Math.min(open.firstMs, timestampMs);
    open.lastMs = Math.max(open.lastMs, timestampMs);
    if (timestampMs >= open.match.timestampMs) open.match = match;
    open.marks.push({ id: match.key, timestampMs });
    if (open.marks.length > 2 * RELATED_EVENTS_MAX) open.marks = newestEvents(open.marks, []);
    if (this.#threshold.distinct !== undefined) return this.#countDifferent(open, values);
    for (const [value] of values) {
      open.values++;
      if (this.#lower) open.lower += this.#lower.amountOf(value as number);
      if (this.#upper) open.upper += this.#upper.amountOf(value as number);
    }
  }

  #countDifferent(open: OpenWindow<Key>, values: readonly (readonly Scalar[])[]): void {
    for (const combination of values) {
      const { distinct } = open;
      if (!distinct) return;
      const before = distinct.size;
      distinct.add(JSON.stringify(combination));
      this.#distinctValues += distinct.size - before;
      const hasRoom = this.#distinctValues <= DISTINCT_VALUES_MAX;
      if (!hasRoom) this.#refused++;
      if (!hasRoom || !this.#admits(distinct.size)) this.#giveUp(open);
    }
  }

  /** It cannot fire any more. */
  #giveUp(open: OpenWindow<Key>): void {
    this.#distinctValues -= open.distinct?.size ?? 0;
    open.distinct = undefined;
  }

  /** What fires of the windows whose time was over before this. */
  takeDue(nowMs: number): HeldFiring<Key>[] {
    const held: HeldFiring<Key>[] = [];
    for (const { held: open } of this.#pending.takeDue(nowMs)) {
      this.#open.delete(open.key);
      if (this.#fires(open)) held.push({ firing: firingOf(open), match: open.match });
      this.#giveUp(open);
    }
    return held;
  }

  #fires({ events, distinct, values, lower, upper }: OpenWindow<Key>): boolean {
    const { count = 1, distinct: paths } = this.#threshold;
    const counted = paths === undefined ? events : (distinct?.size ?? Infinity);
    if (counted < count || !this.#admits(counted)) return false;
    return (
      (this.#lower?.holds({ values, amount: lower }) ?? true) && (this.#upper?.holds({ values, amount: upper }) ?? true)
    );
  }
}

function openWindow<Key extends EventKey>(
  key: string,
  group: readonly Scalar[],
  match: Match<Key>,
  isDistinct: boolean,
): OpenWindow<Key> {
  const figures = { events: 0, values: 0, lower: 0, upper: 0, firstMs: Infinity, lastMs: -Infinity };
  return { key, group, match, marks: [], ...figures, distinct: isDistinct ? new Set() : undefined };
}

function firingOf<Key extends EventKey>(open: OpenWindow<Key>): Firing<Key> {
  const { group, events, firstMs, lastMs, marks } = open;
  return { group, count: events, firstMs, lastMs, marks: newestEvents(marks, []) };
}
