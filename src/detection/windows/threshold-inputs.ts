import type { Scalar } from "../../model/condition.ts";
import { groupPaths, inputsOf, pathList } from "../../model/rule.ts";
import { combinations, COMBINATIONS_MAX } from "./group-combinations.ts";
import { isMeasured, isNumeric, valuePaths } from "./threshold-measure.ts";
import type { Match, TrackedRule } from "./tracked-match.ts";

// Assigns matches to groups and values, by the paths of the rule or of its individual steps or inputs.

type AnyMatch = Pick<Match<never>, "values" | "steps">;

/** Indices into the values of a match, for one input. */
interface InputColumns {
  readonly group: readonly number[];
  /** Counted or measured values; empty if events are counted. */
  readonly counted: readonly number[];
}

/** A match in one of its groups, and its steps there. */
export interface GroupedMatch<Known extends AnyMatch> {
  readonly match: Known;
  readonly values: readonly Scalar[];
  readonly steps: number;
}

const NO_COMBINATIONS: readonly (readonly Scalar[])[] = [];

export class ThresholdInputs {
  /** The paths whose values a match must provide. */
  readonly paths: readonly string[];
  /** One for all steps or inputs, or one for each if some have their own paths. */
  readonly #columns: readonly [InputColumns, ...InputColumns[]];
  readonly #isMeasured: boolean;
  /** Matches with more values than the limit. */
  cut = 0;
  /** True if some match was in several groups. */
  sharesEvents = false;

  constructor(rule: TrackedRule) {
    const { threshold } = rule;
    this.#isMeasured = threshold !== null && isMeasured(threshold);
    const inputs = inputPaths(rule, valuePaths(threshold));
    this.paths = [...new Set(inputs.flatMap(({ group, counted }) => [...group, ...counted]))];
    const columnsOf = (paths: readonly string[]) => paths.map((path) => this.paths.indexOf(path));
    const [first, ...others] = inputs.map(({ group, counted }) => ({
      group: columnsOf(group),
      counted: columnsOf(counted),
    }));
    this.#columns = [first!, ...others];
  }

  /** The values that a match contributes as these inputs. */
  valuesOf(match: AnyMatch, steps: number): readonly (readonly Scalar[])[] {
    const first = this.#columns[0];
    if (first.counted.length === 0) return NO_COMBINATIONS;
    if (this.#columns.length === 1) return combinations(this.#valueLists(match, first));
    const found = new Map<string, readonly Scalar[]>();
    for (const [step, input] of this.#columns.entries()) {
      if ((steps & (1 << step)) === 0) continue;
      for (const values of combinations(this.#valueLists(match, input))) found.set(JSON.stringify(values), values);
    }
    return [...found.values()];
  }

  #valueLists(match: AnyMatch, { counted }: InputColumns): readonly (readonly Scalar[])[] {
    const lists = counted.map((column) => match.values[column]!);
    return this.#isMeasured ? lists.map((list) => list.filter(isNumeric).map(Number)) : lists;
  }

  /** True if the match has a value to count. Counts matches that exceed the limit. */
  #hasValues(match: AnyMatch, input: InputColumns): boolean {
    if (input.counted.length === 0) return true;
    const combined = this.#valueLists(match, input).reduce((product, list) => product * list.length, 1);
    if (combined > COMBINATIONS_MAX) this.cut++;
    return combined > 0;
  }

  /** Appends the match once for each of its groups. */
  group<Known extends AnyMatch>(match: Known, grouped: GroupedMatch<Known>[]): void {
    const first = this.#columns[0];
    if (this.#columns.length === 1) {
      if (!this.#hasValues(match, first)) return;
      const only = first.group.length === 1 ? match.values[first.group[0]!]! : undefined;
      // The most common case allocates no list.
      if (only?.length === 1) grouped.push({ match, values: only, steps: match.steps });
      else {
        const groups = this.#groupsOf(match, first.group);
        if (groups.length > 1) this.sharesEvents = true;
        for (const values of groups) grouped.push({ match, values, steps: match.steps });
      }
      return;
    }
    const found = new Map<string, { values: readonly Scalar[]; steps: number }>();
    for (const [step, input] of this.#columns.entries()) {
      if ((match.steps & (1 << step)) === 0 || !this.#hasValues(match, input)) continue;
      for (const values of this.#groupsOf(match, input.group)) {
        const key = JSON.stringify(values);
        const known = found.get(key);
        if (known) known.steps |= 1 << step;
        else found.set(key, { values, steps: 1 << step });
      }
    }
    if (found.size > 1) this.sharesEvents = true;
    for (const { values, steps } of found.values()) grouped.push({ match, values, steps });
  }

  #groupsOf(match: AnyMatch, paths: readonly number[]): readonly (readonly Scalar[])[] {
    const lists = paths.map((path) => match.values[path]!);
    if (lists.reduce((product, { length }) => product * length, 1) > COMBINATIONS_MAX) this.cut++;
    return combinations(lists);
  }
}

/** The paths of each input; a single item if no input has its own. */
function inputPaths(
  rule: TrackedRule,
  measured: readonly string[],
): { readonly group: readonly string[]; readonly counted: readonly string[] }[] {
  const shared = { group: groupPaths(rule), counted: measured };
  const inputs = inputsOf(rule) ?? [];
  const valueOf = (input: (typeof inputs)[number]) => ("value" in input ? input.value : undefined);
  const differ = inputs.some((input) => input.group_by !== undefined || valueOf(input) !== undefined);
  if (!differ) return [shared];
  return inputs.map((input) => ({
    group: input.group_by === undefined ? shared.group : pathList(input.group_by),
    counted: valueOf(input) === undefined ? measured : pathList(valueOf(input)),
  }));
}
