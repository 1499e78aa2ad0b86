import { parseDuration } from "../../lib/duration.ts";
import { DAY_MS, startOfDay } from "../../lib/time.ts";
import { isSameIncident } from "../../model/finding.ts";
import { dedupPaths, groupPaths, type Rule } from "../../model/rule.ts";
import { createRuleMemory, type RuleMemory } from "../windows/rule-chain.ts";
import { dedupKeyOf } from "../windows/firing-dedup.ts";
import { randomSeed } from "../windows/group-hash.ts";
import { WindowMemoryLimit } from "../windows/window-memory-limit.ts";
import { AbsenceTracker } from "../windows/absence-tracker.ts";
import type { Firing, Match } from "../windows/tracked-match.ts";

// Plays stored matches of one rule, oldest first, through the memory that live detection uses, and counts the resulting
// alerts. The clock is that of the events.

const GROUPS_MAX = 1_000_000;
/** Incidents that further matches may still join. */
const INCIDENTS_MAX = 500_000;
/** New incidents after which expired ones are removed. */
const FORGET_EVERY = 10_000;
export const SAMPLE_EVENTS_MAX = 10;

export interface DayCounts {
  matches: number;
  alerts: number;
}

/** An event with its number in order of arrival as key. Its values start with those of the playback's fields. */
export type PlayedEvent = Match<number>;

interface OpenIncident {
  firstEventMs: number;
  lastEventMs: number;
}

/** Thrown if the rule has more open incidents than the limit. */
export class TooManyIncidents extends Error {
  constructor() {
    super(`would raise more than ${INCIDENTS_MAX} alerts at once: deduplicate by fewer values or shorten the period`);
    this.name = "TooManyAttacks";
  }
}

export class Playback {
  /** The fields whose values matches must provide. */
  readonly fields: readonly string[];
  readonly #rule: Rule;
  readonly #tracker: RuleMemory<number>;
  readonly #absences: AbsenceTracker | undefined;
  readonly #absenceMs: number;
  readonly #dedupMs: number;
  readonly #windowMs: number;
  readonly #reachMs: number;
  readonly #incidents = new Map<string, OpenIncident>();
  #made = 0;
  #newest: readonly number[] = [];
  readonly days = new Map<number, DayCounts>();
  matches = 0;
  alerts = 0;
  #lastDayMs = Number.NaN;
  #lastDay: DayCounts = { matches: 0, alerts: 0 };

  /** Events before `fromMs` are not played. */
  constructor(rule: Rule, fromMs?: number) {
    this.#rule = rule;
    const memoryLimit = new WindowMemoryLimit({ groupsMax: GROUPS_MAX });
    this.#tracker = createRuleMemory<number>(rule, { seed: randomSeed(), memoryLimit, inOrder: true, fromMs });
    this.#absences = rule.absence === null ? undefined : new AbsenceTracker(rule);
    this.#absenceMs = rule.absence === null ? 0 : parseDuration(rule.absence)!;
    this.#dedupMs = parseDuration(rule.dedup.period)!;
    this.#windowMs = rule.window === null ? 0 : parseDuration(rule.window)!;
    this.#reachMs = this.#dedupMs + this.#windowMs;
    const remembered = this.#absences ? groupPaths(rule) : this.#tracker.paths;
    this.fields = [...new Set([...remembered, ...dedupPaths(rule)])];
  }

  /** Counts matches, including those that the prefilter drops. */
  count(timesMs: Float64Array): void {
    this.matches += timesMs.length;
    for (let i = 0; i < timesMs.length; i++) this.#dayOf(timesMs[i]!).matches++;
    this.#newest = [...this.#newest, ...timesMs.subarray(-SAMPLE_EVENTS_MAX)].slice(-SAMPLE_EVENTS_MAX);
  }

  take(events: readonly PlayedEvent[]): void {
    if (!this.#absences) return this.#count(events);
    for (const { timestampMs, values } of events) {
      this.#raiseAbsences(this.#absences, timestampMs);
      this.#absences.observe(values.slice(0, this.#absences.paths.length), null, timestampMs);
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

  /** Raises firings whose deadline has passed. */
  #raiseDue(nowMs: number): void {
    for (const { firing, match } of this.#tracker.takeDue(nowMs)) {
      this.#fire([firing], match, firing.firstMs + this.#windowMs);
    }
  }

  #fire(firings: readonly Firing<number>[], { values }: PlayedEvent, atMs: number): void {
    // Firings of one event under one key are one finding.
    const found = new Map<string, OpenIncident>();
    for (const { group, firstMs, lastMs } of firings) {
      const key = dedupKeyOf(this.#rule, group, (path) => values[this.fields.indexOf(path)]!);
      const span = { firstEventMs: firstMs, lastEventMs: lastMs };
      const known = found.get(key);
      if (known) widen(known, span);
      else found.set(key, span);
    }
    for (const [key, span] of found) this.#raise(key, span, atMs);
  }

  /** Ends the playback: no more events before this time. */
  end(atMs: number): void {
    if (this.#absences) this.#raiseAbsences(this.#absences, atMs);
    else this.#raiseDue(atMs);
  }

  /** The time of the oldest match in the sample. */
  get sampleFromMs(): number {
    return Math.min(...this.#newest);
  }

  #raiseAbsences(absences: AbsenceTracker, nowMs: number): void {
    for (const { group, seenAtMs } of absences.due(nowMs)) {
      const key = dedupKeyOf(this.#rule, group, (path) => {
        const index = absences.paths.indexOf(path);
        return index < 0 ? [] : [group[index]!];
      });
      this.#raise(key, { firstEventMs: seenAtMs, lastEventMs: seenAtMs }, seenAtMs + this.#absenceMs);
    }
  }

  #raise(key: string, span: OpenIncident, atMs: number): void {
    const known = this.#incidents.get(key);
    if (known && isSameIncident(known, span, this.#dedupMs)) return widen(known, span);
    this.alerts++;
    this.#dayOf(atMs).alerts++;
    this.#incidents.set(key, span);
    if (++this.#made % FORGET_EVERY === 0) this.#forget(atMs);
  }

  /** Removes incidents that no later match can join, since matches arrive in order. */
  #forget(nowMs: number): void {
    for (const [key, { lastEventMs }] of this.#incidents) {
      if (nowMs - this.#absenceMs - lastEventMs > this.#reachMs) this.#incidents.delete(key);
    }
    if (this.#incidents.size > INCIDENTS_MAX) throw new TooManyIncidents();
  }

  /** Most matches are on the same day as the one before. */
  #dayOf(ms: number): DayCounts {
    if (ms >= this.#lastDayMs && ms < this.#lastDayMs + DAY_MS) return this.#lastDay;
    const start = startOfDay(ms);
    const day = this.days.get(start) ?? { matches: 0, alerts: 0 };
    this.days.set(start, day);
    this.#lastDayMs = start;
    this.#lastDay = day;
    return day;
  }
}

function widen(known: OpenIncident, { firstEventMs, lastEventMs }: OpenIncident): void {
  known.firstEventMs = Math.min(known.firstEventMs, firstEventMs);
  known.lastEventMs = Math.max(known.lastEventMs, lastEventMs);
}
