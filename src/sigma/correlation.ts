import { parseDuration } from "../lib/duration.ts";
import { foldCase } from "../lib/text.ts";
import { unreachable } from "../lib/unreachable.ts";
import { isAnyField } from "../model/field.ts";
import { WINDOW_MS_MAX, type ConditionInput } from "../model/rule.ts";
import type { Aggregate, AggregateInput, AggregateStep, AggregateThreshold } from "./aggregate-fields.ts";
import { allOf, anyOf, listOf } from "./combine.ts";
import { comparisonsOf, readCounts, readNumbers, remarkFixed } from "./comparisons.ts";
import type { SigmaCorrelation } from "./documents.ts";
import { parseCondition } from "./expression.ts";
import type { ImportNotes } from "./import-note.ts";
import { partFault, PartList, type InnerCorrelation } from "./part-list.ts";

// Rules over several events: correlations, and the older aggregations in conditions.

/** A rule that a correlation refers to. */
export type BaseRule = EventRule | CorrelationRule;

interface Referenced {
  /** The name that the correlation uses. */
  readonly reference: string;
  readonly source: string;
}

export interface EventRule extends Referenced {
  /** Conditions of the log source and of the detection. */
  readonly condition: ConditionInput;
  pathOf(field: string): string;
  readonly inner?: undefined;
}

/** A correlation that is part of another. */
export interface CorrelationRule extends Referenced {
  readonly inner: InnerCorrelation;
}

type Correlation = SigmaCorrelation["correlation"];

const STEPS_MAX = 10;
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
] as const;

export function readCorrelation(
  correlation: Correlation,
  rules: readonly BaseRule[],
  notes: ImportNotes,
): Aggregate | undefined {
  const window = readWindow(correlation.timespan, "correlation.timespan", notes);
  if (window === undefined) return undefined;
  for (const [i, { inner, reference }] of rules.entries()) {
    const fault = inner && partFault(inner);
    if (fault !== undefined) return notes.refuse(`correlation.rules[${i}]`, `${reference} ${fault}`);
  }
  const type = TYPES.find((known) => known === correlation.type);
  switch (type) {
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
    case undefined:
      return notes.refuse("correlation.type", `${correlation.type} is unknown; known types are ${TYPES.join(", ")}`);
    default:
      return unreachable(type);
  }
}

function readThreshold(
  correlation: Correlation,
  rules: readonly BaseRule[],
  window: string,
  notes: ImportNotes,
): Aggregate | undefined {
  const { condition } = correlation;
  if (typeof condition !== "object")
    return notes.refuse("correlation.condition", "requires a comparison such as gte: 10");
  const { field, percentile, ...comparisons } = condition;
  const fields = correlation.type === "event_count" ? [] : readFields(field, correlation.type, notes);
  if (!fields) return undefined;
  const isCount = correlation.type === "event_count" || correlation.type === "value_count";
  const bounds = (isCount ? readCounts : readNumbers)(comparisonsOf(comparisons), notes);
  if (!bounds) return undefined;
  remarkFixed(bounds, "correlation.condition", window, notes);
  const groups = rules.map((rule) => pathsIn(rule, groupFields(correlation, rule), "correlation.group-by", notes));
  const values = rules.map((rule) =>
    pathsIn(rule, aliased(correlation, fields, rule), "correlation.condition.field", notes),
  );
  if (notes.refusals.length > 0) return undefined;
  const measure = readMeasure(correlation.type, values[0]!, percentile, notes);
  if (!measure) return undefined;
  const source = commonSource(rules);
  const group_by = oneOrAll(groups[0]!);
  const threshold = { ...bounds, ...(group_by && { group_by }), ...measure };
  const differ = [groups, values].some((lists) => lists.some((paths) => !isSame(paths, lists[0]!)));
  const events = rules.filter((rule) => !rule.inner);
  if (events.length === rules.length && !differ) {
    const conditions = listOf(anyOf(events.map((rule) => conditionIn(rule, source))));
    return { source, conditions, window, threshold };
  }
  const parts = new PartList(source);
  const inputs = rules.map((rule, i): AggregateInput => {
    const [own, value] = [oneOrAll(groups[i]!), oneOrAll(values[i]!)];
    return {
      ...inputOf(rule, { source, parts }, notes),
      ...(own && !isSame(groups[i]!, groups[0]!) && { group_by: own }),
      ...(value && !isSame(values[i]!, values[0]!) && { value }),
    };
  });
  if (notes.refusals.length > 0) return undefined;
  return { source, conditions: [], window, threshold: { ...threshold, inputs }, ...partsOf(parts) };
}

function inputOf(
  rule: BaseRule,
  { source, parts }: { readonly source: string; readonly parts: PartList },
  notes: ImportNotes,
): Pick<AggregateInput, "conditions" | "part"> {
  if (!rule.inner) return { conditions: listOf(conditionIn(rule, source)) };
  const part = parts.add(rule.reference, rule.inner, notes);
  return part === undefined ? {} : { part };
}

function partsOf({ list }: PartList): Pick<Aggregate, "parts"> {
  return list.length > 0 ? { parts: list } : {};
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.join("\0") === other.join("\0");
}

type AggregateMeasure = Pick<AggregateThreshold, "distinct" | "sum" | "avg" | "percentile">;

/** The measure of a threshold; an event_count has none. */
function readMeasure(
  type: string,
  [path, ...others]: string[],
  percentile: unknown,
  notes: ImportNotes,
): AggregateMeasure | undefined {
  if (path === undefined) return {};
  if (type === "value_count") return { distinct: oneOrAll([path, ...others])! };
  if (type === "value_sum") return { sum: path };
  if (type === "value_avg") return { avg: path };
  if (type === "value_median") return { percentile: { of: path, rank: 50 } };
  if (typeof percentile !== "number" || percentile <= 0 || percentile > 100)
    return notes.refuse("correlation.condition.percentile", "takes a number from 1 to 100");
  return { percentile: { of: path, rank: percentile } };
}

/** Names of the fields whose values count. */
function readFields(given: unknown, type: string, notes: ImportNotes): string[] | undefined {
  const place = "correlation.condition.field";
  const fields: unknown[] = [given].flat();
  if (fields.length === 0 || !fields.every((field) => typeof field === "string"))
    return notes.refuse(place, "takes a field name or a list of field names");
  const names = [...new Set(fields)];
  if (type !== "value_count" && names.length > 1) return notes.refuse(place, `${type} takes one field name`);
  return names;
}

/** Paths of these fields in a rule's events or in a correlation's occurrences. */
function pathsIn(rule: BaseRule, fields: readonly string[], place: string, notes: ImportNotes): string[] {
  if (!rule.inner) return fields.map((field) => rule.pathOf(field));
  const { inner, reference } = rule;
  return fields.map((field) => {
    const at = inner.fields.indexOf(field);
    if (at < 0)
      notes.refuse(
        place,
        `${field} is not in the group-by of ${reference}: an occurrence of a correlation has no other values`,
      );
    return inner.paths[at] ?? field;
  });
}

function readTemporal(
  correlation: Correlation,
  rules: readonly BaseRule[],
  window: string,
  notes: ImportNotes,
): Aggregate | undefined {
  const needed = readNeeded(correlation.condition, rules, notes);
  if (!needed) return undefined;
  if (rules.length < 2 || rules.length > STEPS_MAX)
    return notes.refuse("correlation.rules", `takes 2 to ${STEPS_MAX} rules`);
  const grouped = rules.map((rule, i) =>
    groupedAs(rule, groupFields(correlation, rule), `correlation.rules[${i}]`, notes),
  );
  const source = commonSource(grouped);
  const groups = grouped.map((rule) => pathsIn(rule, groupFields(correlation, rule), "correlation.group-by", notes));
  if (notes.refusals.length > 0) return undefined;
  const group_by = oneOrAll(groups[0]!);
  const parts = new PartList(source);
  const sequence = grouped.map((rule, i): AggregateStep => {
    const own = oneOrAll(groups[i]!);
    return {
      name: rule.reference.slice(0, STEP_NAME_CHARACTERS_MAX),
      ...inputOf(rule, { source, parts }, notes),
      ...(own && !isSame(groups[i]!, groups[0]!) && { group_by: own }),
      ...(needed.absent.has(rule.reference) && { absent: true }),
    };
  });
  if (notes.refusals.length > 0) return undefined;
  const isOrdered = correlation.type === "temporal_ordered";
  const made = { source, conditions: [], window, ...(group_by && { group_by }), ...partsOf(parts) };
  if (needed.absent.size > 0) {
    const steps = isOrdered ? sequence : besideAbsent(sequence, notes);
    return steps && { ...made, sequence: steps, sequence_order: "in_order" };
  }
  if (isOrdered) {
    if (needed.count < rules.length)
      return notes.refuse("correlation.condition", `must include all ${rules.length} rules of an ordered correlation`);
    return { ...made, sequence, sequence_order: "in_order" };
  }
  remarkShared(rules, notes);
  const isSome = needed.count < rules.length;
  return { ...made, sequence, sequence_order: "any", ...(isSome && { sequence_min: needed.count }) };
}

/** Regroups an inner correlation that lacks the outer group-by fields, as the specification requires. */
function groupedAs(rule: BaseRule, fields: readonly string[], place: string, notes: ImportNotes): BaseRule {
  if (!rule.inner || fields.every((field) => rule.inner.fields.includes(field))) return rule;
  const inner = rule.inner.regrouped(fields);
  if (!inner) {
    notes.refuse(place, `cannot be grouped by ${fields.join(" and ")} like this correlation`);
    return rule;
  }
  const own = rule.inner.paths.join(" and ") || "nothing";
  notes.remark(
    place,
    `is grouped by ${inner.paths.join(" and ")} like this correlation, instead of ${own}, as Sigma specifies`,
  );
  return { ...rule, source: inner.made.source, inner };
}

/** One rule matches and none of the others does, neither before nor after it within the timespan. */
function besideAbsent(sequence: readonly AggregateStep[], notes: ImportNotes): AggregateStep[] | undefined {
  const [happening, ...others] = sequence.filter(({ absent }) => !absent);
  if (!happening || others.length > 0) {
    const message = "supports not with a single positive rule, or in temporal_ordered";
    return notes.refuse("correlation.condition", message);
  }
  const absent = sequence.filter((step) => step.absent);
  const before = absent.map((step) => ({
    ...step,
    name: `${step.name.slice(0, STEP_NAME_CHARACTERS_MAX - " before".length)} before`,
  }));
  return [...before, happening, ...absent];
}

/** Remarks on rules that one event may meet together: in Sigma both match, in a sequence each needs its own event. */
function remarkShared(rules: readonly BaseRule[], notes: ImportNotes): void {
  const events = rules.filter((rule) => !rule.inner);
  const pair = events
    .flatMap((one, i) => events.slice(i + 1).map((other) => [one, other] as const))
    .find(([one, other]) => !areApart(one.condition, other.condition));
  if (!pair) return;
  const [one, other] = pair.map(({ reference }) => reference);
  notes.remark(
    "correlation.rules",
    `an event that matches both ${one} and ${other} counts for one of them only; the other needs a second event`,
  );
}

/** True if no event can meet both, since they require different values of one field. */
function areApart(one: ConditionInput, other: ConditionInput): boolean {
  const wanted = wantedValues(other);
  return [...wantedValues(one)].some(([field, values]) => wanted.get(field)?.isDisjointFrom(values) ?? false);
}

/** Fields that must have one of certain values. */
function wantedValues(condition: ConditionInput): Map<string, Set<unknown>> {
  const wanted = new Map<string, Set<unknown>>();
  for (const test of listOf(condition)) {
    if (!("field" in test) || isAnyField(test.field)) continue;
    const values = test.equals === undefined ? test.in : [test.equals];
    if (values) wanted.set(test.field, new Set(values.map((value) => foldCase(String(value)))));
  }
  return wanted;
}

interface Needed {
  readonly count: number;
  /** Rules that must not match. */
  readonly absent: ReadonlySet<string>;
}

/** Number of rules that must match: given as a number, or as names joined with `and` or `and not`. */
function readNeeded(
  condition: Correlation["condition"],
  rules: readonly BaseRule[],
  notes: ImportNotes,
): Needed | undefined {
  const absent = new Set<string>();
  if (condition === undefined) return { count: rules.length, absent };
  const place = "correlation.condition";
  if (typeof condition === "object") {
    const { count, lte, lt } = readCounts(comparisonsOf(condition), notes) ?? {};
    const most = lte ?? (lt === undefined ? Infinity : lt - 1);
    if (most < rules.length && notes.refusals.length === 0) {
      const words = "is not supported: another rule may still match later";
      return notes.refuse(`${place}.${lte === undefined ? "lt" : "lte"}`, words);
    }
    if (count === undefined)
      return notes.refusals.length > 0 ? undefined : notes.refuse(place, "requires gte, gt or eq");
    if (count <= rules.length) return { count, absent };
    return notes.refuse(place, `requires ${count} rules, but there are only ${rules.length}`);
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
  return { count: rules.length - absent.size, absent };
}

const ALL_NAMED = "must name every rule once, joined with and or and not, and at least one without not";

/** Fields of `group-by` in one of the rules: an alias names a different field in each. */
function groupFields(correlation: Correlation, rule: BaseRule): string[] {
  return aliased(correlation, correlation["group-by"] ?? [], rule);
}

function aliased({ aliases }: Correlation, fields: readonly string[], { reference }: BaseRule): string[] {
  return fields.map((field) => aliases?.[field]?.[reference] ?? field);
}

function commonSource(rules: readonly BaseRule[]): string {
  const [first, ...others] = new Set(rules.map((rule) => rule.source));
  return first !== undefined && others.length === 0 ? first : ANY;
}

function conditionIn(rule: EventRule, source: string): ConditionInput {
  if (rule.source === source) return rule.condition;
  return allOf([{ field: "source", equals: rule.source }, rule.condition]);
}

function readWindow(timespan: unknown, place: string, notes: ImportNotes): string | undefined {
  if (timespan === undefined || timespan === null) return notes.refuse(place, "is required");
  const given = String(timespan);
  const weeks = /^(\d+)w$/.exec(given);
  const window = weeks ? `${Number(weeks[1]) * 7}d` : given;
  const ms = parseDuration(window);
  if (ms === undefined && !/^\d+[My]$/.test(given))
    return notes.refuse(place, "must be a duration such as 30s, 5m, 1h or 2d");
  if (ms === undefined || ms > WINDOW_MS_MAX) return notes.refuse(place, "is longer than the maximum of 7 days");
  return window;
}

/** Reads `count() by src_ip > 10`, which follows the pipe in a condition, together with `timeframe`. */
export function readAggregation(
  text: string,
  timeframe: unknown,
  rule: EventRule,
  notes: ImportNotes,
): Aggregate | undefined {
  const place = "detection.condition";
  const match = /^count\(\s*([^)]*?)\s*\)\s*(?:by\s+(\S+(?:\s*,\s*\S+)*)\s*)?(>=|>|==?|<=|<)\s*(\d+)$/i.exec(text);
  if (!match) return notes.refuse(place, `the aggregation "${text}" is not supported; use count() or a correlation`);
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
