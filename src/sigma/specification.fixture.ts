import type { JsonObject, JsonValue } from "../model/event.ts";

// A second, deliberately simple implementation of the Sigma specification, independent of the import, for tests.

export type Scalar = string | number | boolean | null;

/** One line of a selection, its meaning, and values for generated events. */
export interface Line {
  readonly field: string;
  readonly modifiers: readonly string[];
  readonly values: readonly Scalar[];
  readonly holds: (found: readonly JsonValue[], raw: JsonObject) => boolean;
  readonly good: readonly (JsonValue | undefined)[];
  readonly bad: readonly (JsonValue | undefined)[];
}

type Token = { readonly any: true } | { readonly one: true } | { readonly char: string };

export function tokensOf(pattern: string): Token[] {
  if (pattern === "") return [];
  const [char, next] = [pattern[0]!, pattern[1]];
  if (char === "\\" && next !== undefined && "\\*?".includes(next))
    return [{ char: next }, ...tokensOf(pattern.slice(2))];
  const token: Token = char === "*" ? { any: true } : char === "?" ? { one: true } : { char };
  return [token, ...tokensOf(pattern.slice(1))];
}

function isLike(tokens: readonly Token[], text: string): boolean {
  const [token, ...rest] = tokens;
  if (!token) return text === "";
  if ("any" in token) return isLike(rest, text) || (text !== "" && isLike(tokens, text.slice(1)));
  return text !== "" && ("one" in token || token.char === text[0]) && isLike(rest, text.slice(1));
}

export function textHolds(modifiers: readonly string[], pattern: string, text: string): boolean {
  const fold = (each: string) => (modifiers.includes("cased") ? each : each.toLowerCase());
  const star: Token[] = [{ any: true }];
  const before = modifiers.includes("contains") || modifiers.includes("endswith") ? star : [];
  const after = modifiers.includes("contains") || modifiers.includes("startswith") ? star : [];
  return isLike([...before, ...tokensOf(fold(pattern)), ...after], fold(text));
}

const DASHES = ["-", "/", "\u2013", "\u2014", "\u2015"];

/** Every spelling of the options of a command line. */
function dashed(text: string, at = 0): string[] {
  if (at === text.length) return [""];
  const isOption = "-/".includes(text[at]!) && !/\w/.test(text[at - 1] ?? " ") && /\w/.test(text[at + 1] ?? " ");
  const rest = dashed(text, at + 1);
  return (isOption ? DASHES : [text[at]!]).flatMap((char) => rest.map((tail) => char + tail));
}

/** Compares an untyped value of a rule with a value of an event. */
function valueHolds(modifiers: readonly string[], wanted: Scalar, found: JsonValue): boolean {
  const patterns = modifiers.includes("windash") ? dashed(String(wanted)) : [String(wanted)];
  const isPart = ["contains", "startswith", "endswith"].some((place) => modifiers.includes(place));
  return patterns.some((pattern) => {
    const tokens = tokensOf(pattern);
    // A documented difference from Sigma: only `*` alone matches numbers and booleans, other wildcards and parts of a text do not.
    const fitsAnyType =
      tokens.every((token) => "any" in token) || (!isPart && tokens.every((token) => "char" in token));
    return (typeof found === "string" || fitsAnyType) && textHolds(modifiers, pattern, String(found));
  });
}

/** The values of a field: none if it is missing or null, every element of a list. */
export function valuesAt(raw: JsonObject, field: string): JsonValue[] {
  return [raw[field] ?? []].flat().filter((value) => value !== null);
}

function lineHolds({ field, modifiers, values, holds }: Line, raw: JsonObject): boolean {
  const found = valuesAt(raw, field);
  const isFound = (wanted: Scalar) =>
    wanted === null ? found.length === 0 : found.some((value) => valueHolds(modifiers, wanted, value));
  const plain = modifiers.some((modifier) => SPECIAL.has(modifier))
    ? holds(found, raw)
    : modifiers.includes("all")
      ? values.every(isFound)
      : values.some(isFound);
  return modifiers.includes("neq") ? !plain : plain;
}

const TIME_PARTS = ["minute", "hour", "day", "week", "month", "year"];
const SPECIAL = new Set(["re", "cidr", "lt", "lte", "gt", "gte", "exists", "fieldref", ...TIME_PARTS]);

export type Selection =
  | { readonly lines: readonly Line[] }
  | { readonly keywords: readonly string[]; readonly all: boolean };

export function selectionHolds(selection: Selection, raw: JsonObject): boolean {
  if ("lines" in selection) return selection.lines.every((line) => lineHolds(line, raw));
  const texts = Object.keys(raw).flatMap((field) => valuesAt(raw, field).filter((value) => typeof value === "string"));
  const isFound = (keyword: string) => texts.some((text) => textHolds(["contains"], keyword, text));
  return selection.all ? selection.keywords.every(isFound) : selection.keywords.some(isFound);
}

export type Logic =
  | { readonly name: string }
  | { readonly not: Logic }
  | { readonly word: "and" | "or"; readonly parts: readonly Logic[] }
  | { readonly quantity: "1" | "all"; readonly of: "them" | "sel_*" };

export function logicHolds(node: Logic, truth: Readonly<Record<string, boolean>>): boolean {
  if ("name" in node) return truth[node.name]!;
  if ("not" in node) return !logicHolds(node.not, truth);
  const parts =
    "of" in node
      ? Object.entries(truth).flatMap(([name, holds]) => (node.of === "them" || name.startsWith("sel_") ? [holds] : []))
      : node.parts.map((part) => logicHolds(part, truth));
  const isAll = "of" in node ? node.quantity === "all" : node.word === "and";
  return isAll ? parts.every(Boolean) : parts.some(Boolean);
}
