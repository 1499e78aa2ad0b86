import { compileCondition, type Scalar } from "../../model/condition.ts";
import type { Event } from "../../model/event.ts";
import { fieldReader, OBJECT } from "../../model/field.ts";
import { isSameIncident, newestEvents, type EventMark, type Finding } from "../../model/finding.ts";
import {
  countsPart,
  groupPaths,
  inputsOf,
  ruleCondition,
  toConditions,
  toCorrelated,
  type Rule,
} from "../../model/rule.ts";
import { parseDuration } from "../../lib/duration.ts";
import { describeFinding, type FindingEvents } from "../rules/finding-text.ts";
import type { RuleMatches } from "../detection-engine.ts";
import { dedupKeyOf } from "../windows/firing-dedup.ts";
import { bounded, PlainStage, type StageFiring, type StageInput } from "./reference-stage.ts";

// A reference implementation of detection: it evaluates every rule for every event and keeps every match in a list. Tests
// compare the engine with it; the service does not use it. It has no absence rules, which depend on arrival.

export class Reference {
  readonly #rules: PlainRule[];

  constructor(rules: readonly Rule[]) {
    this.#rules = rules.filter(({ enabled }) => enabled).map((rule) => new PlainRule(rule));
  }

  process(events: readonly Event[], nowMs: number): { findings: Finding[]; matches: RuleMatches[] } {
    const outcomes = this.#rules.map((rule) => rule.process(events, nowMs));
    return {
      findings: outcomes.flatMap(({ findings }) => findings),
      matches: outcomes.flatMap(({ matches }) => matches),
    };
  }

  /** Firings of absent last steps, once all arrivals before this time have been processed. */
  tick(seenMs: number): Finding[] {
    return this.#rules.flatMap((rule) => rule.tick(seenMs));
  }
}

class PlainRule {
  readonly #rule: Rule;
  readonly #correlations: readonly ReturnType<typeof toCorrelated>[];
  readonly #stages: readonly PlainStage[];
  /** The events of occurrences, by the event that completed them. */
  readonly #occurrences = new Map<string, readonly EventMark[]>();
  /** Counted events under each deduplication key. */
  readonly #counted = new Set<string>();

  constructor(rule: Rule) {
    this.#rule = rule;
    const names = (rule.parts ?? []).map(({ name }) => name);
    this.#correlations = [...(rule.parts ?? []).map(toCorrelated), rule];
    this.#stages = this.#correlations.map((correlation, i) => {
      const isCounted = i < names.length && this.#correlations.some((other) => countsPart(other, names[i]!));
      return new PlainStage(correlation, isCounted);
    });
  }

  process(events: readonly Event[], nowMs: number): { findings: Finding[]; matches: RuleMatches[] } {
    const rule = this.#rule;
    const holds = compileCondition(ruleCondition(rule, nowMs));
    const matching = events.filter(
      (event) => (rule.activeAfter === null || event.id > rule.activeAfter) && holds(event),
    );
    return {
      findings: deduplicate(
        rule,
        matching.flatMap((event) => this.#fresh(this.#count(event))),
      ),
      matches:
        matching.length === 0
          ? []
          : [{ ruleId: rule.id, timesMs: matching.map((event) => Date.parse(event.timestamp)) }],
    };
  }

  tick(seenMs: number): Finding[] {
    const due = this.#stages.at(-1)!.tick(seenMs);
    return deduplicate(
      this.#rule,
      due.flatMap((counted) => this.#fresh([this.#whole(counted)])),
    );
  }

  /** Runs an event through each part, then through the rule. */
  #count(event: Event): StageFiring[] {
    const parts = this.#rule.parts ?? [];
    const made: StageFiring[][] = [];
    for (const [i, stage] of this.#stages.entries()) {
      const correlation = this.#correlations[i]!;
      const inputs = inputsOf(correlation) ?? [{}];
      const inputsThat = (holds: (input: (typeof inputs)[number]) => boolean) =>
        inputs.flatMap((input, number) => (holds(input) ? [number] : []));
      const isEvent = ({ part, conditions = [] }: (typeof inputs)[number]) =>
        part === undefined && compileCondition(toConditions([...correlation.conditions, ...conditions]))(event);
      const items: StageInput[] = [
        {
          event,
          timestampMs: Date.parse(event.timestamp),
          inputs: inputsThat(isEvent),
          read: (path) => scalarsOf(event, path),
        },
      ];
      for (const [number, part] of parts.slice(0, i).entries()) {
        const paths = groupPaths(toCorrelated(part));
        for (const { group, marks } of made[number]!) {
          items.push({
            event,
            timestampMs: Math.max(...marks.map(({ timestampMs }) => timestampMs)),
            inputs: inputsThat((input) => input.part === part.name),
            read: (path) => (paths.includes(path) ? [group[paths.indexOf(path)]!] : []),
          });
        }
      }
      const counted = items.filter((item) => item.inputs.length > 0).flatMap((item) => stage.count(item));
      const isChained = inputs.some(({ part }) => part !== undefined);
      made.push(isChained ? counted.map((one) => this.#whole(one)) : counted);
      if (i < parts.length) for (const { marks } of made[i]!) this.#remember(event, marks);
    }
    return made.at(-1)!;
  }

  #remember({ id }: Event, marks: readonly EventMark[]): void {
    this.#occurrences.set(id, different([...(this.#occurrences.get(id) ?? []), ...marks]));
  }

  /** Replaces occurrences by their events. */
  #whole(counted: StageFiring): StageFiring {
    return { ...counted, marks: different(counted.marks.flatMap((mark) => this.#occurrences.get(mark.id) ?? [mark])) };
  }

  /**
   * An event of several groups counts once in an alert, but the alert's time span includes it. Firings of one event under one
   * key are one firing.
   */
  #fresh(firings: readonly StageFiring[]): RuleFiring[] {
    const found = new Map<string, RuleFiring>();
    for (const { event, group, marks } of firings) {
      const dedupKey = dedupKeyOf(this.#rule, group, (path) => bounded(scalarsOf(event, path)));
      const fresh = marks.filter(({ id }) => !this.#counted.has(`${dedupKey} ${id}`));
      for (const { id } of fresh) this.#counted.add(`${dedupKey} ${id}`);
      const known = found.get(dedupKey) ?? { event, group, dedupKey, timesMs: [], marks: [] };
      const timesMs = [...known.timesMs, ...marks.map(({ timestampMs }) => timestampMs)];
      found.set(dedupKey, { ...known, timesMs, marks: [...known.marks, ...fresh] });
    }
    return [...found.values()];
  }
}

function different(marks: readonly EventMark[]): EventMark[] {
  return [...new Map(marks.map((mark) => [mark.id, mark])).values()];
}

function scalarsOf(event: Event, path: string): Scalar[] {
  return [...new Set(fieldReader(path)(event))].filter((value) => value !== OBJECT);
}

interface RuleFiring extends StageFiring {
  readonly dedupKey: string;
  /** Merged firings; the marks are the events that were not counted before. */
  readonly timesMs: readonly number[];
}

function deduplicate(rule: Rule, fired: readonly RuleFiring[]): Finding[] {
  const incidents: { first: RuleFiring; found: FindingEvents }[] = [];
  for (const firing of fired) {
    const found: FindingEvents = {
      dedupKey: firing.dedupKey,
      dedupMs: parseDuration(rule.dedup.period)!,
      eventCount: firing.marks.length,
      firstEventMs: Math.min(...firing.timesMs),
      lastEventMs: Math.max(...firing.timesMs),
      events: newestEvents(firing.marks, []),
    };
    const same = incidents.filter((incident) => incident.found.dedupKey === found.dedupKey);
    const newestMs = Math.max(...same.map((incident) => incident.found.lastEventMs));
    const known = same.findLast((incident) => incident.found.lastEventMs === newestMs);
    if (!known || !isSameIncident(known.found, found, found.dedupMs)) {
      incidents.push({ first: firing, found });
      continue;
    }
    known.found = {
      ...known.found,
      eventCount: known.found.eventCount + found.eventCount,
      firstEventMs: Math.min(known.found.firstEventMs, found.firstEventMs),
      lastEventMs: Math.max(known.found.lastEventMs, found.lastEventMs),
      events: newestEvents(known.found.events, found.events),
    };
  }
  return incidents.map(({ first, found }) => describeFinding(rule, first.event, first.group, found));
}
