import { parseDuration } from "../../lib/duration.ts";
import { DAY_MS } from "../../lib/time.ts";
import { timeOfId } from "../../lib/id.ts";
import { isOpenEnded, type Rule } from "../../model/rule.ts";
import type { Outage } from "../../store/ports/detection-store.ts";
import { COMBINATIONS_MAX, NO_VALUES } from "./group-combinations.ts";
import { VALUE_WORDS } from "./distinct-values.ts";
import { CLOSING_MS, FixedWindows, type Deadline } from "./fixed-windows.ts";
import { lowerMeasure, upperBound, valuePaths } from "./threshold-measure.ts";
import { MEASURED_WORDS, MeasuredWindow } from "./measured-window.ts";
import { KEY_WORDS, OCCURRENCE_WORDS, writeWords, type EventKey } from "./event-key.ts";
import { WindowGroups } from "./window-groups.ts";
import { GroupHash, type HashSeed } from "./group-hash.ts";
import { ThresholdInputs, type GroupedMatch } from "./threshold-inputs.ts";
import { DeadlineQueue } from "./deadline-queue.ts";
import type { WindowMemoryLimit } from "./window-memory-limit.ts";
import { SequenceWindow } from "./sequence-window.ts";
import { STEPS_MAX } from "./sequence-steps.ts";
import { ThresholdWindow } from "./threshold-window.ts";
import { downtimeSince } from "./outages.ts";
import type { Firing, HeldFiring, Match, MatchWindow, TrackedRule } from "./tracked-match.ts";
import { dropCounted } from "./uncounted-matches.ts";

// The memory of one rule: the matches that still count, and when they make it fire. A tracker knows only the key, time and a
// few values of an event, so that live detection and simulations over stored columns share one implementation.

const HOUR_MS = 3_600_000;
/** Grouped matches that are looked up together, before those of the last match. */
const BATCH_MATCHES = 256;
/** Scratch space of all trackers for the current batch: the hash of each grouped match and its likely group. */
const hashes = new Uint32Array(2 * (BATCH_MATCHES + COMBINATIONS_MAX * STEPS_MAX));
const likelyGroups = new Int32Array(hashes.length / 2);

export interface TrackerOptions {
  readonly seed: HashSeed;
  readonly memoryLimit: WindowMemoryLimit;
  /** Matches arrive in order of their timestamps. */
  readonly inOrder?: boolean;
  /** Matches before this time are unknown. */
  readonly fromMs?: number | undefined;
  /** Removes matches once they have fired, so that no two firings of a group share one. Sequences always do. */
  readonly resetsOnFiring?: boolean | undefined;
  /** Some matches are occurrences, of which one event may complete several. */
  readonly takesOccurrences?: boolean | undefined;
}

/** State at a start of deadlines that were pending before it. */
export interface Resumption {
  /** Deadlines that were due before this time have been reported. */
  readonly decidedMs: number;
  readonly outages: readonly Outage[];
}

export class RuleTracker<Key extends EventKey = string> {
  readonly groups: WindowGroups;
  readonly #memoryLimit: WindowMemoryLimit;
  readonly #hash: GroupHash;
  readonly #window: MatchWindow | undefined;
  readonly #inputs: ThresholdInputs;
  readonly #resetsOnFiring: boolean;
  readonly #words = new Uint32Array(OCCURRENCE_WORDS);
  readonly #windowMs: number;
  /** Absent steps at the end of a sequence, as bits. */
  readonly #lastAbsentSteps: number;
  /** Steps that must happen, as bits. */
  readonly #requiredSteps: number;
  /** Sequences that wait for their last steps not to happen. */
  readonly #deadlines: DeadlineQueue<HeldFiring<Key>> | undefined;
  readonly #fixed: FixedWindows<Key> | undefined;
  #resumption: Resumption = { decidedMs: -Infinity, outages: [] };
  /** Seconds after which a group without new matches expires. */
  readonly keptSeconds: number;
  #hand = 0;
  /** No group expires before this second. */
  #noExpiryUntil = 0;
  /** The earliest last use among the groups that the hand has passed. */
  #oldest = Infinity;

  constructor(rule: TrackedRule, options: TrackerOptions) {
    const { seed, memoryLimit, inOrder: isOrdered = false, fromMs = -Infinity, resetsOnFiring = false } = options;
    const idWords = options.takesOccurrences ? OCCURRENCE_WORDS : KEY_WORDS;
    const groupsWith = (extraWords: number) => new WindowGroups(extraWords, memoryLimit.totals, idWords);
    this.#memoryLimit = memoryLimit;
    this.#hash = new GroupHash(seed);
    this.#resetsOnFiring = resetsOnFiring;
    const { threshold } = rule;
    const measured = valuePaths(threshold);
    this.#inputs = new ThresholdInputs(rule);
    const windowMs = windowMsOf(rule);
    this.#windowMs = windowMs;
    this.#lastAbsentSteps = lastAbsentSteps(rule);
    this.#requiredSteps = (rule.sequence ?? []).reduce(
      (bits, { absent }, step) => (absent ? bits : bits | (1 << step)),
      0,
    );
    this.#deadlines = isOpenEnded(rule) ? new DeadlineQueue(memoryLimit) : undefined;
    // A plain count of ordered matches never looks beyond its window. The others choose what to drop among all entries.
    const isPlainCount = threshold !== null && measured.length === 0;
    const neverLooksBack = isOrdered && isPlainCount;
    const lateMs = neverLooksBack ? 0 : LATE_MS;
    this.keptSeconds = Math.ceil((windowMs + (neverLooksBack ? 0 : idleMsOf(windowMs))) / 1000);
    if (rule.sequence) {
      this.groups = groupsWith(1);
      const counts = rule.sequence.map(({ count, absent }) => (absent ? 0 : count));
      const inOrder = rule.sequenceOrder === "in_order";
      this.#window = new SequenceWindow(this.groups, {
        windowMs,
        lateMs,
        counts,
        inOrder,
        least: rule.sequenceMin,
        fromMs,
      });
    } else if (threshold && upperBound(threshold)) {
      this.groups = groupsWith(0);
      this.#fixed = new FixedWindows(threshold, windowMs, { limit: memoryLimit, fromMs });
    } else if (threshold) {
      const measure = lowerMeasure(threshold);
      const { count = 1, distinct } = threshold;
      const isDistinct = distinct !== undefined;
      this.groups = groupsWith(measure ? MEASURED_WORDS : isDistinct ? VALUE_WORDS : 0);
      this.#window = measure
        ? new MeasuredWindow(this.groups, { windowMs, lateMs, measure, eventsMin: count })
        : new ThresholdWindow(this.groups, { windowMs, lateMs, count, isDistinct, hash: this.#hash, memoryLimit });
    } else this.groups = groupsWith(0);
    if (this.#window) memoryLimit.join(this);
  }

  /** The paths whose values a match must provide. */
  get paths(): readonly string[] {
    return this.#inputs.paths;
  }

  /**
   * Counts matches in this order and reports what each one fires. The groups of a batch are looked up before any is changed:
   * with a million groups every lookup is a cache miss, and the misses of a batch overlap. Idle groups expire by `nowMs`, or
   * by the timestamps of the matches if it is undefined.
   */
  add<Known extends Match<Key>>(
    matches: readonly Known[],
    nowMs: number | undefined,
    fired: (firings: readonly Firing<Key>[], match: Known) => void,
  ): void {
    if (this.#fixed) return this.#addToFixed(this.#fixed, matches);
    if (!this.#window) {
      for (const match of matches) fired([singleFiring(match)], match);
      return;
    }
    let grouped: GroupedMatch<Known>[] = [];
    for (let i = 0; i < matches.length; i++) {
      this.#inputs.group(matches[i]!, grouped);
      if (grouped.length < BATCH_MATCHES && i + 1 < matches.length) continue;
      this.#addTo(grouped, nowMs, fired);
      grouped = [];
    }
  }

  #addToFixed(fixed: FixedWindows<Key>, matches: readonly Match<Key>[]): void {
    for (const match of matches) {
      const grouped: GroupedMatch<Match<Key>>[] = [];
      this.#inputs.group(match, grouped);
      const deadline = (endMs: number) => this.#deadline(endMs + CLOSING_MS, endMs);
      const closing = { arrivedMs: arrivalOf(match), deadline };
      for (const { values, steps } of grouped) fixed.add(values, match, this.#inputs.valuesOf(match, steps), closing);
    }
  }

  /** Extends a deadline at `atMs` by the downtime since `sinceMs`. */
  #deadline(atMs: number, sinceMs: number): Deadline {
    const { decidedMs, outages } = this.#resumption;
    const known = outages.filter(({ fromMs }) => fromMs < decidedMs);
    return {
      dueMs: atMs + downtimeSince(sinceMs, outages),
      isDecided: atMs + downtimeSince(sinceMs, known) < decidedMs,
    };
  }

  #addTo<Known extends Match<Key>>(
    grouped: readonly GroupedMatch<Known>[],
    nowMs: number | undefined,
    fired: (firings: readonly Firing<Key>[], match: Known) => void,
  ): void {
    const { groups } = this;
    for (let i = 0; i < grouped.length; i++) {
      this.#hash.of(grouped[i]!.values);
      hashes[2 * i] = this.#hash.high;
      hashes[2 * i + 1] = this.#hash.low;
    }
    groups.findAll(hashes, grouped.length, likelyGroups);
    let firings: Firing<Key>[] | undefined;
    for (let i = 0; i < grouped.length; i++) {
      const { match, values, steps } = grouped[i]!;
      if (i === 0 || grouped[i - 1]!.match !== match) {
        writeWords(match.key, this.#words);
        this.#words[KEY_WORDS] = match.occurrence ?? 0;
      }
      const seconds = Math.floor((nowMs ?? match.timestampMs) / 1000);
      this.#sweep(seconds);
      const group = this.#find(i, seconds);
      const windowFiring = this.#window!.add(
        group,
        match.timestampMs,
        this.#words,
        this.#inputs.valuesOf(match, steps),
        steps,
      );
      if (windowFiring && this.#resetsOnFiring) dropCounted(groups, group);
      if (groups.length(group) === 0) groups.remove(group);
      if (this.#deadlines)
        this.#hold(this.#deadlines, grouped[i]!, windowFiring as Omit<Firing<Key>, "group"> | undefined);
      else if (windowFiring) (firings ??= []).push({ group: values, ...windowFiring } as Firing<Key>);
      if (firings && (i + 1 === grouped.length || grouped[i + 1]!.match !== match)) {
        fired(firings, match);
        firings = undefined;
      }
    }
  }

  /** Queues what the match completes, and cancels what it disproves. */
  #hold(
    deadlines: DeadlineQueue<HeldFiring<Key>>,
    { match, values, steps }: GroupedMatch<Match<Key>>,
    windowFiring: Omit<Firing<Key>, "group"> | undefined,
  ): void {
    const group = JSON.stringify(values);
    if ((steps & this.#lastAbsentSteps) !== 0 && (steps & this.#requiredSteps) === 0) {
      deadlines.cancel(group, match.timestampMs);
    }
    if (!windowFiring) return;
    const untilMs = windowFiring.firstMs + this.#windowMs;
    // A late match gives later steps the same delay.
    const arrivedMs = arrivalOf(match);
    const { dueMs, isDecided } = this.#deadline(untilMs + Math.max(0, arrivedMs - match.timestampMs), arrivedMs);
    const held = { firing: { group: values, ...windowFiring }, match };
    if (!isDecided) deadlines.add({ group, fromMs: windowFiring.lastMs, untilMs, dueMs, held });
  }

  /** Firings whose deadline has passed by the caller's clock: sequences without their last step, and closed windows. */
  takeDue(nowMs: number): HeldFiring<Key>[] {
    if (this.#fixed) return this.#fixed.takeDue(nowMs);
    return this.#deadlines?.takeDue(nowMs).map(({ held }) => held) ?? [];
  }

  /** Call before warm-up. */
  resume(resumption: Resumption): void {
    this.#resumption = resumption;
  }

  /** True if firings wait for deadlines. */
  get isDecidedByClock(): boolean {
    return this.#deadlines !== undefined || this.#fixed !== undefined;
  }

  /** Firings that wait for their deadline. */
  get pending(): number {
    return (this.#deadlines ?? this.#fixed)?.size ?? 0;
  }

  /** Firings refused because the queue was full. */
  get refused(): number {
    return (this.#deadlines ?? this.#fixed)?.refused ?? 0;
  }

  /** Matches with more values than the limit. */
  get cut(): number {
    return this.#inputs.cut;
  }

  get dropped(): number {
    return this.#window?.dropped ?? 0;
  }

  /** True if some match was in several groups, so that several firings may count it. */
  get sharesEvents(): boolean {
    return this.#inputs.sharesEvents;
  }

  get late(): number {
    return (this.#window ?? this.#fixed)?.late ?? 0;
  }

  /** Releases the memory of the tracker. */
  close(): void {
    this.#deadlines?.close();
    this.#fixed?.close();
    this.#memoryLimit.leave(this);
  }

  /** The group of this match of the batch. */
  #find(index: number, seconds: number): number {
    const high = hashes[2 * index]!;
    const low = hashes[2 * index + 1]!;
    this.#memoryLimit.beforeEntry(this, seconds);
    let group = likelyGroups[index]!;
    // An earlier match of the batch may have added or removed the group.
    if (group >= 0 && this.groups.touch(group, high, low, seconds)) return group;
    group = this.groups.find(high, low);
    if (group < 0) {
      this.#memoryLimit.beforeGroup(this, seconds);
      group = this.groups.insert(high, low);
    }
    this.groups.touch(group, high, low, seconds);
    return group;
  }

  /**
   * Checks two groups per match and removes expired ones. After a full round it is known until when no group expires.
   */
  #sweep(seconds: number): void {
    // A clock that goes back makes groups older than any before.
    this.#oldest = Math.min(this.#oldest, seconds);
    this.#noExpiryUntil = Math.min(this.#noExpiryUntil, seconds + this.keptSeconds);
    if (seconds <= this.#noExpiryUntil) return;
    for (let i = 0; i < 2; i++) {
      if (++this.#hand >= this.groups.top) {
        this.#hand = 0;
        this.#noExpiryUntil = this.#oldest + this.keptSeconds;
        this.#oldest = seconds;
        if (this.groups.top === 0) return;
      }
      if (!this.groups.isLive(this.#hand)) continue;
      if (this.isExpired(this.#hand, seconds)) {
        this.groups.remove(this.#hand);
        this.#memoryLimit.evicted.expired++;
      } else this.#oldest = Math.min(this.#oldest, this.groups.touched(this.#hand));
    }
  }

  isExpired(group: number, seconds: number): boolean {
    return this.groups.touched(group) + this.keptSeconds < seconds;
  }
}

function windowMsOf(rule: Pick<Rule, "window">): number {
  return rule.window === null ? 0 : parseDuration(rule.window)!;
}

/** The absent steps at the end of a sequence, as bits. */
function lastAbsentSteps({ sequence }: TrackedRule): number {
  let bits = 0;
  for (let step = (sequence?.length ?? 0) - 1; step >= 0 && sequence![step]!.absent; step--) bits |= 1 << step;
  return bits;
}

/** In a simulation events arrive when they happen. */
function arrivalOf({ key, timestampMs }: Match<EventKey>): number {
  return typeof key === "string" ? timeOfId(key) : timestampMs;
}

/**
 * How late a match may be, beyond one window before its group's newest match, and still count. This equals the range of a
 * simulation, so that both find events that are submitted afterwards.
 */
export const LATE_MS = 7 * DAY_MS;

/** How long an idle group is kept beyond its window. */
function idleMsOf(windowMs: number): number {
  return Math.max(windowMs, HOUR_MS);
}

/** The age in milliseconds of the oldest arrivals that a rule may remember; 0 for a rule without memory. */
export function memoryMsOf(rule: Pick<Rule, "window" | "parts">): number {
  // An occurrence that still counts may consist of events older by one window of its part.
  const windowMs = [rule, ...(rule.parts ?? [])].reduce((sum, stage) => sum + windowMsOf(stage), 0);
  // The matches of one more window determine whether a match was counted.
  return windowMs === 0 ? 0 : 2 * windowMs + Math.min(idleMsOf(windowMs), idleMsOf(0));
}

function singleFiring<Key extends EventKey>({ key, timestampMs }: Match<Key>): Firing<Key> {
  return { group: NO_VALUES, count: 1, firstMs: timestampMs, lastMs: timestampMs, marks: [{ id: key, timestampMs }] };
}
