import { parseDuration } from "../lib/duration.ts";
import { timeOfId } from "../lib/id.ts";
import type { Scalar } from "../model/condition.ts";
import type { Event } from "../model/event.ts";
import type { Finding } from "../model/finding.ts";
import {
  ANY_SOURCE,
  dedupPaths,
  groupPaths,
  inputConditions,
  ruleCondition,
  toConditions,
  type EndedException,
  type Rule,
} from "../model/rule.ts";
import type { Outage } from "../store/ports/detection-store.ts";
import { createRuleMemory, type RuleMemory } from "./windows/rule-chain.ts";
import { exceedsCombinations } from "./windows/group-combinations.ts";
import { compilePredicate, type CompileContext } from "./matching/compile-condition.ts";
import { EventFacts } from "./matching/event-facts.ts";
import {
  IncidentBatch,
  CountedEvents,
  dedupKeyOf,
  mergeFirings,
  type Incident,
  type FiringEvents,
} from "./windows/firing-dedup.ts";
import { describeFinding, describeAbsence } from "./rules/finding-text.ts";
import { randomSeed, type HashSeed } from "./windows/group-hash.ts";
import type { Predicate } from "./matching/predicate.ts";
import { RuleMatcher } from "./matching/rule-matcher.ts";
import { RulePatterns } from "./matching/rule-patterns.ts";
import { WindowMemoryLimit, type WindowLimits } from "./windows/window-memory-limit.ts";
import { AbsenceTracker, type LastSeen } from "./windows/absence-tracker.ts";
import type { Resumption } from "./windows/rule-tracker.ts";
import type { Firing, Match } from "./windows/tracked-match.ts";
import { UNDECIDED_TYPE, type Undecided } from "./undecided.ts";

// Runs rules over events in order of arrival. It is independent of threads and stores: events in, findings out.

/** Events after which the gathered matches of each rule are counted together. */
const BATCH_EVENTS = 256;
/** A pseudo-group: the time up to which a rule's deadlines have been reported. */
const DECIDED = "decided";

export interface DetectionEngineOptions extends WindowLimits {
  readonly now: () => number;
  /** Random by default; set for reproducible runs. */
  readonly seed?: HashSeed | undefined;
}

export interface RuleMatches {
  readonly ruleId: string;
  /** Timestamps of the events. */
  readonly timesMs: readonly number[];
}

export interface SeenGroup extends LastSeen {
  readonly ruleId: string;
}

export interface DetectionResult {
  readonly findings: Finding[];
  readonly matches: RuleMatches[];
  readonly seen: SeenGroup[];
  /** Rules that may have missed a match, once per rule and reason. */
  readonly undecided: Undecided[];
}

interface ActiveRule {
  readonly rule: Rule;
  readonly tracker: RuleMemory;
  readonly absences: AbsenceTracker | undefined;
  readonly steps: readonly Predicate[];
  readonly exceptions: readonly ActiveException[];
  readonly dedupMs: number;
  /** Numbers of the paths that the tracker (or the absence tracker) and deduplication need. */
  readonly valueSlots: readonly number[];
  readonly dedupSlots: ReadonlyMap<string, number>;
  readonly releases: readonly (() => void)[];
  /** Timestamps of the matches of this batch. */
  readonly timesMs: number[];
  /** Matches that are not counted yet. */
  readonly gathered: CountedMatch[];
}

/** An exception; it applies to events after the place `after` and up to the place `upTo`. */
interface ActiveException {
  readonly after: string | null;
  readonly upTo: string | null;
  readonly expiresAt: number | null;
  readonly holds: Predicate;
}

interface CountedMatch extends Match<string> {
  readonly event: Event;
}

/** The first firing of an incident. */
interface IncidentStart {
  readonly active: ActiveRule;
  readonly event: Event;
  readonly dedupKey: string;
  readonly group: readonly Scalar[];
}

export class DetectionEngine {
  readonly #now: () => number;
  readonly #seed: HashSeed;
  readonly #memoryLimit: WindowMemoryLimit;
  readonly #facts = new EventFacts();
  /** The place of the current event in the order of arrival. */
  #place = "";
  readonly #patterns = new RulePatterns();
  readonly #matcher = new RuleMatcher<ActiveRule>(this.#facts, this.#patterns);
  readonly #active = new Map<string, ActiveRule>();
  readonly #counted = new CountedEvents();
  /** Undecided rules of this batch, by rule and reason. */
  readonly #undecided = new Map<string, Undecided>();
  /** State at the start, for the warm-up of rules. */
  readonly #decidedMs = new Map<string, number>();
  #outages: readonly Outage[] = [];
  #late = 0;
  #cut = 0;
  #dropped = 0;
  #refused = 0;

  constructor({ now, seed, ...limits }: DetectionEngineOptions) {
    this.#now = now;
    this.#seed = seed ?? randomSeed();
    this.#memoryLimit = new WindowMemoryLimit(limits);
  }

  /** Adds or replaces a rule. Its memory stays if the same matches still count in the same way. */
  setRule(rule: Rule): void {
    const known = this.#active.get(rule.id);
    const kept = known && rule.enabled && keepsMemory(known.rule, rule) ? known : undefined;
    if (kept) this.#detach(kept);
    else this.removeRule(rule.id);
    if (!rule.enabled) return;
    const releases: (() => void)[] = [];
    const context: CompileContext = { facts: this.#facts, patterns: this.#patterns, releases };
    const fromMs = rule.activeAfter === null ? undefined : timeOfId(rule.activeAfter);
    const tracker =
      kept?.tracker ?? createRuleMemory(rule, { seed: this.#seed, memoryLimit: this.#memoryLimit, fromMs });
    if (!kept) tracker.resume(this.#resumptionOf(rule.id));
    const slotOf = (path: string) => {
      const slot = this.#facts.acquire(path);
      releases.push(() => this.#facts.release(slot));
      return slot;
    };
    const active: ActiveRule = {
      rule,
      tracker,
      absences: rule.absence === null ? undefined : (kept?.absences ?? new AbsenceTracker(rule)),
      steps: inputConditions(rule).map((condition) => compilePredicate(condition, context)),
      exceptions: exceptionsOf(rule).map(({ activeAfter = null, upTo, expiresAt, conditions }) => ({
        after: activeAfter,
        upTo,
        expiresAt,
        holds: compilePredicate(toConditions(conditions), context),
      })),
      dedupMs: parseDuration(rule.dedup.period)!,
      valueSlots: (rule.absence === null ? tracker.paths : groupPaths(rule)).map(slotOf),
      dedupSlots: new Map(dedupPaths(rule).map((path) => [path, slotOf(path)])),
      releases,
      timesMs: [],
      gathered: [],
    };
    this.#active.set(rule.id, active);
    const condition = ruleCondition({ ...rule, source: ANY_SOURCE, exceptions: [] }, 0);
    this.#matcher.add(rule.id, rule.source, condition, active);
  }

  removeRule(id: string): void {
    const active = this.#active.get(id);
    if (!active) return;
    this.#detach(active);
    this.#refused += active.tracker.refused + (active.absences?.refused ?? 0);
    active.tracker.close();
    this.#late += active.tracker.late;
    this.#cut += active.tracker.cut;
    this.#dropped += active.tracker.dropped;
  }

  /** Clears the memory of a rule, which stays in force. */
  forget(id: string): void {
    const active = this.#active.get(id);
    if (!active) return;
    this.removeRule(id);
    this.setRule(active.rule);
  }

  /** Removes a rule without clearing its memory. */
  #detach({ rule, releases }: ActiveRule): void {
    this.#active.delete(rule.id);
    this.#matcher.remove(rule.id);
    for (const release of releases) release();
  }

  /**
   * Processes events in order of arrival. Firings of one incident in the batch are one finding. Without `places`, the ids of
   * the events are their places.
   */
  process(events: readonly Event[], places?: readonly string[]): DetectionResult {
    const now = this.#now();
    const incidents = new IncidentBatch<IncidentStart>();
    const matched: ActiveRule[] = [];
    const uncounted: ActiveRule[] = [];
    for (let from = 0; from < events.length; from += BATCH_EVENTS) {
      const end = Math.min(from + BATCH_EVENTS, events.length);
      for (let at = from; at < end; at++) {
        const event = events[at]!;
        this.#place = places?.[at] ?? event.id;
        this.#facts.setEvent(event);
        this.#patterns.startEvent();
        for (const active of this.#matcher.match()) {
          if (!this.#isCounted(active, now)) continue;
          if (active.timesMs.length === 0) matched.push(active);
          if (active.absences) this.#observe(active, active.absences, now);
          else {
            if (active.gathered.length === 0) uncounted.push(active);
            active.gathered.push(this.#matchOf(active));
          }
          active.timesMs.push(this.#facts.timestampMs);
        }
        for (const active of this.#matcher.undecided)
          if (this.#isCounted(active, now)) this.#noteUndecided(active, "patterns");
      }
      for (const active of uncounted.splice(0)) this.#count(active, now, incidents);
    }
    const findings = incidents.all.map(findingOf);
    const undecided = [...this.#undecided.values()];
    this.#undecided.clear();
    return { findings, matches: matched.map(takeMatches), seen: matched.flatMap(takeSeen), undecided };
  }

  /**
   * Warms up a rule with earlier matches in order of arrival, without raising findings. Only exceptions that were active when
   * an event arrived apply to it.
   */
  warm(ruleId: string, events: readonly Event[], places?: readonly string[]): void {
    const active = this.#active.get(ruleId);
    if (!active || active.absences) return;
    for (const [at, event] of events.entries()) {
      this.#place = places?.[at] ?? event.id;
      this.#facts.setEvent(event);
      this.#patterns.startEvent();
      if (this.#matcher.matches(ruleId) && this.#isCounted(active, timeOfId(this.#place)))
        active.gathered.push(this.#matchOf(active));
    }
    this.#count(active, this.#now(), undefined);
  }

  /**
   * Restores the groups of absence rules in order of arrival, and the deadlines already reported. Outages do not count as
   * absence.
   */
  warmAbsence(seen: readonly SeenGroup[], outages: readonly Outage[]): void {
    this.#outages = outages;
    for (const row of seen) {
      if (row.group === DECIDED) this.#decidedMs.set(row.ruleId, row.atMs);
      else this.#active.get(row.ruleId)?.absences?.resume(row, outages);
    }
    for (const { rule, tracker } of this.#active.values()) tracker.resume(this.#resumptionOf(rule.id));
  }

  #resumptionOf(ruleId: string): Resumption {
    return { decidedMs: this.#decidedMs.get(ruleId) ?? -Infinity, outages: this.#outages };
  }

  /** Reports due absences and deadlines. All events that arrived before `processedMs` have been processed. */
  tick(nowMs: number, processedMs: number = nowMs): DetectionResult {
    const findings: Finding[] = [];
    const seen: SeenGroup[] = [];
    for (const active of this.#active.values()) {
      if (active.tracker.isDecidedByClock) {
        const incidents = new IncidentBatch<IncidentStart>();
        const due = active.tracker.takeDue(processedMs);
        for (const { firing, match } of due) this.#report(active, [firing], (match as CountedMatch).event, incidents);
        if (due.length > 0) seen.push({ ruleId: active.rule.id, group: DECIDED, atMs: processedMs, last: null });
        findings.push(...incidents.all.map(findingOf));
      }
      if (!active.absences) continue;
      for (const absence of active.absences.due(nowMs)) {
        const dedupKey = dedupKeyOf(active.rule, absence.group, (path) => {
          const index = active.absences!.paths.indexOf(path);
          return index < 0 ? [] : [absence.group[index]!];
        });
        findings.push(describeAbsence(active.rule, absence, { dedupKey, dedupMs: active.dedupMs }));
      }
      seen.push(...takeSeen(active));
    }
    return { findings, matches: [], seen, undecided: [] };
  }

  metrics(): Record<string, number> {
    let late = this.#late;
    let cut = this.#cut;
    let dropped = this.#dropped;
    let pending = 0;
    let refused = this.#refused;
    for (const { tracker, absences } of this.#active.values()) {
      late += tracker.late;
      cut += tracker.cut;
      dropped += tracker.dropped;
      pending += tracker.pending + (absences?.size ?? 0);
      refused += tracker.refused + (absences?.refused ?? 0);
    }
    return {
      rules: this.#active.size,
      groups: this.#memoryLimit.totals.groups,
      entries: this.#memoryLimit.totals.entries,
      evicted_expired: this.#memoryLimit.evicted.expired,
      evicted_single: this.#memoryLimit.evicted.single,
      evicted_several: this.#memoryLimit.evicted.several,
      late,
      values_cut: cut,
      values_dropped: dropped,
      absences_waited_for: pending,
      absences_refused: refused,
      patterns_skipped: this.#patterns.aborted,
      ...this.#matcher.metrics(),
    };
  }

  /** True if the current event, which matches and arrived at `atMs`, counts for the rule. */
  #isCounted({ rule, exceptions }: ActiveRule, atMs: number): boolean {
    const place = this.#place;
    if (rule.activeAfter !== null && place <= rule.activeAfter) return false;
    if (exceptions.length === 0) return true;
    return !exceptions.some(
      ({ after, upTo, expiresAt, holds }) =>
        (after === null || place > after) &&
        (upTo === null || place <= upTo) &&
        (expiresAt === null || expiresAt > atMs) &&
        holds(),
    );
  }

  #observe(active: ActiveRule, absences: AbsenceTracker, now: number): void {
    const { type, source, class: kind, severity, timestamp } = this.#facts.event;
    absences.observe(this.#valuesOf(active), { type, source, class: kind, severity, timestamp }, now);
  }

  #matchOf(active: ActiveRule): CountedMatch {
    const { event, timestampMs } = this.#facts;
    let steps = 0;
    for (let i = 0; i < active.steps.length; i++) if (this.#isStep(active, active.steps[i]!)) steps |= 1 << i;
    return { key: event.id, timestampMs, values: this.#valuesOf(active), steps, event };
  }

  #isStep(active: ActiveRule, step: Predicate): boolean {
    const { uncertain } = this.#patterns;
    if (step()) return true;
    if (this.#patterns.uncertain > uncertain && this.#patterns.couldHold(step)) this.#noteUndecided(active, "patterns");
    return false;
  }

  /** Reports about undecided rules are not reported themselves. */
  #noteUndecided(
    { rule }: ActiveRule,
    reason: Undecided["reason"],
    { id: eventId, type }: Event = this.#facts.event,
  ): void {
    if (type === UNDECIDED_TYPE) return;
    const key = `${rule.id} ${reason}`;
    const known = this.#undecided.get(key);
    if (known) known.events++;
    else this.#undecided.set(key, { ruleId: rule.id, ruleName: rule.name, reason, eventId, events: 1 });
  }

  /** Counts the gathered matches. Without `incidents` it only updates the memory. */
  #count(active: ActiveRule, now: number, incidents: IncidentBatch<IncidentStart> | undefined): void {
    const { tracker } = active;
    const matches = active.gathered.splice(0);
    const { cut } = tracker;
    tracker.add(matches, now, (firings, { event }) => this.#report(active, firings, event, incidents));
    if (!incidents || tracker.cut === cut) return;
    for (const { event, values } of matches)
      if (exceedsCombinations(values)) this.#noteUndecided(active, "values", event);
  }

  #report(
    active: ActiveRule,
    firings: readonly Firing<string>[],
    event: Event,
    incidents: IncidentBatch<IncidentStart> | undefined,
  ): void {
    const { rule, tracker, dedupMs, dedupSlots } = active;
    // Without dedup.by each group has its own alerts, so that no event counts twice.
    const mayRepeat = (rule.dedup.by !== null || (rule.parts ?? []).length > 0) && tracker.sharesEvents;
    if (!incidents && !mayRepeat) return;
    const facts = this.#facts;
    facts.setEvent(event);
    const found = new Map<string, { events: FiringEvents; group: readonly Scalar[] }>();
    for (const firing of firings) {
      const { group } = firing;
      const dedupKey = dedupKeyOf(rule, group, (path) => facts.scalars(dedupSlots.get(path)!));
      const fresh = mayRepeat ? this.#counted.add(`${rule.id} ${dedupKey}`, firing) : firing;
      const known = found.get(dedupKey);
      if (known) known.events = mergeFirings(known.events, fresh);
      else found.set(dedupKey, { events: fresh, group });
    }
    for (const [dedupKey, { events, group }] of found) {
      incidents?.add(`${rule.id} ${dedupKey}`, events, dedupMs, () => ({ active, event, dedupKey, group }));
    }
  }

  #valuesOf({ valueSlots }: ActiveRule): readonly (readonly Scalar[])[] {
    const values: (readonly Scalar[])[] = [];
    for (let i = 0; i < valueSlots.length; i++) values.push(this.#facts.scalars(valueSlots[i]!));
    return values;
  }
}

/** True if the same matches count in the same way, so that the memory stays valid. */
function keepsMemory(known: Rule, rule: Rule): boolean {
  const shapeOf = ({ activeAfter, source, conditions, window, threshold, sequence, ...rest }: Rule) => {
    const { sequenceOrder, sequenceMin = null, groupBy, absence, parts = [] } = rest;
    const counting = [window, threshold, sequence, sequenceOrder, sequenceMin, groupBy, absence, parts];
    return [activeAfter, source, conditions, ...counting];
  };
  return JSON.stringify(shapeOf(known)) === JSON.stringify(shapeOf(rule));
}

function exceptionsOf(rule: Rule): readonly (Omit<EndedException, "upTo"> & { readonly upTo: string | null })[] {
  return [...rule.exceptions.map((exception) => ({ ...exception, upTo: null })), ...(rule.endedExceptions ?? [])];
}

function findingOf(incident: Incident<IncidentStart>): Finding {
  const { active, event, dedupKey, group } = incident.first;
  return describeFinding(active.rule, event, group, {
    dedupKey,
    dedupMs: active.dedupMs,
    eventCount: incident.eventCount,
    firstEventMs: incident.firstEventMs,
    lastEventMs: incident.lastEventMs,
    events: incident.events,
  });
}

function takeMatches({ rule, timesMs }: ActiveRule): RuleMatches {
  return { ruleId: rule.id, timesMs: timesMs.splice(0) };
}

function takeSeen({ rule, absences }: ActiveRule): SeenGroup[] {
  return absences?.takeChanges().map((seen) => ({ ruleId: rule.id, ...seen })) ?? [];
}
