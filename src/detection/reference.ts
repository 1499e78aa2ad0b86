import { compileCondition, type Scalar } from "../model/condition.ts";
import type { Event } from "../model/event.ts";
import { fieldReader, OBJECT } from "../model/field.ts";
import { isSameAttack, newestEvents, type EventMark, type Finding } from "../model/finding.ts";
import { groupPaths, isOpenEnded, pathList, ruleCondition, toConditions, type Rule } from "../model/rule.ts";
import { parseDuration } from "../lib/duration.ts";
import { describeFinding, type Found } from "./describe.ts";
import type { Matches } from "./engine.ts";
import { foldKeyOf } from "./fold.ts";
import { CLOSING_MS } from "./fixed-windows.ts";
import { isMeasured, isNumeric } from "./measure.ts";
import { LATE_MS } from "./tracker.ts";

// What detection means, written down plainly: every rule asked of every event, every match remembered in a list. The
// measure for the engine, never used by the service. Absence rules are not in it: they are about arrival.

interface Entry {
  readonly mark: EventMark;
  /** What it counts as: different values, or steps. */
  readonly values: readonly Scalar[];
  readonly steps: readonly number[];
  isCounted: boolean;
}

const COMBINATIONS_MAX = 16;

export class Reference {
  readonly #rules: PlainRule[];

  constructor(rules: readonly Rule[]) {
    this.#rules = rules.filter(({ enabled }) => enabled).map((rule) => new PlainRule(rule));
  }

  process(events: readonly Event[], nowMs: number): { findings: Finding[]; matches: Matches[] } {
    const outcomes = this.#rules.map((rule) => rule.process(events, nowMs));
    return {
      findings: outcomes.flatMap(({ findings }) => findings),
      matches: outcomes.flatMap(({ matches }) => matches),
    };
  }

  /** What fires since a last step has not happened, where all that arrived before this time has been processed. */
  tick(seenMs: number): Finding[] {
    return this.#rules.flatMap((rule) => rule.tick(seenMs));
  }
}

interface CellEntry {
  readonly event: Event;
  readonly entry: Entry;
}

/** A sequence whose last step must not happen until then. */
interface Open {
  readonly event: Event;
  readonly group: readonly Scalar[];
  readonly marks: readonly EventMark[];
  readonly fromMs: number;
  readonly untilMs: number;
}

class PlainRule {
  readonly #rule: Rule;
  readonly #groups = new Map<string, Entry[]>();
  #open: Open[] = [];
  /** Of a threshold with an upper bound: windows that are not over. */
  readonly #cells = new Map<
    string,
    { readonly group: readonly Scalar[]; readonly endMs: number; readonly entries: readonly CellEntry[] }
  >();
  /** Under each key of an alert, the events that were counted. */
  readonly #counted = new Set<string>();

  constructor(rule: Rule) {
    this.#rule = rule;
  }

  process(events: readonly Event[], nowMs: number): { findings: Finding[]; matches: Matches[] } {
    const rule = this.#rule;
    const holds = compileCondition(ruleCondition(rule, nowMs));
    const matching = events.filter(
      (event) => (rule.activeAfter === null || event.id > rule.activeAfter) && holds(event),
    );
    return {
      findings: fold(
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
    const due = this.#open.filter(({ untilMs }) => untilMs < seenMs).sort((a, b) => a.untilMs - b.untilMs);
    this.#open = this.#open.filter(({ untilMs }) => untilMs >= seenMs);
    return fold(
      this.#rule,
      [...due, ...this.#closeCells(seenMs)].flatMap((open) => this.#fresh([open])),
    );
  }

  /**
   * An event of several groups counts once in an alert; the alert reaches over it nevertheless. What one event fires with
   * one key is one firing.
   */
  #fresh(firings: readonly Omit<Fired, "foldKey" | "timesMs">[]): Fired[] {
    const found = new Map<string, Fired>();
    for (const { event, group, marks } of firings) {
      const foldKey = foldKeyOf(this.#rule, group, (path) => scalarsOf(event, path));
      const fresh = marks.filter(({ id }) => !this.#counted.has(`${foldKey} ${id}`));
      for (const { id } of fresh) this.#counted.add(`${foldKey} ${id}`);
      const known = found.get(foldKey) ?? { event, group, foldKey, timesMs: [], marks: [] };
      const timesMs = [...known.timesMs, ...marks.map(({ timestampMs }) => timestampMs)];
      found.set(foldKey, { ...known, timesMs, marks: [...known.marks, ...fresh] });
    }
    return [...found.values()];
  }

  #count(event: Event): Omit<Fired, "foldKey" | "timesMs">[] {
    const rule = this.#rule;
    const mark = { id: event.id, timestampMs: Date.parse(event.timestamp) };
    if (rule.sequence) {
      const memberships = new Map<string, { group: readonly Scalar[]; steps: number[] }>();
      for (const [step, { conditions, group_by }] of rule.sequence.entries()) {
        if (!compileCondition(toConditions(conditions))(event)) continue;
        for (const group of groupsOf(event, group_by === undefined ? groupPaths(rule) : pathList(group_by))) {
          const key = JSON.stringify(group);
          const known = memberships.get(key) ?? { group, steps: [] };
          memberships.set(key, { group, steps: [...known.steps, step] });
        }
      }
      const isAbsent = (step: number) => rule.sequence![step]!.absent === true;
      const lastStep = rule.sequence.findLastIndex(({ absent }) => !absent);
      return [...memberships.values()].flatMap(({ group, steps: all }) => {
        const happening = all.filter((step) => !isAbsent(step));
        const steps = happening.length > 0 ? happening : all;
        if (steps.some((step) => step > lastStep)) {
          this.#open = this.#open.filter(
            (open) =>
              JSON.stringify(open.group) !== JSON.stringify(group) ||
              mark.timestampMs < open.fromMs ||
              mark.timestampMs > open.untilMs,
          );
        }
        const entries = this.#insert(group, { mark, values: [], steps, isCounted: false });
        const taken = entries && firstCompletion(rule, entries);
        if (!entries || !taken) return [];
        this.#groups.set(
          JSON.stringify(group),
          entries.filter((entry) => !taken.includes(entry)),
        );
        const marks = taken.map((entry) => entry.mark);
        if (!isOpenEnded(rule)) return [{ event, group, marks }];
        const untilMs = marks[0]!.timestampMs + parseDuration(rule.window!)!;
        this.#open.push({ event, group, marks, fromMs: marks.at(-1)!.timestampMs, untilMs });
        return [];
      });
    }
    if (!rule.threshold) return [{ event, group: [], marks: [mark] }];
    const { distinct, sum, avg, percentile } = rule.threshold;
    const measured = sum ?? avg ?? percentile?.of;
    if (measured !== undefined) return this.#measure(event, mark, numbersOf(event, measured));
    const values = distinct === undefined ? [] : groupsOf(event, pathList(distinct)).map((one) => JSON.stringify(one));
    if (distinct !== undefined && values.length === 0) return [];
    return this.#measure(event, mark, values);
  }

  #measure(event: Event, mark: EventMark, values: readonly Scalar[]): Omit<Fired, "foldKey" | "timesMs">[] {
    const rule = this.#rule;
    const { distinct, lte, lt } = rule.threshold!;
    const isCount = distinct === undefined && !isMeasured(rule.threshold!);
    if (!isCount && values.length === 0) return [];
    return groupsOf(event, groupPaths(rule)).flatMap((group) => {
      if (lte !== undefined || lt !== undefined) {
        this.#putInCell(event, group, { mark, values, steps: [], isCounted: false });
        return [];
      }
      const entries = this.#insert(group, { mark, values, steps: [], isCounted: false });
      const fired = (entries ? firing(rule, entries, mark.timestampMs) : []).filter((entry) => !entry.isCounted);
      for (const entry of fired) entry.isCounted = true;
      return fired.length === 0 ? [] : [{ event, group, marks: fired.map((entry) => entry.mark) }];
    });
  }

  #putInCell(event: Event, group: readonly Scalar[], entry: Entry): void {
    const windowMs = parseDuration(this.#rule.window!)!;
    const cell = Math.floor(entry.mark.timestampMs / windowMs);
    const key = JSON.stringify([cell, group]);
    const known = this.#cells.get(key) ?? { group, endMs: (cell + 1) * windowMs, entries: [] };
    this.#cells.set(key, { ...known, entries: [...known.entries, { event, entry }] });
  }

  #closeCells(seenMs: number): Omit<Fired, "foldKey" | "timesMs">[] {
    const due = [...this.#cells].filter(([, { endMs }]) => endMs + CLOSING_MS < seenMs);
    for (const [key] of due) this.#cells.delete(key);
    const { count = 1, lte = Infinity, lt = Infinity } = this.#rule.threshold ?? {};
    return due
      .map(([, cell]) => cell)
      .sort((a, b) => a.endMs - b.endMs)
      .flatMap(({ group, entries }) => {
        const list = entries.map(({ entry }) => entry);
        const size = sizeOf(this.#rule, list);
        const isMeasure = isMeasured(this.#rule.threshold!);
        if (isMeasure ? list.length < count || !isReached(this.#rule, size) : size < count) return [];
        if (size > lte || size >= lt) return [];
        const newestMs = Math.max(...list.map(({ mark }) => mark.timestampMs));
        const { event } = entries.findLast(({ entry }) => entry.mark.timestampMs === newestMs)!;
        return [{ event, group, marks: list.map(({ mark }) => mark) }];
      });
  }

  /** The group's entries with the new one among them; undefined when it is too late. */
  #insert(group: readonly Scalar[], entry: Entry): Entry[] | undefined {
    const key = JSON.stringify(group);
    const entries = this.#groups.get(key) ?? [];
    const windowMs = parseDuration(this.#rule.window!)!;
    const newest = Math.max(...[...entries, entry].map(({ mark }) => mark.timestampMs));
    const horizon = newest - windowMs - LATE_MS;
    if (entry.mark.timestampMs < horizon) return undefined;
    const kept = [...entries, entry].filter(({ mark }) => mark.timestampMs >= horizon).sort(compareEntries);
    this.#groups.set(key, kept);
    return kept;
  }
}

function compareEntries(a: Entry, b: Entry): number {
  return (
    a.mark.timestampMs - b.mark.timestampMs ||
    (a.steps[0] ?? 0) - (b.steps[0] ?? 0) ||
    (a.mark.id < b.mark.id ? -1 : a.mark.id > b.mark.id ? 1 : 0)
  );
}

function scalarsOf(event: Event, path: string): Scalar[] {
  const values = [...new Set(fieldReader(path)(event))].filter((value) => value !== OBJECT);
  if (values.length <= COMBINATIONS_MAX) return values;
  const spelled = values.map((value) => ({ value, text: `${typeof value} ${value}` }));
  return spelled
    .sort((a, b) => (a.text < b.text ? -1 : 1))
    .map(({ value }) => value)
    .slice(0, COMBINATIONS_MAX);
}

function groupsOf(event: Event, paths: readonly string[]): Scalar[][] {
  let groups: Scalar[][] = [[]];
  for (const path of paths) {
    groups = groups
      .flatMap((group) => scalarsOf(event, path).map((value) => [...group, value]))
      .slice(0, COMBINATIONS_MAX);
  }
  return groups;
}

/** Every entry of every span that has enough and has this time in it. */
function firing(rule: Rule, entries: readonly Entry[], timestampMs: number): Entry[] {
  const windowMs = parseDuration(rule.window!)!;
  const { count = 1 } = rule.threshold!;
  const isMeasure = isMeasured(rule.threshold!);
  const fired = new Set<Entry>();
  for (const { mark } of entries) {
    // A measure is taken where a match ends the span; for a count it is the same where a match begins it.
    const fromMs = isMeasure ? mark.timestampMs - windowMs : mark.timestampMs;
    if (fromMs > timestampMs || fromMs + windowMs < timestampMs) continue;
    const span = entries.filter(({ mark: { timestampMs: atMs } }) => atMs >= fromMs && atMs <= fromMs + windowMs);
    const size = sizeOf(rule, span);
    const fires = isMeasure ? span.length >= count && isReached(rule, size) : size >= count;
    if (fires) for (const entry of span) fired.add(entry);
  }
  return [...fired];
}

/** What the threshold measures of these. */
function sizeOf(rule: Rule, entries: readonly Entry[]): number {
  const { distinct, sum, avg, percentile } = rule.threshold!;
  if (distinct !== undefined) return new Set(entries.flatMap(({ values }) => values)).size;
  const numbers = entries.flatMap(({ values }) => values as readonly number[]);
  const total = numbers.reduce((all, value) => all + value, 0);
  if (sum !== undefined) return total;
  if (avg !== undefined) return total / numbers.length;
  if (!percentile) return entries.length;
  const sorted = numbers.sort((a, b) => a - b);
  return sorted[Math.max(1, Math.ceil((percentile.rank / 100) * sorted.length)) - 1]!;
}

function isReached({ threshold }: Rule, size: number): boolean {
  const { gte = -Infinity, gt = -Infinity } = threshold!;
  return size >= gte && (size > gt || gt === -Infinity);
}

function numbersOf(event: Event, path: string): number[] {
  const numbers = [...new Set(fieldReader(path)(event))].filter(isNumeric).map(Number);
  if (numbers.length <= COMBINATIONS_MAX) return numbers;
  return numbers.sort((a, b) => (`${a}` < `${b}` ? -1 : 1)).slice(0, COMBINATIONS_MAX);
}

/** Tries one set of entries after the other, in order. */
function firstCompletion(rule: Rule, entries: readonly Entry[]): Entry[] | undefined {
  const windowMs = parseDuration(rule.window!)!;
  const places = rule.sequence!.flatMap(({ count, absent }, step) =>
    Array.from({ length: absent ? 0 : count }, () => step),
  );
  const possible = rule.sequence!.filter(
    ({ count, absent }, step) => absent || entries.filter(({ steps }) => steps.includes(step)).length >= count,
  );
  if (possible.length < (rule.sequenceMin ?? rule.sequence!.length)) return undefined;
  const needed = rule.sequenceMin ?? places.length;
  const complete = (chosen: readonly Entry[], from: number): Entry[] | undefined => {
    const isWithin = chosen.length < 2 || chosen.at(-1)!.mark.timestampMs - chosen[0]!.mark.timestampMs <= windowMs;
    if (!isWithin || !fits(chosen, places, rule.sequenceOrder)) return undefined;
    if (chosen.length === needed) return isUnbroken(rule, chosen, entries) ? [...chosen] : undefined;
    for (let next = from; next < entries.length; next++) {
      const found = complete([...chosen, entries[next]!], next + 1);
      if (found) return found;
    }
    return undefined;
  };
  return complete([], 0);
}

/** Whether no step that must not happen lies in its gap, both ends of which belong to it. */
function isUnbroken(rule: Rule, chosen: readonly Entry[], entries: readonly Entry[]): boolean {
  const windowMs = parseDuration(rule.window!)!;
  const times = chosen.map(({ mark }) => mark.timestampMs);
  let taken = 0;
  for (const [step, { count, absent }] of rule.sequence!.entries()) {
    if (!absent) {
      taken += count;
      continue;
    }
    const fromMs = taken === 0 ? times[0]! - windowMs : times[taken - 1]!;
    const toMs = taken === times.length ? times[0]! + windowMs : times[taken]!;
    const isBlocker = ({ steps, mark }: Entry) =>
      steps.includes(step) && mark.timestampMs >= fromMs && mark.timestampMs <= toMs;
    if (entries.some(isBlocker)) return false;
  }
  return true;
}

/**
 * Whether the entries can be some of the places: any, or the first ones, where those of one moment stand in any order. To
 * the last moment more may still come.
 */
function fits(chosen: readonly Entry[], places: readonly number[], order: Rule["sequenceOrder"]): boolean {
  if (order === "any") return canBe(chosen, places);
  const lastMs = chosen.at(-1)?.mark.timestampMs;
  const moments = Map.groupBy(chosen, ({ mark }) => mark.timestampMs);
  let from = 0;
  for (const [atMs, moment] of moments) {
    const isOpen = atMs === lastMs && chosen.length < places.length;
    if (!canBe(moment, places.slice(from, isOpen ? undefined : from + moment.length))) return false;
    from += moment.length;
  }
  return true;
}

/** Whether each of the entries can be another of these places. */
function canBe([first, ...others]: readonly Entry[], places: readonly number[]): boolean {
  if (first === undefined) return true;
  return first.steps.some((step) => places.includes(step) && canBe(others, places.toSpliced(places.indexOf(step), 1)));
}

interface Fired {
  readonly event: Event;
  readonly group: readonly Scalar[];
  readonly foldKey: string;
  /** Of all that fired. */
  readonly timesMs: readonly number[];
  /** Of those that were not counted before. */
  readonly marks: readonly EventMark[];
}

function fold(rule: Rule, fired: readonly Fired[]): Finding[] {
  const attacks: { first: Fired; found: Found }[] = [];
  for (const firing of fired) {
    const found: Found = {
      foldKey: firing.foldKey,
      foldMs: parseDuration(rule.dedup.period)!,
      eventCount: firing.marks.length,
      firstEventMs: Math.min(...firing.timesMs),
      lastEventMs: Math.max(...firing.timesMs),
      events: newestEvents(firing.marks, []),
    };
    const same = attacks.filter((attack) => attack.found.foldKey === found.foldKey);
    const newestMs = Math.max(...same.map((attack) => attack.found.lastEventMs));
    const known = same.findLast((attack) => attack.found.lastEventMs === newestMs);
    if (!known || !isSameAttack(known.found, found, found.foldMs)) {
      attacks.push({ first: firing, found });
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
  return attacks.map(({ first, found }) => describeFinding(rule, first.event, first.group, found));
}
