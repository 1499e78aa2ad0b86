import { severityOfCef } from "../../model/device-severity.ts";
import type { JsonObject } from "../../model/event.ts";
import { putParameter, readAlarm } from "../alarm.ts";
import { FIELDS_MAX } from "../fields.ts";
import type { ReadEvent } from "../reading.ts";
import type { TimeContext } from "../times.ts";

// Common Event Format: `CEF:0|vendor|product|version|id|name|severity|key=value key=value`. Values have spaces in them and
// no quotes around them, so one ends where ` key=` begins the next.

/** How far into a message the beginning may stand, behind what some relay has put before it. */
const PREFIX_CHARACTERS_MAX = 256;
const HEADER_FIELDS = 7;
const BACKSLASH = 0x5c;
const PIPE = 0x7c;
const QUOTE = 0x22;
const SPACE = 0x20;

/** The event in a message; undefined where it is not CEF. */
export function readCef(message: string, context: TimeContext): ReadEvent | undefined {
  const start = headerStart(message);
  if (start < 0) return undefined;
  const header: string[] = [];
  const extension = scanHeader(message, start, header);
  if (header.length < HEADER_FIELDS) return undefined;
  const [, vendor, product, version, code, name, severity] = header;
  const raw: JsonObject = {};
  scanExtension(message, extension, raw);
  return readAlarm(
    { vendor: vendor!, product: product!, version, code, name: name!, severity: severityOfCef(severity!.trim()), raw },
    context,
  );
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
  return digit >= 0x30 && digit <= 0x39 && message.charCodeAt(at + 1) === PIPE;
}

/** Puts the seven fields of the header into `fields` and gives where the extension begins. */
function scanHeader(message: string, start: number, fields: string[]): number {
  let from = start;
  let at = start;
  let isEscaped = false;
  for (; at < message.length && fields.length < HEADER_FIELDS; at++) {
    const code = message.charCodeAt(at);
    if (code === BACKSLASH) {
      isEscaped = true;
      at++;
    } else if (code === PIPE) {
      fields.push(isEscaped ? unescape(message.slice(from, at)) : message.slice(from, at));
      from = at + 1;
      isEscaped = false;
    }
  }
  // A sender without an extension may leave out the last bar.
  if (fields.length === HEADER_FIELDS - 1 && from < message.length) fields.push(message.slice(from));
  return at;
}

function scanExtension(message: string, start: number, raw: JsonObject): void {
  let keyStart = start;
  while (message.charCodeAt(keyStart) === SPACE) keyStart++;
  let equals = nextEquals(message, keyStart);
  // What stands before the first key belongs to none.
  keyStart = equals < 0 ? message.length : keyBefore(message, equals, keyStart);
  let count = 0;
  let leftOut = 0;
  while (equals >= 0) {
    const valueStart = equals + 1;
    let next = quotedEnd(message, valueStart);
    let nextKey = -1;
    // The next key is the word before an equals sign, with a space before it: `a=b=c` has one key.
    for (next = nextEquals(message, next); next >= 0; next = nextEquals(message, next + 1)) {
      nextKey = keyBefore(message, next, valueStart);
      if (nextKey < next && nextKey > valueStart) break;
    }
    if (count < FIELDS_MAX) {
      let end = next < 0 ? message.length : nextKey - 1;
      while (end > valueStart && message.charCodeAt(end - 1) <= SPACE) end--;
      if (keyStart < equals) putParameter(raw, message.slice(keyStart, equals), valueOf(message, valueStart, end));
      count++;
    } else leftOut++;
    keyStart = nextKey;
    equals = next;
  }
  if (leftOut > 0) raw["fields_left_out"] = leftOut;
}

/** The next `=` that is not escaped. */
function nextEquals(message: string, from: number): number {
  let at = message.indexOf("=", from);
  while (at > 0 && isEscapedAt(message, at, from)) at = message.indexOf("=", at + 1);
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
  return at === from || message.charCodeAt(at - 1) === SPACE ? at : equals;
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
