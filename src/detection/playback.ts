import { parseDuration } from "../lib/duration.ts";
import { DAY_MS, startOfDay } from "../lib/time.ts";
import { isSameAttack } from "../model/finding.ts";
import { foldPaths, groupPaths, type Rule } from "../model/rule.ts";
import { foldKeyOf } from "./fold.ts";
import { randomSeed } from "./hash.ts";
import { Room } from "./room.ts";
import { Silences } from "./silence.ts";
import { Tracker, type Firing, type Match } from "./tracker.ts";

// Plays stored matches of one rule, oldest first, through the same memory that live detection has, and counts the alerts
// that they would have made. The clock is that of the events.

const GROUPS_MAX = 1_000_000;
/** Alerts that further matches may still be added to. */
const ATTACKS_MAX = 500_000;
/** Attacks after which those that are over are looked for. */
const FORGET_EVERY = 10_000;
export const SAMPLE_EVENTS_MAX = 10;

export interface DayOfPlay {
  matches: number;
  alerts: number;
}

/** Known by its number in the order of arrival. It brings the values of the playback's fields, maybe more of them. */
export type PlayedEvent = Match<number>;

interface Attack {
  firstEventMs: number;
  lastEventMs: number;
}

/** The rule keeps apart more than can be kept. */
export class TooManyAttacks extends Error {
  constructor() {
    super(`would make more than ${ATTACKS_MAX} alerts at once: fold them by fewer values, or for a shorter period`);
    this.name = "TooManyAttacks";
  }
}

export class Playback {
  /** The fields that matches must bring along. */
  readonly fields: readonly string[];
  readonly #rule: Rule;
  readonly #tracker: Tracker<number>;
  readonly #silences: Silences | undefined;
  readonly #absenceMs: number;
  readonly #foldMs: number;
  readonly #windowMs: number;
  readonly #reachMs: number;
  readonly #attacks = new Map<string, Attack>();
  #made = 0;
  #newest: readonly number[] = [];
  readonly days = new Map<number, DayOfPlay>();
  matches = 0;
  alerts = 0;
  #lastDayMs = Number.NaN;
  #lastDay: DayOfPlay = { matches: 0, alerts: 0 };

  /** `fromMs`: events before it are not played. */
  constructor(rule: Rule, fromMs?: number) {
    this.#rule = rule;
    const room = new Room({ groupsMax: GROUPS_MAX });
    this.#tracker = new Tracker<number>(rule, { seed: randomSeed(), room, inOrder: true, fromMs });
    this.#silences = rule.absence === null ? undefined : new Silences(rule);
    this.#absenceMs = rule.absence === null ? 0 : parseDuration(rule.absence)!;
    this.#foldMs = parseDuration(rule.dedup.period)!;
    this.#windowMs = rule.window === null ? 0 : parseDuration(rule.window)!;
    this.#reachMs = this.#foldMs + this.#windowMs;
    const remembered = this.#silences ? groupPaths(rule) : this.#tracker.paths;
    this.fields = [...new Set([...remembered, ...foldPaths(rule)])];
  }

  /** Counts matches, before those of them are taken that can make alerts. */
  count(timesMs: Float64Array): void {
    this.matches += timesMs.length;
    for (let i = 0; i < timesMs.length; i++) this.#dayOf(timesMs[i]!).matches++;
    this.#newest = [...this.#newest, ...timesMs.subarray(-SAMPLE_EVENTS_MAX)].slice(-SAMPLE_EVENTS_MAX);
  }

  take(events: readonly PlayedEvent[]): void {
    if (!this.#silences) return this.#count(events);
    for (const { timestampMs, values } of events) {
      this.#raiseSilences(this.#silences, timestampMs);
      this.#silences.see(values.slice(0, this.#silences.paths.length), null, timestampMs);
    }
  }

  #count(events: readonly PlayedEvent[]): void {
    const fire = (firings: readonly Firing<number>[], event: PlayedEvent) =>
      this.#fire(firings, event, event.timestampMs);
    if (!this.#tracker.isDecidedByClock) return this.#tracker.add(events, undefined, fire);
    for (const event of events) {
      this.#raiseDue(event.timestampMs);
      this.#tracker.add([event], undefined, fire);
    }
  }

  /** What the clock decides. */
  #raiseDue(nowMs: number): void {
    for (const { firing, match } of this.#tracker.takeDue(nowMs)) {
      this.#fire([firing], match, firing.firstMs + this.#windowMs);
    }
  }

  #fire(firings: readonly Firing<number>[], { values }: PlayedEvent, atMs: number): void {
    // What one event fires in several groups, with one key, is one finding.
    const found = new Map<string, Attack>();
    for (const { group, firstMs, lastMs } of firings) {
      const key = foldKeyOf(this.#rule, group, (path) => values[this.fields.indexOf(path)]!);
      const span = { firstEventMs: firstMs, lastEventMs: lastMs };
      const known = found.get(key);
      if (known) widen(known, span);
      else found.set(key, span);
    }
    for (const [key, span] of found) this.#raise(key, span, atMs);
  }

  /** Nothing more comes before this time. */
  end(atMs: number): void {
    if (this.#silences) this.#raiseSilences(this.#silences, atMs);
    else this.#raiseDue(atMs);
  }

  /** The time from which on the newest matches lie, as many as a sample has. */
  get sampleFromMs(): number {
    return Math.min(...this.#newest);
  }

  #raiseSilences(silences: Silences, nowMs: number): void {
    for (const { group, seenAtMs } of silences.due(nowMs)) {
      const key = foldKeyOf(this.#rule, group, (path) => {
        const place = silences.paths.indexOf(path);
        return place < 0 ? [] : [group[place]!];
      });
      this.#raise(key, { firstEventMs: seenAtMs, lastEventMs: seenAtMs }, seenAtMs + this.#absenceMs);
    }
  }

  #raise(key: string, span: Attack, atMs: number): void {
    const known = this.#attacks.get(key);
    if (known && isSameAttack(known, span, this.#foldMs)) return widen(known, span);
    this.alerts++;
    this.#dayOf(atMs).alerts++;
    this.#attacks.set(key, span);
    if (++this.#made % FORGET_EVERY === 0) this.#forget(atMs);
  }

  /** Matches come in the order of their times, so that nothing can be added any more to what lies far enough back. */
  #forget(nowMs: number): void {
    for (const [key, { lastEventMs }] of this.#attacks) {
      if (nowMs - this.#absenceMs - lastEventMs > this.#reachMs) this.#attacks.delete(key);
    }
    if (this.#attacks.size > ATTACKS_MAX) throw new TooManyAttacks();
  }

  /** Most come on the same day as the one before. */
  #dayOf(ms: number): DayOfPlay {
    if (ms >= this.#lastDayMs && ms < this.#lastDayMs + DAY_MS) return this.#lastDay;
    const start = startOfDay(ms);
    const day = this.days.get(start) ?? { matches: 0, alerts: 0 };
    this.days.set(start, day);
    this.#lastDayMs = start;
    this.#lastDay = day;
    return day;
  }
}

function widen(known: Attack, { firstEventMs, lastEventMs }: Attack): void {
  known.firstEventMs = Math.min(known.firstEventMs, firstEventMs);
  known.lastEventMs = Math.max(known.lastEventMs, lastEventMs);
}
