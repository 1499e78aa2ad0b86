import { parseDuration } from "../lib/duration.ts";
import { nearestName } from "../lib/nearest.ts";
import { OPERATORS, type Condition, type FieldTest } from "../model/condition.ts";
import { WELL_KNOWN_FIELDS } from "../model/event.ts";
import { isAnyField, pathFault } from "../model/field.ts";
import { FIELD_NAMES } from "../model/field-names.ts";
import type { SeenEvent } from "../model/finding.ts";
import { globPieces } from "../model/glob.ts";
import { pathList, toConditions, type ConditionInput, type RuleInput } from "../model/rule.ts";
import { contradictionOf } from "./contradiction.ts";
import { upperBound, valuePaths } from "./measure.ts";
import type { RuleDocument } from "./rule-file.ts";
import { readTemplate } from "./template.ts";

// What is allowed in a rule and yet is most likely not meant, or costs more than it needs to.

export interface Hint {
  /** `conditions[0].regex`; empty for the whole rule. */
  readonly path: string;
  readonly message: string;
}

const REPETITION_HIGH = 200;
const LITERAL_CHARACTERS_MIN = 3;
const SHORT_DEDUP_MS = 60_000;
/** Of every event, and texts. */
const TOP_TEXTS: ReadonlySet<string> = new Set(["type", "source", "severity", "class"]);
/** What is known of the last event before an absence. */
const SEEN_FIELDS: readonly (keyof SeenEvent)[] = ["type", "source", "class", "severity", "timestamp"];
const COMPARISONS: ReadonlySet<string> = new Set(["gt", "gte", "lt", "lte"]);

export function lintRule({ input, tests }: Pick<RuleDocument, "input" | "tests">): Hint[] {
  const hints: Hint[] = [];
  const hint = (path: string, message: string) => hints.push({ path, message });
  const lists: (readonly [path: string, items: readonly ConditionInput[]])[] = [
    ["conditions", input.conditions],
    ...(input.sequence ?? []).map((step, i) => [`sequence[${i}].conditions`, step.conditions] as const),
    ...input.exceptions.map((exception, i) => [`exceptions[${i}].conditions`, exception.conditions] as const),
  ];
  for (const [path, items] of lists) items.forEach((item, i) => lintItem(item, `${path}[${i}]`, hint));
  lintContradictions(input, hint);
  lintGuard(input, hint);
  lintAggregates(input, hint);
  lintTemplates(input, hint);
  if (tests.length === 0) hint("tests", "there are none: say which events must fire and which must not");
  return hints;
}

function lintTemplates(input: RuleInput, hint: Say): void {
  const known = new Set([...pathList(input.group_by), ...SEEN_FIELDS]);
  for (const [place, text] of [
    ["title", input.title ?? ""],
    ["description", input.description],
  ] as const) {
    const { paths, unread } = readTemplate(text);
    for (const path of paths) {
      const fault = pathFault(path);
      if (fault) hint(place, `{{${path}}} stays empty: ${fault}`);
      else if (input.absence && !known.has(path))
        hint(place, `{{${path}}} stays empty: of an absence there is no event, and it is none of group_by`);
      else lintField(path, place, hint);
    }
    for (const shown of unread) {
      const reason =
        shown === "{{" ? "there is no }} to it" : "a path belongs between the braces, or several with | between";
      hint(place, `${shown} is shown as it stands: ${reason}`);
    }
  }
}

type Say = (path: string, message: string) => void;

function lintItem(item: ConditionInput, path: string, hint: Say): void {
  if ("any" in item) return item.any.forEach((inner, i) => lintItem(inner, `${path}.any[${i}]`, hint));
  if ("all" in item) return item.all.forEach((inner, i) => lintItem(inner, `${path}.all[${i}]`, hint));
  if ("not" in item) return lintItem(item.not, `${path}.not`, hint);
  const test = toConditions([item]) as { of: readonly FieldTest[] };
  const { field, operator, value } = test.of[0]!;
  lintField(field, `${path}.field`, hint);
  if (OPERATORS[operator].relation !== undefined) lintField(String(value), `${path}.${operator}`, hint);
  else lintType({ field, operator, value }, `${path}.${operator}`, hint);
  if (operator === "regex") for (const pattern of [value].flat()) lintPattern(String(pattern), `${path}.regex`, hint);
  if (isAnyField(field)) hint(path, "looks at every value of every event; name the field where you know it");
}

/** What devices' events have names for, and what is found out about them. */
const OUR_FIELDS = [...Object.keys(FIELD_NAMES).map((name) => `raw.${name}`), ...Object.keys(WELL_KNOWN_FIELDS)];

/** Any name may stand in raw; one that is nearly one of ours is most likely that. */
function lintField(field: string, path: string, hint: Say): void {
  if (isAnyField(field) || OUR_FIELDS.includes(field) || !/^(raw|enrichment)\./.test(field)) return;
  const last = field.split(".").at(-1)!;
  const known = OUR_FIELDS.filter((name) => name.split(".")[0] === field.split(".")[0]);
  const near = nearestName(
    last,
    known.map((name) => name.split(".").at(-1)!),
  );
  // Words of three letters are near to everything.
  if (near === undefined || last.length <= LITERAL_CHARACTERS_MIN || near === last) return;
  hint(path, `${field} is not a field of ours: is ${known.find((name) => name.endsWith(`.${near}`))} meant?`);
}

function lintType(
  { field, operator, value }: Pick<FieldTest, "field" | "operator" | "value">,
  path: string,
  hint: Say,
): void {
  const isKnown = Object.hasOwn(WELL_KNOWN_FIELDS, field);
  if ((!isKnown && !TOP_TEXTS.has(field)) || operator === "exists") return;
  const type = isKnown ? WELL_KNOWN_FIELDS[field as keyof typeof WELL_KNOWN_FIELDS] : "string";
  if (type === "string" && COMPARISONS.has(operator)) {
    const remedy = field === "severity" ? "; in takes a list of severities" : "";
    return hint(path, `${field} holds a string, and ${operator} compares numbers: it never holds${remedy}`);
  }
  if ([value].flat().every((item) => typeof item !== type)) {
    hint(path, `${field} holds a ${type}, and a ${type} never equals a ${typeof [value].flat()[0]}`);
  }
}

function lintPattern(pattern: string, path: string, hint: Say): void {
  const repetition = [...pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g)]
    .map(([, least, most]) => Number(most || least))
    .find((count) => count >= REPETITION_HIGH);
  if (repetition !== undefined) hint(path, `slow: {${repetition}} repeats so often that the pattern becomes large`);
  if (/^\^?\.\*/.test(pattern))
    hint(path, "slow: a pattern is found anywhere in the value; .* at its beginning adds nothing");
  if (literalOf(pattern) < LITERAL_CHARACTERS_MIN) {
    hint(
      path,
      `slow: no ${LITERAL_CHARACTERS_MIN} plain characters in a row must occur, so that it is run on every value`,
    );
  }
}

/** How many plain characters in a row a pattern has for sure; 0 where there is a choice on its top level. */
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

const LITERAL_OPERATORS: ReadonlySet<string> = new Set([
  "equals",
  "in",
  "contains",
  "starts_with",
  "prefix",
  "ends_with",
]);
/** So few values that they sort nothing out. */
const COARSE_FIELDS: ReadonlySet<string> = new Set(["source", "severity", "class"]);

/** Whether a text must occur for the condition to hold, so that most events need not be looked at. */
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
      if (LITERAL_OPERATORS.has(operator)) return true;
      const texts = [value].flat().map(String);
      if (operator === "glob") {
        return texts.every((glob) => globPieces(glob).some((piece) => piece.length >= LITERAL_CHARACTERS_MIN));
      }
      return operator === "regex" && texts.every((pattern) => literalOf(pattern) >= LITERAL_CHARACTERS_MIN);
    }
  }
}

function lintContradictions({ conditions, sequence }: RuleInput, hint: Say): void {
  const say = (path: string, items: readonly ConditionInput[]) => {
    const why = contradictionOf(toConditions(items));
    if (why !== undefined) hint(path, `can never match: ${why}`);
    return why !== undefined;
  };
  if (say("conditions", conditions)) return;
  for (const [i, step] of (sequence ?? []).entries()) {
    say(`sequence[${i}].conditions`, [...conditions, ...step.conditions]);
  }
}

function lintGuard(input: RuleInput, hint: Say): void {
  // An absence waits for whatever comes: that is what it is for.
  if (input.absence || hasGuard(toConditions(input.conditions))) return;
  const advice = "is looked at for every event; a condition such as type equals would spare that";
  if (!input.sequence) return hint("conditions", advice);
  for (const [i, step] of input.sequence.entries()) {
    if (!hasGuard(toConditions(step.conditions))) hint(`sequence[${i}].conditions`, advice);
  }
}

function lintAggregates(input: RuleInput, hint: Say): void {
  const { threshold, sequence, dedup } = input;
  if (threshold && threshold.group_by === undefined)
    hint("threshold.group_by", "is missing: events of the whole site are counted together");
  if (pathList(threshold?.distinct).some((path) => pathList(threshold?.group_by).includes(path))) {
    hint("threshold.distinct", "is one of group_by, and never has more than one value there");
  }
  if (threshold?.count === 1 && valuePaths(threshold).length === 0 && !upperBound(threshold))
    hint("threshold.count", "1 is every match: leave window and threshold out");
  if (sequence && !input.group_by) hint("group_by", "is missing: events of the whole site are put together");
  const groups = [
    ["threshold.group_by", threshold?.group_by],
    ["group_by", input.group_by],
    ["dedup.by", dedup.by],
    ["threshold.distinct", threshold?.distinct],
    ["threshold.sum", threshold?.sum],
    ["threshold.avg", threshold?.avg],
    ["threshold.percentile.of", threshold?.percentile?.of],
    ...(sequence ?? []).map((step, i) => [`sequence[${i}].group_by`, step.group_by] as const),
  ] as const;
  for (const [place, paths] of groups) {
    for (const path of pathList(paths)) {
      lintField(path, place, hint);
      const isMeasured = place.startsWith("threshold.") && place !== "threshold.group_by";
      if (!isMeasured && (path === "id" || path === "timestamp"))
        hint("group_by", `${path} is another one for every event`);
    }
  }
  if (parseDuration(dedup.period)! < SHORT_DEDUP_MS)
    hint("dedup.period", "is so short that one attack becomes many alerts");
}
