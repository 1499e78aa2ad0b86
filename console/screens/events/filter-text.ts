import {
  ENTITY_FIELD,
  OPERATORS,
  readEntityValue,
  type Condition,
  type Operator,
} from "../../data/event-conditions.ts";

// Conditions as text: in the address (`raw.user=admin,type!=dns_query`) and as a person types them (`user=admin door="Loading dock"`).

const CONDITIONS_MAX = 50;
const TOP_FIELDS = new Set([ENTITY_FIELD, "id", "type", "source", "class", "severity", "timestamp"]);
/** Longest first, so that `>=` is not read as `>`. */
const BY_LENGTH = OPERATORS.toSorted((a, b) => b.length - a.length);
const OPERATOR_START = new Set("=!~<>");

export function fieldPath(name: string): string {
  return TOP_FIELDS.has(name) || /^(raw|enrichment)\./.test(name) ? name : `raw.${name}`;
}

/** `raw.user` is shown as `user`: nearly all fields are of `raw`. */
export const fieldName = (path: string) => path.replace(/^raw\./, "");

function operatorAt(text: string, at: number): Operator | undefined {
  return BY_LENGTH.find((operator) => text.startsWith(operator, at));
}

/** Commas separate conditions and operators end a name, so that either is escaped where it is neither. */
const escapeField = (text: string) => text.replaceAll(/[\\,=!~<>]/g, (character) => `\\${character}`);
const escapeValue = (text: string) => text.replaceAll(/[\\,]/g, (character) => `\\${character}`);

export function writeConditions(conditions: readonly Condition[]): string | undefined {
  if (conditions.length === 0) return undefined;
  return conditions
    .map(({ field, operator, value }) => `${escapeField(field)}${operator}${escapeValue(value)}`)
    .join(",");
}

/** What is no condition is left out. */
export function readConditions(text: string | undefined): Condition[] {
  if (text === undefined) return [];
  return splitUnescaped(text)
    .map(readCondition)
    .filter((condition) => condition !== undefined)
    .slice(0, CONDITIONS_MAX);
}

/** At commas; a backslash keeps the character behind it. */
function splitUnescaped(text: string): string[] {
  const parts = [""];
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (character === ",") parts.push("");
    else if (character === "\\") parts[parts.length - 1] += character + (text[++at] ?? "");
    else parts[parts.length - 1] += character;
  }
  return parts;
}

function readCondition(text: string): Condition | undefined {
  let field = "";
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "\\") field += text[++at] ?? "";
    else if (OPERATOR_START.has(text[at]!)) {
      const operator = operatorAt(text, at);
      return operator && condition(field, operator, text.slice(at + operator.length).replaceAll(/\\(.)/gs, "$1"));
    } else field += text[at]!;
  }
  return undefined;
}

function condition(name: string, operator: Operator, value: string): Condition | undefined {
  if (name.trim() === "" || value === "") return undefined;
  const field = fieldPath(name.trim());
  if (field === ENTITY_FIELD && (readEntityValue(value) === undefined || !/^!?=$/.test(operator))) return undefined;
  const isComparison = operator.startsWith(">") || operator.startsWith("<");
  if (isComparison && field !== "timestamp" && !Number.isFinite(Number(value))) return undefined;
  return { field, operator, value };
}

/** Where somebody types: a name and an operator, with or without the beginning of a value. */
const TYPED = /^([^\s=!~<>":]+)\s*(!=|!~|>=|<=|=|~|>|<|:)\s*(?:"([^"]*)"?|([^\s"]*))$/;
const TYPED_ALL = /([^\s=!~<>":]+)\s*(!=|!~|>=|<=|=|~|>|<)\s*(?:"([^"]*)"|([^\s"]+))/g;

export interface TypedFilter {
  readonly conditions: readonly Condition[];
  /** What is no condition, to be looked for in all fields. */
  readonly words: string;
}

/** `user=admin door="Loading dock" refused` is two conditions and a word. */
export function parseTyped(text: string): TypedFilter {
  const conditions: Condition[] = [];
  const rest = text.replaceAll(TYPED_ALL, (whole, name: string, operator: Operator, quoted?: string, bare?: string) => {
    const made = condition(name, operator, quoted ?? bare ?? "");
    if (made === undefined) return whole;
    conditions.push(made);
    return " ";
  });
  return { conditions, words: rest.replaceAll(/\s+/g, " ").trim() };
}

export interface Unfinished {
  /** The text before what is being typed, which a suggestion keeps. */
  readonly before: string;
  readonly name: string;
  readonly operator: Operator | undefined;
  readonly value: string;
}

/** The last piece of what is typed, for suggestions. */
export function unfinished(text: string): Unfinished {
  const start = lastPieceStart(text);
  const piece = text.slice(start);
  const match = TYPED.exec(piece);
  const before = text.slice(0, start);
  if (match === null) return { before, name: piece.trim(), operator: undefined, value: "" };
  const operator = match[2] === ":" ? "=" : (match[2] as Operator);
  return { before, name: match[1]!, operator, value: match[3] ?? match[4] ?? "" };
}

function lastPieceStart(text: string): number {
  let start = 0;
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '"') isQuoted = !isQuoted;
    else if (text[at] === " " && !isQuoted) start = at + 1;
  }
  return start;
}

/** As it would be typed, to be changed. */
export function typedCondition({ field, operator, value }: Condition): string {
  return `${fieldName(field)}${operator}${/\s/.test(value) ? `"${value}"` : value}`;
}
