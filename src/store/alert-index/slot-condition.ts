import {
  compileValueTest,
  isNegation,
  isRelation,
  positiveOperator,
  timeBound,
  type Condition,
  type FieldTest,
  type Scalar,
} from "../../model/condition.ts";
import { ALERT_CONDITION_FIELDS } from "../../model/alert-field.ts";
import { formatTime } from "../../lib/time.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { TimeSlices } from "../queries/time-slices.ts";
import { hasValue, type CodedColumn, type SlotColumn, type NumberColumn } from "./slot-column.ts";

// Conditions over columns. A test of a text runs once for each distinct value and not for each alert.

export interface ConditionSource {
  /** Undefined for a field that is in the documents alone. */
  columnOf(path: string): SlotColumn | undefined;
  slotOf(id: string): number | null;
}

type SlotTest = (slot: number) => boolean;

/** Tests of more values than this run in slices. */
const VALUES_AT_ONCE = 1000;

/** True if the columns decide the condition without the documents. */
export function isOverColumns(condition: Condition, source: ConditionSource): boolean {
  if (condition.kind === "not") return isOverColumns(condition.of, source);
  if (condition.kind !== "test") return condition.of.every((part) => isOverColumns(part, source));
  if (isRelation(condition.operator)) return false;
  return condition.field === "id" || source.columnOf(condition.field) !== undefined;
}

/** True if a part of the condition is a pattern, which takes long on many values. */
export function hasPatterns(condition: Condition): boolean {
  if (condition.kind === "test") return isPattern(condition);
  return (condition.kind === "not" ? [condition.of] : condition.of).some(hasPatterns);
}

function isPattern({ operator }: FieldTest): boolean {
  return operator === "regex" || operator === "glob";
}

/** Results of patterns by value: the codes may have other values by the time that the slots are tested. */
export type PatternResults = Map<FieldTest, Map<Scalar, boolean>>;

export async function runPatterns(
  condition: Condition,
  source: ConditionSource,
  slices: TimeSlices,
  results: PatternResults = new Map(),
): Promise<PatternResults> {
  if (condition.kind === "test") {
    if (isPattern(condition)) await runPattern(condition, source, slices, results);
  } else {
    const parts = condition.kind === "not" ? [condition.of] : condition.of;
    for (const part of parts) await runPatterns(part, source, slices, results);
  }
  return results;
}

async function runPattern(
  test: FieldTest,
  source: ConditionSource,
  slices: TimeSlices,
  results: PatternResults,
): Promise<void> {
  const column = source.columnOf(test.field);
  if (column?.kind !== "codes" || column.end <= VALUES_AT_ONCE) return;
  const passes = compileValueTest(test, ALERT_CONDITION_FIELDS);
  const known = new Map<Scalar, boolean>();
  // Values that come while others are tested are tested at the end.
  for (let code = 0; code < column.end; code++) {
    if (slices.isOver) await slices.next();
    const value = column.valueOf(code);
    if (value !== undefined) known.set(value, passes(value));
  }
  results.set(test, known);
}

/** Compiles a condition over columns. The test is valid until the next change of an alert. */
export function compileSlotTest(condition: Condition, source: ConditionSource, results: PatternResults): SlotTest {
  const compile = (part: Condition) => compileSlotTest(part, source, results);
  switch (condition.kind) {
    case "all": {
      const parts = condition.of.map(compile);
      return parts.length === 1 ? parts[0]! : (slot) => parts.every((part) => part(slot));
    }
    case "any": {
      const parts = condition.of.map(compile);
      return (slot) => parts.some((part) => part(slot));
    }
    case "not": {
      const part = compile(condition.of);
      return (slot) => !part(slot);
    }
    case "test":
      return condition.field === "id" ? idTest(condition, source) : compileTest(condition, source, results);
    default:
      return unreachable(condition);
  }
}

function idTest({ operator, value, ignoreCase }: FieldTest, source: ConditionSource): SlotTest {
  if (operator === "exists") return () => value === true;
  const ids = [value].flat().map((id) => (ignoreCase ? String(id).toLowerCase() : String(id)));
  const slots = new Set(ids.map((id) => source.slotOf(id)));
  return isNegation(operator) ? (slot) => !slots.has(slot) : (slot) => slots.has(slot);
}

function compileTest(test: FieldTest, source: ConditionSource, results: PatternResults): SlotTest {
  const column = source.columnOf(test.field)!;
  if (test.operator === "exists") return (slot) => hasValue(column, slot) === test.value;
  const isMatch = column.kind === "numbers" ? numberTest(test, column) : codeTest(test, column, results);
  return isNegation(test.operator) ? (slot) => hasValue(column, slot) && !isMatch(slot) : isMatch;
}

function numberTest(test: FieldTest, column: NumberColumn): SlotTest {
  if (column.isTime) {
    const { operator, value } = test;
    if (operator === "gt" || operator === "gte" || operator === "lt" || operator === "lte") {
      const bound = timeBound(operator, value as Scalar)!;
      if (operator === "gt") return (slot) => column.at(slot) > bound;
      if (operator === "gte") return (slot) => column.at(slot) >= bound;
      return operator === "lt" ? (slot) => column.at(slot) < bound : (slot) => column.at(slot) <= bound;
    }
  }
  const passes = compileValueTest(test, ALERT_CONDITION_FIELDS);
  return (slot) => {
    const number = column.at(slot);
    return !Number.isNaN(number) && passes(column.isTime ? formatTime(number) : number);
  };
}

function codeTest(test: FieldTest, column: CodedColumn, results: PatternResults): SlotTest {
  const marks = marksOf(test, column, results);
  return (slot) => {
    const count = column.count(slot);
    for (let i = 0; i < count; i++) if (marks[column.at(slot, i)] === 1) return true;
    return false;
  };
}

/** 1 at each code whose value passes. */
function marksOf(test: FieldTest, column: CodedColumn, results: PatternResults): Uint8Array {
  const marks = new Uint8Array(column.end);
  const isEquality = ["equals", "in"].includes(positiveOperator(test.operator)) && !test.ignoreCase;
  if (isEquality && column.codeOf) {
    for (const value of [test.value].flat()) {
      const code = column.codeOf(value);
      if (code !== undefined) marks[code] = 1;
    }
    return marks;
  }
  const known = results.get(test);
  const passes = compileValueTest(test, ALERT_CONDITION_FIELDS);
  for (let code = 0; code < column.end; code++) {
    const value = column.valueOf(code);
    if (value !== undefined && (known?.get(value) ?? passes(value))) marks[code] = 1;
  }
  return marks;
}
