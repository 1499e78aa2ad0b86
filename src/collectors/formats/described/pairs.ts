import { FIELDS_MAX } from "../device-values.ts";

// `key=value` pairs, as many devices write them: `srcip=192.0.2.1 msg="a b"`.

export interface PairSyntax {
  /** Between key and value. */
  readonly assign: string;
  /** Between pairs. */
  readonly separator: string;
}

export interface ScannedPairs {
  readonly values: Map<string, string>;
  /** Pairs past the limit. */
  readonly leftOut: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const KEY_CHARACTERS_MAX = 64;

/** Scans pairs from left to right. Of a repeated key the first value counts. Words without a value are skipped. */
export function scanPairs(text: string, start: number, { assign, separator }: PairSyntax): ScannedPairs {
  const values = new Map<string, string>();
  let leftOut = 0;
  let at = start;
  while (at < text.length) {
    while (text.startsWith(separator, at) || text.charCodeAt(at) === 0x20) at++;
    const equals = text.indexOf(assign, at);
    if (equals < 0) break;
    const key = keyBefore(text, at, equals, separator);
    const valueStart = equals + assign.length;
    const isQuoted = text.charCodeAt(valueStart) === QUOTE;
    const end = isQuoted ? quotedEnd(text, valueStart) : endOf(text, separator, valueStart);
    if (key !== "" && !values.has(key)) {
      if (values.size >= FIELDS_MAX) leftOut++;
      else values.set(key, isQuoted ? unquoted(text, valueStart, end) : text.slice(valueStart, end).trimEnd());
    }
    at = end;
  }
  return { values, leftOut };
}

function endOf(text: string, separator: string, from: number): number {
  const end = text.indexOf(separator, from);
  return end < 0 ? text.length : end;
}

/** The last word before the assignment; words before it have no value. */
function keyBefore(text: string, start: number, equals: number, separator: string): string {
  const between = text.slice(Math.max(start, equals - KEY_CHARACTERS_MAX - 1), equals);
  const before = Math.max(between.lastIndexOf(separator), between.lastIndexOf(" "));
  const key = between.slice(before + 1);
  return key.length > KEY_CHARACTERS_MAX ? "" : key;
}

/** Position behind the closing quote; the end of the text if it is missing. */
function quotedEnd(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === BACKSLASH) at++;
    else if (code === QUOTE) return at + 1;
  }
  return text.length;
}

function unquoted(text: string, start: number, end: number): string {
  const close = end > start + 1 && text.charCodeAt(end - 1) === QUOTE ? end - 1 : end;
  const inner = text.slice(start + 1, close);
  return inner.includes("\\") ? inner.replaceAll(/\\(["\\])/g, "$1") : inner;
}
