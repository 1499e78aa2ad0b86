import type { Scalar } from "../../../model/condition.ts";
import type { JsonValue } from "../../../model/event.ts";
import { FALSE, type Parameters } from "./sql.ts";
import { LARGE_INTEGERS } from "./table.ts";
import { COMPARISONS, isComparison, listOf, type ValueTest } from "./value.ts";

// Whole numbers beyond 2^53, which are bigint here and which the engine's doubles would round. In `rest` such a number is an
// object with one text, {"i":"0199…"}, that sorts as the numbers do: the sign, the number of digits, the digits; of negative
// numbers the complement of both. Any of them lies beyond every double on its side of zero, so the sign alone says how it
// compares with one. No row pays for this unless some row has such a number.

const LENGTH_DIGITS = 3;
const LENGTH_MAX = 10 ** LENGTH_DIGITS - 1;
const POSITIVE = "1";
const NEGATIVE = "0";
const HEAD = 1 + LENGTH_DIGITS;

/** Text that sorts as the numbers do. */
export function sortableText(value: bigint): string {
  if (value >= 0n) {
    const digits = value.toString();
    return POSITIVE + String(digits.length).padStart(LENGTH_DIGITS, "0") + digits;
  }
  const digits = (-value).toString();
  return NEGATIVE + String(LENGTH_MAX - digits.length).padStart(LENGTH_DIGITS, "0") + complement(digits);
}

export function fromSortable(text: string): bigint {
  const digits = text.slice(HEAD);
  return text.startsWith(POSITIVE) ? BigInt(digits) : -BigInt(complement(digits));
}

function complement(digits: string): string {
  return digits.replaceAll(/\d/g, (digit) => String(9 - Number(digit)));
}

/** A value as it stands in `rest`. */
export function encodeValue(value: Scalar | null): JsonValue {
  return typeof value === "bigint" ? { i: sortableText(value) } : value;
}

/** A value of `rest`, or a list of them; objects in a list are null. */
export function decodeValue(json: JsonValue): Scalar | null | (Scalar | null)[] {
  if (Array.isArray(json)) return json.map((item) => decodeValue(item) as Scalar | null);
  if (typeof json !== "object" || json === null) return json;
  return fromSortable(json["i"] as string);
}

/** Whether any row has such a number. */
export function hasLargeIntegers({ facts }: Parameters): boolean {
  return (facts.oddBits & LARGE_INTEGERS) !== 0;
}

/** The test on one such number, by its text. */
export function largeIntegerSql(test: ValueTest, text: string): string {
  const { operator, value } = test;
  if (isComparison(operator)) {
    if (typeof value === "bigint") return `${text} ${COMPARISONS[operator]} '${sortableText(value)}'`;
    if (typeof value !== "number") return FALSE;
    return `starts_with(${text}, '${operator === "gt" || operator === "gte" ? POSITIVE : NEGATIVE}')`;
  }
  if (operator !== "equals" && operator !== "in") return FALSE;
  const wanted = listOf(test).filter((item) => typeof item === "bigint");
  return wanted.length === 0 ? FALSE : `${text} IN (${wanted.map((item) => `'${sortableText(item)}'`).join(", ")})`;
}

/** The double next to it. */
export function nearestDoubleSql(text: string): string {
  const digits = `substr(${text}, ${HEAD + 1})`;
  const negative = `'-' || translate(${digits}, '0123456789', '9876543210')`;
  return `try_cast(CASE WHEN starts_with(${text}, '${POSITIVE}') THEN ${digits} ELSE ${negative} END AS DOUBLE)`;
}

/** Where it lies among doubles, which are at 0. */
export function sideSql(text: string): string {
  return `CASE WHEN starts_with(${text}, '${POSITIVE}') THEN 1 ELSE -1 END`;
}
