import { severityOfCef } from "../../model/device-severity.ts";
import { addParameter, parameterOf, readAlarm, type Alarm, type Parameter } from "../alarm.ts";
import { FieldList } from "../field-list.ts";
import { FIELDS_MAX } from "../fields.ts";
import type { ReadEvent } from "../reading.ts";
import type { TimeContext } from "../times.ts";

// Common Event Format: `CEF:0|vendor|product|version|id|name|severity|key=value key=value`. Values have spaces in them and
// no quotes around them, so one ends where ` key=` begins the next.

/** How far into a message the beginning may stand, behind what some relay has put before it. */
const PREFIX_CHARACTERS_MAX = 256;
const HEADER_BARS = 7;
const HEADER_CHARACTERS_MAX = 512;
const HEADERS_REMEMBERED_MAX = 1000;
const WRONG_GUESSES_MAX = 8;
const BACKSLASH = 0x5c;
const BAR = 0x7c;
const QUOTE = 0x22;
const SPACE = 0x20;

/** The event in a message; undefined where it is not CEF. */
export function readCef(message: string, context: TimeContext): ReadEvent | undefined {
  const start = headerStart(message);
  if (start < 0) return undefined;
  const extension = headerEnd(message, start);
  const header = extension < 0 ? undefined : headerOf(message.slice(start, extension));
  if (header === undefined) return undefined;
  const fields = new FieldList();
  const leftOut = scanExtension(message, extension, fields);
  const event = readAlarm(header, fields, context);
  if (leftOut > 0) event.raw["fields_left_out"] = leftOut;
  return event;
}

/** Where the version stands: behind `CEF:`, or at the beginning of a message that has lost it. Below zero: nowhere. */
function headerStart(message: string): number {
  let at = 0;
  if (!isVersion(message, at)) {
    const word = message.indexOf("CEF:");
    if (word < 0 || word > PREFIX_CHARACTERS_MAX) return -1;
    at = word + "CEF:".length;
    while (message.charCodeAt(at) === SPACE) at++;
  }
  return isVersion(message, at) ? at : -1;
}

function isVersion(message: string, at: number): boolean {
  const digit = message.charCodeAt(at);
  return digit >= 0x30 && digit <= 0x39 && message.charCodeAt(at + 1) === BAR;
}

/** Where the extension begins; below zero where there are too few bars for a header. */
function headerEnd(message: string, start: number): number {
  let bars = 0;
  for (let at = message.indexOf("|", start); at >= 0; at = message.indexOf("|", at + 1)) {
    if (message.charCodeAt(at - 1) === BACKSLASH && isEscapedAt(message, at, start)) continue;
    if (++bars === HEADER_BARS) return at + 1;
  }
  // A sender without an extension may leave out the last one.
  return bars === HEADER_BARS - 1 ? message.length : -1;
}

const headers = new Map<string, Alarm>();

/** A console says few things all day: what a header says is found out once. */
function headerOf(text: string): Alarm | undefined {
  const known = headers.get(text);
  if (known !== undefined) return known;
  const parts = text.split("|");
  const [, vendor, product, version, code, name, severity] = text.includes("\\") ? splitEscaped(text) : parts;
  if (product === undefined || name === undefined || severity === undefined) return undefined;
  const header = { vendor, product, version, code, name, severity: severityOfCef(severity.trim()) };
  if (text.length <= HEADER_CHARACTERS_MAX) {
    if (headers.size >= HEADERS_REMEMBERED_MAX) headers.clear();
    headers.set(text, header);
  }
  return header;
}

function splitEscaped(text: string): string[] {
  const parts: string[] = [];
  let from = 0;
  for (let at = 0; at <= text.length; at++) {
    if (at < text.length && text.charCodeAt(at) === BACKSLASH) at++;
    else if (at === text.length || text.charCodeAt(at) === BAR) {
      parts.push(unescape(text.slice(from, at)));
      from = at + 1;
    }
  }
  return parts;
}

/** Gives how many fields were too many. */
function scanExtension(message: string, start: number, fields: FieldList): number {
  let equals = nextEquals(message, start);
  const guesses = { wrong: 0 };
  // What stands before the first key belongs to none.
  let parameter = equals < 0 ? undefined : parameterBefore(message, equals, start, FIRST, guesses);
  let count = 0;
  while (equals >= 0) {
    const valueStart = equals + 1;
    const before: Parameter = parameter ?? FIRST;
    let next = nextEquals(message, quotedEnd(message, valueStart));
    let nextParameter: Parameter | undefined;
    // The next key is the word before an equals sign, with a space before it: `a=b=c` has one key.
    while (
      next >= 0 &&
      (nextParameter = parameterBefore(message, next, valueStart + 1, before, guesses)) === undefined
    ) {
      next = nextEquals(message, next + 1);
    }
    if (parameter !== undefined && count++ < FIELDS_MAX) {
      let end = nextParameter === undefined ? message.length : next - nextParameter.key.length - 1;
      while (end > valueStart && message.charCodeAt(end - 1) <= SPACE) end--;
      addParameter(fields, parameter, valueOf(message, valueStart, end));
    }
    parameter = nextParameter;
    equals = next;
  }
  return Math.max(0, count - FIELDS_MAX);
}

/** Comes before the first. */
const FIRST: Parameter = parameterOf("");

/** What was guessed wrongly in a line: somebody who never sends the same twice is not guessed at for long. */
interface Guesses {
  wrong: number;
}

/** The key that ends at `equals` and begins behind a space, not before `from`; most likely the one that came here last time. */
function parameterBefore(
  message: string,
  equals: number,
  from: number,
  before: Parameter,
  guesses: Guesses,
): Parameter | undefined {
  if (guesses.wrong < WRONG_GUESSES_MAX) {
    const { next, second } = before;
    if (next !== undefined && isKeyAt(message, equals, from, next)) return next;
    if (second !== undefined && isKeyAt(message, equals, from, second)) {
      before.second = next;
      before.next = second;
      return second;
    }
    guesses.wrong++;
  }
  const start = keyBefore(message, equals, from);
  if (start === equals) return undefined;
  const parameter = parameterOf(message.slice(start, equals));
  before.second = before.next;
  before.next = parameter;
  return parameter;
}

/** A search that must succeed at once is the quickest way to compare two texts. */
function isKeyAt(message: string, equals: number, from: number, { spelled }: Parameter): boolean {
  const start = equals + 1 - spelled.length;
  return start + 1 >= from && message.charCodeAt(start) === SPACE && message.indexOf(spelled, start) === start;
}

/** Keys begin behind a space, and the first one where the extension begins. */
function isBoundary(message: string, at: number, from: number): boolean {
  const code = message.charCodeAt(at - 1);
  return code === SPACE || (code === BAR && at === from);
}

/** The next `=` that is not escaped. */
function nextEquals(message: string, from: number): number {
  let at = message.indexOf("=", from);
  while (at > 0 && message.charCodeAt(at - 1) === BACKSLASH && isEscapedAt(message, at, from)) {
    at = message.indexOf("=", at + 1);
  }
  return at;
}

function isEscapedAt(message: string, at: number, from: number): boolean {
  let backslashes = 0;
  while (at - 1 - backslashes >= from && message.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++;
  return backslashes % 2 === 1;
}

/** Where the word begins that ends at `equals`; `equals` itself where what stands there is not a key. */
function keyBefore(message: string, equals: number, from: number): number {
  let at = equals;
  while (at > from && isKeyCharacter(message.charCodeAt(at - 1))) at--;
  return isBoundary(message, at, from) ? at : equals;
}

function isKeyCharacter(code: number): boolean {
  return (
    ((code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a) ||
    (code >= 0x30 && code <= 0x39) ||
    code === 0x5f ||
    code === 0x2e ||
    code === 0x2d ||
    code === 0x5b ||
    code === 0x5d
  );
}

/** Behind a value in quotes, so that no key is looked for within; else where the value begins. */
function quotedEnd(message: string, start: number): number {
  if (message.charCodeAt(start) !== QUOTE) return start;
  const end = message.indexOf('"', start + 1);
  const after = message.charCodeAt(end + 1);
  return end > 0 && (after === SPACE || end + 1 === message.length) ? end + 1 : start;
}

function valueOf(message: string, start: number, end: number): string {
  const isQuoted = end - start >= 2 && message.charCodeAt(start) === QUOTE && message.charCodeAt(end - 1) === QUOTE;
  const value = isQuoted ? message.slice(start + 1, end - 1) : message.slice(start, end);
  return value.includes("\\") ? unescape(value) : value;
}

/** `\=`, `\|`, `\\`, `\n` and `\r`; a backslash before anything else stands for itself. */
function unescape(text: string): string {
  return text.replaceAll(/\\([\\=|nr"])/g, (_, letter: string) =>
    letter === "n" ? "\n" : letter === "r" ? "\r" : letter,
  );
}
