import { createHash } from "node:crypto";
import { canonicalNumber } from "../../lib/exact-json.ts";
import { parseAddress } from "../../lib/ip.ts";
import type { Scalar } from "../../model/condition.ts";
import type { Event } from "../../model/event.ts";
import { fieldReader, OBJECT, PATH_CHARACTERS_MAX, visitFields, type FieldValue } from "../../model/field.ts";

// The values of `raw` and `enrichment` as terms of one keyword field, since a mapping cannot have a field for every path that a
// device may send. A term is the path, a separator, the type and the value. Types sort as a query sorts its values, and
// numbers are written so that they compare as text: equality, ranges, order and counts are all exact.

/** Ends the path of a term. */
export const PATH_END = "\u001f";
const ESCAPE = "\u001e";

export const NUMBER = "1";
export const TEXT = "2";
export const BOOLEAN = "3";
/** The types of scalars in the order in which they sort. */
export const SCALAR_TYPES = [NUMBER, TEXT, BOOLEAN] as const;
/** The path has a scalar. */
const HAS_SCALAR = "0";
/** The path has an object. */
const HAS_OBJECT = "5";
/** An address as 32 hexadecimal digits, besides its text. */
const ADDRESS = "6";
/** The path has several values; the first of them, by which events sort, has a term of its own. */
const HAS_SEVERAL = "7";
const FIRST = "8";
/** The path has a text that is too long for a term. */
const HAS_CUT = "9";

/** Of a longer text, the term has this much and a digest of the whole. */
export const TERM_TEXT_CHARACTERS_MAX = 1000;
/** Terms of one event; one with more is marked, and tested itself by every query. */
const TERMS_MAX = 5000;

/** The start of all terms of a path. */
export function pathLead(path: string): string {
  return path.replaceAll(ESCAPE, `${ESCAPE}1`).replaceAll(PATH_END, `${ESCAPE}2`) + PATH_END;
}

export const scalarMark = (path: string) => pathLead(path) + HAS_SCALAR;
export const objectMark = (path: string) => pathLead(path) + HAS_OBJECT;
export const severalMark = (path: string) => pathLead(path) + HAS_SEVERAL;
export const cutMark = (path: string) => pathLead(path) + HAS_CUT;
export const addressLead = (path: string) => pathLead(path) + ADDRESS;
/** The start of the term for the first of several values. */
export const firstLead = (path: string) => pathLead(path) + FIRST;

export const addressDigits = (address: bigint) => address.toString(16).padStart(32, "0");

/** The type and the value. Distinct values have distinct terms. */
export function valueTerm(value: Scalar): string {
  if (typeof value === "string") return TEXT + textTerm(value);
  if (typeof value === "boolean") return BOOLEAN + (value ? "t" : "f");
  return NUMBER + numberTerm(canonicalNumber(value));
}

function textTerm(text: string): string {
  if (text.length <= TERM_TEXT_CHARACTERS_MAX) return text.toWellFormed();
  const digest = createHash("sha256").update(text.toWellFormed()).digest("hex");
  return textStart(text) + PATH_END + digest;
}

/** The part of a long text that its term has. */
function textStart(text: string): string {
  const splits = (text.charCodeAt(TERM_TEXT_CHARACTERS_MAX - 1) & 0xfc00) === 0xd800;
  return text.slice(0, splits ? TERM_TEXT_CHARACTERS_MAX - 1 : TERM_TEXT_CHARACTERS_MAX).toWellFormed();
}

/** True if the term of a text has only its beginning. */
export function isCutTerm(valueOfTerm: string): boolean {
  return valueOfTerm[0] === TEXT && valueOfTerm.length > TERM_TEXT_CHARACTERS_MAX + 1;
}

/** The value of a term without its path. Not for a cut one. */
export function valueOfTerm(term: string): Scalar {
  const value = term.slice(1);
  if (term[0] === TEXT) return value;
  return term[0] === BOOLEAN ? value === "t" : numberOfTerm(value);
}

const bytes = new DataView(new ArrayBuffer(8));
const SIGN = 1n << 63n;
const ALL_BITS = (1n << 64n) - 1n;
const DIGITS_MAX = 999;
/** Integers below all doubles, doubles, integers above all doubles. */
const [BELOW, DOUBLE, ABOVE] = ["a", "m", "p"] as const;

/** Numbers compare like their terms. */
function numberTerm(number: number | bigint): string {
  if (typeof number === "number") {
    // The addition turns -0 into 0.
    bytes.setFloat64(0, number + 0);
    const bits = bytes.getBigUint64(0);
    const ordered = bits & SIGN ? bits ^ ALL_BITS : bits | SIGN;
    return DOUBLE + ordered.toString(16).padStart(16, "0");
  }
  const digits = (number < 0n ? -number : number).toString();
  if (number > 0n) return ABOVE + String(digits.length).padStart(3, "0") + digits;
  return BELOW + String(DIGITS_MAX - digits.length).padStart(3, "0") + complement(digits);
}

function numberOfTerm(term: string): number | bigint {
  if (term[0] === ABOVE) return BigInt(term.slice(4));
  if (term[0] === BELOW) return -BigInt(complement(term.slice(4)));
  const ordered = BigInt(`0x${term.slice(1)}`);
  bytes.setBigUint64(0, ordered & SIGN ? ordered ^ SIGN : ordered ^ ALL_BITS);
  return bytes.getFloat64(0);
}

function complement(digits: string): string {
  return digits.replace(/\d/g, (digit) => String(9 - Number(digit)));
}

export interface EventTerms {
  readonly terms: readonly string[];
  /** A text is longer than its term. */
  readonly hasCut: boolean;
  /** Some values have no term. */
  readonly isPartial: boolean;
}

export function termsOf(event: Event): EventTerms {
  const paths = new Map<string, Set<FieldValue>>();
  let isPartial = false;
  let count = 0;
  visitFields(event, (path, value) => {
    if (path.length > PATH_CHARACTERS_MAX || count >= TERMS_MAX) {
      isPartial = true;
      return;
    }
    const values = paths.get(path);
    if (values === undefined) paths.set(path, new Set([value]));
    else values.add(value);
    count++;
  });
  const terms: string[] = [];
  let hasCut = false;
  for (const [path, values] of paths) {
    const lead = pathLead(path);
    let isCutHere = false;
    if (values.has(OBJECT)) terms.push(lead + HAS_OBJECT);
    if (!values.has(OBJECT) || values.size > 1) terms.push(lead + HAS_SCALAR);
    for (const value of values) {
      if (value === OBJECT) continue;
      terms.push(lead + valueTerm(value));
      if (typeof value !== "string") continue;
      if (value.length > TERM_TEXT_CHARACTERS_MAX) isCutHere = true;
      const address = parseAddress(value);
      if (address !== undefined) terms.push(lead + ADDRESS + addressDigits(address));
    }
    if (isCutHere) terms.push(lead + HAS_CUT);
    hasCut ||= isCutHere;
    if (values.size === 1) continue;
    terms.push(lead + HAS_SEVERAL);
    const [first] = fieldReader(path)(event);
    if (first !== undefined && first !== OBJECT) terms.push(lead + FIRST + valueTerm(first));
  }
  return { terms, hasCut, isPartial };
}
