import type { Draft } from "./draft.ts";

// What a condition can be in the form, and how its value is typed.

export type ValueKind = "scalar" | "scalars" | "texts" | "number" | "text" | "flag";

export interface OperatorChoice {
  readonly name: string;
  readonly words: string;
  readonly kind: ValueKind;
}

export const OPERATORS: readonly OperatorChoice[] = [
  { name: "equals", words: "is", kind: "scalar" },
  { name: "not_equals", words: "is not", kind: "scalar" },
  { name: "in", words: "is one of", kind: "scalars" },
  { name: "not_in", words: "is none of", kind: "scalars" },
  { name: "contains", words: "contains", kind: "texts" },
  { name: "starts_with", words: "starts with", kind: "texts" },
  { name: "ends_with", words: "ends with", kind: "texts" },
  { name: "glob", words: "looks like (* and ?)", kind: "texts" },
  { name: "regex", words: "matches the pattern", kind: "texts" },
  { name: "cidr", words: "is in the network", kind: "texts" },
  { name: "gt", words: "is more than", kind: "number" },
  { name: "gte", words: "is at least", kind: "number" },
  { name: "lt", words: "is less than", kind: "number" },
  { name: "lte", words: "is at most", kind: "number" },
  { name: "during", words: "is within the hours", kind: "text" },
  { name: "time_part", words: "falls on", kind: "texts" },
  { name: "exists", words: "is given", kind: "flag" },
  { name: "equals_field", words: "is the same as the field", kind: "text" },
  { name: "contains_field", words: "contains the field", kind: "text" },
  { name: "starts_with_field", words: "starts with the field", kind: "text" },
  { name: "ends_with_field", words: "ends with the field", kind: "text" },
];

const ALIASES: Readonly<Record<string, string>> = { prefix: "starts_with" };
const BY_NAME = new Map(OPERATORS.map((operator) => [operator.name, operator]));

export function operatorOf(condition: Draft): OperatorChoice | undefined {
  for (const name of Object.keys(condition)) {
    const operator = BY_NAME.get(name) ?? (Object.hasOwn(ALIASES, name) ? BY_NAME.get(ALIASES[name]!) : undefined);
    if (operator !== undefined) return { ...operator, name };
  }
  return undefined;
}

export const CONDITION_KINDS = ["test", "keyword", "any", "all", "not"] as const;
export type ConditionKind = (typeof CONDITION_KINDS)[number];

export function kindOf(condition: unknown): ConditionKind | "unknown" {
  if (typeof condition !== "object" || condition === null || Array.isArray(condition)) return "unknown";
  for (const kind of ["any", "all", "not", "keyword"] as const) if (Object.hasOwn(condition, kind)) return kind;
  return "test";
}

/** A new condition. One that becomes another kind takes along what it can. */
export function conditionOf(kind: ConditionKind, before?: unknown): Draft {
  const test = kindOf(before) === "test" ? (before as Draft) : { field: "type", equals: "" };
  switch (kind) {
    case "test":
      return test;
    case "keyword":
      return { keyword: [] };
    case "not":
      return { not: before ?? test };
    case "any":
    case "all":
      return { [kind]: [before ?? test] };
    default:
      return kind satisfies never;
  }
}

/** A value as it is typed. A text that reads as something else is put in quotation marks. */
export function scalarText(value: unknown): string {
  if (typeof value !== "string") return value === undefined ? "" : JSON.stringify(value);
  return readScalar(value) === value ? value : JSON.stringify(value);
}

const NUMBER = /^-?(0|[1-9]\d{0,14})(\.\d+)?$/;

export function readScalar(typed: string): string | number | boolean {
  const trimmed = typed.trim();
  if (trimmed === "true" || trimmed === "false") return trimmed === "true";
  if (NUMBER.test(trimmed)) return Number(trimmed);
  if (/^".*"$/.test(trimmed)) {
    try {
      return JSON.parse(trimmed) as string;
    } catch {
      return typed;
    }
  }
  return typed;
}

/** The value of an operator as it stands in its field; several stand one a line. */
export function valueText(kind: ValueKind, value: unknown): string {
  const values = Array.isArray(value) ? (value as unknown[]) : value === undefined ? [] : [value];
  return values.map((each) => lineOf(kind, each)).join("\n");
}

function lineOf(kind: ValueKind, value: unknown): string {
  // In a list an empty line is nothing, and a new line another value.
  if (kind === "scalars" && typeof value === "string" && /^\s*$|\n/.test(value)) return JSON.stringify(value);
  return kind === "scalar" || kind === "scalars" || kind === "number" ? scalarText(value) : String(value);
}

export function readValue(kind: ValueKind, typed: string): unknown {
  const lines = typed.split("\n");
  const given = lines.filter((line) => line.trim() !== "");
  switch (kind) {
    case "scalar":
    case "number":
      return readScalar(typed);
    case "text":
      return typed;
    case "scalars":
      return given.map(readScalar);
    case "texts":
      return given.length === 1 ? given[0] : given;
    case "flag":
      return typed === "true";
    default:
      return kind satisfies never;
  }
}

/** The same condition with another operator; the value stays as far as it can. */
export function withOperator(condition: Draft, name: string): Draft {
  const before = operatorOf(condition);
  const operator = BY_NAME.get(name)!;
  const typed = before === undefined ? "" : valueText(before.kind, condition[before.name]);
  const value = operator.kind === "flag" ? true : readValue(operator.kind, before?.kind === "flag" ? "" : typed);
  return { field: condition["field"], [name]: value };
}
