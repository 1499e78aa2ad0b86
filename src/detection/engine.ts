import { parseDuration } from "../lib/duration.ts";
import { timeOfId } from "../lib/id.ts";
import type { Scalar } from "../model/condition.ts";
import type { Event } from "../model/event.ts";
import type { Finding } from "../model/finding.ts";
import {
  ANY_SOURCE,
  foldPaths,
  groupPaths,
  ruleCondition,
  toConditions,
  type EndedException,
  type Rule,
} from "../model/rule.ts";
import type { Outage } from "../store/store.ts";
import { compile, type Predicate, type Workshop } from "./compile.ts";
import { Facts } from "./facts.ts";
import { Attacks, CountedEvents, foldKeyOf, together, type Attack, type Fired } from "./fold.ts";
import { describeFinding, describeSilence } from "./describe.ts";
import { randomSeed, type Seed } from "./hash.ts";
import { Matcher } from "./matcher.ts";
import { Patterns } from "./patterns.ts";
import { Room, type RoomLimits } from "./room.ts";
import { Silences, type Seen } from "./silence.ts";
import { isCut, Tracker, type Firing, type Match, type Resumption } from "./tracker.ts";
import { UNDECIDED_TYPE, type Undecided } from "./undecided.ts";

// Runs rules over events, in the order of arrival. It knows nothing of threads and stores: events in, findings out.

/** Events after which the matches of each rule are counted, all of a rule at once. */
const STRETCH_EVENTS = 256;
/** In the place of a group: up to when a rule's sequences that waited for the clock have been told of. */
const DECIDED = "decided";

export interface EngineOptions extends RoomLimits {
  readonly now: () => number;
  /** Where hashes start from; random unless somebody needs the same run twice. */
  readonly seed?: Seed | undefined;
}

export interface Matches {
  readonly ruleId: string;
  /** The timestamps of the events. */
  readonly timesMs: readonly number[];
}

export interface SeenGroup extends Seen {
  readonly ruleId: string;
}

export interface Outcome {
  readonly findings: Finding[];
  readonly matches: Matches[];
  readonly seen: SeenGroup[];
  /** Rules that may have missed a match, each once. */
  readonly undecided: Undecided[];
}

interface Active {
  readonly rule: Rule;
  readonly tracker: Tracker;
  readonly silences: Silences | undefined;
  readonly steps: readonly Predicate[];
  readonly exceptions: readonly Excepted[];
  readonly foldMs: number;
  /** Numbers of the paths that the tracker (or the silences) and the folding need. */
  readonly valueSlots: readonly number[];
  readonly foldSlots: ReadonlyMap<string, number>;
  readonly releases: readonly (() => void)[];
  /** Of the matches of this batch. */
  readonly timesMs: number[];
  /** Matches that are counted together with those of the next events. */
  readonly waiting: Counted[];
}

/** Events that an exception is about: those that came after the one and no later than the other. */
interface Excepted {
  readonly after: string | null;
  readonly upTo: string | null;
  readonly expiresAt: number | null;
  readonly holds: Predicate;
}

interface Counted extends Match<string> {
  readonly event: Event;
}

/** The event that began an attack. */
interface Beginning {
  readonly active: Active;
  readonly event: Event;
  readonly foldKey: string;
  readonly group: readonly Scalar[];
}

export class Engine {
  readonly #now: () => number;
  readonly #seed: Seed;
  readonly #room: Room;
  readonly #facts = new Facts();
  readonly #patterns = new Patterns();
  readonly #matcher = new Matcher<Active>(this.#facts, this.#patterns);
  readonly #active = new Map<string, Active>();
  readonly #counted = new CountedEvents();
  /** Of this batch, by rule and reason. */
  readonly #undecided = new Map<string, Undecided>();
  /** What was known at the start, for rules whose memory is filled again. */
  readonly #decidedMs = new Map<string, number>();
  #outages: readonly Outage[] = [];
  #late = 0;
  #cut = 0;
  #dropped = 0;
  #refused = 0;

  constructor({ now, seed, ...limits }: EngineOptions) {
    this.#now = now;
    this.#seed = seed ?? randomSeed();
    this.#room = new Room(limits);
  }

  /** Adds a rule, or replaces the one with its id; where the same matches count in the same way, what it remembers stays. */
  setRule(rule: Rule): void {
    const known = this.#active.get(rule.id);
    const kept = known && rule.enabled && remembersTheSame(known.rule, rule) ? known : undefined;
    if (kept) this.#takeOut(kept);
    else this.removeRule(rule.id);
    if (!rule.enabled) return;
    const releases: (() => void)[] = [];
    const workshop: Workshop = { facts: this.#facts, patterns: this.#patterns, releases };
    const fromMs = rule.activeAfter === null ? undefined : timeOfId(rule.activeAfter);
    const tracker = kept?.tracker ?? new Tracker(rule, { seed: this.#seed, room: this.#room, fromMs });
    if (!kept) tracker.resume(this.#resumptionOf(rule.id));
    const slotOf = (path: string) => {
      const slot = this.#facts.acquire(path);
      releases.push(() => this.#facts.release(slot));
      return slot;
    };
    const active: Active = {
      rule,
      tracker,
      silences: rule.absence === null ? undefined : (kept?.silences ?? new Silences(rule)),
      steps: (rule.sequence ?? []).map((step) => compile(toConditions(step.conditions), workshop)),
      exceptions: exceptionsOf(rule).map(({ activeAfter = null, upTo, expiresAt, conditions }) => ({
        after: activeAfter,
        upTo,
        expiresAt,
        holds: compile(toConditions(conditions), workshop),
      })),
      foldMs: parseDuration(rule.dedup.period)!,
      valueSlots: (rule.absence === null ? tracker.paths : groupPaths(rule)).map(slotOf),
      foldSlots: new Map(foldPaths(rule).map((path) => [path, slotOf(path)])),
      releases,
      timesMs: [],
      waiting: [],
    };
    this.#active.set(rule.id, active);
    const condition = ruleCondition({ ...rule, source: ANY_SOURCE, exceptions: [] }, 0);
    this.#matcher.add(rule.id, rule.source, condition, active);
  }

  removeRule(id: string): void {
    const active = this.#active.get(id);
    if (!active) return;
    this.#takeOut(active);
    this.#refused += active.tracker.refused + (active.silences?.refused ?? 0);
    active.tracker.end();
    this.#late += active.tracker.late;
    this.#cut += active.tracker.cut;
    this.#dropped += active.tracker.dropped;
  }

  /** The rule stays in force, and begins anew. */
  forget(id: string): void {
    const active = this.#active.get(id);
    if (!active) return;
    this.removeRule(id);
    this.setRule(active.rule);
  }

  /** What it remembers is left as it is. */
  #takeOut({ rule, releases }: Active): void {
    this.#active.delete(rule.id);
    this.#matcher.remove(rule.id);
    for (const release of releases) release();
  }

  /** Events in the order of arrival. Findings of one attack within them are one finding. */
  process(events: readonly Event[]): Outcome {
    const now = this.#now();
    const attacks = new Attacks<Beginning>();
    const matched: Active[] = [];
    const waiting: Active[] = [];
    for (let from = 0; from < events.length; from += STRETCH_EVENTS) {
      const end = Math.min(from + STRETCH_EVENTS, events.length);
      for (let at = from; at < end; at++) {
        const event = events[at]!;
        this.#facts.turnTo(event);
        this.#patterns.renew();
        for (const active of this.#matcher.match()) {
          if (!this.#isCounted(active, now)) continue;
          if (active.timesMs.length === 0) matched.push(active);
          if (active.silences) this.#see(active, active.silences, now);
          else {
            if (active.waiting.length === 0) waiting.push(active);
            active.waiting.push(this.#matchOf(active));
          }
          active.timesMs.push(this.#facts.timestampMs);
        }
        for (const active of this.#matcher.undecided)
          if (this.#isCounted(active, now)) this.#noteUndecided(active, "patterns");
      }
      for (const active of waiting.splice(0)) this.#count(active, now, attacks);
    }
    const findings = attacks.all.map(findingOf);
    const undecided = [...this.#undecided.values()];
    this.#undecided.clear();
    return { findings, matches: matched.map(takeMatches), seen: matched.flatMap(takeSeen), undecided };
  }

  /**
   * Matches that were counted before, in the order of arrival: fills the rule's memory and raises nothing. Exceptions that were
   * not there yet, or no longer, when an event came do not stop it; those that were do.
   */
  warm(ruleId: string, events: readonly Event[]): void {
    const active = this.#active.get(ruleId);
    if (!active || active.silences) return;
    for (const event of events) {
      this.#facts.turnTo(event);
      this.#patterns.renew();
      if (this.#matcher.matches(ruleId) && this.#isCounted(active, timeOfId(event.id)))
        active.waiting.push(this.#matchOf(active));
    }
    this.#count(active, this.#now(), undefined);
  }

  /**
   * What absence rules had seen before a start, in the order in which it was, and which sequences had been told of; the
   * outages do not count.
   */
  warmAbsence(seen: readonly SeenGroup[], outages: readonly Outage[]): void {
    this.#outages = outages;
    for (const row of seen) {
      if (row.group === DECIDED) this.#decidedMs.set(row.ruleId, row.atMs);
      else this.#active.get(row.ruleId)?.silences?.resume(row, outages);
    }
    for (const { rule, tracker } of this.#active.values()) tracker.resume(this.#resumptionOf(rule.id));
  }

  #resumptionOf(ruleId: string): Resumption {
    return { decidedMs: this.#decidedMs.get(ruleId) ?? -Infinity, outages: this.#outages };
  }

  /** Absences that are due, and sequences whose last step did not happen. All that arrived before `seenMs` was looked at. */
  tick(nowMs: number, seenMs: number = nowMs): Outcome {
    const findings: Finding[] = [];
    const seen: SeenGroup[] = [];
    for (const active of this.#active.values()) {
      if (active.tracker.isDecidedByClock) {
        const attacks = new Attacks<Beginning>();
        const due = active.tracker.takeDue(seenMs);
        for (const { firing, match } of due) this.#report(active, [firing], (match as Counted).event, attacks);
        if (due.length > 0) seen.push({ ruleId: active.rule.id, group: DECIDED, atMs: seenMs, last: null });
        findings.push(...attacks.all.map(findingOf));
      }
      if (!active.silences) continue;
      for (const silence of active.silences.due(nowMs)) {
        const foldKey = foldKeyOf(active.rule, silence.group, (path) => {
          const place = active.silences!.paths.indexOf(path);
          return place < 0 ? [] : [silence.group[place]!];
        });
        findings.push(describeSilence(active.rule, silence, { foldKey, foldMs: active.foldMs }));
      }
      seen.push(...takeSeen(active));
    }
    return { findings, matches: [], seen, undecided: [] };
  }

  metrics(): Record<string, number> {
    let late = this.#late;
    let cut = this.#cut;
    let dropped = this.#dropped;
    let waited = 0;
    let refused = this.#refused;
    for (const { tracker, silences } of this.#active.values()) {
      late += tracker.late;
      cut += tracker.cut;
      dropped += tracker.dropped;
      waited += tracker.waiting + (silences?.size ?? 0);
      refused += tracker.refused + (silences?.refused ?? 0);
    }
    return {
      rules: this.#active.size,
      groups: this.#room.totals.groups,
      entries: this.#room.totals.entries,
      evicted_expired: this.#room.evicted.expired,
      evicted_single: this.#room.evicted.single,
      evicted_several: this.#room.evicted.several,
      late,
      values_cut: cut,
      values_dropped: dropped,
      absences_waited_for: waited,
      absences_refused: refused,
      patterns_skipped: this.#patterns.givenUp,
      ...this.#matcher.metrics(),
    };
  }

  /** Of an event that the rule's conditions hold for, and that came at this time. */
  #isCounted({ rule, exceptions }: Active, atMs: number): boolean {
    const { id } = this.#facts.event;
    if (rule.activeAfter !== null && id <= rule.activeAfter) return false;
    if (exceptions.length === 0) return true;
    return !exceptions.some(
      ({ after, upTo, expiresAt, holds }) =>
        (after === null || id > after) &&
        (upTo === null || id <= upTo) &&
        (expiresAt === null || expiresAt > atMs) &&
        holds(),
    );
  }

  #see(active: Active, silences: Silences, now: number): void {
    const { type, source, class: kind, severity, timestamp } = this.#facts.event;
    silences.see(this.#valuesOf(active), { type, source, class: kind, severity, timestamp }, now);
  }

  #matchOf(active: Active): Counted {
    const { event, timestampMs } = this.#facts;
    let steps = 0;
    for (let i = 0; i < active.steps.length; i++) if (this.#isStep(active, active.steps[i]!)) steps |= 1 << i;
    return { key: event.id, timestampMs, values: this.#valuesOf(active), steps, event };
  }

  #isStep(active: Active, step: Predicate): boolean {
    const { uncertain } = this.#patterns;
    if (step()) return true;
    if (this.#patterns.uncertain > uncertain && this.#patterns.couldHold(step)) this.#noteUndecided(active, "patterns");
    return false;
  }

  /** An event that reports this is never reported itself. */
  #noteUndecided(
    { rule }: Active,
    reason: Undecided["reason"],
    { id: eventId, type }: Event = this.#facts.event,
  ): void {
    if (type === UNDECIDED_TYPE) return;
    const key = `${rule.id} ${reason}`;
    const known = this.#undecided.get(key);
    if (known) known.events++;
    else this.#undecided.set(key, { ruleId: rule.id, ruleName: rule.name, reason, eventId, events: 1 });
  }

  /** The matches that have gathered; where no attacks are wanted, they are only remembered. */
  #count(active: Active, now: number, attacks: Attacks<Beginning> | undefined): void {
    const { tracker } = active;
    const waiting = active.waiting.splice(0);
    const { cut } = tracker;
    tracker.add(waiting, now, (firings, { event }) => this.#report(active, firings, event, attacks));
    if (!attacks || tracker.cut === cut) return;
    for (const { event, values } of waiting) if (isCut(values)) this.#noteUndecided(active, "values", event);
  }

  #report(
    active: Active,
    firings: readonly Firing<string>[],
    event: Event,
    attacks: Attacks<Beginning> | undefined,
  ): void {
    const { rule, tracker, foldMs, foldSlots } = active;
    // Groups keep their alerts apart unless the rule says what does.
    const seesAgain = rule.dedup.by !== null && tracker.sharesEvents;
    if (!attacks && !seesAgain) return;
    const facts = this.#facts;
    facts.turnTo(event);
    const found = new Map<string, { fired: Fired; group: readonly Scalar[] }>();
    for (const firing of firings) {
      const { group } = firing;
      const foldKey = foldKeyOf(rule, group, (path) => facts.scalars(foldSlots.get(path)!));
      const fresh = seesAgain ? this.#counted.add(`${rule.id} ${foldKey}`, firing) : firing;
      const known = found.get(foldKey);
      if (known) known.fired = together(known.fired, fresh);
      else found.set(foldKey, { fired: fresh, group });
    }
    for (const [foldKey, { fired, group }] of found) {
      attacks?.add(`${rule.id} ${foldKey}`, fired, foldMs, () => ({ active, event, foldKey, group }));
    }
  }

  #valuesOf({ valueSlots }: Active): readonly (readonly Scalar[])[] {
    const values: (readonly Scalar[])[] = [];
    for (let i = 0; i < valueSlots.length; i++) values.push(this.#facts.scalars(valueSlots[i]!));
    return values;
  }
}

/** Whether the same matches count in the same way: then what was remembered under the one is true under the other. */
function remembersTheSame(known: Rule, rule: Rule): boolean {
  const shapeOf = ({ activeAfter, source, conditions, window, threshold, sequence, ...rest }: Rule) => {
    const { sequenceOrder, sequenceMin = null, groupBy, absence } = rest;
    const counting = [window, threshold, sequence, sequenceOrder, sequenceMin, groupBy, absence];
    return [activeAfter, source, conditions, ...counting];
  };
  return JSON.stringify(shapeOf(known)) === JSON.stringify(shapeOf(rule));
}

function exceptionsOf(rule: Rule): readonly (Omit<EndedException, "upTo"> & { readonly upTo: string | null })[] {
  return [...rule.exceptions.map((exception) => ({ ...exception, upTo: null })), ...(rule.endedExceptions ?? [])];
}

function findingOf(attack: Attack<Beginning>): Finding {
  const { active, event, foldKey, group } = attack.first;
  return describeFinding(active.rule, event, group, {
    foldKey,
    foldMs: active.foldMs,
    eventCount: attack.eventCount,
    firstEventMs: attack.firstEventMs,
    lastEventMs: attack.lastEventMs,
    events: attack.events,
  });
}

function takeMatches({ rule, timesMs }: Active): Matches {
  return { ruleId: rule.id, timesMs: timesMs.splice(0) };
}

function takeSeen({ rule, silences }: Active): SeenGroup[] {
  return silences?.takeChanges().map((seen) => ({ ruleId: rule.id, ...seen })) ?? [];
}
