import { isUtf8 } from "node:buffer";
import { isRounded, parseExact, sentValue, wellFormedJson } from "./exact-json.ts";
import { formatPath, type Fault } from "./fault.ts";

// Strict JSON for requests. Integers keep every digit. Input that JSON.parse would silently accept is a fault with its
// path: duplicate keys with different values, and values nested too deep.

export type JsonResult =
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "malformed"; readonly message: string }
  /** The value is usable for further checks: parts nested too deep are null. */
  | { readonly kind: "faults"; readonly value: unknown; readonly faults: readonly Fault[] };

export interface JsonOptions {
  /** Nesting limit of objects and arrays, including the outermost. */
  readonly depthMax: number;
  /** Enclosing levels that do not count towards the limit. */
  readonly levelsAround?: number;
}

/** Limit of faults per value, or per element if the value is an array. */
const JSON_FAULTS_MAX = 20;

export function parseJson(bytes: Buffer, options: JsonOptions): JsonResult {
  if (!isUtf8(bytes)) return { kind: "malformed", message: "the text is not valid UTF-8" };
  return parseJsonText(bytes.toString("utf8"), options);
}

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** Removes the byte order mark that some editors write. */
export function withoutByteOrderMark(bytes: Buffer): Buffer {
  const { length } = BYTE_ORDER_MARK;
  return bytes[0] === BYTE_ORDER_MARK[0] && bytes.subarray(0, length).equals(BYTE_ORDER_MARK)
    ? bytes.subarray(length)
    : bytes;
}

export function parseJsonText(text: string, options: JsonOptions): JsonResult {
  const levelsMax = levelsOf(options);
  let value: unknown;
  try {
    value = parseExact(text);
  } catch (error) {
    return { kind: "malformed", message: (error as SyntaxError).message };
  }
  // A text that round-trips has lost nothing: no key was dropped, no number rounded. A lone surrogate round-trips as its
  // escape, so it is excluded.
  const isTooDeep = isTextDeeperThan(text, value, levelsMax);
  if (!isTooDeep && !text.includes("\\ud") && JSON.stringify(value) === text) return { kind: "value", value };
  value = sentValue(text, value);
  const faults = findFaults(text, options);
  if (faults.length === 0) return { kind: "value", value };
  return { kind: "faults", value: isTooDeep ? cutAt(value, levelsMax) : value, faults };
}

function levelsOf({ depthMax, levelsAround = 0 }: JsonOptions): number {
  return depthMax + levelsAround;
}

/** Replaces objects and arrays below this many levels with null. */
function cutAt(value: unknown, levels: number): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (levels === 0) return null;
  if (Array.isArray(value)) return value.map((element) => cutAt(element, levels - 1));
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, cutAt(inner, levels - 1)]));
}

/** JSON.stringify that also returns the text of one member, sliced out if it is the last one, as most senders write it. */
export function rewrite(value: unknown, member: string): { text: string; memberText: string | undefined } {
  const text = JSON.stringify(value);
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, member))
    return { text, memberText: undefined };
  let last = "";
  let isFlat = true;
  for (const key in value) {
    last = key;
    isFlat &&= key === member || typeof (value as Record<string, unknown>)[key] !== "object";
  }
  // Quotes inside strings are escaped, so the quoted name with a colon can only be a key.
  const name = `"${member}":`;
  if (last === member && isFlat) return { text, memberText: text.slice(text.indexOf(name) + name.length, -1) };
  return { text, memberText: JSON.stringify((value as Record<string, unknown>)[member]) };
}

/** A faster isDeeperThan if the text is available: a text with few opening brackets needs no traversal. */
export function isTextDeeperThan(text: string, value: unknown, depthMax: number): boolean {
  return opensMoreThan(text, depthMax) && isDeeperThan(value, depthMax);
}

function opensMoreThan(text: string, max: number): boolean {
  let open = 0;
  for (const bracket of ["{", "["]) {
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1)) if (++open > max) return true;
  }
  return false;
}

/** Traverses a parsed value once and reports excessive nesting or a possibly rounded number. */
export function flawOf(value: unknown, depthMax: number): "too deep" | "rounded" | undefined {
  if (typeof value === "number") return isRounded(value) ? "rounded" : undefined;
  if (typeof value !== "object" || value === null) return undefined;
  if (depthMax === 0) return "too deep";
  let found: "rounded" | undefined;
  for (const key in value) {
    const flaw = flawOf((value as Record<string, unknown>)[key], depthMax - 1);
    if (flaw === "too deep") return flaw;
    found ??= flaw;
  }
  return found;
}

export function isDeeperThan(value: unknown, depthMax: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (depthMax === 0) return true;
  if (Array.isArray(value)) return value.some((element) => isDeeperThan(element, depthMax - 1));
  for (const key in value) {
    if (isDeeperThan((value as Record<string, unknown>)[key], depthMax - 1)) return true;
  }
  return false;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Finds duplicate keys and excessive nesting. The text must be valid JSON. */
export function findFaults(sent: string, options: JsonOptions): Fault[] {
  // Two keys with different lone surrogates may be equal once those are replaced.
  const text = wellFormedJson(sent);
  const levelsMax = levelsOf(options);
  const faults: Fault[] = [];
  const path: (string | number)[] = [];
  let room = JSON_FAULTS_MAX;
  let at = 0;

  const report = (message: string): void => {
    if (room-- > 0) faults.push({ field: formatPath(path), message });
  };
  const skipSpace = (): void => {
    while (text.charCodeAt(at) <= 0x20) at++;
  };
  /** Moves past a string and returns its content with escapes unresolved. */
  const readString = (): string => {
    const start = at + 1;
    let end = text.indexOf('"', start);
    while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
    at = end + 1;
    return text.slice(start, end);
  };

  const scanObject = (depth: number): void => {
    at++;
    /** The position of each key's value. */
    const members = new Map<string, number>();
    for (skipSpace(); text.charCodeAt(at) !== CLOSE_OBJECT; skipSpace()) {
      if (text.charCodeAt(at) === COMMA) {
        at++;
        skipSpace();
      }
      const raw = readString();
      const key = raw.includes("\\") ? (JSON.parse(`"${raw}"`) as string) : raw;
      path.push(key);
      skipSpace();
      at++;
      skipSpace();
      const start = at;
      scanValue(depth);
      const before = members.get(key);
      // A duplicate key with the same value is harmless.
      if (before === undefined) members.set(key, start);
      else if (!text.startsWith(text.slice(start, at), before) || !isEnd(text.charCodeAt(before + at - start))) {
        report("is a duplicate key with another value");
      }
      path.pop();
    }
    at++;
  };

  const scanArray = (depth: number): void => {
    at++;
    const outermost = path.length === 0;
    let index = 0;
    for (skipSpace(); text.charCodeAt(at) !== CLOSE_ARRAY; skipSpace()) {
      if (text.charCodeAt(at) === COMMA) at++;
      if (outermost) room = JSON_FAULTS_MAX;
      path.push(index++);
      scanValue(depth);
      path.pop();
    }
    at++;
  };

  /** Skips an object or array that is nested too deep, without recursion. */
  const skipContainer = (): void => {
    let open = 0;
    do {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        readString();
        continue;
      }
      if (code === OPEN_OBJECT || code === OPEN_ARRAY) open++;
      else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) open--;
      at++;
    } while (open > 0);
  };

  const scanValue = (depth: number): void => {
    skipSpace();
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      readString();
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      if (depth === levelsMax) {
        report(`is nested deeper than ${options.depthMax} levels`);
        skipContainer();
      } else if (code === OPEN_OBJECT) {
        scanObject(depth + 1);
      } else {
        scanArray(depth + 1);
      }
    } else {
      // A number or a word.
      while (at < text.length && !isEnd(text.charCodeAt(at))) at++;
    }
  };

  scanValue(0);
  return faults;
}

/** True for a character that may follow a value. */
function isEnd(code: number): boolean {
  return code === COMMA || code === CLOSE_OBJECT || code === CLOSE_ARRAY || code <= 0x20;
}

function isEscaped(text: string, quote: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(quote - 1 - backslashes) === BACKSLASH) backslashes++;
  return backslashes % 2 === 1;
}

/**
 * Splits an array into the texts of its elements, at most one more than `max`, so that they can be parsed one by one. The
 * elements are not validated. Undefined if the text is not an array.
 */
export function piecesOf(whole: Buffer, max: number): Buffer[] | { readonly message: string } | undefined {
  const bytes = trimmed(whole);
  if (bytes[0] !== OPEN_ARRAY) return undefined;
  const pieces: Buffer[] = [];
  let start = 1;
  let depth = 0;
  for (let at = 0; at < bytes.length && pieces.length <= max; at++) {
    switch (bytes[at]) {
      case QUOTE:
        for (at++; at < bytes.length && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at++;
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        depth++;
        break;
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        if (--depth > 0) break;
        if (bytes[at] !== CLOSE_ARRAY || at < bytes.length - 1) return { message: `the array ends early, at ${at}` };
        pieces.push(trimmed(bytes.subarray(start, at)));
        return pieces.length === 1 && pieces[0]!.length === 0 ? [] : pieces;
      case COMMA:
        if (depth > 1) break;
        pieces.push(trimmed(bytes.subarray(start, at)));
        start = at + 1;
        break;
      default:
        break;
    }
  }
  return pieces.length > max ? pieces : { message: "the array does not end" };
}

function trimmed(bytes: Buffer): Buffer {
  let start = 0;
  let end = bytes.length;
  while (start < end && isSpace(bytes[start]!)) start++;
  while (end > start && isSpace(bytes[end - 1]!)) end--;
  return bytes.subarray(start, end);
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
