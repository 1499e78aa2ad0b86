import { ENTITY_FIELDS, ENTITY_KINDS, type Entity, type EntityKind } from "../components/entities/entity.ts";
import type { Schemas } from "./client.ts";

// Conditions on fields of events, as a person writes them and as the service takes them.

export const OPERATORS = ["=", "!=", "~", "!~", ">", ">=", "<", "<="] as const;
export type Operator = (typeof OPERATORS)[number];

export interface Condition {
  /** A path, as the service has it: `severity`, `raw.user`. */
  readonly field: string;
  readonly operator: Operator;
  /** For `=`: also a network, or a text with `*` and `?`. `*` alone means any value. A backslash takes away such a meaning. */
  readonly value: string;
}

/** Stands for all fields that name a thing: `entity=door:Loading dock`. */
export const ENTITY_FIELD = "entity";

/** The value of a condition on an entity. */
export const entityValue = ({ kind, value }: Entity) => literally(`${kind}:${value}`);

export function readEntityValue(text: string): Entity | undefined {
  const [, kind, value] = /^([a-z]+):(.+)$/s.exec(unescaped(text)) ?? [];
  const isKnown = (ENTITY_KINDS as readonly string[]).includes(kind ?? "");
  return isKnown ? { kind: kind as EntityKind, value: value! } : undefined;
}

export const entityPaths = (kind: EntityKind) => ENTITY_FIELDS[kind].map((field) => `raw.${field}`);

type FieldTest = Schemas["FieldTest"];
export type Filter = Schemas["Filter"];
type Bool = Schemas["BoolFilter"]["bool"];

const NUMBER = /^-?\d{1,15}(\.\d{1,6})?$/;
const NETWORK = /^[0-9a-f:.]+\/\d{1,3}$/i;
const COMPARISONS = { ">": "gt", ">=": "gte", "<": "lt", "<=": "lte" } as const;

export const isAnyValue = (value: string) => value === "*";
export const hasWildcard = (value: string) => /(?<!\\)(?:\\\\)*[*?]/.test(value);
export const unescaped = (value: string) => value.replaceAll(/\\([*?\\])/g, "$1");

/** The text as it is, without a meaning of its own for `*`, `?` and the backslash. */
export const literally = (value: string) => value.replaceAll(/[*?\\]/g, (character) => `\\${character}`);

/** A person types 443 and means the number, or the text where the sender wrote one. */
export function scalarsOf(text: string): (string | number | boolean)[] {
  if (text === "true" || text === "false") return [text === "true", text];
  return NUMBER.test(text) ? [Number(text), text] : [text];
}

function equalTest(field: string, value: string): FieldTest {
  if (isAnyValue(value)) return { field, exists: true };
  if (hasWildcard(value)) return { field, glob: value, ignore_case: true };
  const text = unescaped(value);
  if (NETWORK.test(text)) return { field, cidr: text };
  const scalars = scalarsOf(text);
  return scalars.length === 1 ? { field, equals: text } : { field, in: scalars };
}

function testOf({ field, operator, value }: Condition): FieldTest {
  switch (operator) {
    case "=":
    case "!=":
      return equalTest(field, value);
    case "~":
    case "!~":
      return { field, contains: value, ignore_case: true };
    default:
      return { field, [COMPARISONS[operator]]: field === "timestamp" ? value : Number(value) };
  }
}

const isNegative = (operator: Operator) => operator.startsWith("!");

/** Several values of one field that are asked for: one of them is enough. */
function alternatives(tests: readonly FieldTest[]): Filter {
  if (tests.length === 1) return tests[0]!;
  const plain = tests.flatMap(({ equals, in: some }) => some ?? (equals === undefined ? [] : [equals]));
  const isPlain = tests.every(({ equals, in: some }) => equals !== undefined || some !== undefined);
  return isPlain ? { field: tests[0]!.field, in: plain } : { bool: { should: [...tests] } };
}

/** Values of one field are alternatives; different fields must all hold. Words must all occur in some field. */
export function boolOf(conditions: readonly Condition[], words: readonly string[]): Bool | undefined {
  const wanted = new Map<string, FieldTest[]>();
  const must: Filter[] = [];
  const mustNot: Filter[] = [];
  for (const condition of conditions) {
    const entity = condition.field === ENTITY_FIELD ? readEntityValue(condition.value) : undefined;
    if (entity !== undefined) {
      const should = entityPaths(entity.kind).map((field): Filter => ({ field, equals: entity.value }));
      (isNegative(condition.operator) ? mustNot : must).push({ bool: { should } });
      continue;
    }
    const test = testOf(condition);
    if (isNegative(condition.operator)) mustNot.push(test);
    else if (condition.operator === "=") wanted.set(test.field, [...(wanted.get(test.field) ?? []), test]);
    else must.push(test);
  }
  for (const tests of wanted.values()) must.push(alternatives(tests));
  for (const word of words) must.push({ keyword: word });
  if (must.length === 0 && mustNot.length === 0) return undefined;
  return { ...(must.length > 0 && { must }), ...(mustNot.length > 0 && { must_not: mustNot }) };
}

/** The field that a warning is about, from its place in the request: `query.bool.must[0].field`. */
export function fieldAt(query: object, place: string): string | undefined {
  let here: unknown = { query };
  for (const step of place.split(/[.[\]]+/).filter((part) => part !== "")) {
    here = typeof here === "object" && here !== null ? (here as Record<string, unknown>)[step] : undefined;
  }
  return typeof here === "string" ? here : undefined;
}

/** `ada "front door"` is two words; a quoted phrase is one. */
export function wordsOf(text: string): string[] {
  return [...text.matchAll(/"([^"]+)"|(\S+)/g)].map(([, phrase, word]) => phrase ?? word!);
}
