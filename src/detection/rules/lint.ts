import { parseDuration } from "../../lib/duration.ts";
import { nearestName } from "../../lib/nearest.ts";
import { unreachable } from "../../lib/unreachable.ts";
import {
  isRelation,
  OPERATORS,
  positiveOperator,
  type Condition,
  type FieldTest,
  type OperatorName,
} from "../../model/condition.ts";
import { WELL_KNOWN_FIELDS } from "../../model/event.ts";
import { isAnyField, pathFault } from "../../model/field.ts";
import { FIELD_NAMES } from "../../model/field-names.ts";
import type { SeenEvent } from "../../model/finding.ts";
import { globPieces } from "../../model/glob.ts";
import { pathList, toConditions, type ConditionInput } from "../../model/rule.ts";
import type { RuleInput } from "../../model/rule-schema.ts";
import { contradictionOf } from "./contradiction.ts";
import { upperBound, valuePaths } from "../windows/threshold-measure.ts";
import type { RuleDocument } from "./rule-file.ts";
import { readTemplate } from "./alert-template.ts";

// Hints about rules that are valid but probably wrong or needlessly slow.

export interface Hint {
  /** `conditions[0].regex`; empty for the whole rule. */
  readonly path: string;
  readonly message: string;
}

const REPETITION_HIGH = 200;
const LITERAL_CHARACTERS_MIN = 3;
const SHORT_DEDUP_MS = 60_000;
/** String fields of every event. */
const TOP_TEXTS: ReadonlySet<string> = new Set(["type", "source", "severity", "class"]);
/** Fields that are stored of the last event before an absence. */
const SEEN_FIELDS: readonly (keyof SeenEvent)[] = ["type", "source", "class", "severity", "timestamp"];
const COMPARISONS: ReadonlySet<string> = new Set(["gt", "gte", "lt", "lte"]);

export function lintRule({ input }: Pick<RuleDocument, "input">): Hint[] {
  const hints: Hint[] = [];
  const hint = (path: string, message: string) => hints.push({ path, message });
  const lists: (readonly [path: string, items: readonly ConditionInput[]])[] = [
    ["conditions", input.conditions],
    ...inputLists(input).map(([path, items]) => [path, items] as const),
    ...input.exceptions.map((exception, i) => [`exceptions[${i}].conditions`, exception.conditions] as const),
  ];
  for (const [path, items] of lists) items.forEach((item, i) => lintItem(item, `${path}[${i}]`, hint));
  lintContradictions(input, hint);
  lintGuard(input, hint);
  lintAggregates(input, hint);
  lintTemplates(input, hint);
  if (input.tests.length === 0) hint("tests", "missing: add events that must fire and events that must not");
  return hints;
}

/** The conditions of steps, inputs and parts, each with the conditions that must also hold. */
function inputLists(
  input: RuleInput,
): (readonly [path: string, items: readonly ConditionInput[], shared: readonly ConditionInput[]])[] {
  const stages = [{ above: "", stage: input }, ...input.parts.map((stage, i) => ({ above: `parts[${i}].`, stage }))];
  return stages.flatMap(({ above, stage: { conditions, sequence, threshold } }) => [
    // The conditions of a part with inputs are checked together with these.
    ...(above === "" || sequence || threshold?.inputs ? [] : [[`${above}conditions`, conditions, []] as const]),
    ...(sequence ?? []).map(
      (step, i) => [`${above}sequence[${i}].conditions`, step.conditions ?? [], conditions] as const,
    ),
    ...(threshold?.inputs ?? []).map(
      (each, i) => [`${above}threshold.inputs[${i}].conditions`, each.conditions ?? [], conditions] as const,
    ),
  ]);
}

function lintTemplates(input: RuleInput, hint: AddHint): void {
  const known = new Set([...pathList(input.group_by), ...SEEN_FIELDS]);
  for (const [location, text] of [
    ["title", input.title ?? ""],
    ["description", input.description],
  ] as const) {
    const { paths, unread } = readTemplate(text);
    for (const path of paths) {
      const fault = pathFault(path);
      if (fault) hint(location, `{{${path}}} stays empty: ${fault}`);
      else if (input.absence && !known.has(path))
        hint(location, `{{${path}}} stays empty: an absence has no event, and the field is not in group_by`);
      else lintField(path, location, hint);
    }
    for (const shown of unread) {
      const reason =
        shown === "{{" ? "the closing }} is missing" : "a placeholder holds one path, or several separated by |";
      hint(location, `${shown} is shown verbatim: ${reason}`);
    }
  }
}

type AddHint = (path: string, message: string) => void;

function lintItem(item: ConditionInput, path: string, hint: AddHint): void {
  if ("any" in item) return item.any.forEach((inner, i) => lintItem(inner, `${path}.any[${i}]`, hint));
  if ("all" in item) return item.all.forEach((inner, i) => lintItem(inner, `${path}.all[${i}]`, hint));
  if ("not" in item) return lintItem(item.not, `${path}.not`, hint);
  const test = toConditions([item]) as { of: readonly FieldTest[] };
  const { field, operator, value } = test.of[0]!;
  lintField(field, `${path}.field`, hint);
  if (isRelation(operator)) lintField(String(value), `${path}.${operator}`, hint);
  else lintType({ field, operator, value }, `${path}.${operator}`, hint);
  if (positiveOperator(operator) === "regex") {
    for (const pattern of [value].flat()) lintPattern(String(pattern), `${path}.${operator}`, hint);
  }
  if (isAnyField(field)) hint(path, "searches every value of every event; name the field if you know it");
}

/** Named fields of device events, and enrichment fields. */
const KNOWN_FIELDS = [...Object.keys(FIELD_NAMES).map((name) => `raw.${name}`), ...Object.keys(WELL_KNOWN_FIELDS)];

/** `raw` may hold any field. A name close to a known one is probably a typo. */
function lintField(field: string, path: string, hint: AddHint): void {
  if (isAnyField(field) || KNOWN_FIELDS.includes(field) || !/^(raw|enrichment)\./.test(field)) return;
  const last = field.split(".").at(-1)!;
  const known = KNOWN_FIELDS.filter((name) => name.split(".")[0] === field.split(".")[0]);
  const near = nearestName(
    last,
    known.map((name) => name.split(".").at(-1)!),
  );
  // Names of three letters are close to everything.
  if (near === undefined || last.length <= LITERAL_CHARACTERS_MIN || near === last) return;
  hint(path, `${field} is not a known field; did you mean ${known.find((name) => name.endsWith(`.${near}`))}?`);
}

function lintType(
  { field, operator, value }: Pick<FieldTest, "field" | "operator" | "value">,
  path: string,
  hint: AddHint,
): void {
  const isKnown = Object.hasOwn(WELL_KNOWN_FIELDS, field);
  if ((!isKnown && !TOP_TEXTS.has(field)) || operator === "exists") return;
  const type = isKnown ? WELL_KNOWN_FIELDS[field as keyof typeof WELL_KNOWN_FIELDS] : "string";
  if (type === "string" && COMPARISONS.has(operator)) {
    const remedy = field === "severity" ? "; use in with a list of severities" : "";
    return hint(path, `${field} holds a string, but ${operator} compares numbers: it never matches${remedy}`);
  }
  if ([value].flat().every((item) => typeof item !== type)) {
    hint(path, `${field} holds a ${type}, which never equals a ${typeof [value].flat()[0]}`);
  }
}

function lintPattern(pattern: string, path: string, hint: AddHint): void {
  const repetition = [...pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g)]
    .map(([, least, most]) => Number(most || least))
    .find((count) => count >= REPETITION_HIGH);
  if (repetition !== undefined) hint(path, `slow: the repetition {${repetition}} makes the pattern large`);
  if (/^\^?\.\*/.test(pattern)) hint(path, "slow: a pattern matches anywhere in the value; remove the leading .*");
  if (literalOf(pattern) < LITERAL_CHARACTERS_MIN) {
    hint(
      path,
      `slow: the pattern requires no ${LITERAL_CHARACTERS_MIN} plain characters in a row, so it runs on every value`,
    );
  }
}

/** Length of the longest literal that a pattern requires; 0 if it has alternatives at the top level. */
function literalOf(pattern: string): number {
  const plain = pattern
    .replace(/^\(\?[a-z]+\)/, "")
    .replaceAll(/\\[\\.*+?()[\]{}|^$/-]/g, "_")
    .replaceAll(/\\[pP]\{[^}]*\}|\\./g, "\0")
    .replaceAll(/\[[^\]]*\]/g, "\0")
    .replaceAll(/\([^()]*\)[*?]|\([^()]*\|[^()]*\)/g, "\0");
  if (plain.includes("|")) return 0;
  const runs = plain
    .replaceAll(/.(?:[*?]|\{0?,?\d*\})/g, "\0")
    .split(/[\0.^$()+*?{}]+/)
    .map((run) => run.length);
  return Math.max(0, ...runs);
}

/** Fields with too few values to be selective. */
const COARSE_FIELDS: ReadonlySet<string> = new Set(["source", "severity", "class"]);

/** True if the condition requires some text, so that most events can be skipped. */
function hasGuard(condition: Condition): boolean {
  switch (condition.kind) {
    case "all":
      return condition.of.some(hasGuard);
    case "any":
      return condition.of.every(hasGuard);
    case "not":
      return false;
    case "test": {
      const { field, operator, value } = condition;
      if (COARSE_FIELDS.has(field) || isAnyField(field)) return false;
      return hasLiteral(operator, [value].flat().map(String));
    }
    default:
      return unreachable(condition);
  }
}

function hasLiteral(operator: OperatorName, values: readonly string[]): boolean {
  const { literal } = OPERATORS[operator];
  switch (literal) {
    case "whole":
    case "start":
    case "end":
    case "inside":
      return true;
    case "glob":
      return values.every((glob) => globPieces(glob).some((piece) => piece.length >= LITERAL_CHARACTERS_MIN));
    case "pattern":
      return values.every((pattern) => literalOf(pattern) >= LITERAL_CHARACTERS_MIN);
    case "none":
      return false;
    default:
      return unreachable(literal);
  }
}

function lintContradictions(input: RuleInput, hint: AddHint): void {
  const check = (path: string, items: readonly ConditionInput[]) => {
    const why = contradictionOf(toConditions(items));
    if (why !== undefined) hint(path, `can never match: ${why}`);
    return why !== undefined;
  };
  if (check("conditions", input.conditions)) return;
  for (const [path, items, shared] of inputLists(input)) if (items.length > 0) check(path, [...shared, ...items]);
}

function lintGuard(input: RuleInput, hint: AddHint): void {
  // An absence rule has to look at all events of its source.
  if (input.absence) return;
  const advice = "runs on every event; add a condition such as type equals";
  const lists = inputLists(input).filter(([, items]) => items.length > 0);
  if (lists.length === 0 && !hasGuard(toConditions(input.conditions))) hint("conditions", advice);
  for (const [path, items, shared] of lists) if (!hasGuard(toConditions([...shared, ...items]))) hint(path, advice);
}

function lintAggregates(input: RuleInput, hint: AddHint): void {
  const { threshold, sequence, dedup } = input;
  if (threshold && threshold.group_by === undefined)
    hint("threshold.group_by", "missing: events of the whole site count together");
  if (pathList(threshold?.distinct).some((path) => pathList(threshold?.group_by).includes(path))) {
    hint("threshold.distinct", "is in group_by, so it has only one value per group");
  }
  if (threshold?.count === 1 && !threshold.inputs && valuePaths(threshold).length === 0 && !upperBound(threshold))
    hint("threshold.count", "1 fires on every match: omit window and threshold");
  if (sequence && !input.group_by) hint("group_by", "missing: events of the whole site form one group");
  const groups = [
    ["threshold.group_by", threshold?.group_by],
    ["group_by", input.group_by],
    ["dedup.by", dedup.by],
    ["threshold.distinct", threshold?.distinct],
    ["threshold.sum", threshold?.sum],
    ["threshold.avg", threshold?.avg],
    ["threshold.percentile.of", threshold?.percentile?.of],
    ...(sequence ?? []).map((step, i) => [`sequence[${i}].group_by`, step.group_by] as const),
    ...(threshold?.inputs ?? []).map((each, i) => [`threshold.inputs[${i}].group_by`, each.group_by] as const),
    ...input.parts.map((part, i) => [`parts[${i}]`, part.threshold?.group_by ?? part.group_by] as const),
  ] as const;
  for (const [location, paths] of groups) {
    for (const path of pathList(paths)) {
      lintField(path, location, hint);
      const isMeasured = location.startsWith("threshold.") && location !== "threshold.group_by";
      if (!isMeasured && (path === "id" || path === "timestamp"))
        hint("group_by", `${path} is different for every event`);
    }
  }
  if (parseDuration(dedup.period)! < SHORT_DEDUP_MS)
    hint("dedup.period", "is so short that one incident raises many alerts");
}
