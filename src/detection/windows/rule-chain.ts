import { parseDuration } from "../../lib/duration.ts";
import type { Scalar } from "../../model/condition.ts";
import { newestEvents } from "../../model/finding.ts";
import { countsPart, groupPaths, inputsOf, toCorrelated, type Part, type Rule } from "../../model/rule.ts";
import type { EventKey } from "./event-key.ts";
import { RuleTracker, type Resumption, type TrackerOptions } from "./rule-tracker.ts";
import type { Firing, HeldFiring, Mark, Match, TrackedRule } from "./tracked-match.ts";

// The memory of a rule with parts: a tracker for each part and one for the rule itself. A firing of a part is an occurrence,
// which later parts and the rule process like a match. An occurrence has the time of its newest event and the values of its
// group. Only events decide parts, so that occurrences follow the order of arrival too.

/** Occurrences whose events are kept, so that an alert can list them. */
const OCCURRENCES_MAX = 2000;

const NO_VALUES: readonly Scalar[] = [];

/** The memory of a rule, with or without parts. */
export type RuleMemory<Key extends EventKey = string> = RuleTracker<Key> | RuleChain<Key>;

export function createRuleMemory<Key extends EventKey = string>(
  rule: TrackedRule & Pick<Rule, "parts">,
  options: TrackerOptions,
): RuleMemory<Key> {
  const { parts = [] } = rule;
  return parts.length === 0 ? new RuleTracker<Key>(rule, options) : new RuleChain<Key>({ ...rule, parts }, options);
}

/** A part, or the rule itself. */
interface ChainStage<Key extends EventKey> {
  readonly tracker: RuleTracker<Key>;
  /** Indices of the tracker's paths in the values of a match. */
  readonly columns: readonly number[];
  /** Maps bits of a match to inputs of the stage; inputs that take a part have none. */
  readonly bits: readonly { readonly given: number; readonly own: number }[];
  readonly feeds: readonly PartFeed[];
}

/** A part whose occurrences a stage takes: as which inputs, and the indices of its paths in the part's group. */
interface PartFeed {
  readonly part: number;
  readonly steps: number;
  readonly columns: readonly number[];
}

/** A firing of a part, and its number among those that one event completed. */
interface Occurrence<Key extends EventKey> {
  readonly firing: Firing<Key>;
  readonly number: number;
}

/** The input of a stage, and the match of the rule that it comes from. */
interface StageMatch<Key extends EventKey> extends Match<Key> {
  readonly match: Match<Key>;
}

export class RuleChain<Key extends EventKey = string> {
  readonly paths: readonly string[];
  readonly #stages: readonly ChainStage<Key>[];
  readonly #last: ChainStage<Key>;
  readonly #windowMs: number;
  /** Occurrences by completing event and number. One event may complete several, in different parts or groups. */
  readonly #occurrences = new Map<string, Firing<Key>>();
  #dropped = 0;
  #newestMs = -Infinity;

  constructor(rule: TrackedRule & { readonly parts: readonly Part[] }, options: TrackerOptions) {
    const parts = rule.parts.map((part) => ({ name: part.name, ...toCorrelated(part) }));
    const correlations = [...parts, { name: undefined, ...rule }];
    const trackers = correlations.map((correlation) => {
      const { name } = correlation;
      const takesOccurrences = inputsOf(correlation)?.some(({ part }) => part !== undefined);
      const resetsOnFiring = name !== undefined && correlations.some((other) => countsPart(other, name));
      return new RuleTracker<Key>(correlation, { ...options, resetsOnFiring, takesOccurrences });
    });
    this.paths = [...new Set(trackers.flatMap(({ paths }) => paths))];
    let bit = 0;
    this.#stages = correlations.map((correlation, i) => {
      const tracker = trackers[i]!;
      const inputs = inputsOf(correlation) ?? [{}];
      const bits = inputs.flatMap(({ part }, own) => (part === undefined ? [{ given: bit++, own }] : []));
      const feeds = parts.slice(0, i).flatMap(({ name, ...part }, number): PartFeed[] => {
        const steps = inputs.reduce((all, input, own) => (input.part === name ? all | (1 << own) : all), 0);
        const group = groupPaths(part);
        return steps === 0 ? [] : [{ part: number, steps, columns: tracker.paths.map((path) => group.indexOf(path)) }];
      });
      return { tracker, columns: tracker.paths.map((path) => this.paths.indexOf(path)), bits, feeds };
    });
    this.#last = this.#stages.at(-1)!;
    this.#windowMs = parseDuration(rule.window!)!;
  }

  add<Known extends Match<Key>>(
    matches: readonly Known[],
    nowMs: number | undefined,
    fired: (firings: readonly Firing<Key>[], match: Known) => void,
  ): void {
    for (const match of matches) {
      /** The firings of this match, by stage. */
      const fresh: Occurrence<Key>[][] = [];
      let occurrences = 0;
      for (const stage of this.#stages) {
        const firings: Firing<Key>[] = [];
        stage.tracker.add(this.#stageMatches(stage, match, fresh), nowMs, (some) => firings.push(...some));
        const whole = stage.feeds.length === 0 ? firings : firings.map((firing) => this.#withEvents(firing));
        const numbered = whole.map((firing) => ({ firing, number: ++occurrences }));
        fresh.push(numbered);
        if (stage !== this.#last) for (const occurrence of numbered) this.#remember(match.key, occurrence);
      }
      const firings = fresh.at(-1)!.map(({ firing }) => firing);
      if (firings.length > 0) fired(firings, match);
    }
  }

  /** The match itself, if it is an input of the stage, and the occurrences that it completed. */
  #stageMatches(
    { bits, columns, feeds }: ChainStage<Key>,
    match: Match<Key>,
    fresh: readonly (readonly Occurrence<Key>[])[],
  ) {
    const given: StageMatch<Key>[] = [];
    const { key } = match;
    const steps = bits.reduce((all, bit) => (match.steps & (1 << bit.given) ? all | (1 << bit.own) : all), 0);
    if (steps !== 0) {
      const values = columns.map((column) => match.values[column]!);
      given.push({ key, timestampMs: match.timestampMs, values, steps, match });
    }
    for (const feed of feeds) {
      for (const { firing, number: occurrence } of fresh[feed.part]!) {
        const values = feed.columns.map((column) => (column < 0 ? NO_VALUES : [firing.group[column]!]));
        given.push({ key, occurrence, timestampMs: firing.lastMs, values, steps: feed.steps, match });
      }
    }
    return given;
  }

  #remember(key: Key, { firing, number }: Occurrence<Key>): void {
    this.#occurrences.set(occurrenceKey(key, number), firing);
    this.#newestMs = Math.max(this.#newestMs, firing.lastMs);
    if (this.#occurrences.size <= OCCURRENCES_MAX) return;
    const [oldest, { lastMs }] = this.#occurrences.entries().next().value!;
    this.#occurrences.delete(oldest);
    if (lastMs >= this.#newestMs - this.#windowMs) this.#dropped++;
  }

  /** Replaces occurrences by their events; a dropped one by the event that completed it. */
  #withEvents(firing: Firing<Key>): Firing<Key> {
    const parts = firing.marks.map(({ id, timestampMs, occurrence = 0 }): Firing<Key> => {
      const known = occurrence === 0 ? undefined : this.#occurrences.get(occurrenceKey(id, occurrence));
      if (known) return known;
      const marks = [{ id, timestampMs }];
      return { group: firing.group, count: 1, firstMs: timestampMs, lastMs: timestampMs, marks };
    });
    const whole = union(parts);
    return { ...whole, group: firing.group, count: whole.count + firing.count - firing.marks.length };
  }

  takeDue(nowMs: number): HeldFiring<Key>[] {
    return this.#last.tracker.takeDue(nowMs).map(({ firing, match }) => ({
      firing: this.#withEvents(firing),
      match: (match as StageMatch<Key>).match,
    }));
  }

  resume(resumption: Resumption): void {
    this.#last.tracker.resume(resumption);
  }

  get isDecidedByClock(): boolean {
    return this.#last.tracker.isDecidedByClock;
  }

  get pending(): number {
    return this.#last.tracker.pending;
  }

  get refused(): number {
    return this.#last.tracker.refused;
  }

  get cut(): number {
    return this.#sum(({ cut }) => cut);
  }

  get dropped(): number {
    return this.#dropped + this.#sum(({ dropped }) => dropped);
  }

  get late(): number {
    return this.#sum(({ late }) => late);
  }

  /** An event may be in several occurrences, and also count itself. */
  get sharesEvents(): boolean {
    return true;
  }

  close(): void {
    for (const { tracker } of this.#stages) tracker.close();
    this.#occurrences.clear();
  }

  #sum(figure: (tracker: RuleTracker<Key>) => number): number {
    return this.#stages.reduce((sum, { tracker }) => sum + figure(tracker), 0);
  }
}

function occurrenceKey(key: EventKey, number: number): string {
  return `${key} ${number}`;
}

/** Merges firings. Only the newest of very many events are listed; the others are counted. */
function union<Key extends EventKey>(firings: readonly Firing<Key>[]): Firing<Key> {
  const marks = new Map<Key, Mark<Key>>();
  let unnamed = 0;
  for (const firing of firings) {
    unnamed += firing.count - firing.marks.length;
    for (const mark of firing.marks) marks.set(mark.id, mark);
  }
  return {
    group: firings[0]!.group,
    count: marks.size + unnamed,
    firstMs: Math.min(...firings.map(({ firstMs }) => firstMs)),
    lastMs: Math.max(...firings.map(({ lastMs }) => lastMs)),
    marks: newestEvents([...marks.values()], []),
  };
}
