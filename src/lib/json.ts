import { isUtf8 } from "node:buffer";
import { isRounded, parseExact, sentValue, wellFormedJson } from "./exact-json.ts";
import { formatPath, type Fault } from "./fault.ts";

// The JSON of requests. Whole numbers keep every digit, and what JSON.parse would drop without a word is a fault with its
// place: the first of two equal keys where their values differ, and what is nested too deep.

export type JsonResult =
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "malformed"; readonly message: string }
  /** The value is what can be looked at further: without what is nested too deep, which is null there. */
  | { readonly kind: "faults"; readonly value: unknown; readonly faults: readonly Fault[] };

export interface JsonOptions {
  /** How many objects and arrays may stand inside each other, the outermost included. */
  readonly depthMax: number;
  /** Levels around the value that the limit is about, which do not count. */
  readonly levelsAround?: number;
}

/** Of the faults of one value; of each element apart, where the value is an array. */
const JSON_FAULTS_MAX = 20;

export function parseJson(bytes: Buffer, options: JsonOptions): JsonResult {
  if (!isUtf8(bytes)) return { kind: "malformed", message: "the text is not valid UTF-8" };
  return parseJsonText(bytes.toString("utf8"), options);
}

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** The bytes of a text without the mark that some editors put in front of it. */
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
  // What comes back out as the very same text has lost nothing: no key was dropped, no number rounded.
  // Half a surrogate pair also comes back the same, as its escape.
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

/** The same value with null for every object and array below so many levels. */
function cutAt(value: unknown, levels: number): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (levels === 0) return null;
  if (Array.isArray(value)) return value.map((element) => cutAt(element, levels - 1));
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, cutAt(inner, levels - 1)]));
}

/** As JSON.stringify, and the text of one member besides: cut out where it stands last, as most senders write it. */
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
  // Within strings a quote is escaped, so that the name in quotes and a colon is found as a key only.
  const name = `"${member}":`;
  if (last === member && isFlat) return { text, memberText: text.slice(text.indexOf(name) + name.length, -1) };
  return { text, memberText: JSON.stringify((value as Record<string, unknown>)[member]) };
}

/** The same for a value whose text is at hand: where few brackets open, what may be thousands of values need no look. */
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

/** One look at everything that JSON.parse made: what is too deep is found, and whether a number had to be rounded. */
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

/** The characters that structure is made of. */
const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** What JSON.parse drops or must not hold. The text is known to be JSON, so that only faults of meaning are left to find. */
export function findFaults(sent: string, options: JsonOptions): Fault[] {
  // Two keys with half a surrogate pair each may be one once the halves are replaced.
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
  /** From an opening quote to after the closing one; gives what stands between, escapes as they are. */
  const readString = (): string => {
    const start = at + 1;
    let end = text.indexOf('"', start);
    while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
    at = end + 1;
    return text.slice(start, end);
  };

  const scanObject = (depth: number): void => {
    at++;
    /** Where the value of each key begins. */
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
      // The same value twice says nothing else than once.
      if (before === undefined) members.set(key, start);
      else if (!text.startsWith(text.slice(start, at), before) || !isEnd(text.charCodeAt(before + at - start))) {
        report("the key stands twice in its object, with different values");
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

  /** Passes over an object or array that is too deep to look into, however deep it goes. */
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

/** What may stand after a value. */
function isEnd(code: number): boolean {
  return code === COMMA || code === CLOSE_OBJECT || code === CLOSE_ARRAY || code <= 0x20;
}

function isEscaped(text: string, quote: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(quote - 1 - backslashes) === BACKSLASH) backslashes++;
  return backslashes % 2 === 1;
}

/**
 * The elements of an array as they stand, so that they can be parsed one by one; one more than `max` is enough. Only where
 * they end is looked for: whether each is JSON says whoever parses it. Undefined where the text is of no array.
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
