import { FIELDS_MAX } from "../device-values.ts";

// A message that consists of nothing but `key=value` pairs. Free text between pairs makes it doubtful which words are values and
// who wrote them, so such a message is none.

const PAIRS_MIN = 3;
const KEY = /[A-Za-z_@][\w.@-]{0,63}=/y;
const SEPARATORS = new Set([" ", "\t", ",", ";", "|"]);
const QUOTE = '"';

/** The pairs in order, repeated keys included; undefined if the message has another form. */
export function strictPairs(text: string): (readonly [string, string])[] | undefined {
  const pairs: [string, string][] = [];
  let separator: string | undefined;
  let at = 0;
  const end = text.trimEnd().length;
  while (at < end) {
    KEY.lastIndex = at;
    const key = KEY.exec(text);
    if (key === null || pairs.length >= FIELDS_MAX) return undefined;
    const start = KEY.lastIndex;
    const isQuoted = text[start] === QUOTE;
    at = isQuoted ? closing(text, start) : valueEnd(text, start, end, separator);
    if (at < 0) return undefined;
    const value = isQuoted ? unescaped(text.slice(start + 1, at - 1)) : text.slice(start, at).trimEnd();
    pairs.push([key[0].slice(0, -1), value]);
    if (at >= end) break;
    const found = text[at]!;
    if (!SEPARATORS.has(found) || (separator !== undefined && found !== separator)) return undefined;
    separator = found;
    at++;
    while (text[at] === " ") at++;
  }
  return pairs.length >= PAIRS_MIN ? pairs : undefined;
}

/** An unquoted value ends at the separator; the first one decides which it is. */
function valueEnd(text: string, start: number, end: number, separator: string | undefined): number {
  let at = start;
  while (at < end) {
    const letter = text[at]!;
    if (letter === QUOTE) return -1;
    if (separator === undefined ? SEPARATORS.has(letter) : letter === separator) break;
    at++;
  }
  return at;
}

/** Position behind the closing quote; -1 if there is none. */
function closing(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === QUOTE) return at + 1;
  }
  return -1;
}

function unescaped(text: string): string {
  return text.includes("\\") ? text.replaceAll(/\\(["\\])/g, "$1") : text;
}
