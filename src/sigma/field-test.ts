import { canonicalNumber } from "../lib/exact-json.ts";
import { faultsOf } from "../lib/fault.ts";
import { unreachable } from "../lib/unreachable.ts";
import type { OperatorName, Scalar } from "../model/condition.ts";
import { fieldTestSchema } from "../model/condition-schema.ts";
import { ANY_RAW_FIELD } from "../model/field.ts";
import type { ConditionInput } from "../model/rule.ts";
import { isTimePartName, timePartText, type TimePartName } from "../model/time-part.ts";
import { allOf, anyOf, inChunks, notOf } from "./combine.ts";
import { ENCODINGS, isPlain, modifierFault, type EncodedText } from "./modifiers.ts";
import type { ImportNotes } from "./import-note.ts";
import { parsePattern, toTextTest, type TextPosition } from "./sigma-pattern.ts";
import { fromPcre } from "./pcre.ts";
import { expand, type Placeholders } from "./placeholders.ts";

// Converts one line of a selection, `Image|endswith: ['\a.exe', '\b.exe']`, to a condition.

export type SigmaScalar = Scalar | null;

export interface FieldNames extends Placeholders {
  /** Paths in our events that a Sigma field may have: one, or several alternatives. */
  pathsOf(field: string): readonly string[];
}

export interface SelectionLine {
  /** Null for a keyword, a text anywhere in the event. */
  readonly field: string | null;
  readonly modifiers: readonly string[];
  readonly values: readonly SigmaScalar[];
  readonly place: string;
}

const LIST_VALUES_MAX = 1000;
const PATTERNS_MAX = 100;

/** Fields that always hold numbers, by lower-case name in Sigma or in our events. */
const NUMBERS: ReadonlySet<string> = new Set(
  (
    "eventid event_id logontype processid parentprocessid port sourceport destinationport src_port dst_port " +
    "signature_id sc-status sc-bytes cs-bytes"
  ).split(" "),
);

export function toCondition(line: SelectionLine, names: FieldNames, notes: ImportNotes): ConditionInput | undefined {
  const { modifiers, place } = line;
  const fault = modifierFault(modifiers);
  if (fault !== undefined) return notes.refuse(place, fault);
  if (line.values.length === 0) return notes.refuse(place, "has no value");
  const values = modifiers.includes("expand") ? expand(line.values, names) : line.values;
  if ("fault" in values) return notes.refuse(place, values.fault);
  const refusalsBefore = notes.refusals.length;
  const paths = line.field === null ? [ANY_RAW_FIELD] : names.pathsOf(line.field);
  const all = modifiers.includes("all");
  // With `all`, each value must match; without, any.
  const groups = all ? values.map((value) => [value]) : [values];
  const tests = groups.flatMap((group) => compareAny(paths, { ...line, values: group }, names, notes));
  if (notes.refusals.length > refusalsBefore || tests.length === 0) return undefined;
  for (const test of tests) refuseFaults(test, place, notes);
  if (notes.refusals.length > refusalsBefore) return undefined;
  if (tests.some(asksForText) && [line.field ?? "", ...paths].some(isNumber)) {
    notes.remark(place, `tests text: it does not match if ${paths[0]} is a number`);
  }
  const condition = all ? allOf(tests) : anyOf(tests);
  return modifiers.includes("neq") ? notOf(condition) : condition;
}

/** A line without null values, which mean that the field is missing. */
interface PresentLine extends SelectionLine {
  readonly values: readonly Exclude<SigmaScalar, null>[];
}

/** Tests a field with alternative paths: it has a value if any path has one, and is missing if all are. */
function compareAny(
  paths: readonly string[],
  line: SelectionLine,
  names: FieldNames,
  notes: ImportNotes,
): ConditionInput[] {
  const { modifiers, values, place } = line;
  const missing = () => allOf(paths.map((field) => ({ field, exists: false })));
  if (modifiers.includes("exists")) {
    const [value] = values;
    if (values.length !== 1 || typeof value !== "boolean") {
      notes.refuse(place, "exists takes true or false");
      return [];
    }
    notes.remark(place, "treats a field that is null or an empty list as missing, unlike Sigma");
    return [value ? anyOf(paths.map((field) => ({ field, exists: true }))) : missing()];
  }
  const tests: ConditionInput[] = [];
  const present = values.filter((value) => value !== null);
  if (present.length < values.length) {
    if (isPlain(modifiers) && line.field !== null) tests.push(missing());
    else notes.refuse(place, "null takes no modifier and requires a field");
  }
  if (present.length > 0) {
    tests.push(...paths.flatMap((path) => compare(path, { ...line, values: present }, names, notes)));
  }
  return tests.length > 1 ? [anyOf(tests)] : tests;
}

/** Alternative tests on one path. */
function compare(path: string, line: PresentLine, names: FieldNames, notes: ImportNotes): ConditionInput[] {
  const { modifiers, values, place } = line;
  const has = (modifier: string) => modifiers.includes(modifier);
  const ignore_case = !has("cased");
  if (has("re")) {
    const flags = ["m", "s"].filter(has).join("");
    const patterns = values.map((value) => (flags === "" ? "" : `(?${flags})`) + fromPcre(String(value), has("m")));
    const make = (regex: string[]) => ({ field: path, regex: oneOrAll(regex), ...(has("i") && { ignore_case: true }) });
    return grouped(patterns, make, PATTERNS_MAX);
  }
  if (has("cidr")) return grouped(values.map(String), (cidr) => ({ field: path, cidr: oneOrAll(cidr) }));
  const order = (["lt", "lte", "gt", "gte"] as const).find(has);
  const timePart = modifiers.find(isTimePartName);
  if (timePart !== undefined) return compareTimeParts(path, timePart, { order, values, place }, notes);
  if (order !== undefined) {
    return values.flatMap((value) => {
      const bound = typeof value === "string" ? numberOf(value.trim()) : value;
      const isNumber = typeof bound === "bigint" || (typeof bound === "number" && Number.isFinite(bound));
      if (isNumber) return [{ field: path, [order]: bound } as ConditionInput];
      notes.refuse(place, `${order} takes a number`);
      return [];
    });
  }
  if (has("fieldref")) {
    const operator = has("contains")
      ? "contains_field"
      : has("startswith")
        ? "starts_with_field"
        : has("endswith")
          ? "ends_with_field"
          : "equals_field";
    notes.remark(place, 'compares values of the same type only: 1 does not equal "1"');
    return values.flatMap((value) =>
      names.pathsOf(String(value)).map((other) => ({ field: path, [operator]: other, ignore_case }) as ConditionInput),
    );
  }
  return compareTexts(path, line, notes);
}

/** Converts comparisons of a time part, which is an integer, to ranges. */
function compareTimeParts(
  path: string,
  part: TimePartName,
  { order, values, place }: Pick<PresentLine, "values" | "place"> & { readonly order: Order | undefined },
  notes: ImportNotes,
): ConditionInput[] {
  if (path === ANY_RAW_FIELD) {
    notes.refuse(place, `${part} requires a field`);
    return [];
  }
  const texts = values.flatMap((value) => {
    const number = typeof value === "string" ? numberOf(value.trim()) : value;
    const text = typeof number === "number" ? timePartText(part, ...rangeOf(order, number)) : undefined;
    if (text !== undefined) return [text];
    const words =
      typeof number === "number" ? `no ${part} is ${order ?? "equal to"} ${number}` : `${part} takes a number`;
    notes.refuse(place, words);
    return [];
  });
  return grouped([...new Set(texts)], (time_part) => ({ field: path, time_part: oneOrAll(time_part) }), PATTERNS_MAX);
}

type Order = "lt" | "lte" | "gt" | "gte";

/** The range of integers that satisfy the comparison. */
function rangeOf(order: Order | undefined, number: number): [least: number, most: number] {
  switch (order) {
    case "lt":
      return [-Infinity, Math.ceil(number) - 1];
    case "lte":
      return [-Infinity, Math.floor(number)];
    case "gt":
      return [Math.floor(number) + 1, Infinity];
    case "gte":
      return [Math.ceil(number), Infinity];
    case undefined:
      return [Math.ceil(number), Math.floor(number)];
    default:
      return unreachable(order);
  }
}

function compareTexts(path: string, { modifiers, values, place }: PresentLine, notes: ImportNotes): ConditionInput[] {
  const where = (["contains", "startswith", "endswith"] as const).find((name) => modifiers.includes(name)) ?? "whole";
  const isCased = modifiers.includes("cased");
  const isWhole = isPlain(modifiers);
  const lists: Record<string, Scalar[]> = {};
  const put = (operator: string, ...items: Scalar[]) => {
    if (items.length > 0) (lists[operator] ??= []).push(...items);
  };
  const conditions: ConditionInput[] = [];
  for (const value of values) {
    if (typeof value !== "string" && isWhole && path !== ANY_RAW_FIELD) {
      put("in", value, String(value));
      continue;
    }
    for (const { pattern } of encode(String(value), { modifiers, place }, notes)) {
      const test = toTextTest(
        pattern,
        path === ANY_RAW_FIELD && where === "whole" ? "contains" : (where satisfies TextPosition),
      );
      if (test.operator === "any") {
        if (path === ANY_RAW_FIELD) notes.refuse(place, "a keyword requires a text");
        else conditions.push({ field: path, exists: true });
      } else if (test.operator === "equals") put("in", test.text, ...otherTypes(test.text, isCased));
      else put(test.operator, test.text);
      // A text may be part of a value; a number must be the whole value.
      if (path === ANY_RAW_FIELD && isWhole && test.operator === "contains")
        put("in", ...otherTypes(test.text, isCased));
    }
  }
  for (const [operator, items] of Object.entries(lists)) {
    const ignoresCase = !isCased && items.some((item) => typeof item === "string" && /\p{L}/u.test(item));
    const cased = ignoresCase ? { ignore_case: true } : {};
    if (operator === "in" && items.length === 1) conditions.push({ field: path, equals: items[0]!, ...cased });
    else if (operator === "in")
      conditions.push(...grouped(items, (several) => ({ field: path, in: several, ...cased })));
    else {
      const make = (texts: string[]) => ({ field: path, [operator]: oneOrAll(texts), ...cased }) as ConditionInput;
      conditions.push(...grouped(items as string[], make));
    }
  }
  return conditions.length > 1 ? [anyOf(conditions)] : conditions;
}

/** The same value in other types: Sigma is untyped, so "4624" also matches the number 4624. */
function otherTypes(text: string, isCased: boolean): Scalar[] {
  const boolean = isCased ? text : text.toLowerCase();
  if (boolean === "true" || boolean === "false") return [boolean === "true"];
  const number = numberOf(text);
  return number !== undefined && String(number) === text ? [number] : [];
}

/** The exact number that a text represents; undefined if it is none. */
function numberOf(text: string): number | bigint | undefined {
  if (/^[+-]?\d+$/.test(text)) return canonicalNumber(BigInt(text.replace("+", "")));
  const number = text === "" ? Number.NaN : Number(text);
  return Number.isFinite(number) ? canonicalNumber(number) : undefined;
}

function encode(
  text: string,
  { modifiers, place }: Pick<SelectionLine, "modifiers" | "place">,
  notes: ImportNotes,
): EncodedText[] {
  let made: readonly EncodedText[] = [{ pattern: parsePattern(text), bytes: false }];
  for (const modifier of modifiers) {
    const encoding = ENCODINGS[modifier];
    if (!encoding) continue;
    const next: EncodedText[] = [];
    for (const item of made) {
      const encoded = encoding(item);
      if ("fault" in encoded) {
        notes.refuse(place, encoded.fault);
        return [];
      }
      next.push(...encoded);
    }
    made = next;
  }
  return [...made];
}

function oneOrAll(items: string[]): string | string[] {
  return items.length === 1 ? items[0]! : items;
}

/** One test with a list, or several if the list exceeds the limit. */
function grouped<Item>(
  items: Item[],
  make: (items: Item[]) => ConditionInput,
  itemsMax = LIST_VALUES_MAX,
): ConditionInput[] {
  const chunks: Item[][] = [];
  for (let at = 0; at < items.length; at += itemsMax) chunks.push(items.slice(at, at + itemsMax));
  return inChunks(chunks.map(make), (any) => ({ any }));
}

function isNumber(field: string): boolean {
  return NUMBERS.has(field.slice(field.lastIndexOf(".") + 1).toLowerCase());
}

const TEXT_OPERATORS: readonly OperatorName[] = ["contains", "starts_with", "ends_with", "glob", "regex"];

function asksForText(condition: ConditionInput): boolean {
  if ("any" in condition) return condition.any.some(asksForText);
  return TEXT_OPERATORS.some((operator) => operator in condition);
}

/** Reports faults of the condition here, where the path in the Sigma rule is known. */
function refuseFaults(condition: ConditionInput, place: string, notes: ImportNotes): void {
  if ("any" in condition) return condition.any.forEach((inner) => refuseFaults(inner, place, notes));
  if ("all" in condition) return condition.all.forEach((inner) => refuseFaults(inner, place, notes));
  if ("not" in condition) return;
  const parsed = fieldTestSchema.safeParse(condition);
  if (parsed.success) return;
  for (const { field, message } of faultsOf(parsed.error)) {
    notes.refuse(place, field === "field" ? `${(condition as { field?: string }).field}: ${message}` : message);
  }
}
