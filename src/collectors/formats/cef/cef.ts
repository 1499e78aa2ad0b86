import { severityOfCef } from "../../../model/device-severity.ts";
import { readAlarm, type Alarm } from "../unifi/alarm.ts";
import { FieldList } from "../field-list.ts";
import { FIELDS_MAX, ownText } from "../device-values.ts";
import { addParameter, parameterOf, type AlarmParameter } from "../unifi/alarm-parameters.ts";
import { oneEvent, type LineFormat, type LineMessage } from "../line-format.ts";
import { ownHeaderEnd } from "../message-prefix.ts";
import type { ParsedEvent } from "../reading.ts";
import type { TimeContext } from "../device-times.ts";

// Common Event Format: `CEF:0|vendor|product|version|id|name|severity|key=value key=value`. Values contain spaces and are not
// quoted, so a value ends where ` key=` starts the next one.

const HEADER_BARS = 7;
const HEADER_CHARACTERS_MAX = 512;
const HEADERS_CACHED_MAX = 1000;
const HEADER_LAYOUTS_MAX = 4;
/** Layouts of all headers together. The cache is cleared when full, which only made-up lines can cause. */
const LAYOUTS_MAX = 1000;
const LAYOUT_KEYS_MAX = 64;
const BACKSLASH = 0x5c;
const BAR = 0x7c;
const QUOTE = 0x22;
const SPACE = 0x20;
const TAB = 0x09;

export const CEF = {
  name: "cef",
  about: "Common Event Format of ArcSight, as UniFi consoles send it; also without `CEF:`",
  devices: ["UniFi Network, Protect, Access, Talk and OS", "anything that sends CEF"],
  example: "CEF:0|Ubiquiti|UniFi Network|9.0|201|Threat Detected|7|src=192.0.2.1 dst=10.9.3.20 act=blocked",
  ownHeader: "CEF:",
  read: (message, context) => oneEvent(readCef(message, context)),
} as const satisfies LineFormat;

function readCef(line: LineMessage, context: TimeContext): ParsedEvent | undefined {
  const { message } = line;
  const start = headerStart(line);
  if (start < 0) return undefined;
  const extension = headerEnd(message, start);
  const header = extension < 0 ? undefined : headerOf(message.slice(start, extension));
  if (header === undefined) return undefined;
  const fields = new FieldList();
  const isMatched = header.layouts.some((layout) => matchLayout(layout, message, extension, fields));
  const leftOut = isMatched ? 0 : scanExtension(message, extension, fields, header);
  const event = readAlarm(header.alarm, fields, context);
  if (leftOut > 0) event.raw["fields_left_out"] = leftOut;
  return event;
}

/** Position of the version, after `CEF:` or at the start of a message that lost it; -1 if there is none. */
function headerStart(line: LineMessage): number {
  const { message } = line;
  if (isVersion(message, 0)) return 0;
  let at = ownHeaderEnd(CEF.ownHeader, line);
  if (at < 0) return -1;
  while (message.charCodeAt(at) === SPACE) at++;
  return isVersion(message, at) ? at : -1;
}

function isVersion(message: string, at: number): boolean {
  const digit = message.charCodeAt(at);
  return digit >= 0x30 && digit <= 0x39 && message.charCodeAt(at + 1) === BAR;
}

/** Start of the extension; -1 if the header has too few bars. */
function headerEnd(message: string, start: number): number {
  let bars = 0;
  for (let at = message.indexOf("|", start); at >= 0; at = message.indexOf("|", at + 1)) {
    if (message.charCodeAt(at - 1) === BACKSLASH && isEscapedAt(message, at, start)) continue;
    if (++bars === HEADER_BARS) return at + 1;
  }
  // A sender without an extension may omit the last bar.
  return bars === HEADER_BARS - 1 ? message.length : -1;
}

interface CefHeader {
  readonly alarm: Alarm;
  readonly layouts: ExtensionLayout[];
  /** Keys of the last line that matched none of the layouts. */
  last: readonly AlarmParameter[];
}

const headers = new Map<string, CefHeader>();
let layouts = 0;

/** Parses a header, or returns it from the cache: a console sends few different ones. */
function headerOf(text: string): CefHeader | undefined {
  const cached = headers.get(text);
  if (cached !== undefined) return cached;
  if (text.length > HEADER_CHARACTERS_MAX) return makeHeader(text);
  const own = ownText(text);
  const header = makeHeader(own);
  if (header === undefined) return undefined;
  if (headers.size >= HEADERS_CACHED_MAX) headers.clear();
  headers.set(own, header);
  return header;
}

function makeHeader(text: string): CefHeader | undefined {
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
 * The keys of lines with the same header, in order, and a pattern that captures their values. Captured values contain no
 * equals sign, so the pattern matches in one way only and no value can hide another key. Other lines are scanned.
 */
interface ExtensionLayout {
  readonly parameters: readonly AlarmParameter[];
  readonly pattern: RegExp;
}

function matchLayout(
  { parameters, pattern }: ExtensionLayout,
  message: string,
  start: number,
  fields: FieldList,
): boolean {
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

/** Compiles a pattern for a layout that occurred twice in a row, up to a limit per header. */
function learnLayout(header: CefHeader, parameters: readonly AlarmParameter[]): void {
  const isSame = (other: readonly AlarmParameter[]) =>
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

/** Scans the key-value pairs. Returns the number of fields past the limit. */
function scanExtension(message: string, start: number, fields: FieldList, header: CefHeader): number {
  const seen: AlarmParameter[] = [];
  let equals = nextEquals(message, start);
  // Text before the first key belongs to none.
  let keyStart = equals < 0 ? -1 : keyBefore(message, equals, start);
  let count = 0;
  while (equals >= 0) {
    const valueStart = equals + 1;
    let next = nextEquals(message, quotedEnd(message, valueStart));
    let nextKey = -1;
    // The next key is a word between a space and an equals sign: `a=b=c` has one key.
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
  learnLayout(header, seen);
  return Math.max(0, count - FIELDS_MAX);
}

/** A key follows a space or a tab; the first one starts the extension. */
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

/** Start of the key that ends at `equals`; `equals` itself if there is no key. */
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

/** Position after a quoted value, which is not searched for keys; otherwise the start of the value. */
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

/** Resolves `\=`, `\|`, `\\`, `\n` and `\r`; any other backslash is literal. */
function unescape(text: string): string {
  return text.replaceAll(/\\([\\=|nr"])/g, (_, letter: string) =>
    letter === "n" ? "\n" : letter === "r" ? "\r" : letter,
  );
}
