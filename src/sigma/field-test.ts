import { canonicalNumber } from "../lib/exact-json.ts";
import { faultsOf } from "../lib/fault.ts";
import type { OperatorName, Scalar } from "../model/condition.ts";
import { fieldTestSchema, keywordSchema } from "../model/condition-schema.ts";
import { ANY_FIELD } from "../model/field.ts";
import type { ConditionInput } from "../model/rule.ts";
import { allOf, anyOf, inChunks, notOf } from "./combine.ts";
import { ENCODINGS, modifierFault, type EncodedText } from "./modifiers.ts";
import type { Notes } from "./note.ts";
import { parsePattern, toTextTest, type Where } from "./pattern.ts";

// One line of a selection, `Image|endswith: ['\a.exe', '\b.exe']`, as a condition of ours.

export type SigmaScalar = Scalar | null;

export interface FieldNames {
  /** The path of a field of ours for the name of one in Sigma. */
  pathOf(field: string): string;
  /** What a placeholder such as %admins% stands for; undefined when nobody has said. */
  placeholder(name: string): readonly (string | number)[] | undefined;
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
const EXPANDED_MAX = 10_000;

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
  const values = modifiers.includes("expand") ? expand(line, names, notes) : line.values;
  if (values === undefined) return undefined;
  const refusalsBefore = notes.refusals.length;
  const path = line.field === null ? ANY_FIELD : names.pathOf(line.field);
  const all = modifiers.includes("all");
  // With `all`, each value must be found; without, any of them.
  const groups = all ? values.map((value) => [value]) : [values];
  const tests = groups.flatMap((group) => compare(path, { ...line, values: group }, names, notes));
  if (notes.refusals.length > refusalsBefore || tests.length === 0) return undefined;
  for (const test of tests) refuseFaults(test, place, notes);
  if (notes.refusals.length > refusalsBefore) return undefined;
  if (tests.some(asksForText) && [line.field ?? "", path].some(isNumber)) {
    notes.remark(place, `is a test of text: where ${path} is a number and not a text, it finds nothing`);
  }
  const condition = all ? allOf(tests) : anyOf(tests);
  return modifiers.includes("neq") ? notOf(condition) : condition;
}

/** Tests of one field of which any must hold; each group of `all` makes one. */
function compare(path: string, line: Line, names: FieldNames, notes: Notes): ConditionInput[] {
  const { modifiers, values, place } = line;
  const has = (modifier: string) => modifiers.includes(modifier);
  const ignore_case = !has("cased");
  if (has("re")) {
    const flags = ["m", "s"].filter(has).join("");
    const patterns = values.map((value) => (flags === "" ? String(value) : `(?${flags})${String(value)}`));
    const make = (regex: string[]) => ({ field: path, regex: oneOrAll(regex), ...(has("i") && { ignore_case: true }) });
    return grouped(patterns, make, PATTERNS_MAX);
  }
  if (has("cidr")) return grouped(values.map(String), (cidr) => ({ field: path, cidr: oneOrAll(cidr) }));
  if (has("exists")) {
    const [value] = values;
    if (values.length === 1 && typeof value === "boolean") return [{ field: path, exists: value }];
    notes.refuse(place, "exists takes true or false");
    return [];
  }
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
    return values.map(
      (value) => ({ field: path, [operator]: names.pathOf(String(value)), ignore_case }) as ConditionInput,
    );
  }
  return compareTexts(path, line, notes);
}

function compareTexts(path: string, { modifiers, values, place }: Line, notes: Notes): ConditionInput[] {
  const where = (["contains", "startswith", "endswith"] as const).find((name) => modifiers.includes(name)) ?? "whole";
  const isCased = modifiers.includes("cased");
  const isPlain = where === "whole" && !modifiers.some((modifier) => modifier in ENCODINGS);
  const lists: Record<string, Scalar[]> = {};
  const put = (operator: string, ...items: Scalar[]) => {
    if (items.length > 0) (lists[operator] ??= []).push(...items);
  };
  const conditions: ConditionInput[] = [];
  for (const value of values) {
    if (value === null) {
      if (!isPlain || path === ANY_FIELD) notes.refuse(place, "null takes no modifier and needs a field");
      else conditions.push({ field: path, exists: false });
      continue;
    }
    if (typeof value !== "string" && isPlain && path !== ANY_FIELD) {
      put("in", value, String(value));
      continue;
    }
    for (const { pattern } of encode(String(value), { modifiers, place }, notes)) {
      const test = toTextTest(pattern, path === ANY_FIELD && where === "whole" ? "contains" : (where satisfies Where));
      if (test.operator === "any") {
        if (path === ANY_FIELD) notes.refuse(place, "a keyword needs a text");
        else conditions.push({ field: path, exists: true });
      } else if (test.operator === "equals") put("in", test.text, ...otherTypes(test.text, isCased));
      else put(test.operator, test.text);
      // A text is found in a value, a number only as the whole of one.
      if (path === ANY_FIELD && isPlain && test.operator === "contains") put("in", ...otherTypes(test.text, isCased));
    }
  }
  for (const [operator, items] of Object.entries(lists)) {
    const ignoresCase = !isCased && items.some((item) => typeof item === "string" && /\p{L}/u.test(item));
    const cased = ignoresCase ? { ignore_case: true } : {};
    if (path === ANY_FIELD && operator === "contains") {
      conditions.push(
        ...grouped(items as string[], (keyword) => ({ keyword: oneOrAll(keyword), ignore_case: !isCased })),
      );
    } else if (operator === "in" && items.length === 1) conditions.push({ field: path, equals: items[0]!, ...cased });
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

/** Each placeholder of a value becomes what it stands for; a value with two of them becomes all combinations. */
function expand({ values, place }: Line, names: FieldNames, notes: Notes): SigmaScalar[] | undefined {
  const expanded: SigmaScalar[] = [];
  const waiting = [...values];
  let replaced = 0;
  for (let value = waiting.shift(); value !== undefined; value = waiting.shift()) {
    const name = typeof value === "string" ? /%([\w.-]+)%/.exec(value) : null;
    if (!name) {
      expanded.push(value);
      continue;
    }
    const meant = names.placeholder(name[1]!);
    if (!meant) return notes.refuse(place, `the placeholder %${name[1]}% has no values in the mapping (placeholders)`);
    waiting.unshift(...meant.map((item) => (value as string).replace(name[0], () => String(item))));
    // A placeholder may stand for itself, and would go on for ever.
    if (++replaced > EXPANDED_MAX || expanded.length + waiting.length > EXPANDED_MAX) {
      return notes.refuse(place, `its placeholders make more than ${EXPANDED_MAX} values`);
    }
  }
  return expanded;
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
  if ("all" in condition || "not" in condition) return;
  const parsed = ("keyword" in condition ? keywordSchema : fieldTestSchema).safeParse(condition);
  if (parsed.success) return;
  for (const { field, message } of faultsOf(parsed.error)) {
    notes.refuse(place, field === "field" ? `${(condition as { field?: string }).field}: ${message}` : message);
  }
}
