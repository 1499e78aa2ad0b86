import { foldCase } from "../lib/text.ts";
import { unreachable } from "../lib/unreachable.ts";
import {
  isNegation,
  isRelation,
  OPERATORS,
  positiveOperator,
  type Condition,
  type FieldTest,
  type Operator,
  type OperatorName,
  type Scalar,
} from "./condition.ts";
import type { Event } from "./event.ts";
import { ANY_FIELD, ANY_RAW_FIELD, fieldReader, isAnyField, OBJECT, visitFields, type FieldValue } from "./field.ts";

// Which fields of an event met a condition, and with which values. The meaning of a condition is that of compileCondition.

/** Of one event. */
export const MATCHED_FIELDS_MAX = 50;
/** Of a value in the explanation; the event itself has all of it. */
export const MATCHED_VALUE_CHARACTERS_MAX = 500;

export interface MatchedField {
  readonly field: string;
  readonly operator: OperatorName;
  /** The value of the event that passed the test. Null: the field has none, as `exists: false` demands, or holds an object. */
  readonly value: Scalar | null;
  /** The value of the condition; of a list the item that matched, null if none did, as `not_in` demands. */
  readonly expected: Scalar | null;
}

/** Adds the fields that met the condition to `found`. Returns false, and adds nothing, if the event does not meet it. */
export type MatchExplainer = (event: Event, found: MatchedField[]) => boolean;

/** `beforeTest` runs before every test on a field. It may throw to stop an explanation that takes too long. */
export function compileExplainer(condition: Condition, beforeTest: () => void = () => undefined): MatchExplainer {
  switch (condition.kind) {
    case "all": {
      const parts = condition.of.map((part) => compileExplainer(part, beforeTest));
      return undoable((event, found) => parts.every((part) => part(event, found)));
    }
    case "any": {
      const parts = condition.of.map((part) => compileExplainer(part, beforeTest));
      // Every alternative that holds is part of the explanation.
      return (event, found) => parts.filter((part) => part(event, found)).length > 0;
    }
    case "not": {
      const part = compileExplainer(condition.of, beforeTest);
      // No value made it hold.
      return (event) => !part(event, []);
    }
    case "test": {
      const explain = compileTest(condition);
      return (event, found) => {
        beforeTest();
        const matched = explain(event);
        if (matched && found.length < MATCHED_FIELDS_MAX) found.push(matched);
        return matched !== undefined;
      };
    }
    default:
      return unreachable(condition);
  }
}

function undoable(explain: MatchExplainer): MatchExplainer {
  return (event, found) => {
    const before = found.length;
    if (explain(event, found)) return true;
    found.length = before;
    return false;
  };
}

interface LocatedValue {
  readonly field: string;
  readonly value: FieldValue;
}

function compileTest({
  field,
  operator: name,
  value,
  ignoreCase,
}: FieldTest): (event: Event) => MatchedField | undefined {
  const read = locatedReader(field);
  const matched = (at: LocatedValue | undefined, expected: Scalar | null): MatchedField => ({
    field: at?.field ?? field,
    operator: name,
    value: shorten(at?.value),
    expected: shorten(expected ?? undefined),
  });
  if (name === "exists") {
    return (event) => {
      const [first] = read(event);
      return (first !== undefined) === value ? matched(first, value) : undefined;
    };
  }
  const fold = ignoreCase ? foldCase : (text: string) => text;
  if (isRelation(name)) {
    const relation = (OPERATORS[name] as Operator).relation!;
    const readOther = fieldReader(value as string);
    return (event) => {
      const others = readOther(event);
      const first = read(event).find((at) => others.some((other) => relation(at.value, other, fold)));
      return first && matched(first, value as string);
    };
  }
  const operator = OPERATORS[positiveOperator(name)] as Operator;
  const testOf = (wanted: Scalar | readonly Scalar[]) => operator.test(wanted as never, { fold, ignoreCase, field });
  const test = testOf(value);
  if (isNegation(name)) {
    return (event) => {
      const values = read(event);
      if (values.length === 0 || values.some((at) => test(at.value))) return undefined;
      return matched(values[0], Array.isArray(value) ? null : (value as Scalar));
    };
  }
  // `in` takes lists alone.
  const items = Array.isArray(value) ? (value as readonly Scalar[]) : undefined;
  const passes = (item: Scalar, tested: FieldValue) => testOf(operator.value === "scalars" ? [item] : item)(tested);
  return (event) => {
    const first = read(event).find((at) => test(at.value));
    if (!first) return undefined;
    return matched(first, items ? (items.find((item) => passes(item, first.value)) ?? null) : (value as Scalar));
  };
}

/** Reads the values of a field with their own paths, which differ for `*` and `raw.*`. */
function locatedReader(field: string): (event: Event) => LocatedValue[] {
  if (!isAnyField(field)) {
    const read = fieldReader(field);
    return (event) => read(event).map((value) => ({ field, value }));
  }
  return (event) => {
    const found: LocatedValue[] = field === ANY_FIELD ? [{ field: "type", value: event.type }] : [];
    visitFields(field === ANY_RAW_FIELD ? { raw: event.raw, enrichment: {} } : event, (path, value) => {
      if (value !== OBJECT) found.push({ field: path, value });
    });
    return found;
  };
}

function shorten(value: FieldValue | undefined): Scalar | null {
  if (value === undefined || typeof value === "symbol") return null;
  if (typeof value !== "string" || value.length <= MATCHED_VALUE_CHARACTERS_MAX) return value;
  return `${value.slice(0, MATCHED_VALUE_CHARACTERS_MAX).toWellFormed()}…`;
}
