import type { Scalar } from "../../model/condition.ts";
import { newestEvents, RELATED_EVENTS_MAX } from "../../model/finding.ts";
import type { Threshold } from "../../model/rule.ts";
import type { EventKey } from "./event-key.ts";
import { lowerMeasure, upperBound, upperMeasure, type ThresholdMeasure } from "./threshold-measure.ts";
import { DeadlineQueue, type DeadlineLimit } from "./deadline-queue.ts";
import type { Firing, HeldFiring, Mark, Match } from "./tracked-match.ts";

// Thresholds with an upper bound. Too few events is known only when no more can come. Time is therefore divided into
// windows on a fixed grid, which is the same after a restart, and a window is decided some time after its end.

/** How long after its end a window still accepts late events. */
export const CLOSING_MS = 60_000;
/** Distinct values that the open windows of one rule hold. */
const DISTINCT_VALUES_MAX = 200_000;

interface OpenWindow<Key extends EventKey> {
  readonly key: string;
  readonly group: readonly Scalar[];
  match: Match<Key>;
  events: number;
  firstMs: number;
  lastMs: number;
  marks: Mark<Key>[];
  values: number;
  lower: number;
  upper: number;
  /** The distinct values so far; undefined if there are more than the bound admits. */
  distinct: Set<string> | undefined;
}

/** When a firing is decided, and whether that happened before the start. */
export interface Deadline {
  readonly dueMs: number;
  readonly isDecided: boolean;
}

export class FixedWindows<Key extends EventKey> {
  readonly #threshold: Threshold;
  readonly #windowMs: number;
  readonly #fromMs: number;
  readonly #lower: ThresholdMeasure | undefined;
  readonly #upper: ThresholdMeasure | undefined;
  readonly #admits: (count: number) => boolean;
  readonly #open = new Map<string, OpenWindow<Key>>();
  readonly #deadlines: DeadlineQueue<OpenWindow<Key>>;
  #distinctValues = 0;
  late = 0;
  #refused = 0;

  /** Events before `fromMs` are unknown, so earlier windows would seem to have too few. */
  constructor(threshold: Threshold, windowMs: number, { limit, fromMs }: { limit: DeadlineLimit; fromMs: number }) {
    this.#fromMs = fromMs;
    this.#threshold = threshold;
    this.#windowMs = windowMs;
    this.#lower = lowerMeasure(threshold);
    this.#upper = upperMeasure(threshold);
    const bound = upperBound(threshold);
    const isCounted = !this.#upper;
    this.#admits = (count) => !isCounted || !bound || bound.admits(count);
    this.#deadlines = new DeadlineQueue(limit);
  }

  get size(): number {
    return this.#deadlines.size;
  }

  get refused(): number {
    return this.#refused + this.#deadlines.refused;
  }

  close(): void {
    this.#deadlines.close();
    this.#open.clear();
  }

  /** `values`: the values that the match contributes, unless events are counted. */
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
      const isQueued = this.#deadlines.add({ group: key, fromMs: 0, untilMs: endMs, dueMs, held: open });
      if (!isQueued) return;
      this.#open.set(key, open);
    }
    this.#count(open, match, values);
  }

  #count(open: OpenWindow<Key>, match: Match<Key>, values: readonly (readonly Scalar[])[]): void {
    const { key: id, timestampMs, occurrence } = match;
    open.events++;
    open.firstMs = Math.min(open.firstMs, timestampMs);
    open.lastMs = Math.max(open.lastMs, timestampMs);
    if (timestampMs >= open.match.timestampMs) open.match = match;
    open.marks.push({ id, timestampMs, ...(occurrence !== undefined && { occurrence }) });
    if (open.marks.length > 2 * RELATED_EVENTS_MAX) open.marks = newestEvents(open.marks, []);
    if (this.#threshold.distinct !== undefined) return this.#countDistinct(open, values);
    for (const [value] of values) {
      open.values++;
      if (this.#lower) open.lower += this.#lower.amountOf(value as number);
      if (this.#upper) open.upper += this.#upper.amountOf(value as number);
    }
  }

  #countDistinct(open: OpenWindow<Key>, values: readonly (readonly Scalar[])[]): void {
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

  /** Drops the distinct values of a window that can no longer fire. */
  #giveUp(open: OpenWindow<Key>): void {
    this.#distinctValues -= open.distinct?.size ?? 0;
    open.distinct = undefined;
  }

  /** Closes windows that were due before `nowMs` and returns those that fire. */
  takeDue(nowMs: number): HeldFiring<Key>[] {
    const held: HeldFiring<Key>[] = [];
    for (const { held: open } of this.#deadlines.takeDue(nowMs)) {
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
