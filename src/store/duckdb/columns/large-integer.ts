import type { Scalar } from "../../../model/condition.ts";
import type { JsonValue } from "../../../model/event.ts";

// The encoding of integers beyond 2^53, which are bigint here and which DuckDB's doubles would round. In the JSON of the
// `rest` column such an integer is an object with one text, {"i":"0199…"}, that sorts like the number: the sign, the number
// of digits, the digits. A negative number has the complement of both.

const LENGTH_DIGITS = 3;
const LENGTH_MAX = 10 ** LENGTH_DIGITS - 1;
/** The first character is the sign. */
export const POSITIVE = "1";
export const NEGATIVE = "0";
/** The characters before the digits. */
export const PREFIX_CHARACTERS = 1 + LENGTH_DIGITS;

/** Encodes an integer as text that sorts like the number. */
export function sortableText(value: bigint): string {
  if (value >= 0n) {
    const digits = value.toString();
    return POSITIVE + String(digits.length).padStart(LENGTH_DIGITS, "0") + digits;
  }
  const digits = (-value).toString();
  return NEGATIVE + String(LENGTH_MAX - digits.length).padStart(LENGTH_DIGITS, "0") + complement(digits);
}

export function fromSortable(text: string): bigint {
  const digits = text.slice(PREFIX_CHARACTERS);
  return text.startsWith(POSITIVE) ? BigInt(digits) : -BigInt(complement(digits));
}

function complement(digits: string): string {
  return digits.replaceAll(/\d/g, (digit) => String(9 - Number(digit)));
}

/** Encodes a value for the `rest` column. */
export function encodeValue(value: Scalar | null): JsonValue {
  return typeof value === "bigint" ? { i: sortableText(value) } : value;
}

/** Decodes a value, or a list of values, of the `rest` column. Objects in a list are null. */
export function decodeValue(json: JsonValue): Scalar | null | (Scalar | null)[] {
  if (Array.isArray(json)) return json.map((item) => decodeValue(item) as Scalar | null);
  if (typeof json !== "object" || json === null) return json;
  return fromSortable(json["i"] as string);
}
