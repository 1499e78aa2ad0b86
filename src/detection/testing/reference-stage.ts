import { parseDuration } from "../../lib/duration.ts";
import type { Scalar } from "../../model/condition.ts";
import type { Event } from "../../model/event.ts";
import type { EventMark } from "../../model/finding.ts";
import { groupPaths, isOpenEnded, pathList } from "../../model/rule.ts";
import { CLOSING_MS } from "../windows/fixed-windows.ts";
import { isMeasured, isNumeric, valuePaths } from "../windows/threshold-measure.ts";
import { LATE_MS } from "../windows/rule-tracker.ts";
import type { TrackedRule } from "../windows/tracked-match.ts";

// A threshold or sequence of the reference engine: it keeps every match in a list and tries every span and every set.

/** An event, or an occurrence of a part. */
export interface StageInput {
  readonly event: Event;
  /** The number of the occurrence among those that the event completed; 0 for the event itself. */
  readonly occurrence: number;
  readonly timestampMs: number;
  /** Its steps or inputs. */
  readonly inputs: readonly number[];
  read(path: string): readonly Scalar[];
}

/** An event or an occurrence in a firing. */
export interface StageMark extends EventMark {
  readonly occurrence: number;
}

export interface StageFiring {
  readonly event: Event;
  readonly group: readonly Scalar[];
  readonly marks: readonly StageMark[];
}

interface StageEntry {
  readonly mark: StageMark;
  /** Its distinct values, or its steps. */
  readonly values: readonly Scalar[];
  readonly steps: readonly number[];
  isCounted: boolean;
}

interface CellEntry {
  readonly event: Event;
  readonly entry: StageEntry;
}

/** A sequence whose absent last step must not happen until `untilMs`. */
interface OpenSequence extends StageFiring {
  readonly fromMs: number;
  readonly untilMs: number;
}

const COMBINATIONS_MAX = 16;

export class PlainStage {
  readonly #rule: TrackedRule;
  readonly #resetsOnFiring: boolean;
  readonly #groups = new Map<string, StageEntry[]>();
  #open: OpenSequence[] = [];
  /** Open windows of a threshold with an upper bound. */
  readonly #cells = new Map<
    string,
    { readonly group: readonly Scalar[]; readonly endMs: number; readonly entries: readonly CellEntry[] }
  >();

  constructor(rule: TrackedRule, resetsOnFiring: boolean) {
    this.#rule = rule;
    this.#resetsOnFiring = resetsOnFiring;
  }

  tick(seenMs: number): StageFiring[] {
    const due = this.#open.filter(({ untilMs }) => untilMs < seenMs).sort((a, b) => a.untilMs - b.untilMs);
    this.#open = this.#open.filter(({ untilMs }) => untilMs >= seenMs);
    return [...due, ...this.#closeCells(seenMs)];
  }

  count(item: StageInput): StageFiring[] {
    const { event, occurrence, timestampMs } = item;
    const mark = { id: event.id, occurrence, timestampMs };
    if (this.#rule.sequence) return this.#step(item, mark);
    if (!this.#rule.threshold) return [{ event, group: [], marks: [mark] }];
    return this.#measure(item, mark);
  }

  #step(item: StageInput, mark: StageMark): StageFiring[] {
    const rule = this.#rule;
    const { event } = item;
    const sequence = rule.sequence!;
    const memberships = new Map<string, { group: readonly Scalar[]; steps: number[] }>();
    for (const step of item.inputs) {
      const { group_by } = sequence[step]!;
      for (const group of groupsOf(item, group_by === undefined ? groupPaths(rule) : pathList(group_by))) {
        const key = JSON.stringify(group);
        const known = memberships.get(key) ?? { group, steps: [] };
        memberships.set(key, { group, steps: [...known.steps, step] });
      }
    }
    const isAbsent = (step: number) => sequence[step]!.absent === true;
    const lastStep = sequence.findLastIndex(({ absent }) => !absent);
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
      this.#leave(group, entries, taken);
      const marks = taken.map((entry) => entry.mark);
      if (!isOpenEnded(rule)) return [{ event, group, marks }];
      const untilMs = marks[0]!.timestampMs + parseDuration(rule.window!)!;
      this.#open.push({ event, group, marks, fromMs: marks.at(-1)!.timestampMs, untilMs });
      return [];
    });
  }

  #measure(item: StageInput, mark: StageMark): StageFiring[] {
    const rule = this.#rule;
    const { event } = item;
    const { lte, lt } = rule.threshold!;
    return this.#groupsWithValues(item).flatMap(({ group, values }) => {
      if (lte !== undefined || lt !== undefined) {
        this.#putInCell(event, group, { mark, values, steps: [], isCounted: false });
        return [];
      }
      const entries = this.#insert(group, { mark, values, steps: [], isCounted: false });
      const fired = (entries ? firing(rule, entries, mark.timestampMs) : []).filter((entry) => !entry.isCounted);
      for (const entry of fired) entry.isCounted = true;
      if (this.#resetsOnFiring && entries) this.#leave(group, entries, fired);
      return fired.length === 0 ? [] : [{ event, group, marks: fired.map((entry) => entry.mark) }];
    });
  }

  /** An item with several inputs has the values of all of them in a shared group. */
  #groupsWithValues(item: StageInput): { group: readonly Scalar[]; values: readonly Scalar[] }[] {
    const rule = this.#rule;
    const threshold = rule.threshold!;
    const paths = valuePaths(threshold);
    const inputs = threshold.inputs ?? [{}];
    const differ = inputs.some(({ group_by, value }) => group_by !== undefined || value !== undefined);
    const found = new Map<string, { group: readonly Scalar[]; values: readonly Scalar[] }>();
    for (const number of differ ? item.inputs : [0]) {
      const { group_by, value } = differ ? inputs[number]! : {};
      const counted = value === undefined ? paths : pathList(value);
      const values = isMeasured(threshold)
        ? numbersOf(item, counted[0]!)
        : counted.length === 0
          ? []
          : groupsOf(item, counted).map((one) => JSON.stringify(one));
      if (counted.length > 0 && values.length === 0) continue;
      for (const group of groupsOf(item, group_by === undefined ? groupPaths(rule) : pathList(group_by))) {
        const key = JSON.stringify(group);
        const known = found.get(key)?.values ?? [];
        found.set(key, { group, values: differ ? [...new Set([...known, ...values])] : values });
      }
    }
    return [...found.values()];
  }

  #leave(group: readonly Scalar[], entries: readonly StageEntry[], taken: readonly StageEntry[]): void {
    this.#groups.set(
      JSON.stringify(group),
      entries.filter((entry) => !taken.includes(entry)),
    );
  }

  #putInCell(event: Event, group: readonly Scalar[], entry: StageEntry): void {
    const windowMs = parseDuration(this.#rule.window!)!;
    const cell = Math.floor(entry.mark.timestampMs / windowMs);
    const key = JSON.stringify([cell, group]);
    const known = this.#cells.get(key) ?? { group, endMs: (cell + 1) * windowMs, entries: [] };
    this.#cells.set(key, { ...known, entries: [...known.entries, { event, entry }] });
  }

  #closeCells(seenMs: number): StageFiring[] {
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

  /** The group's entries including the new one; undefined if it is too late. */
  #insert(group: readonly Scalar[], entry: StageEntry): StageEntry[] | undefined {
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

function compareEntries(a: StageEntry, b: StageEntry): number {
  return (
    a.mark.timestampMs - b.mark.timestampMs ||
    (a.steps[0] ?? 0) - (b.steps[0] ?? 0) ||
    (a.mark.id < b.mark.id ? -1 : a.mark.id > b.mark.id ? 1 : 0)
  );
}

/** Truncates the values independently of their order. */
export function bounded(values: readonly Scalar[]): readonly Scalar[] {
  if (values.length <= COMBINATIONS_MAX) return values;
  const spelled = values.map((value) => ({ value, text: `${typeof value} ${value}` }));
  return spelled
    .sort((a, b) => (a.text < b.text ? -1 : 1))
    .map(({ value }) => value)
    .slice(0, COMBINATIONS_MAX);
}

function groupsOf(item: StageInput, paths: readonly string[]): Scalar[][] {
  let groups: Scalar[][] = [[]];
  for (const path of paths) {
    groups = groups
      .flatMap((group) => bounded(item.read(path)).map((value) => [...group, value]))
      .slice(0, COMBINATIONS_MAX);
  }
  return groups;
}

/** The entries of all firing spans that contain this time. */
function firing(rule: TrackedRule, entries: readonly StageEntry[], timestampMs: number): StageEntry[] {
  const windowMs = parseDuration(rule.window!)!;
  const { count = 1 } = rule.threshold!;
  const isMeasure = isMeasured(rule.threshold!);
  const fired = new Set<StageEntry>();
  for (const { mark } of entries) {
    // A measured span ends with a match; for a count, a span that starts with a match is equivalent.
    const fromMs = isMeasure ? mark.timestampMs - windowMs : mark.timestampMs;
    if (fromMs > timestampMs || fromMs + windowMs < timestampMs) continue;
    const span = entries.filter(({ mark: { timestampMs: atMs } }) => atMs >= fromMs && atMs <= fromMs + windowMs);
    const size = sizeOf(rule, span);
    const fires = isMeasure ? span.length >= count && isReached(rule, size) : size >= count;
    if (fires) for (const entry of span) fired.add(entry);
  }
  return [...fired];
}

/** The measure of the threshold for these entries. */
function sizeOf(rule: TrackedRule, entries: readonly StageEntry[]): number {
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

function isReached({ threshold }: TrackedRule, size: number): boolean {
  const { gte = -Infinity, gt = -Infinity } = threshold!;
  return size >= gte && (size > gt || gt === -Infinity);
}

function numbersOf(item: StageInput, path: string): number[] {
  const numbers = item.read(path).filter(isNumeric).map(Number);
  if (numbers.length <= COMBINATIONS_MAX) return numbers;
  return numbers.sort((a, b) => (`${a}` < `${b}` ? -1 : 1)).slice(0, COMBINATIONS_MAX);
}

/** Tries the sets of entries in order. */
function firstCompletion(rule: TrackedRule, entries: readonly StageEntry[]): StageEntry[] | undefined {
  const windowMs = parseDuration(rule.window!)!;
  const places = rule.sequence!.flatMap(({ count, absent }, step) =>
    Array.from({ length: absent ? 0 : count }, () => step),
  );
  const possible = rule.sequence!.filter(
    ({ count, absent }, step) => absent || entries.filter(({ steps }) => steps.includes(step)).length >= count,
  );
  if (possible.length < (rule.sequenceMin ?? rule.sequence!.length)) return undefined;
  const needed = rule.sequenceMin ?? places.length;
  const complete = (chosen: readonly StageEntry[], from: number): StageEntry[] | undefined => {
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

/** True if no absent step lies in its gap, both ends inclusive. */
function isUnbroken(rule: TrackedRule, chosen: readonly StageEntry[], entries: readonly StageEntry[]): boolean {
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
    const isBlocker = ({ steps, mark }: StageEntry) =>
      steps.includes(step) && mark.timestampMs >= fromMs && mark.timestampMs <= toMs;
    if (entries.some(isBlocker)) return false;
  }
  return true;
}

/**
 * True if the entries can fill some of the steps: any, or the first ones, with equal timestamps in any order. More entries
 * may follow at the last timestamp.
 */
function fits(chosen: readonly StageEntry[], places: readonly number[], order: TrackedRule["sequenceOrder"]): boolean {
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

/** True if each of the entries can fill a different one of these steps. */
function canBe([first, ...others]: readonly StageEntry[], places: readonly number[]): boolean {
  if (first === undefined) return true;
  return first.steps.some((step) => places.includes(step) && canBe(others, places.toSpliced(places.indexOf(step), 1)));
}
