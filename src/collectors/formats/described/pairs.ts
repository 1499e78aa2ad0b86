import { FIELDS_MAX, ownText } from "../device-values.ts";

// `key=value` pairs, as many devices write them: `srcip=192.0.2.1 msg="a b"`.

export interface PairSyntax {
  /** Between key and value. */
  readonly assign: string;
  /** Between pairs. */
  readonly separator: string;
  /** Around a value that contains the separator; a double quote if absent. */
  readonly quote?: string;
}

export interface ScannedPairs {
  readonly values: Map<string, string>;
  /** Pairs past the limit. */
  readonly leftOut: number;
}

const BACKSLASH = 0x5c;
const SPACE = 0x20;
const KEY_CHARACTERS_MAX = 64;

/** A key, and the two that followed it last: lines of one kind have the same keys in the same order. */
interface KnownKey {
  readonly key: string;
  /** The key with the assignment behind it. */
  readonly text: string;
  next: KnownKey | undefined;
  nextBefore: KnownKey | undefined;
}

/** Cached keys. The cache is cleared when full, which only made-up keys can cause. */
const KEYS_MAX = 2000;

/** The keys of earlier lines: a key that was expected is compared, not cut out, which saves half of the time. */
export class PairKeys {
  readonly #keys = new Map<string, KnownKey>();
  readonly #assign: string;
  /** Stands for the start of a line. */
  readonly start: KnownKey = { key: "", text: "", next: undefined, nextBefore: undefined };

  constructor(assign: string) {
    this.#assign = assign;
  }

  known(key: string): KnownKey {
    const known = this.#keys.get(key);
    if (known !== undefined) return known;
    if (this.#keys.size >= KEYS_MAX) this.#keys.clear();
    const own = ownText(key);
    const made = { key: own, text: `${own}${this.#assign}`, next: undefined, nextBefore: undefined };
    this.#keys.set(own, made);
    return made;
  }
}

/** Scans pairs from left to right. Of a repeated key the first value counts. Words without a value are skipped. */
export function scanPairs(
  text: string,
  start: number,
  { assign, separator, quote = '"' }: PairSyntax,
  keys = new PairKeys(assign),
): ScannedPairs {
  const values = new Map<string, string>();
  const separatorCode = separator.charCodeAt(0);
  const quoteCode = quote.charCodeAt(0);
  let leftOut = 0;
  let at = start;
  let last = keys.start;
  while (at < text.length) {
    for (let code = text.charCodeAt(at); code === separatorCode || code === SPACE; code = text.charCodeAt(at)) at++;
    let known = last.next;
    if (known !== undefined && !text.startsWith(known.text, at)) {
      known = last.nextBefore;
      if (known !== undefined && !text.startsWith(known.text, at)) known = undefined;
    }
    let valueStart: number;
    if (known === undefined) {
      const equals = text.indexOf(assign, at);
      if (equals < 0) break;
      valueStart = equals + assign.length;
      const key = keyBefore(text, at, equals, separator);
      if (key !== "") {
        known = keys.known(key);
        last.nextBefore = last.next;
        last.next = known;
      }
    } else valueStart = at + known.text.length;
    const isQuoted = text.charCodeAt(valueStart) === quoteCode;
    const end = isQuoted ? quotedEnd(text, valueStart, quote) : endOf(text, separator, valueStart);
    if (known !== undefined) {
      last = known;
      if (!values.has(known.key)) {
        if (values.size >= FIELDS_MAX) leftOut++;
        else
          values.set(
            known.key,
            isQuoted ? unquoted(text, valueStart, end, quoteCode) : text.slice(valueStart, end).trimEnd(),
          );
      }
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
function quotedEnd(text: string, start: number, quote: string): number {
  for (let at = text.indexOf(quote, start + 1); at >= 0; at = text.indexOf(quote, at + 1)) {
    if (text.charCodeAt(at - 1) !== BACKSLASH || !isEscaped(text, at, start)) return at + 1;
  }
  return text.length;
}

/** True if an odd number of backslashes precedes. */
function isEscaped(text: string, at: number, start: number): boolean {
  let first = at;
  while (first - 1 > start && text.charCodeAt(first - 1) === BACKSLASH) first--;
  return (at - first) % 2 === 1;
}

function unquoted(text: string, start: number, end: number, quoteCode: number): string {
  const close = end > start + 1 && text.charCodeAt(end - 1) === quoteCode ? end - 1 : end;
  const inner = text.slice(start + 1, close);
  return inner.includes("\\") ? inner.replaceAll(/\\(["'\\])/g, "$1") : inner;
}
