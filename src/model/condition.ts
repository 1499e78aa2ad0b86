import { RE2JS } from "re2js";
import { includesText } from "../lib/find-text.ts";
import { isInRanges, parseCidr } from "../lib/ip.ts";
import { foldCase } from "../lib/text.ts";
import { parseTime, parseTimeUp } from "../lib/time.ts";
import { unreachable } from "../lib/unreachable.ts";
import { RESOLUTIONS, STATUSES } from "./alert-state.ts";
import { CLASSES, SEVERITIES, type Event } from "./event.ts";
import { compileGlob } from "./glob.ts";
import { parseHours, withinHours } from "./hours.ts";
import { PATTERN_WEIGHT_MAX, patternWeight } from "./pattern.ts";
import { hasTimePart, parseTimePart } from "./time-part.ts";
import { ANY_FIELD, fieldReader, type FieldValue } from "./field.ts";
import { EVENT_FIELDS, type QueryFields } from "./query-fields.ts";

// The condition language of search filters and rule conditions, each a test on one event. This file defines the meaning; a
// store that evaluates conditions in its own engine must agree with it. The schemas are in condition-schema.ts, so that
// threads that never validate conditions need not load zod.

export type Scalar = string | number | bigint | boolean;

/**
 * A pattern searches at most this much of a text, which bounds its cost. Of a longer text it searches the first and the last
 * half of this length, joined.
 */
export const PATTERN_TEXT_CHARACTERS_MAX = 65_536;
export const CONDITION_DEPTH_MAX = 8;
export const CONDITIONS_MAX = 256;

const TIME_WORDS = "must be an ISO 8601 time with an offset or Z";

function listed<Item>(value: Item | readonly Item[]): readonly Item[] {
  return Array.isArray(value) ? (value as readonly Item[]) : [value as Item];
}

/** The kinds of value that operators take. */
interface ValueKinds {
  scalar: Scalar;
  scalars: readonly Scalar[];
  texts: string | readonly string[];
  globs: string | readonly string[];
  patterns: string | readonly string[];
  networks: string | readonly string[];
  bound: number | bigint | string;
  hours: string;
  timeParts: string | readonly string[];
  otherField: string;
  flag: boolean;
}
export type ValueKind = keyof ValueKinds;

type Test = (value: FieldValue) => boolean;

interface TestOptions {
  readonly fold: (text: string) => string;
  readonly ignoreCase: boolean;
  readonly field: string;
}

/** Compares a value of one field with a value of another. */
type Relation = (value: FieldValue, other: FieldValue, fold: (text: string) => string) => boolean;

/**
 * Where a value of the operator occurs in every text that passes, with which engines skip events: it is the whole text, its
 * start, its end or inside it; or the value is a glob or a pattern with literal parts. `none`: a text without it may pass.
 */
export type LiteralPlace = "whole" | "start" | "end" | "inside" | "glob" | "pattern" | "none";

export interface Operator<Kind extends ValueKind = ValueKind> {
  /** The kind of value that the operator takes; condition-schema.ts has its schema. */
  readonly value: Kind;
  readonly about: string;
  readonly literal: LiteralPlace;
  /** Applies to any field at once, with the paths `*` and `raw.*`. */
  readonly takesAnyField?: true;
  /** The fault of a value of the right type, or of one item of a list. */
  fault?(value: Scalar, field: string, ignoreCase: boolean): string | undefined;
  /** Tests one value of the field; the condition holds when any value passes. */
  test(value: ValueKinds[Kind], options: TestOptions): Test;
  /** The operator that this one negates: the condition holds when the field has a value and none passes its test. */
  readonly negationOf?: string;
  readonly ignoresCase?: true;
  /** Compares two fields; the operator's value is the path of the other field. */
  readonly relation?: Relation;
}

/** Infers the type of the value that `test` takes from the kind. */
const operator = <Kind extends ValueKind>(spec: Operator<Kind>): Operator<Kind> => spec;

type CompareTexts = (value: string, wanted: string) => boolean;

const onText = (wanted: string | readonly string[], fold: (text: string) => string, compare: CompareTexts): Test => {
  const folded = listed(wanted).map(fold);
  return (value) => {
    if (typeof value !== "string") return false;
    const subject = fold(value);
    return folded.some((item) => compare(subject, item));
  };
};

const relates = (about: string, relation: Relation) => ({
  ...operator({ value: "otherField", about, literal: "none", ignoresCase: true, test: () => () => false }),
  relation,
});

const relatesTexts = (about: string, compare: CompareTexts) =>
  relates(
    about,
    (a, b, fold) => typeof a === "string" && typeof b === "string" && b !== "" && compare(fold(a), fold(b)),
  );

const isAnyOf = (wanted: readonly Scalar[], fold: (text: string) => string): Test => {
  const set = new Set<FieldValue>(wanted.map((item) => (typeof item === "string" ? fold(item) : item)));
  return (value) => set.has(typeof value === "string" ? fold(value) : value);
};

type Comparison = "gt" | "gte" | "lt" | "lte";

const compares = (
  name: Comparison,
  about: string,
  holds: (value: number | bigint, bound: number | bigint) => boolean,
) =>
  operator({
    value: "bound",
    about,
    literal: "none",
    fault: (value, field) => {
      if (field === "timestamp") return timeBound(name, value) === undefined ? TIME_WORDS : undefined;
      return typeof value === "string" ? "must be a number; only timestamp takes a time" : undefined;
    },
    test: (value, { field }) => {
      if (field === "timestamp") {
        const wanted = timeBound(name, value)!;
        return (at) => holds(parseTime(at as string)!, wanted);
      }
      // JavaScript compares a number with a bigint exactly.
      const bound = value as number | bigint;
      return (number) => (typeof number === "number" || typeof number === "bigint") && holds(number, bound);
    },
  });

/** The bound in whole milliseconds, like stored times, that is equivalent to a time with finer digits. */
export function timeBound(comparison: Comparison, value: Scalar): number | undefined {
  if (typeof value !== "string") return undefined;
  return comparison === "gte" || comparison === "lt" ? parseTimeUp(value) : parseTime(value);
}

const startsWith = operator({
  value: "texts",
  about: "the value starts with this text, or with one of these",
  literal: "start",
  ignoresCase: true,
  test: (value, { fold }) => onText(value, fold, (a, b) => a.startsWith(b)),
});

/** Operators that test each value by itself. The condition holds when any value passes. */
const VALUE_OPERATORS = {
  equals: operator({
    value: "scalar",
    about: "the value equals this one; a number never equals a string",
    literal: "whole",
    takesAnyField: true,
    ignoresCase: true,
    fault: topFieldFault,
    test: (value, { fold }) => isAnyOf([value], fold),
  }),
  in: operator({
    value: "scalars",
    about: "the value equals one of these",
    literal: "whole",
    takesAnyField: true,
    ignoresCase: true,
    fault: topFieldFault,
    test: (value, { fold }) => isAnyOf(value, fold),
  }),
  contains: operator({
    value: "texts",
    about: "the value contains this text, or one of these",
    literal: "inside",
    takesAnyField: true,
    ignoresCase: true,
    test: (value, { fold }) => onText(value, fold, includesText),
  }),
  starts_with: { ...startsWith, takesAnyField: true },
  prefix: { ...startsWith, about: "alias of starts_with" },
  ends_with: operator({
    value: "texts",
    about: "the value ends with this text, or with one of these",
    literal: "end",
    takesAnyField: true,
    ignoresCase: true,
    test: (value, { fold }) => onText(value, fold, (a, b) => a.endsWith(b)),
  }),
  glob: operator({
    value: "globs",
    about:
      "the whole value matches this pattern, or one of these: * is any text, ? is any one character, \\ escapes either",
    literal: "glob",
    takesAnyField: true,
    ignoresCase: true,
    test: (value, { fold }) => {
      const globs = listed(value).map((glob) => compileGlob(fold(glob)));
      return (tested) => {
        if (typeof tested !== "string") return false;
        const subject = fold(tested);
        return globs.some((matches) => matches(subject));
      };
    },
  }),
  regex: operator({
    value: "patterns",
    about: `this RE2 pattern, or one of these, is found in the value; RE2 has no look-around and no back-references; of a value longer than ${PATTERN_TEXT_CHARACTERS_MAX} characters only the first and last ${PATTERN_TEXT_CHARACTERS_MAX / 2} are searched, joined`,
    literal: "pattern",
    takesAnyField: true,
    ignoresCase: true,
    fault: (pattern) => patternFault(String(pattern)),
    test: (value, { ignoreCase }) => {
      const patterns = listed(value).map((pattern) => compilePattern(pattern, ignoreCase));
      return (tested) => typeof tested === "string" && patterns.some((pattern) => pattern.test(patternSubject(tested)));
    },
  }),
  cidr: operator({
    value: "networks",
    about:
      "the value is an IP address in this network, or in one of these; an IPv6 network such as ::/0 contains no IPv4 address",
    literal: "none",
    takesAnyField: true,
    fault: (network) =>
      parseCidr(String(network))
        ? undefined
        : "must be a network such as 10.0.0.0/8 or 2001:db8::/32, or a single address",
    test: (value) => {
      const ranges = listed(value).map((network) => parseCidr(network)!);
      return (address) => typeof address === "string" && isInRanges(ranges, address);
    },
  }),
  gt: compares("gt", "the number (or timestamp) is greater", (a, b) => a > b),
  gte: compares("gte", "the number (or timestamp) is greater or equal", (a, b) => a >= b),
  lt: compares("lt", "the number (or timestamp) is less", (a, b) => a < b),
  lte: compares("lte", "the number (or timestamp) is less or equal", (a, b) => a <= b),
  during: operator({
    value: "hours",
    about: "the timestamp is within these hours: 22:00-06:00, sat-sun, mon-fri 08:00-18:00 Europe/Berlin (default UTC)",
    literal: "none",
    fault: (value, field) => {
      if (field !== "timestamp") return "only works on timestamp";
      const hours = parseHours(String(value));
      return "fault" in hours ? hours.fault : undefined;
    },
    test: (value) => {
      const hours = parseHours(value);
      if ("fault" in hours) throw new Error(hours.fault);
      return (at) => withinHours(hours, parseTime(at as string)!);
    },
  }),
  time_part: operator({
    value: "timeParts",
    about:
      "the value is a date-time and this part of it, in UTC, is in range, or one of these is: hour 3, hour 22-5, month 1-3, week 52, year 2025-; also minute and day",
    literal: "none",
    fault: (value) => {
      const part = parseTimePart(String(value));
      return "fault" in part ? part.fault : undefined;
    },
    test: (value) => {
      const wanted = listed(value).map((text) => {
        const part = parseTimePart(text);
        if ("fault" in part) throw new Error(part.fault);
        return part;
      });
      return (tested) => typeof tested === "string" && hasTimePart(wanted, tested);
    },
  }),
} as const;

/** Operators that hold when the field has a value and no value passes the operator they negate. */
const NEGATIONS = {
  not_equals: negation("equals", "the field has a value, and no value equals this one"),
  not_in: negation("in", "the field has a value, and no value equals one of these"),
} as const;

function negation<Name extends keyof typeof VALUE_OPERATORS>(negationOf: Name, about: string) {
  return { ...VALUE_OPERATORS[negationOf], about, literal: "none" as const, negationOf };
}

/** Operators that compare the values of two fields. */
const RELATIONS = {
  equals_field: relates("a value of the field equals a value of this other field", (a, b, fold) =>
    typeof a === "string" && typeof b === "string" ? fold(a) === fold(b) : a === b && typeof a !== "symbol",
  ),
  contains_field: relatesTexts("a value of the field contains a value of this other field", includesText),
  starts_with_field: relatesTexts("a value of the field starts with a value of this other field", (a, b) =>
    a.startsWith(b),
  ),
  ends_with_field: relatesTexts("a value of the field ends with a value of this other field", (a, b) => a.endsWith(b)),
} as const;

/** Every operator. An entry makes it a filter, a condition and a line in the docs. */
export const OPERATORS = {
  ...VALUE_OPERATORS,
  ...NEGATIONS,
  ...RELATIONS,
  exists: operator({
    value: "flag",
    about: "true: the field has a value other than null; false: it has none",
    literal: "none",
    test: () => () => true,
  }),
} as const;

export type ValueOperator = keyof typeof VALUE_OPERATORS;
export type NegationOperator = keyof typeof NEGATIONS;
export type RelationOperator = keyof typeof RELATIONS;
export type OperatorName = keyof typeof OPERATORS;
export const OPERATOR_NAMES = Object.keys(OPERATORS) as OperatorName[];

export function isNegation(name: OperatorName): name is NegationOperator {
  return Object.hasOwn(NEGATIONS, name);
}

export function isRelation(name: OperatorName): name is RelationOperator {
  return Object.hasOwn(RELATIONS, name);
}

/** Operators that need not know which field a value belongs to; a negation does. */
export const ANY_FIELD_OPERATORS: readonly OperatorName[] = OPERATOR_NAMES.filter(
  (name) => (OPERATORS[name] as Operator).takesAnyField === true && !isNegation(name),
);

/** The operator that this one negates, or else the operator itself. */
export function positiveOperator(name: OperatorName): Exclude<OperatorName, NegationOperator> {
  return isNegation(name) ? NEGATIONS[name].negationOf : name;
}

export interface FieldTest {
  readonly kind: "test";
  readonly field: string;
  readonly operator: OperatorName;
  /** Of the operator's kind. */
  readonly value: Scalar | readonly Scalar[];
  readonly ignoreCase: boolean;
}

export type Condition =
  | FieldTest
  | { readonly kind: "all"; readonly of: readonly Condition[] }
  | { readonly kind: "any"; readonly of: readonly Condition[] }
  | { readonly kind: "not"; readonly of: Condition };

export const ALWAYS: Condition = { kind: "all", of: [] };

/** `{ field, <one operator>: value, ignore_case? }` in a request. */
export type FieldTestInput = {
  [Name in OperatorName]?: ValueKinds[(typeof OPERATORS)[Name]["value"]] | undefined;
} & { field: string; ignore_case?: boolean | undefined };

export function toFieldTest(input: FieldTestInput, fields: QueryFields = EVENT_FIELDS): FieldTest {
  const name = fields.operatorField(input.field);
  const operator = OPERATOR_NAMES.find((name) => input[name] !== undefined)!;
  const value = input[operator] as Scalar | Scalar[];
  return {
    kind: "test",
    field: input.field,
    operator,
    value: Array.isArray(value) ? value.map((item) => onField(name, item)) : onField(name, value, operator),
    ignoreCase: input.ignore_case ?? false,
  };
}

/** `{ keyword }`: a text that any field contains, in upper or lower case. */
export type KeywordInput = { keyword: ValueKinds["texts"]; ignore_case: boolean };

export function toKeywordTest({ keyword, ignore_case }: KeywordInput): FieldTest {
  return { kind: "test", field: ANY_FIELD, operator: "contains", value: keyword, ignoreCase: ignore_case };
}

/** The values that a kind of document has at its fields, and the names by which operators know those. */
export interface ConditionFields<Document> extends Pick<QueryFields, "operatorField"> {
  reader(path: string): (document: Document) => readonly FieldValue[];
}

/** Compiles a condition to a predicate: the reference implementation of its meaning. */
export function compileCondition(condition: Condition): (event: Event) => boolean {
  return compileConditionOn(condition, { reader: fieldReader, operatorField: EVENT_FIELDS.operatorField });
}

/** The same for another kind of document than events. */
export function compileConditionOn<Document>(
  condition: Condition,
  fields: ConditionFields<Document>,
): (document: Document) => boolean {
  const compile = (part: Condition) => compileConditionOn(part, fields);
  switch (condition.kind) {
    case "all": {
      const parts = condition.of.map(compile);
      return (document) => parts.every((part) => part(document));
    }
    case "any": {
      const parts = condition.of.map(compile);
      return (document) => parts.some((part) => part(document));
    }
    case "not": {
      const part = compile(condition.of);
      return (document) => !part(document);
    }
    case "test":
      return compileFieldTest(condition, fields);
    default:
      return unreachable(condition);
  }
}

/** The test of a single value that the operator, or the one that it negates, makes. `exists` and relations have none. */
export function compileValueTest(
  { field, operator, value, ignoreCase }: FieldTest,
  { operatorField }: Pick<QueryFields, "operatorField">,
): (value: FieldValue) => boolean {
  const fold = ignoreCase ? foldCase : (text: string) => text;
  return (OPERATORS[operator] as Operator).test(value, { fold, ignoreCase, field: operatorField(field) });
}

function compileFieldTest<Document>(
  test: FieldTest,
  fields: ConditionFields<Document>,
): (document: Document) => boolean {
  const { field, operator: name, value, ignoreCase } = test;
  const read = fields.reader(field);
  if (name === "exists") return (document) => read(document).length > 0 === value;
  const fold = ignoreCase ? foldCase : (text: string) => text;
  if (isRelation(name)) {
    const { relation } = RELATIONS[name];
    const readOther = fields.reader(value as string);
    return (document) => {
      const others = readOther(document);
      return others.length > 0 && read(document).some((a) => others.some((b) => relation(a, b, fold)));
    };
  }
  const passes = compileValueTest(test, fields);
  if (isNegation(name)) {
    return (document) => {
      const values = read(document);
      return values.length > 0 && !values.some(passes);
    };
  }
  return (document) => read(document).some(passes);
}

/** Nesting depth of a condition. */
export function conditionDepth(condition: Condition): number {
  if (condition.kind === "test") return 0;
  const parts = condition.kind === "not" ? [condition.of] : condition.of;
  return 1 + parts.reduce((deepest, part) => Math.max(deepest, conditionDepth(part)), 0);
}

/** Converts a time that is compared with `timestamp` to the form in which events store it. */
function onField(field: string, value: Scalar, operator: OperatorName = "equals"): Scalar {
  if (field !== "timestamp" || typeof value !== "string") return value;
  if (!["equals", "in"].includes(positiveOperator(operator))) return value;
  const ms = parseTime(value);
  return ms === undefined ? value : new Date(ms).toISOString();
}

const CLOSED_FIELDS = new Map<string, readonly string[]>([
  ["severity", SEVERITIES],
  ["class", CLASSES],
  ["status", STATUSES],
  ["resolution", RESOLUTIONS],
]);

/** Reports a value that the field can never have: such a filter would silently match nothing. */
function topFieldFault(value: Scalar, field: string, ignoreCase: boolean): string | undefined {
  const allowed = CLOSED_FIELDS.get(field);
  const word = ignoreCase ? foldCase(String(value)) : value;
  if (allowed && !allowed.some((each) => each === word)) return `must be one of ${allowed.join(", ")}`;
  return field === "timestamp" && (typeof value !== "string" || parseTime(value) === undefined)
    ? TIME_WORDS
    : undefined;
}

/** Compiles a user's pattern. RE2 never backtracks, so that no pattern can hang the service. */
export function compilePattern(pattern: string, ignoreCase: boolean): RE2JS {
  return RE2JS.compile(pattern, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
}

export function patternSubject(text: string): string {
  if (text.length <= PATTERN_TEXT_CHARACTERS_MAX) return text;
  const half = PATTERN_TEXT_CHARACTERS_MAX / 2;
  return text.slice(0, half) + text.slice(-half);
}

function patternFault(pattern: string): string | undefined {
  const weight = patternWeight(pattern);
  if (weight > PATTERN_WEIGHT_MAX) {
    return `too large: ${weight} characters with repetitions expanded; the limit is ${PATTERN_WEIGHT_MAX}`;
  }
  try {
    RE2JS.compile(pattern);
    return undefined;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const missing = NOT_IN_RE2.find(([sign]) => sign.test(reason))?.[1];
    if (missing === undefined) return `not a valid RE2 pattern: ${reason}`;
    return `RE2 has no ${missing}: ${reason.slice(reason.indexOf("`"))}`;
  }
}

/** Features that RE2 lacks, by its error message; RE2 takes a look-behind for a group with an invalid name. */
const NOT_IN_RE2: readonly (readonly [sign: RegExp, name: string])[] = [
  [/`\(\?<[=!]/, "look-behind, (?<=...) and (?<!...)"],
  [/`\(\?[=!]/, "look-ahead, (?=...) and (?!...)"],
  [/`\(\?>/, "atomic groups, (?>...)"],
  [/`(?:\\[1-9k]|\(\?P=)/, "back-references, such as \\1 and \\k<name>"],
];
