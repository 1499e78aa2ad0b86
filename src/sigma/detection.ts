import { unreachable } from "../lib/unreachable.ts";
import type { ConditionInput } from "../model/rule.ts";
import { allOf, anyOf, notOf } from "./combine.ts";
import { namesLike, parseCondition, type Expression } from "./expression.ts";
import { toCondition, type FieldNames, type SelectionLine, type SigmaScalar } from "./field-test.ts";
import type { ImportNotes } from "./import-note.ts";

// Reads the `detection` of a rule: named selections, and a condition that combines them.

export interface SigmaDetection {
  readonly condition: ConditionInput;
  /** `count() by src_ip > 10` of rules that predate correlations, and its timeframe. */
  readonly aggregation: string | null;
  readonly timeframe: unknown;
}

export function readDetection(
  detection: Record<string, unknown>,
  names: FieldNames,
  notes: ImportNotes,
  root = "detection",
): SigmaDetection | undefined {
  const { condition: given, timeframe = null, ...selections } = detection;
  const texts = Array.isArray(given) ? given : [given];
  if (texts.length === 0) notes.refuse(`${root}.condition`, "is empty");
  const parts: ConditionInput[] = [];
  let aggregation: string | null = null;
  for (const [i, text] of texts.entries()) {
    const place = Array.isArray(given) ? `${root}.condition[${i}]` : `${root}.condition`;
    const parsed = typeof text === "string" ? parseCondition(text) : undefined;
    if (parsed === undefined) notes.refuse(place, given === undefined ? "is required" : "must be a text");
    else if ("fault" in parsed) notes.refuse(place, parsed.fault);
    else if (parsed.aggregation !== null && texts.length > 1)
      notes.refuse(place, "an aggregation cannot be combined with other conditions");
    else {
      aggregation = parsed.aggregation;
      const part = evaluate(parsed.expression, selections, { names, notes, place, root });
      if (part) parts.push(part);
    }
  }
  // A faulty condition does not show which selections it means: report the faults of all of them.
  if (notes.refusals.some(({ place }) => place.startsWith(`${root}.condition`))) {
    for (const name of Object.keys(selections)) {
      readSelection(name, selections, { names, notes, place: `${root}.condition`, root });
    }
  }
  if (timeframe !== null && aggregation === null) {
    notes.remark(`${root}.timeframe`, "has no effect without an aggregation: each event is a match by itself");
  }
  return notes.refusals.length > 0 || parts.length === 0
    ? undefined
    : { condition: anyOf(parts), aggregation, timeframe };
}

interface SelectionContext {
  readonly names: FieldNames;
  readonly notes: ImportNotes;
  readonly place: string;
  /** Parent of the selections: `detection` or `filter`. */
  readonly root: string;
}

function evaluate(
  expression: Expression,
  selections: Record<string, unknown>,
  around: SelectionContext,
): ConditionInput | undefined {
  const { notes, place } = around;
  switch (expression.kind) {
    case "and":
    case "or": {
      const parts = expression.of.map((part) => evaluate(part, selections, around));
      return combine(parts, expression.kind === "and" ? allOf : anyOf);
    }
    case "not": {
      const part = evaluate(expression.of, selections, around);
      return part && notOf(part);
    }
    case "name":
      if (Object.hasOwn(selections, expression.name)) return readSelection(expression.name, selections, around);
      return notes.refuse(place, `there is no selection ${expression.name}`);
    case "of": {
      const names = namesLike(expression.pattern, Object.keys(selections));
      if (names.length === 0) return notes.refuse(place, `no selection matches ${expression.pattern}`);
      const parts = names.map((name) => readSelection(name, selections, around));
      return combine(parts, expression.quantity === "all" ? allOf : anyOf);
    }
    default:
      return unreachable(expression);
  }
}

function combine(
  parts: readonly (ConditionInput | undefined)[],
  join: (parts: readonly ConditionInput[]) => ConditionInput,
): ConditionInput | undefined {
  const taken = parts.filter((part) => part !== undefined);
  return taken.length === parts.length && taken.length > 0 ? join(taken) : undefined;
}

function readSelection(
  name: string,
  selections: Record<string, unknown>,
  around: SelectionContext,
): ConditionInput | undefined {
  return readNode(selections[name], `${around.root}.${name}`, around);
}

/** Reads a selection: a map holds if all its lines do, a list if any of its maps or keywords does. */
function readNode(node: unknown, place: string, around: SelectionContext): ConditionInput | undefined {
  const { notes } = around;
  if (isScalar(node)) return readValues([node], { field: null, modifiers: [], place }, around);
  if (Array.isArray(node)) {
    if (node.length > 0 && node.every(isScalar)) {
      return readValues(node, { field: null, modifiers: [], place }, around);
    }
    if (node.length === 0) return notes.refuse(place, "is empty");
    return combine(
      node.map((item, i) => readNode(item, `${place}[${i}]`, around)),
      anyOf,
    );
  }
  const lines = Object.entries(node as object);
  if (lines.length === 0) return notes.refuse(place, "is empty");
  return combine(
    lines.map(([key, value]) => readLine(key, value, `${place}.${key}`, around)),
    allOf,
  );
}

function readLine(key: string, value: unknown, place: string, around: SelectionContext): ConditionInput | undefined {
  const [field, ...modifiers] = key.split("|");
  const values: unknown[] = Array.isArray(value) ? value : [value];
  if (!values.every(isScalar)) return around.notes.refuse(place, "takes a value or a list of values");
  return readValues(values, { field: field === "" ? null : field!, modifiers, place }, around);
}

function readValues(
  values: readonly SigmaScalar[],
  line: Omit<SelectionLine, "values">,
  { names, notes }: SelectionContext,
): ConditionInput | undefined {
  return toCondition({ ...line, values }, names, notes);
}

function isScalar(value: unknown): value is SigmaScalar {
  return value === null || typeof value !== "object";
}
