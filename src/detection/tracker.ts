import { parseDuration } from "../lib/duration.ts";
import { DAY_MS } from "../lib/time.ts";
import type { Scalar } from "../model/condition.ts";
import { timeOfId } from "../lib/id.ts";
import { groupPaths, isOpenEnded, pathList, type Rule } from "../model/rule.ts";
import type { Outage } from "../store/store.ts";
import { VALUE_WORDS } from "./different-values.ts";
import { CLOSING_MS, FixedWindows, type Deadline } from "./fixed-windows.ts";
import { isMeasured, isNumeric, lowerMeasure, upperBound, valuePaths } from "./measure.ts";
import { MEASURED_WORDS, MeasuredWindow } from "./measured.ts";
import { writeWords, type EventKey } from "./event-words.ts";
import { Groups } from "./groups.ts";
import { Hash, type Seed } from "./hash.ts";
import { Pending } from "./pending.ts";
import type { Room } from "./room.ts";
import { SequenceWindow } from "./sequence.ts";
import { STEPS_MAX } from "./steps.ts";
import { ThresholdWindow } from "./threshold.ts";

// What one rule remembers of the events that matched it, and when that makes it fire. It knows events only by their key,
// their time and a few values, so that live detection and a simulation over stored columns are one implementation.

const HOUR_MS = 3_600_000;
/** Groups in which one event can count, where a path reaches several values. */
const COMBINATIONS_MAX = 16;
/** Places that are looked for together, before the last match brings its own. */
const STRETCH_PLACES = 256;
/** What is known of those at hand, whichever tracker they are of: a hash for each, and the group that had it. */
const hashes = new Uint32Array(2 * (STRETCH_PLACES + COMBINATIONS_MAX * STEPS_MAX));
const nearby = new Int32Array(hashes.length / 2);

/** The parts of a rule that say what it remembers. */
export type TrackedRule = Pick<Rule, "window" | "threshold" | "sequence" | "sequenceOrder" | "sequenceMin" | "groupBy">;

export interface Match<Key extends EventKey> {
  readonly key: Key;
  readonly timestampMs: number;
  /** For each of the tracker's paths, the different values that it reaches. */
  readonly values: readonly (readonly Scalar[])[];
  /** Bit n is set when the event satisfies step n of the sequence; 0 for a rule without one. */
  readonly steps: number;
}

/** A match in one of its groups, and the steps that it is there. */
interface Place<Known extends Match<EventKey>> {
  readonly match: Known;
  readonly values: readonly Scalar[];
  readonly steps: number;
}

export interface Firing<Key extends EventKey> {
  /** The values of the group, in the order of the rule's paths. */
  readonly group: readonly Scalar[];
  /** Matches that no earlier firing has counted, and the times between which they lie. */
  readonly count: number;
  readonly firstMs: number;
  readonly lastMs: number;
  /** They, newest first. */
  readonly marks: readonly { readonly id: Key; readonly timestampMs: number }[];
}

/** What a window says of one match in one group. */
export type Spot = Omit<Firing<EventKey>, "group">;

export interface Window {
  /** Undefined: the match was too late to count, or does not fire. */
  add(
    group: number,
    timestampMs: number,
    words: Uint32Array,
    distinct: readonly (readonly Scalar[])[],
    steps: number,
  ): Spot | undefined;
  readonly late: number;
  /** Entries that were given up although they might have counted. */
  readonly dropped?: number;
}

export interface TrackerOptions {
  readonly seed: Seed;
  readonly room: Room;
  /** Matches come in the order of their times. */
  readonly inOrder?: boolean;
  /** All matches from this time on are counted, and none before it. */
  readonly fromMs?: number | undefined;
}

/** A firing that waits for its last step not to happen, with the match that completed the steps before it. */
export interface HeldFiring<Key extends EventKey> {
  readonly firing: Firing<Key>;
  readonly match: Match<Key>;
}

/** What a service that starts knows of sequences that waited for their time to be over. */
export interface Resumption {
  /** Those that were due before this have been told of. */
  readonly decidedMs: number;
  readonly outages: readonly Outage[];
}

export class Tracker<Key extends EventKey = string> {
  /** What a match has to bring along. */
  readonly paths: readonly string[];
  readonly groups: Groups;
  readonly #room: Room;
  readonly #hash: Hash;
  readonly #window: Window | undefined;
  /** Where in `paths` the values of the group stand: once, or for each step where steps have paths of their own. */
  readonly #groupPlaces: readonly (readonly number[])[];
  /** Where the values stand that are counted or measured; empty where events are counted. */
  readonly #valuePlaces: readonly number[];
  readonly #isMeasured: boolean;
  readonly #words = new Uint32Array(4);
  readonly #windowMs: number;
  /** For a sequence whose last steps must not happen: these, as bits, and what waits for them. */
  readonly #endings: number;
  /** Steps that must happen, as bits. */
  readonly #happenings: number;
  readonly #pending: Pending<HeldFiring<Key>> | undefined;
  readonly #fixed: FixedWindows<Key> | undefined;
  #resumption: Resumption = { decidedMs: -Infinity, outages: [] };
  /** Seconds after which a group that nothing was added to is given up. */
  readonly keptSeconds: number;
  #cut = 0;
  #sharesEvents = false;
  #hand = 0;
  /** No group expires before this second; and the one touched longest ago of those that the hand has passed. */
  #restUntil = 0;
  #oldest = Infinity;

  constructor(rule: TrackedRule, { seed, room, inOrder: comeInOrder = false, fromMs = -Infinity }: TrackerOptions) {
    this.#room = room;
    this.#hash = new Hash(seed);
    const shared = groupPaths(rule);
    const differs = rule.sequence?.some((step) => step.group_by !== undefined);
    const perStep = differs
      ? rule.sequence?.map((step) => (step.group_by === undefined ? shared : pathList(step.group_by)))
      : undefined;
    const { threshold } = rule;
    const measured = valuePaths(threshold);
    this.#isMeasured = threshold !== null && isMeasured(threshold);
    const paths = new Set([...shared, ...(perStep ?? []).flat(), ...measured]);
    this.paths = [...paths];
    this.#groupPlaces = (perStep ?? [shared]).map((step) => step.map((path) => this.paths.indexOf(path)));
    this.#valuePlaces = measured.map((path) => this.paths.indexOf(path));
    const windowMs = windowMsOf(rule);
    this.#windowMs = windowMs;
    this.#endings = endingsOf(rule);
    this.#happenings = (rule.sequence ?? []).reduce(
      (bits, { absent }, step) => (absent ? bits : bits | (1 << step)),
      0,
    );
    this.#pending = isOpenEnded(rule) ? new Pending(room) : undefined;
    // A count never looks back beyond its window then. The others choose among all that they hold what to drop first.
    const isPlainCount = threshold !== null && measured.length === 0;
    const neverLooksBack = comeInOrder && isPlainCount;
    const lateMs = neverLooksBack ? 0 : LATE_MS;
    this.keptSeconds = Math.ceil((windowMs + (neverLooksBack ? 0 : silenceOf(windowMs))) / 1000);
    if (rule.sequence) {
      this.groups = new Groups(1, room.totals);
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
      this.groups = new Groups(0, room.totals);
      this.#fixed = new FixedWindows(threshold, windowMs, { room, fromMs });
    } else if (threshold) {
      const measure = lowerMeasure(threshold);
      const { count = 1, distinct } = threshold;
      const isDistinct = distinct !== undefined;
      this.groups = new Groups(measure ? MEASURED_WORDS : isDistinct ? VALUE_WORDS : 0, room.totals);
      this.#window = measure
        ? new MeasuredWindow(this.groups, { windowMs, lateMs, measure, eventsMin: count })
        : new ThresholdWindow(this.groups, { windowMs, lateMs, count, isDistinct, hash: this.#hash, room });
    } else this.groups = new Groups(0, room.totals);
    if (this.#window) room.join(this);
  }

  /**
   * Counts matches, in this order, and tells what each one fires. The groups of many are looked for before any of them is
   * added to: with a million groups each look is a wait for memory, and of many looks in a row the waits overlap. The
   * clock, by which groups are forgotten that nothing more is heard of, is that of the matches where none is given.
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
    let places: Place<Known>[] = [];
    for (let i = 0; i < matches.length; i++) {
      this.#place(matches[i]!, places);
      if (places.length < STRETCH_PLACES && i + 1 < matches.length) continue;
      this.#addTo(places, nowMs, fired);
      places = [];
    }
  }

  #addToFixed(fixed: FixedWindows<Key>, matches: readonly Match<Key>[]): void {
    for (const match of matches) {
      const places: Place<Match<Key>>[] = [];
      this.#place(match, places);
      const deadline = (endMs: number) => this.#deadline(endMs + CLOSING_MS, endMs);
      const closing = { arrivedMs: arrivalOf(match), deadline };
      for (const { values } of places) fixed.add(values, match, this.#values(match), closing);
    }
  }

  /** What was to be decided at this time waits for as much longer as nobody looked since the other. */
  #deadline(atMs: number, sinceMs: number): Deadline {
    const { decidedMs, outages } = this.#resumption;
    const known = outages.filter(({ fromMs }) => fromMs < decidedMs);
    return {
      dueMs: atMs + downtimeSince(sinceMs, outages),
      isDecided: atMs + downtimeSince(sinceMs, known) < decidedMs,
    };
  }

  #addTo<Known extends Match<Key>>(
    places: readonly Place<Known>[],
    nowMs: number | undefined,
    fired: (firings: readonly Firing<Key>[], match: Known) => void,
  ): void {
    const { groups } = this;
    for (let i = 0; i < places.length; i++) {
      this.#hash.of(places[i]!.values);
      hashes[2 * i] = this.#hash.high;
      hashes[2 * i + 1] = this.#hash.low;
    }
    groups.findAll(hashes, places.length, nearby);
    let firings: Firing<Key>[] | undefined;
    for (let i = 0; i < places.length; i++) {
      const { match, values, steps } = places[i]!;
      if (i === 0 || places[i - 1]!.match !== match) writeWords(match.key, this.#words);
      const seconds = Math.floor((nowMs ?? match.timestampMs) / 1000);
      this.#sweep(seconds);
      const group = this.#find(i, seconds);
      const spot = this.#window!.add(group, match.timestampMs, this.#words, this.#values(match), steps);
      if (groups.length(group) === 0) groups.remove(group);
      if (this.#pending) this.#hold(this.#pending, places[i]!, spot as Omit<Firing<Key>, "group"> | undefined);
      else if (spot) (firings ??= []).push({ group: values, ...spot } as Firing<Key>);
      if (firings && (i + 1 === places.length || places[i + 1]!.match !== match)) {
        fired(firings, match);
        firings = undefined;
      }
    }
  }

  /** What the match completes waits; what it makes untrue no longer does. */
  #hold(
    pending: Pending<HeldFiring<Key>>,
    { match, values, steps }: Place<Match<Key>>,
    spot: Omit<Firing<Key>, "group"> | undefined,
  ): void {
    const group = JSON.stringify(values);
    if ((steps & this.#endings) !== 0 && (steps & this.#happenings) === 0) {
      pending.cancel(group, match.timestampMs);
    }
    if (!spot) return;
    const untilMs = spot.firstMs + this.#windowMs;
    // What came late is given as much time for what would follow it.
    const arrivedMs = arrivalOf(match);
    const { dueMs, isDecided } = this.#deadline(untilMs + Math.max(0, arrivedMs - match.timestampMs), arrivedMs);
    const held = { firing: { group: values, ...spot }, match };
    if (!isDecided) pending.add({ group, fromMs: spot.lastMs, untilMs, dueMs, held });
  }

  /** Sequences whose last step has not happened in its time, and windows that are over. The clock is that of whoever asks. */
  takeDue(nowMs: number): HeldFiring<Key>[] {
    if (this.#fixed) return this.#fixed.takeDue(nowMs);
    return this.#pending?.takeDue(nowMs).map(({ held }) => held) ?? [];
  }

  /** Before the matches of before a start are counted again. */
  resume(resumption: Resumption): void {
    this.#resumption = resumption;
  }

  /** Whether firings wait for the clock. */
  get isDecidedByClock(): boolean {
    return this.#pending !== undefined || this.#fixed !== undefined;
  }

  /** Firings that wait, and those that found no room. */
  get waiting(): number {
    return (this.#pending ?? this.#fixed)?.size ?? 0;
  }

  get refused(): number {
    return (this.#pending ?? this.#fixed)?.refused ?? 0;
  }

  /** Matches with more values than count. */
  get cut(): number {
    return this.#cut;
  }

  get dropped(): number {
    return this.#window?.dropped ?? 0;
  }

  /** Whether some match was in several groups: what one of them counts, another may count again. */
  get sharesEvents(): boolean {
    return this.#sharesEvents;
  }

  get late(): number {
    return (this.#window ?? this.#fixed)?.late ?? 0;
  }

  /** The tracker is no longer needed; its room is free for others. */
  end(): void {
    this.#pending?.end();
    this.#fixed?.end();
    this.#room.leave(this);
  }

  /** What the match counts as. */
  #values(match: Match<Key>): readonly (readonly Scalar[])[] {
    return this.#valuePlaces.length === 0 ? NO_COMBINATIONS : combinations(this.#valueLists(match));
  }

  #valueLists(match: Match<Key>): readonly (readonly Scalar[])[] {
    const lists = this.#valuePlaces.map((place) => match.values[place]!);
    return this.#isMeasured ? lists.map((list) => list.filter(isNumeric).map(Number)) : lists;
  }

  /** Adds the groups that the match belongs to. */
  #place<Known extends Match<Key>>(match: Known, places: Place<Known>[]): void {
    if (this.#valuePlaces.length > 0) {
      const different = this.#valueLists(match).reduce((product, list) => product * list.length, 1);
      if (different === 0) return;
      if (different > COMBINATIONS_MAX) this.#cut++;
    }
    if (this.#groupPlaces.length === 1) {
      const [paths] = this.#groupPlaces as [readonly number[]];
      const only = paths.length === 1 ? match.values[paths[0]!]! : undefined;
      // By far the most usual, and nothing has to be made for it.
      if (only?.length === 1) places.push({ match, values: only, steps: match.steps });
      else {
        const groups = this.#groupsOf(match, paths);
        if (groups.length > 1) this.#sharesEvents = true;
        for (const values of groups) places.push({ match, values, steps: match.steps });
      }
      return;
    }
    const found = new Map<string, { values: readonly Scalar[]; steps: number }>();
    for (const [step, paths] of this.#groupPlaces.entries()) {
      if ((match.steps & (1 << step)) === 0) continue;
      for (const values of this.#groupsOf(match, paths)) {
        const key = JSON.stringify(values);
        const known = found.get(key);
        if (known) known.steps |= 1 << step;
        else found.set(key, { values, steps: 1 << step });
      }
    }
    if (found.size > 1) this.#sharesEvents = true;
    for (const { values, steps } of found.values()) places.push({ match, values, steps });
  }

  #groupsOf(match: Match<Key>, paths: readonly number[]): readonly (readonly Scalar[])[] {
    const lists = paths.map((path) => match.values[path]!);
    if (lists.reduce((product, { length }) => product * length, 1) > COMBINATIONS_MAX) this.#cut++;
    return combinations(lists);
  }

  /** The group of this place of the stretch. */
  #find(place: number, seconds: number): number {
    const high = hashes[2 * place]!;
    const low = hashes[2 * place + 1]!;
    this.#room.beforeEntry(this, seconds);
    let group = nearby[place]!;
    // What came before in the stretch may have made it or taken it away.
    if (group >= 0 && this.groups.touch(group, high, low, seconds)) return group;
    group = this.groups.find(high, low);
    if (group < 0) {
      this.#room.beforeGroup(this, seconds);
      group = this.groups.insert(high, low);
    }
    this.groups.touch(group, high, low, seconds);
    return group;
  }

  /**
   * Looks at two groups for each match, so that what has expired goes before it is in the way. When the hand has gone
   * round it is known how long nothing will.
   */
  #sweep(seconds: number): void {
    // A clock that goes back makes groups that are older than any.
    this.#oldest = Math.min(this.#oldest, seconds);
    this.#restUntil = Math.min(this.#restUntil, seconds + this.keptSeconds);
    if (seconds <= this.#restUntil) return;
    for (let i = 0; i < 2; i++) {
      if (++this.#hand >= this.groups.top) {
        this.#hand = 0;
        this.#restUntil = this.#oldest + this.keptSeconds;
        this.#oldest = seconds;
        if (this.groups.top === 0) return;
      }
      if (!this.groups.isLive(this.#hand)) continue;
      if (this.isExpired(this.#hand, seconds)) {
        this.groups.remove(this.#hand);
        this.#room.evicted.expired++;
      } else this.#oldest = Math.min(this.#oldest, this.groups.touched(this.#hand));
    }
  }

  isExpired(group: number, seconds: number): boolean {
    return this.groups.touched(group) + this.keptSeconds < seconds;
  }
}

const NO_VALUES: readonly Scalar[] = [];
const NO_COMBINATIONS: readonly (readonly Scalar[])[] = [];

function windowMsOf(rule: Pick<Rule, "window">): number {
  return rule.window === null ? 0 : parseDuration(rule.window)!;
}

/** The steps at the end of a sequence that must not happen, as bits. */
function endingsOf({ sequence }: TrackedRule): number {
  let bits = 0;
  for (let step = (sequence?.length ?? 0) - 1; step >= 0 && sequence![step]!.absent; step--) bits |= 1 << step;
  return bits;
}

/** In a simulation everything arrives when it happens. */
function arrivalOf({ key, timestampMs }: Match<EventKey>): number {
  return typeof key === "string" ? timeOfId(key) : timestampMs;
}

/** For how long of the time since then nobody looked. */
export function downtimeSince(atMs: number, outages: readonly Outage[]): number {
  return outages.reduce((sum, { fromMs, toMs }) => sum + Math.max(0, toMs - Math.max(fromMs, atMs)), 0);
}

/**
 * How much older than the window before a group's newest match a match may be and still count: as far back as rules are
 * tried on stored events, so that what is sent in afterwards is found by both.
 */
export const LATE_MS = 7 * DAY_MS;

/** For how long a group that nothing more is heard of is remembered, beyond its window. */
function silenceOf(windowMs: number): number {
  return Math.max(windowMs, HOUR_MS);
}

/** How long ago matches arrived, in milliseconds, that a rule may remember; 0 for a rule without memory. */
export function memoryMsOf(rule: Pick<Rule, "window">): number {
  const windowMs = windowMsOf(rule);
  // Whether a match was counted is known by those one window before it.
  return windowMs === 0 ? 0 : 2 * windowMs + Math.min(silenceOf(windowMs), silenceOf(0));
}

/** One value of each list, in every way; none when a list is empty. */
export function combinations(lists: readonly (readonly Scalar[])[]): readonly (readonly Scalar[])[] {
  let found: (readonly Scalar[])[] = [NO_VALUES];
  for (const list of lists) {
    if (list.length === 0) return [];
    if (list.length === 1) {
      for (let i = 0; i < found.length; i++) found[i] = [...found[i]!, list[0]!];
      continue;
    }
    found = found.flatMap((values) => bounded(list).map((value) => [...values, value])).slice(0, COMBINATIONS_MAX);
  }
  return found;
}

/** Whether a match has more values than count, by itself or combined. */
export function isCut(values: readonly (readonly Scalar[])[]): boolean {
  return values.reduce((product, { length }) => product * Math.max(1, length), 1) > COMBINATIONS_MAX;
}

/** Which of too many values count must not depend on the order in which somebody found them. */
export function bounded(values: readonly Scalar[]): readonly Scalar[] {
  if (values.length <= COMBINATIONS_MAX) return values;
  const spelled = (value: Scalar) => `${typeof value} ${value}`;
  return [...values].sort((a, b) => (spelled(a) < spelled(b) ? -1 : 1)).slice(0, COMBINATIONS_MAX);
}

function singleFiring<Key extends EventKey>({ key, timestampMs }: Match<Key>): Firing<Key> {
  return { group: NO_VALUES, count: 1, firstMs: timestampMs, lastMs: timestampMs, marks: [{ id: key, timestampMs }] };
}
