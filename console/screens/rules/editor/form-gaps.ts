import { kindOf, operatorOf } from "./condition-model.ts";
import { list, RULE_FIELDS, type Draft, type Path } from "./draft.ts";

// What a rule says that no field of the form shows: the YAML may say anything. It is shown, stays as it is, and is changed there.

const SHOWN_FIELDS = new Set([...RULE_FIELDS, "origin"]);
const PART_FIELDS = new Set([
  "name",
  "conditions",
  "window",
  "threshold",
  "sequence",
  "sequence_order",
  "sequence_min",
  "group_by",
]);
const THRESHOLD_FIELDS = new Set([
  "count",
  "group_by",
  "distinct",
  "sum",
  "avg",
  "percentile",
  "gte",
  "gt",
  "lte",
  "lt",
  "inputs",
]);
const INPUT_FIELDS = new Set(["conditions", "part", "group_by", "value"]);
const STEP_FIELDS = new Set(["name", "conditions", "part", "count", "group_by", "absent"]);
const EXCEPTION_FIELDS = new Set(["id", "author", "created_at", "conditions", "reason", "expires_at"]);

export interface Gap {
  readonly path: Path;
  readonly value: unknown;
}

const isObject = (value: unknown): value is Draft =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function formGaps(rule: Draft): Gap[] {
  const gaps: Gap[] = [];
  const unknownFields = (value: unknown, path: Path, known: ReadonlySet<string>): value is Draft => {
    if (value === undefined || value === null) return false;
    if (!isObject(value)) {
      gaps.push({ path, value });
      return false;
    }
    for (const [name, each] of Object.entries(value))
      if (!known.has(name)) gaps.push({ path: [...path, name], value: each });
    return true;
  };
  const conditions = (items: unknown, path: Path): void => {
    for (const [i, item] of list(items).entries()) condition(item, [...path, i]);
  };
  const condition = (item: unknown, path: Path): void => {
    const kind = kindOf(item);
    if (kind === "any" || kind === "all") conditions((item as Draft)[kind], [...path, kind]);
    else if (kind === "not") condition((item as Draft)["not"], [...path, "not"]);
    else if (kind === "unknown" || (kind === "test" && operatorOf(item as Draft) === undefined)) {
      gaps.push({ path, value: item });
    }
  };
  const inputs = (items: unknown, path: Path, known: ReadonlySet<string>): void => {
    for (const [i, item] of list(items).entries()) {
      if (unknownFields(item, [...path, i], known)) conditions(item["conditions"], [...path, i, "conditions"]);
    }
  };
  const timing = (stage: Draft, path: Path): void => {
    conditions(stage["conditions"], [...path, "conditions"]);
    const threshold = stage["threshold"];
    if (unknownFields(threshold, [...path, "threshold"], THRESHOLD_FIELDS)) {
      inputs(threshold["inputs"], [...path, "threshold", "inputs"], INPUT_FIELDS);
    }
    inputs(stage["sequence"], [...path, "sequence"], STEP_FIELDS);
  };
  if (unknownFields(rule, [], SHOWN_FIELDS)) timing(rule, []);
  for (const [i, part] of list(rule["parts"]).entries()) {
    if (unknownFields(part, ["parts", i], PART_FIELDS)) timing(part, ["parts", i]);
  }
  inputs(rule["exceptions"], ["exceptions"], EXCEPTION_FIELDS);
  // Every rule has one action; the form shows its channels.
  for (const [i, action] of list(rule["actions"]).entries())
    if (i > 0) gaps.push({ path: ["actions", i], value: action });
  return gaps;
}
