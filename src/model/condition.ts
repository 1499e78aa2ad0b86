import { RE2JS } from "re2js";
import { isInRanges, parseCidr } from "../lib/ip.ts";
import { foldCase } from "../lib/text.ts";
import { parseTime, parseTimeUp } from "../lib/time.ts";
import { CLASSES, SEVERITIES, type Event } from "./event.ts";
import { compileGlob } from "./glob.ts";
import { parseHours, withinHours } from "./hours.ts";
import { PATTERN_WEIGHT_MAX, patternWeight } from "./pattern.ts";
import { ANY_FIELD, fieldReader, type FieldValue } from "./field.ts";

// The condition language: what a filter of a search and a condition of a rule say about one event.
// This file is the meaning; a store that evaluates conditions in its own engine must agree with it. How they are checked
// stands in condition-schema.ts, which threads that never check one need not load.

export type Scalar = string | number | bigint | boolean;

/**
 * A pattern looks at this much of a text, so that no text can hold anyone up: of a longer one at its beginning and its end, half
 * of it each, as if nothing stood between them.
 */
export const PATTERN_TEXT_CHARACTERS_MAX = 65_536;
export const CONDITION_DEPTH_MAX = 8;
export const CONDITIONS_MAX = 256;

const TIME_WORDS = "an ISO 8601 time with an offset or Z";

function listed<Item>(value: Item | readonly Item[]): readonly Item[] {
  return Array.isArray(value) ? (value as readonly Item[]) : [value as Item];
}

/** The kinds of value that operators are given. */
interface ValueKinds {
  scalar: Scalar;
  scalars: readonly Scalar[];
  texts: string | readonly string[];
  globs: string | readonly string[];
  patterns: string | readonly string[];
  networks: string | readonly string[];
  bound: number | bigint | string;
  hours: string;
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

/** A comparison of two fields: true for a value of the one and a value of the other. */
type Relation = (value: FieldValue, other: FieldValue, fold: (text: string) => string) => boolean;

export interface Operator<Kind extends ValueKind = ValueKind> {
  /** What it is compared with: condition-schema.ts says what that may be. */
  readonly value: Kind;
  readonly about: string;
  /** What is wrong with a value of the right type, or with one of a list of them, in words. */
  fault?(value: Scalar, field: string, ignoreCase: boolean): string | undefined;
  /** True for one value that the path reached; the condition holds when it is true for any. */
  test(value: ValueKinds[Kind], options: TestOptions): Test;
  /** The condition holds when the path reaches something and the test is true for none of it. */
  readonly negated?: true;
  readonly ignoresCase?: true;
  /** The value is the path of another field of the event, and this is how the two must stand. */
  readonly relation?: Relation;
}

/** Only here so that `test` gets the type of its value from its kind. */
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

const relates = (about: string, relation: Relation) =>
  operator({
    value: "otherField",
    about,
    ignoresCase: true,
    relation,
    test: () => () => false,
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
    fault: (value, field) => {
      if (field === "timestamp") return timeBound(name, value) === undefined ? TIME_WORDS : undefined;
      return typeof value === "string" ? "a number (only timestamp is compared with a time)" : undefined;
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

/** What a stored time, which is of whole milliseconds, is compared with for a time that need not be. */
export function timeBound(comparison: Comparison, value: Scalar): number | undefined {
  if (typeof value !== "string") return undefined;
  return comparison === "gte" || comparison === "lt" ? parseTimeUp(value) : parseTime(value);
}

const equals = operator({
  value: "scalar",
  about: "the value is this one; numbers never equal strings",
  ignoresCase: true,
  fault: topFieldFault,
  test: (value, { fold }) => isAnyOf([value], fold),
});

const among = operator({
  value: "scalars",
  about: "the value is one of these",
  ignoresCase: true,
  fault: topFieldFault,
  test: (value, { fold }) => isAnyOf(value, fold),
});

const startsWith = operator({
  value: "texts",
  about: "the value begins with this text, or with one of these",
  ignoresCase: true,
  test: (value, { fold }) => onText(value, fold, (a, b) => a.startsWith(b)),
});

/** Every operator there is. One entry here makes it a filter, a condition and a line in the docs. */
export const OPERATORS = {
  equals,
  not_equals: { ...equals, about: "there is a value, and none is this one", negated: true },
  in: among,
  not_in: { ...among, about: "there is a value, and none is one of these", negated: true },
  contains: operator({
    value: "texts",
    about: "the value has this text in it, or one of these",
    ignoresCase: true,
    test: (value, { fold }) => onText(value, fold, (a, b) => a.includes(b)),
  }),
  starts_with: startsWith,
  prefix: { ...startsWith, about: "the same as starts_with" },
  ends_with: operator({
    value: "texts",
    about: "the value ends with this text, or with one of these",
    ignoresCase: true,
    test: (value, { fold }) => onText(value, fold, (a, b) => a.endsWith(b)),
  }),
  glob: operator({
    value: "globs",
    about: "the whole value is like this: * stands for any text, ? for one character, \\ before either for itself",
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
    about: `the pattern (RE2 syntax: no look-around, no back-references), or one of these, is found in the value; of one longer than ${PATTERN_TEXT_CHARACTERS_MAX} characters the first and the last ${PATTERN_TEXT_CHARACTERS_MAX / 2} count, put together`,
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
      "the value is an address in this network, or in one of these; a network of IPv6 such as ::/0 has no IPv4 in it",
    fault: (network) =>
      parseCidr(String(network)) ? undefined : "a network such as 10.0.0.0/8 or 2001:db8::/32, or one address",
    test: (value) => {
      const ranges = listed(value).map((network) => parseCidr(network)!);
      return (address) => typeof address === "string" && isInRanges(ranges, address);
    },
  }),
  gt: compares("gt", "the number (or the timestamp) is greater", (a, b) => a > b),
  gte: compares("gte", "the number (or the timestamp) is greater or the same", (a, b) => a >= b),
  lt: compares("lt", "the number (or the timestamp) is less", (a, b) => a < b),
  lte: compares("lte", "the number (or the timestamp) is less or the same", (a, b) => a <= b),
  during: operator({
    value: "hours",
    about: "the timestamp lies in these hours: 22:00-06:00, sat-sun, mon-fri 08:00-18:00 Europe/Berlin (default UTC)",
    fault: (value, field) => {
      if (field !== "timestamp") return "compares timestamp only";
      const hours = parseHours(String(value));
      return "fault" in hours ? hours.fault : undefined;
    },
    test: (value) => {
      const hours = parseHours(value);
      if ("fault" in hours) throw new Error(hours.fault);
      return (at) => withinHours(hours, parseTime(at as string)!);
    },
  }),
  equals_field: relates("the value is also a value of that other field", (a, b, fold) =>
    typeof a === "string" && typeof b === "string" ? fold(a) === fold(b) : a === b && typeof a !== "symbol",
  ),
  contains_field: relatesTexts("the value has a value of that other field in it", (a, b) => a.includes(b)),
  starts_with_field: relatesTexts("the value begins with a value of that other field", (a, b) => a.startsWith(b)),
  ends_with_field: relatesTexts("the value ends with a value of that other field", (a, b) => a.endsWith(b)),
  exists: operator({
    value: "flag",
    about: "true: the path reaches a value other than null; false: it does not",
    test: () => () => true,
  }),
} as const;

export type OperatorName = keyof typeof OPERATORS;
export const OPERATOR_NAMES = Object.keys(OPERATORS) as OperatorName[];

export interface FieldTest {
  readonly kind: "test";
  readonly field: string;
  readonly operator: OperatorName;
  /** Of the kind that the operator says. */
  readonly value: Scalar | readonly Scalar[];
  readonly ignoreCase: boolean;
}

export type Condition =
  | FieldTest
  | { readonly kind: "all"; readonly of: readonly Condition[] }
  | { readonly kind: "any"; readonly of: readonly Condition[] }
  | { readonly kind: "not"; readonly of: Condition };

export const ALWAYS: Condition = { kind: "all", of: [] };

/** `{ field, <one operator>: value, ignore_case? }` as it stands in a request. */
export type FieldTestInput = {
  [Name in OperatorName]?: ValueKinds[(typeof OPERATORS)[Name]["value"]] | undefined;
} & { field: string; ignore_case?: boolean | undefined };

export function toFieldTest(input: FieldTestInput): FieldTest {
  const operator = OPERATOR_NAMES.find((name) => input[name] !== undefined)!;
  const value = input[operator] as Scalar | Scalar[];
  return {
    kind: "test",
    field: input.field,
    operator,
    value: Array.isArray(value)
      ? value.map((item) => onField(input.field, item))
      : onField(input.field, value, operator),
    ignoreCase: input.ignore_case ?? false,
  };
}

/** `{ keyword }`: a text that stands in any field, upper or lower case. */
export type KeywordInput = { keyword: ValueKinds["texts"]; ignore_case: boolean };

export function toKeywordTest({ keyword, ignore_case }: KeywordInput): FieldTest {
  return { kind: "test", field: ANY_FIELD, operator: "contains", value: keyword, ignoreCase: ignore_case };
}

/** Compiles a condition to the plain function that says what it means. */
export function compileCondition(condition: Condition): (event: Event) => boolean {
  switch (condition.kind) {
    case "all": {
      const parts = condition.of.map(compileCondition);
      return (event) => parts.every((part) => part(event));
    }
    case "any": {
      const parts = condition.of.map(compileCondition);
      return (event) => parts.some((part) => part(event));
    }
    case "not": {
      const part = compileCondition(condition.of);
      return (event) => !part(event);
    }
    case "test":
      return compileFieldTest(condition);
  }
}

function compileFieldTest({ field, operator: name, value, ignoreCase }: FieldTest): (event: Event) => boolean {
  const read = fieldReader(field);
  if (name === "exists") return (event) => read(event).length > 0 === value;
  const operator = OPERATORS[name] as Operator;
  const fold = ignoreCase ? foldCase : (text: string) => text;
  if (operator.relation) {
    const { relation } = operator;
    const readOther = fieldReader(value as string);
    return (event) => {
      const others = readOther(event);
      return others.length > 0 && read(event).some((a) => others.some((b) => relation(a, b, fold)));
    };
  }
  const test = operator.test(value, { fold, ignoreCase, field });
  if (operator.negated) {
    return (event) => {
      const values = read(event);
      return values.length > 0 && !values.some(test);
    };
  }
  return (event) => read(event).some(test);
}

/** How deep a condition is nested. */
export function conditionDepth(condition: Condition): number {
  if (condition.kind === "test") return 0;
  const parts = condition.kind === "not" ? [condition.of] : condition.of;
  return 1 + parts.reduce((deepest, part) => Math.max(deepest, conditionDepth(part)), 0);
}

/** A time compared with `timestamp` is brought into the spelling that events are stored in. */
function onField(field: string, value: Scalar, operator: OperatorName = "equals"): Scalar {
  if (field !== "timestamp" || typeof value !== "string") return value;
  if (!["equals", "not_equals", "in", "not_in"].includes(operator)) return value;
  const ms = parseTime(value);
  return ms === undefined ? value : new Date(ms).toISOString();
}

const CLOSED_FIELDS = new Map<string, readonly string[]>([
  ["severity", SEVERITIES],
  ["class", CLASSES],
]);

/** A value that a field of a closed set can never have is a mistake to point out, not an empty answer. */
function topFieldFault(value: Scalar, field: string, ignoreCase: boolean): string | undefined {
  const allowed = CLOSED_FIELDS.get(field);
  const word = ignoreCase ? foldCase(String(value)) : value;
  if (allowed && !allowed.some((each) => each === word)) return `one of ${allowed.join(", ")}`;
  return field === "timestamp" && (typeof value !== "string" || parseTime(value) === undefined)
    ? TIME_WORDS
    : undefined;
}

/** Patterns come from users: nothing that backtracks may run them. */
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
    return `too large: with its repetitions written out it is ${weight} long, and ${PATTERN_WEIGHT_MAX} is the most`;
  }
  try {
    RE2JS.compile(pattern);
    return undefined;
  } catch (error) {
    const told = error instanceof Error ? error.message : String(error);
    const missing = NOT_IN_RE2.find(([sign]) => sign.test(told))?.[1];
    if (missing === undefined) return `not a pattern that RE2 takes: ${told}`;
    return `RE2 has no ${missing}: ${told.slice(told.indexOf("`"))}`;
  }
}

/** What other engines have, by what RE2 says when it meets it: a look-behind is to it a group with an odd name. */
const NOT_IN_RE2: readonly (readonly [sign: RegExp, name: string])[] = [
  [/`\(\?<[=!]/, "look-behind, (?<=...) and (?<!...)"],
  [/`\(\?[=!]/, "look-ahead, (?=...) and (?!...)"],
  [/`\(\?>/, "atomic groups, (?>...)"],
  [/`(?:\\[1-9k]|\(\?P=)/, "back-references, such as \\1 and \\k<name>"],
];
