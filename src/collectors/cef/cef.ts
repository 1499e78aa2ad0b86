import { severityOfCef } from "../../model/device-severity.ts";
import { readAlarm, type Alarm } from "../alarm.ts";
import { FieldList } from "../field-list.ts";
import { FIELDS_MAX, ownText } from "../fields.ts";
import { addParameter, parameterOf, type Parameter } from "../parameters.ts";
import { isPlain } from "../prefix.ts";
import type { ReadEvent } from "../reading.ts";
import type { TimeContext } from "../times.ts";

// Common Event Format: `CEF:0|vendor|product|version|id|name|severity|key=value key=value`. Values have spaces in them and
// no quotes around them, so one ends where ` key=` begins the next.

/** How far into a message the beginning may stand, behind what some relay has put before it. */
const PREFIX_CHARACTERS_MAX = 256;
const HEADER_BARS = 7;
const HEADER_CHARACTERS_MAX = 512;
const HEADERS_REMEMBERED_MAX = 1000;
const HEADER_LAYOUTS_MAX = 4;
/** Of all headers together; with more of them, which only somebody who makes them up has, it begins anew. */
const LAYOUTS_MAX = 1000;
const LAYOUT_KEYS_MAX = 64;
const BACKSLASH = 0x5c;
const BAR = 0x7c;
const QUOTE = 0x22;
const SPACE = 0x20;
const TAB = 0x09;

/** The event in a message; undefined where it is not CEF. Something may stand before it only where no program has spoken. */
export function readCef(program: string | null, message: string, context: TimeContext): ReadEvent | undefined {
  const start = headerStart(message, program === null);
  if (start < 0) return undefined;
  const extension = headerEnd(message, start);
  const header = extension < 0 ? undefined : headerOf(message.slice(start, extension));
  if (header === undefined) return undefined;
  const fields = new FieldList();
  const isKnown = header.layouts.some((layout) => takeByLayout(layout, message, extension, fields));
  const leftOut = isKnown ? 0 : scanExtension(message, extension, fields, header);
  const event = readAlarm(header.alarm, fields, context);
  if (leftOut > 0) event.raw["fields_left_out"] = leftOut;
  return event;
}

/** Where the version stands: behind `CEF:`, or at the beginning of a message that has lost it. Below zero: nowhere. */
function headerStart(message: string, mayBeRelayed: boolean): number {
  let at = 0;
  if (!isVersion(message, at)) {
    const word = message.startsWith("CEF:") ? 0 : mayBeRelayed ? message.indexOf("CEF:") : -1;
    if (word < 0 || word > PREFIX_CHARACTERS_MAX || (word > 0 && !isPlain(message.slice(0, word)))) return -1;
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

interface Header {
  readonly alarm: Alarm;
  readonly layouts: Layout[];
  /** The keys of the last line that had none of these layouts. */
  last: readonly Parameter[];
}

const headers = new Map<string, Header>();
let layouts = 0;

/** A console says few things all day: what a header says is found out once. */
function headerOf(text: string): Header | undefined {
  const known = headers.get(text);
  if (known !== undefined) return known;
  if (text.length > HEADER_CHARACTERS_MAX) return makeHeader(text);
  const own = ownText(text);
  const header = makeHeader(own);
  if (header === undefined) return undefined;
  if (headers.size >= HEADERS_REMEMBERED_MAX) headers.clear();
  headers.set(own, header);
  return header;
}

function makeHeader(text: string): Header | undefined {
  const [, vendor, product, version, code, name, severity] = text.includes("\\") ? splitEscaped(text) : text.split("|");
  if (product === undefined || name === undefined || severity === undefined) return undefined;
  const alarm = { vendor, product, version, code, name, severity: severityOfCef(severity.trim()) };
  return { alarm, layouts: [], last: [] };
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

/**
 * The keys that lines with one header have, in their order, and a pattern that finds their values. Values in it have no
 * equals sign, so that there is one way to match it, and none to hide another key; other lines are scanned.
 */
interface Layout {
  readonly parameters: readonly Parameter[];
  readonly pattern: RegExp;
}

function takeByLayout({ parameters, pattern }: Layout, message: string, start: number, fields: FieldList): boolean {
  pattern.lastIndex = start;
  const values = pattern.exec(message);
  if (values === null) return false;
  const isPlain = !message.includes("\\", start) && !message.includes('"', start);
  for (let index = 0; index < parameters.length; index++) {
    const value = withoutPadding(values[index + 1]!);
    addParameter(fields, parameters[index]!, isPlain ? value : valueOf(value));
  }
  return true;
}

/** A layout that came twice in a row is worth a pattern, so many of them for each header. */
function learn(header: Header, parameters: readonly Parameter[]): void {
  const isSame = (other: readonly Parameter[]) =>
    other.length === parameters.length && other.every((one, index) => one === parameters[index]);
  const isKnown =
    header.layouts.length >= HEADER_LAYOUTS_MAX || header.layouts.some((layout) => isSame(layout.parameters));
  if (!isKnown && isSame(header.last) && parameters.length > 0 && parameters.length <= LAYOUT_KEYS_MAX) {
    if (++layouts > LAYOUTS_MAX) {
      headers.clear();
      layouts = 0;
    }
    const keys = parameters.map(({ key }) => `${RegExp.escape(key)}=([^=]*?)`);
    header.layouts.push({ parameters, pattern: new RegExp(` *${keys.join(" ")}$`, "y") });
  }
  header.last = parameters.length <= LAYOUT_KEYS_MAX ? parameters : [];
}

/** Gives how many fields were too many. */
function scanExtension(message: string, start: number, fields: FieldList, header: Header): number {
  const seen: Parameter[] = [];
  let equals = nextEquals(message, start);
  // What stands before the first key belongs to none.
  let keyStart = equals < 0 ? -1 : keyBefore(message, equals, start);
  let count = 0;
  while (equals >= 0) {
    const valueStart = equals + 1;
    let next = nextEquals(message, quotedEnd(message, valueStart));
    let nextKey = -1;
    // The next key is the word before an equals sign, with a space before it: `a=b=c` has one key.
    while (next >= 0 && (nextKey = keyBefore(message, next, valueStart + 1)) === next) {
      next = nextEquals(message, next + 1);
    }
    if (keyStart < equals && count++ < FIELDS_MAX) {
      const parameter = parameterOf(message.slice(keyStart, equals));
      seen.push(parameter);
      addParameter(fields, parameter, valueOf(message.slice(valueStart, next < 0 ? message.length : nextKey - 1)));
    }
    keyStart = nextKey;
    equals = next;
  }
  learn(header, seen);
  return Math.max(0, count - FIELDS_MAX);
}

/** Keys begin behind a space or a tab, and the first one where the extension begins. */
function isBoundary(message: string, at: number, from: number): boolean {
  const code = message.charCodeAt(at - 1);
  return code === SPACE || code === TAB || (code === BAR && at === from);
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
  return end > 0 && (after === SPACE || after === TAB || end + 1 === message.length) ? end + 1 : start;
}

function withoutPadding(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return last === SPACE || last === TAB ? text.trimEnd() : text;
}

function valueOf(text: string): string {
  const value = withoutPadding(text);
  const isQuoted = value.length >= 2 && value.charCodeAt(0) === QUOTE && value.charCodeAt(value.length - 1) === QUOTE;
  const bare = isQuoted ? value.slice(1, -1) : value;
  return bare.includes("\\") ? unescape(bare) : bare;
}

/** `\=`, `\|`, `\\`, `\n` and `\r`; a backslash before anything else stands for itself. */
function unescape(text: string): string {
  return text.replaceAll(/\\([\\=|nr"])/g, (_, letter: string) =>
    letter === "n" ? "\n" : letter === "r" ? "\r" : letter,
  );
}
