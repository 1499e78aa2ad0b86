import { parseDuration } from "../lib/duration.ts";
import { foldCase } from "../lib/text.ts";
import { ANY_FIELD } from "../model/field.ts";
import { WINDOW_MS_MAX, type ConditionInput } from "../model/rule.ts";
import { allOf, anyOf, listOf } from "./combine.ts";
import { comparisonsOf, readCounts, readNumbers, remarkFixed, type Bounds } from "./comparisons.ts";
import type { SigmaCorrelation } from "./documents.ts";
import { parseCondition } from "./expression.ts";
import type { Notes } from "./note.ts";

// Rules over several events: correlations, and the aggregations that went before them.

/** A rule on single events, as a correlation needs it. */
export interface BaseRule {
  /** As the correlation calls it. */
  readonly reference: string;
  readonly source: string;
  /** Of the log source and of the detection. */
  readonly condition: ConditionInput;
  pathOf(field: string): string;
  /** Of an event_count that is a step of another correlation: so many, grouped so, within its own timespan. */
  readonly counted?: { readonly count: number; readonly groupBy: readonly string[]; readonly window: string };
}

/** What a rule over several events has instead of plain conditions. */
export interface Aggregate {
  readonly source: string;
  readonly conditions: ConditionInput[];
  readonly window: string;
  readonly threshold?: Threshold;
  readonly sequence?: Step[];
  readonly sequence_order?: "in_order" | "any";
  readonly sequence_min?: number;
  readonly group_by?: string | string[];
}

interface Threshold extends Bounds {
  readonly group_by?: string | string[];
  readonly distinct?: string | string[];
  readonly sum?: string;
  readonly avg?: string;
  readonly percentile?: { readonly of: string; readonly rank: number };
}

interface Step {
  readonly name: string;
  readonly conditions: ConditionInput[];
  readonly count?: number;
  readonly group_by?: string | string[];
  readonly absent?: true;
}

type Correlation = SigmaCorrelation["correlation"];

const STEPS_MAX = 10;
const STEP_COUNT_MAX = 1000;
const STEP_NAME_CHARACTERS_MAX = 100;
const ANY = "any";
const TYPES = [
  "event_count",
  "value_count",
  "value_sum",
  "value_avg",
  "value_percentile",
  "value_median",
  "temporal",
  "temporal_ordered",
];

export function readCorrelation(
  correlation: Correlation,
  rules: readonly BaseRule[],
  notes: Notes,
): Aggregate | undefined {
  const window = readWindow(correlation.timespan, "correlation.timespan", notes);
  if (window === undefined) return undefined;
  switch (correlation.type) {
    case "event_count":
    case "value_count":
    case "value_sum":
    case "value_avg":
    case "value_percentile":
    case "value_median":
      return readThreshold(correlation, rules, window, notes);
    case "temporal":
    case "temporal_ordered":
      return readTemporal(correlation, rules, window, notes);
    default:
      return notes.refuse("correlation.type", `${correlation.type} is not known: there are ${TYPES.join(", ")}`);
  }
}

function readThreshold(
  correlation: Correlation,
  rules: readonly BaseRule[],
  window: string,
  notes: Notes,
): Aggregate | undefined {
  const { condition } = correlation;
  if (typeof condition !== "object") return notes.refuse("correlation.condition", "needs a comparison such as gte: 10");
  const chained = rules.findIndex((rule) => rule.counted);
  if (chained >= 0) {
    return notes.refuse(
      `correlation.rules[${chained}]`,
      "is a correlation itself, and can be counted by none; temporal ones take it",
    );
  }
  const { field, percentile, ...comparisons } = condition;
  const measure = readMeasure(correlation.type, { field, percentile }, rules, notes);
  if (!measure) return undefined;
  const isCount = correlation.type === "event_count" || correlation.type === "value_count";
  const bounds = (isCount ? readCounts : readNumbers)(comparisonsOf(comparisons), notes);
  if (!bounds) return undefined;
  remarkFixed(bounds, "correlation.condition", window, notes);
  const groups = rules.map((rule) => groupPaths(correlation, rule));
  if (groups.some((paths) => paths.join() !== groups[0]!.join())) {
    return notes.refuse(
      "correlation.aliases",
      "a count over rules that have the value of group-by under different names; map these to one field",
    );
  }
  const source = commonSource(rules);
  const conditions = listOf(anyOf(rules.map((rule) => conditionIn(rule, source))));
  const group_by = oneOrAll(groups[0]!);
  return { source, conditions, window, threshold: { ...bounds, ...(group_by && { group_by }), ...measure } };
}

type Measure = Pick<Threshold, "distinct" | "sum" | "avg" | "percentile">;

/** What is compared: for an event_count nothing but events. */
function readMeasure(
  type: string,
  { field, percentile }: Readonly<Record<"field" | "percentile", unknown>>,
  rules: readonly BaseRule[],
  notes: Notes,
): Measure | undefined {
  if (type === "event_count") return {};
  const paths = readFields(field, rules, notes);
  if (!paths) return undefined;
  if (type === "value_count") return { distinct: oneOrAll(paths)! };
  const [path, ...others] = paths as [string, ...string[]];
  if (others.length > 0) return notes.refuse("correlation.condition.field", `${type} takes the name of one field`);
  if (type === "value_sum") return { sum: path };
  if (type === "value_avg") return { avg: path };
  if (type === "value_median") return { percentile: { of: path, rank: 50 } };
  if (typeof percentile !== "number" || percentile <= 0 || percentile > 100)
    return notes.refuse("correlation.condition.percentile", "takes a number from 1 to 100");
  return { percentile: { of: path, rank: percentile } };
}

/** The paths of the fields whose values count. */
function readFields(given: unknown, rules: readonly BaseRule[], notes: Notes): string[] | undefined {
  const place = "correlation.condition.field";
  const fields: unknown[] = [given].flat();
  if (fields.length === 0 || !fields.every((field) => typeof field === "string"))
    return notes.refuse(place, "takes the name of a field, or a list of them");
  const paths: string[] = [];
  for (const field of new Set(fields)) {
    const [path, ...others] = new Set(rules.map((rule) => rule.pathOf(field)));
    if (others.length > 0) return notes.refuse(place, `is ${[path, ...others].join(" and ")} in different rules`);
    paths.push(path!);
  }
  return paths;
}

function readTemporal(
  correlation: Correlation,
  rules: readonly BaseRule[],
  window: string,
  notes: Notes,
): Aggregate | undefined {
  const needed = readNeeded(correlation.condition, rules, notes);
  if (!needed) return undefined;
  if (rules.length < 2 || rules.length > STEPS_MAX)
    return notes.refuse("correlation.rules", `takes 2 to ${STEPS_MAX} rules`);
  const source = commonSource(rules);
  const groups = rules.map((rule) => groupPaths(correlation, rule));
  const group_by = oneOrAll(groups[0]!);
  const sequence = rules.map((rule, i): Step => {
    const own = oneOrAll(groups[i]!);
    const differs = groups[i]!.join() !== groups[0]!.join();
    const conditions = listOf(conditionIn(rule, source));
    const count =
      rule.counted &&
      readStepCount(rule.counted, { groups: groups[i]!, window, place: `correlation.rules[${i}]` }, notes);
    return {
      name: rule.reference.slice(0, STEP_NAME_CHARACTERS_MAX),
      conditions,
      ...(count !== undefined && { count }),
      ...(differs && own && { group_by: own }),
      ...(needed.absent.has(rule.reference) && { absent: true }),
    };
  });
  if (notes.refusals.length > 0) return undefined;
  const isOrdered = correlation.type === "temporal_ordered";
  const made = { source, conditions: [], window, ...(group_by && { group_by }) };
  if (needed.absent.size > 0) {
    const steps = isOrdered ? sequence : besideAbsent(sequence, notes);
    return steps && { ...made, sequence: steps, sequence_order: "in_order" };
  }
  if (isOrdered) {
    if (needed.count < rules.length)
      return notes.refuse(
        "correlation.condition",
        `all ${rules.length} rules must have happened, since they have an order`,
      );
    return { ...made, sequence, sequence_order: "in_order" };
  }
  remarkShared(rules, notes);
  const isSome = needed.count < rules.length;
  if (isSome && rules.some(({ counted }) => counted))
    return notes.refuse("correlation.condition", "some of the rules are not enough where one of them counts events");
  return { ...made, sequence, sequence_order: "any", ...(isSome && { sequence_min: needed.count }) };
}

/** One thing without any of the others in one timespan with it: these must come neither before it nor after it. */
function besideAbsent(sequence: readonly Step[], notes: Notes): Step[] | undefined {
  const [happening, ...others] = sequence.filter(({ absent }) => !absent);
  if (!happening || others.length > 0 || (happening.count ?? 1) > 1) {
    const message = "not is taken beside a single rule on events, and in temporal_ordered";
    return notes.refuse("correlation.condition", message);
  }
  const absent = sequence.filter((step) => step.absent);
  const before = absent.map((step) => ({
    ...step,
    name: `${step.name.slice(0, STEP_NAME_CHARACTERS_MAX - " before".length)} before`,
  }));
  return [...before, happening, ...absent];
}

/** In Sigma both rules have matched when one event fulfils them; in a sequence it takes an event for each. */
function remarkShared(rules: readonly BaseRule[], notes: Notes): void {
  const pair = rules
    .flatMap((one, i) => rules.slice(i + 1).map((other) => [one, other] as const))
    .find(([one, other]) => !areApart(one.condition, other.condition));
  if (!pair) return;
  const [one, other] = pair.map(({ reference }) => reference);
  notes.remark(
    "correlation.rules",
    `an event that fulfils both ${one} and ${other} counts for one of them: it takes a second event for the other`,
  );
}

/** Whether no event fulfils both, since they want different values of one field. */
function areApart(one: ConditionInput, other: ConditionInput): boolean {
  const wanted = wantedValues(other);
  return [...wantedValues(one)].some(([field, values]) => wanted.get(field)?.isDisjointFrom(values) ?? false);
}

/** Of the fields that must have one of some values. */
function wantedValues(condition: ConditionInput): Map<string, Set<unknown>> {
  const wanted = new Map<string, Set<unknown>>();
  for (const test of listOf(condition)) {
    if (!("field" in test) || test.field === ANY_FIELD) continue;
    const values = test.equals === undefined ? test.in : [test.equals];
    if (values) wanted.set(test.field, new Set(values.map((value) => foldCase(String(value)))));
  }
  return wanted;
}

interface Needed {
  readonly count: number;
  /** Rules that must not have matched. */
  readonly absent: ReadonlySet<string>;
}

/** How many of the rules must have happened: as a number, or as their names with `and`, or `and not`, between. */
function readNeeded(condition: Correlation["condition"], rules: readonly BaseRule[], notes: Notes): Needed | undefined {
  const absent = new Set<string>();
  if (condition === undefined) return { count: rules.length, absent };
  const place = "correlation.condition";
  if (typeof condition === "object") {
    const { count, lte, lt } = readCounts(comparisonsOf(condition), notes) ?? {};
    const most = lte ?? (lt === undefined ? Infinity : lt - 1);
    if (most < rules.length && notes.refusals.length === 0) {
      const words = "is not taken: an event of one more rule may still come";
      return notes.refuse(`${place}.${lte === undefined ? "lt" : "lte"}`, words);
    }
    if (count === undefined) return notes.refusals.length > 0 ? undefined : notes.refuse(place, "needs gte, gt or eq");
    if (count <= rules.length) return { count, absent };
    return notes.refuse(place, `there are ${rules.length} rules, and ${count} of them cannot have happened`);
  }
  const parsed = parseCondition(condition);
  if ("fault" in parsed) return notes.refuse(place, parsed.fault);
  const { expression } = parsed;
  const named = new Set<string>();
  const parts = expression.kind === "and" ? expression.of : [expression];
  for (const part of parts) {
    const inner = part.kind === "not" ? part.of : part;
    if (inner.kind !== "name") return notes.refuse(place, ALL_NAMED);
    named.add(inner.name);
    if (part.kind === "not") absent.add(inner.name);
  }
  const isComplete = named.size === rules.length && rules.every(({ reference }) => named.has(reference));
  if (!isComplete || parts.length !== named.size || absent.size === rules.length) return notes.refuse(place, ALL_NAMED);
  const counted = rules.find((rule) => absent.has(rule.reference) && rule.counted);
  if (counted) return notes.refuse(place, `${counted.reference} counts events: not of it is not taken`);
  return { count: rules.length - absent.size, absent };
}

const ALL_NAMED = "takes every rule once, with and or and not between them, and one that is not negated";

interface StepPlace {
  readonly groups: readonly string[];
  readonly window: string;
  readonly place: string;
}

/** Many of one thing and then another: the many are counted in the window of the whole. */
function readStepCount(
  { count, groupBy, window: own }: NonNullable<BaseRule["counted"]>,
  { groups, window, place }: StepPlace,
  notes: Notes,
): number | undefined {
  if (count > STEP_COUNT_MAX) return notes.refuse(place, `counts to ${count}; a step takes at most ${STEP_COUNT_MAX}`);
  if (groupBy.join() !== groups.join()) {
    // The specification says so of temporal_ordered, which is temporal with an order.
    const [inner, outer] = [groupBy, groups].map((paths) => paths.join(" and ") || "nothing");
    notes.remark(place, `is grouped by ${outer}, as this correlation is, instead of by ${inner}: Sigma has it so`);
  }
  if (own !== window) notes.remark(place, `is counted within ${window}, the timespan of the whole, instead of ${own}`);
  return count;
}

/** The paths of `group-by` in the events of one of the rules: an alias is another field in each. */
export function groupPaths({ "group-by": groupBy, aliases }: Correlation, rule: BaseRule): string[] {
  return (groupBy ?? []).map((field) => rule.pathOf(aliases?.[field]?.[rule.reference] ?? field));
}

function commonSource(rules: readonly BaseRule[]): string {
  const [first, ...others] = new Set(rules.map((rule) => rule.source));
  return first !== undefined && others.length === 0 ? first : ANY;
}

function conditionIn(rule: BaseRule, source: string): ConditionInput {
  if (rule.source === source) return rule.condition;
  return allOf([{ field: "source", equals: rule.source }, rule.condition]);
}

function readWindow(timespan: unknown, place: string, notes: Notes): string | undefined {
  if (timespan === undefined || timespan === null) return notes.refuse(place, "is required");
  const given = String(timespan);
  const weeks = /^(\d+)w$/.exec(given);
  const window = weeks ? `${Number(weeks[1]) * 7}d` : given;
  const ms = parseDuration(window);
  if (ms === undefined && !/^\d+[My]$/.test(given)) return notes.refuse(place, "a duration such as 30s, 5m, 1h or 2d");
  if (ms === undefined || ms > WINDOW_MS_MAX)
    return notes.refuse(place, "is longer than the 7 days that are looked back");
  return window;
}

/** `count() by src_ip > 10` behind the pipe of a condition, together with `timeframe`. */
export function readAggregation(text: string, timeframe: unknown, rule: BaseRule, notes: Notes): Aggregate | undefined {
  const place = "detection.condition";
  const match = /^count\(\s*([^)]*?)\s*\)\s*(?:by\s+(\S+(?:\s*,\s*\S+)*)\s*)?(>=|>|==?|<=|<)\s*(\d+)$/i.exec(text);
  if (!match) return notes.refuse(place, `the aggregation "${text}" is not taken: count() is, or a correlation`);
  const [, field, by, sign, number] = match;
  const window = readWindow(timeframe, "detection.timeframe", notes);
  const names: Record<string, string> = { ">=": "gte", ">": "gt", "=": "eq", "==": "eq", "<": "lt", "<=": "lte" };
  const given = { [names[sign!]!]: Number(number) };
  const bounds = readCounts({ given, place, placeOf: () => place }, notes);
  if (window === undefined || !bounds) return undefined;
  remarkFixed(bounds, place, window, notes);
  const group_by = oneOrAll(
    (by ?? "").split(",").flatMap((name) => (name.trim() === "" ? [] : [rule.pathOf(name.trim())])),
  );
  const distinct = field === "" || field === undefined ? {} : { distinct: rule.pathOf(field) };
  return {
    source: rule.source,
    conditions: listOf(rule.condition),
    window,
    threshold: { ...bounds, ...(group_by && { group_by }), ...distinct },
  };
}

function oneOrAll(paths: string[]): string | string[] | undefined {
  return paths.length > 1 ? paths : paths[0];
}
