import { canonicalNumber } from "../lib/exact-json.ts";
import { faultsOf } from "../lib/fault.ts";
import type { OperatorName, Scalar } from "../model/condition.ts";
import { fieldTestSchema } from "../model/condition-schema.ts";
import { ANY_RAW_FIELD } from "../model/field.ts";
import type { ConditionInput } from "../model/rule.ts";
import { allOf, anyOf, inChunks, notOf } from "./combine.ts";
import { ENCODINGS, isPlain, modifierFault, type EncodedText } from "./modifiers.ts";
import type { Notes } from "./note.ts";
import { parsePattern, toTextTest, type Where } from "./pattern.ts";
import { fromPcre } from "./pcre.ts";
import { expand, type Placeholders } from "./placeholders.ts";

// One line of a selection, `Image|endswith: ['\a.exe', '\b.exe']`, as a condition of ours.

export type SigmaScalar = Scalar | null;

export interface FieldNames extends Placeholders {
  /** Where a field of Sigma may stand in our events: under one path, or under any of several. */
  pathsOf(field: string): readonly string[];
}

export interface Line {
  /** Null for a keyword: a text anywhere in the event. */
  readonly field: string | null;
  readonly modifiers: readonly string[];
  readonly values: readonly SigmaScalar[];
  readonly place: string;
}

const LIST_VALUES_MAX = 1000;
const PATTERNS_MAX = 100;

/** Fields that hold numbers wherever they come from, by their names in Sigma or in our events, in lower case. */
const NUMBERS: ReadonlySet<string> = new Set(
  (
    "eventid event_id logontype processid parentprocessid port sourceport destinationport src_port dst_port " +
    "signature_id sc-status sc-bytes cs-bytes"
  ).split(" "),
);

export function toCondition(line: Line, names: FieldNames, notes: Notes): ConditionInput | undefined {
  const { modifiers, place } = line;
  const fault = modifierFault(modifiers);
  if (fault !== undefined) return notes.refuse(place, fault);
  if (line.values.length === 0) return notes.refuse(place, "has no value");
  const values = modifiers.includes("expand") ? expand(line.values, names) : line.values;
  if ("fault" in values) return notes.refuse(place, values.fault);
  const refusalsBefore = notes.refusals.length;
  const paths = line.field === null ? [ANY_RAW_FIELD] : names.pathsOf(line.field);
  const all = modifiers.includes("all");
  // With `all`, each value must be found; without, any of them.
  const groups = all ? values.map((value) => [value]) : [values];
  const tests = groups.flatMap((group) => compareAny(paths, { ...line, values: group }, names, notes));
  if (notes.refusals.length > refusalsBefore || tests.length === 0) return undefined;
  for (const test of tests) refuseFaults(test, place, notes);
  if (notes.refusals.length > refusalsBefore) return undefined;
  if (tests.some(asksForText) && [line.field ?? "", ...paths].some(isNumber)) {
    notes.remark(place, `is a test of text: where ${paths[0]} is a number and not a text, it finds nothing`);
  }
  const condition = all ? allOf(tests) : anyOf(tests);
  return modifiers.includes("neq") ? notOf(condition) : condition;
}

/** Without nulls, which say that the field is missing. */
interface PresentLine extends Line {
  readonly values: readonly Exclude<SigmaScalar, null>[];
}

/** A field that may stand under several paths has a value where any of them has one, and is missing where all are. */
function compareAny(paths: readonly string[], line: Line, names: FieldNames, notes: Notes): ConditionInput[] {
  const { modifiers, values, place } = line;
  const missing = () => allOf(paths.map((field) => ({ field, exists: false })));
  if (modifiers.includes("exists")) {
    const [value] = values;
    if (values.length !== 1 || typeof value !== "boolean") {
      notes.refuse(place, "exists takes true or false");
      return [];
    }
    notes.remark(place, "a field that is null or an empty list does not exist here; in Sigma it does");
    return [value ? anyOf(paths.map((field) => ({ field, exists: true }))) : missing()];
  }
  const tests: ConditionInput[] = [];
  const present = values.filter((value) => value !== null);
  if (present.length < values.length) {
    if (isPlain(modifiers) && line.field !== null) tests.push(missing());
    else notes.refuse(place, "null takes no modifier and needs a field");
  }
  if (present.length > 0) {
    tests.push(...paths.flatMap((path) => compare(path, { ...line, values: present }, names, notes)));
  }
  return tests.length > 1 ? [anyOf(tests)] : tests;
}

/** Tests of one path of which any must hold. */
function compare(path: string, line: PresentLine, names: FieldNames, notes: Notes): ConditionInput[] {
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
    notes.remark(place, 'compares a number with a number and a text with a text: 1 is not "1"');
    return values.flatMap((value) =>
      names.pathsOf(String(value)).map((other) => ({ field: path, [operator]: other, ignore_case }) as ConditionInput),
    );
  }
  return compareTexts(path, line, notes);
}

function compareTexts(path: string, { modifiers, values, place }: PresentLine, notes: Notes): ConditionInput[] {
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
        path === ANY_RAW_FIELD && where === "whole" ? "contains" : (where satisfies Where),
      );
      if (test.operator === "any") {
        if (path === ANY_RAW_FIELD) notes.refuse(place, "a keyword needs a text");
        else conditions.push({ field: path, exists: true });
      } else if (test.operator === "equals") put("in", test.text, ...otherTypes(test.text, isCased));
      else put(test.operator, test.text);
      // A text is found in a value, a number only as the whole of one.
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

/** Sigma knows no types: a field that holds 4624 as a number is meant by the text "4624" too. */
function otherTypes(text: string, isCased: boolean): Scalar[] {
  const boolean = isCased ? text : text.toLowerCase();
  if (boolean === "true" || boolean === "false") return [boolean === "true"];
  const number = numberOf(text);
  return number !== undefined && String(number) === text ? [number] : [];
}

/** The number that a text is, exactly; undefined where it is none. */
function numberOf(text: string): number | bigint | undefined {
  if (/^[+-]?\d+$/.test(text)) return canonicalNumber(BigInt(text.replace("+", "")));
  const number = text === "" ? Number.NaN : Number(text);
  return Number.isFinite(number) ? canonicalNumber(number) : undefined;
}

function encode(text: string, { modifiers, place }: Pick<Line, "modifiers" | "place">, notes: Notes): EncodedText[] {
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

/** One test with a list, or several where the list is longer than one may be. */
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

/** What the language of conditions would refuse is refused here, where its place in the Sigma rule is known. */
function refuseFaults(condition: ConditionInput, place: string, notes: Notes): void {
  if ("any" in condition) return condition.any.forEach((inner) => refuseFaults(inner, place, notes));
  if ("all" in condition) return condition.all.forEach((inner) => refuseFaults(inner, place, notes));
  if ("not" in condition) return;
  const parsed = fieldTestSchema.safeParse(condition);
  if (parsed.success) return;
  for (const { field, message } of faultsOf(parsed.error)) {
    notes.refuse(place, field === "field" ? `${(condition as { field?: string }).field}: ${message}` : message);
  }
}
