import type { JsonObject } from "../../../model/event.ts";
import { FIELDS_MAX, integerOf, macOf, putForeign } from "../device-values.ts";
import { beginsOwnHeader } from "../line-formats.ts";
import { scanTime, scanTimeWithZone, type ScannedTime, type TimeContext } from "../device-times.ts";
import { scanEpoch, scanHeaderTime } from "./header-times.ts";

// Parses the header of a syslog line: RFC 5424, RFC 3164, and the variants of devices. Every part is optional: a missing one
// is null, and the rest of the line is the message.

export interface SyslogHeader {
  readonly facility: number | null;
  readonly severity: number | null;
  readonly timeMs: number | null;
  readonly host: string | null;
  readonly program: string | null;
  readonly processId: number | null;
  readonly messageId: string | null;
  readonly structuredData: JsonObject | null;
  /** Of an access point or switch that names itself in place of a program. */
  readonly deviceMac: string | null;
  readonly model: string | null;
  readonly message: string;
  /** The message with the program in front of it, as it stands in the line. */
  readonly whole: string;
  /** Host that relayed the message, if the message has a second header. */
  readonly relay: string | null;
}

const PRIORITY_MAX = 191;
const HOST_CHARACTERS_MAX = 255;
const PROGRAM_CHARACTERS_MAX = 128;
const SPACE = 0x20;
const TAB = 0x09;
const COLON = 0x3a;
const ASTERISK = 0x2a;
const POINT = 0x2e;
const BRACE = 0x7b;
const BYTE_ORDER_MARK = 0xfeff;
const BACKSLASH = 0x5c;
const QUOTE = 0x22;
const CLOSE = 0x5d;
const OPEN = 0x5b;

interface Cursor {
  at: number;
}

export function readHeader(line: string, context: TimeContext): SyslogHeader {
  const cursor: Cursor = { at: 0 };
  if (line.charCodeAt(0) === BYTE_ORDER_MARK) cursor.at = 1;
  skipBlanks(line, cursor);
  const { at: start } = cursor;
  const priority = scanPriority(line, cursor);
  const facility = priority === null ? null : priority >> 3;
  const severity = priority === null ? null : priority & 7;
  const isVersion1 = line.charCodeAt(cursor.at) === 0x31 && isBlank(line.charCodeAt(cursor.at + 1));
  // Without a priority the line may just start with a number; only a time makes it a header.
  const mayLackTime = cursor.at > start;
  const header = isVersion1 ? scanRfc5424(line, cursor, context, mayLackTime) : undefined;
  return { facility, severity, ...(header ?? scanRfc3164(line, cursor, context)) };
}

type HeaderAfterPriority = Omit<SyslogHeader, "facility" | "severity">;

/** True if a header begins at this position: a priority, or a time. */
export function beginsHeader(line: string, at: number, context: TimeContext): boolean {
  return scanPriority(line, { at }) !== null || scanHeaderTime(line, at, context) !== undefined;
}

/**
 * Parses an RFC 5424 header; undefined if it is not one after all, and the rest is to be parsed as RFC 3164. Some senders omit
 * fields after the host and start the message there.
 */
function scanRfc5424(
  line: string,
  cursor: Cursor,
  context: TimeContext,
  mayLackTime: boolean,
): HeaderAfterPriority | undefined {
  const { at: start } = cursor;
  cursor.at += 2;
  skipBlanks(line, cursor);
  const { at: timeStart } = cursor;
  const isNil = mayLackTime && line.charCodeAt(cursor.at) === 0x2d && isBlank(line.charCodeAt(cursor.at + 1));
  const time = isNil ? undefined : scanTime(line, cursor.at, context);
  if (!isNil && time === undefined) {
    // Seconds since 1970 take the place of the time; what follows is not RFC 5424.
    if (scanEpoch(line, timeStart, context) === undefined) cursor.at = start;
    return undefined;
  }
  cursor.at = time === undefined ? cursor.at + 1 : time.end;
  const host = scanWord(line, cursor, HOST_CHARACTERS_MAX);
  // `sshd[4711]:` belongs to RFC 3164.
  skipBlanks(line, cursor);
  if (line.charCodeAt(wordEnd(line, cursor.at) - 1) === COLON) {
    cursor.at = isNil ? timeStart + 1 : timeStart;
    return undefined;
  }
  const program = scanWord(line, cursor, PROGRAM_CHARACTERS_MAX);
  const processId = scanWord(line, cursor, PROGRAM_CHARACTERS_MAX);
  const messageId = scanWord(line, cursor, PROGRAM_CHARACTERS_MAX);
  skipBlanks(line, cursor);
  const structuredData = scanStructuredData(line, cursor);
  if (structuredData === null && wordEnd(line, cursor.at) === cursor.at + 1 && line[cursor.at] === "-") cursor.at++;
  skipBlanks(line, cursor);
  if (line.charCodeAt(cursor.at) === BYTE_ORDER_MARK) cursor.at++;
  return {
    timeMs: time?.ms ?? null,
    host,
    program,
    processId: processId === null ? null : integer(processId),
    messageId,
    structuredData,
    deviceMac: null,
    model: null,
    message: line.slice(cursor.at),
    whole: line.slice(cursor.at),
    relay: null,
  };
}

/** Mark of some syslog daemons on relayed messages; the original host follows it. */
const FORWARDED = "Message forwarded from ";

function scanRfc3164(line: string, cursor: Cursor, context: TimeContext): HeaderAfterPriority {
  skipBlanks(line, cursor);
  // Some devices of Cisco write a colon in front of the time.
  if (line.charCodeAt(cursor.at) === COLON) {
    const behind = line.charCodeAt(cursor.at + 1) === SPACE ? cursor.at + 2 : cursor.at + 1;
    const isTime = scanTime(line, behind, context) !== undefined || scanRouter(line, behind, context) !== undefined;
    if (isTime) cursor.at = behind;
  }
  const { at: start } = cursor;
  let time = scanHeaderTime(line, start, context);
  let host: string | null = null;
  const router = time === undefined ? scanRouter(line, cursor.at, context) : undefined;
  if (router !== undefined) {
    ({ time, host } = router);
    cursor.at = time.end + 1;
    skipBlanks(line, cursor);
  } else if (time) {
    cursor.at = time.end;
    // Some devices write a colon after the time.
    if (line.charCodeAt(cursor.at) === COLON) cursor.at++;
    skipBlanks(line, cursor);
    host = line.startsWith(FORWARDED, cursor.at) ? scanForwarded(line, cursor) : scanHost(line, cursor);
    host ??= scanHostBeforeCode(line, cursor);
    // A relay's time and host, then the router's number and time.
    const relayed = host === null ? undefined : scanRouter(line, cursor.at, context);
    if (relayed !== undefined) {
      ({ time } = relayed);
      host = relayed.host ?? host;
      cursor.at = time.end + 1;
      skipBlanks(line, cursor);
    }
    if (host === null && line.includes(": %", time.end)) time = skipZone(line, start, time, cursor, context);
  }
  // A relay's header is followed by that of the message, whose time would look like a program: `2026-11-17T06`.
  const isRelayed = host !== null && beginsHeader(line, cursor.at, context);
  let relay: string | null = null;
  // The relay's name in front of that of an access point, which has no time of its own.
  const behind = host === null || isRelayed ? undefined : scanDevice(line, cursor.at);
  if (behind !== undefined) {
    relay = host;
    ({ host, end: cursor.at } = behind);
  }
  const { at: wholeStart } = cursor;
  let program = isRelayed ? undefined : scanProgram(line, cursor);
  let deviceMac: string | null = null;
  let model: string | null = null;
  // `6c63f8356535,U6-Lite-6.5.28: hostapd[12]: ...`: the device takes the place of the program, which follows it.
  const comma = program?.name.indexOf(",") ?? -1;
  if (program && comma === 12 && (deviceMac = macOf(program.name.slice(0, 12)) ?? null) !== null) {
    model = program.name.slice(13);
    program = scanProgram(line, cursor);
  }
  if (line.charCodeAt(cursor.at) === BYTE_ORDER_MARK) cursor.at++;
  return {
    timeMs: time?.ms ?? null,
    host,
    program: program?.name ?? null,
    processId: program?.processId ?? null,
    messageId: null,
    structuredData: null,
    deviceMac,
    model,
    message: cursor.at === 0 ? line : line.slice(cursor.at),
    whole: wholeStart === 0 ? line : line.slice(wholeStart),
    relay,
  };
}

const DEVICE_BEHIND = /([\w.-]{1,255}) (?=[0-9a-f]{12},[\w.-]{1,64}: )/iy;

/** The name of an access point or switch that names itself in place of a program: `U6-Lite 0200000a0b0c,U6-Lite-6.5: ...`. */
function scanDevice(line: string, at: number): { readonly host: string; readonly end: number } | undefined {
  DEVICE_BEHIND.lastIndex = at;
  const device = DEVICE_BEHIND.exec(line);
  return device === null ? undefined : { host: device[1]!, end: at + device[0].length };
}

/** Parses `Message forwarded from gateway: sshd[12]: ...`. Returns null and skips nothing if no colon ends the host. */
function scanForwarded(line: string, cursor: Cursor): string | null {
  const start = cursor.at + FORWARDED.length;
  const end = wordEnd(line, start);
  if (end - start < 2 || end - start > HOST_CHARACTERS_MAX || line.charCodeAt(end - 1) !== COLON) return null;
  cursor.at = end;
  skipBlanks(line, cursor);
  return line.slice(start, end - 1);
}

/** Sequence number, optional host name, and the mark of a clock that is not synchronised. */
const BEFORE_TIME =
  /(?:\d{1,10}: +)?(?:(?=[\w.-]{0,100}[A-Za-z])([A-Za-z0-9][\w.-]{0,100}): +)?(?:\d{1,10}: +)?[*.]?(?=[A-Z])/y;
const ZONE_WORD = / [A-Za-z]{2,5}(?=: )/y;
const ZONE_OFFSET = / (?:UTC|GMT)([+-])(\d{1,2})(?::?(\d\d))?(?=: )/y;
/** The host with a colon behind it, where a code follows in place of a program. */
const HOST_BEFORE_CODE = /([A-Za-z0-9][\w.-]{0,254}): +(?=%[A-Z][A-Z0-9_]{1,40}-)/y;

/**
 * Parses the header of routers and switches: `123: Nov 16 05:00:01.123: %SEC-6-...`,
 * `45: core-1: *Nov 16 2026 05:00:01.123 UTC: %SYS-5-...`. The message follows the time and a colon.
 */
function scanRouter(
  line: string,
  at: number,
  context: TimeContext,
): { readonly time: ScannedTime; readonly host: string | null } | undefined {
  const first = line.charCodeAt(at);
  const isNumbered = first === ASTERISK || first === POINT || (first >= 0x30 && first <= 0x39);
  // Without a number, the host in front of the time would pass for a program.
  if (!isNumbered && !(isLetter(first) && line.includes(": %", at))) return undefined;
  BEFORE_TIME.lastIndex = at;
  const before = BEFORE_TIME.exec(line);
  if (before === null) return undefined;
  const start = at + before[0].length;
  const time = scanTime(line, start, context);
  if (time === undefined) return undefined;
  const inZone = withZone(line, start, time, context) ?? time;
  return line.charCodeAt(inZone.end) === COLON ? { time: inZone, host: before[1] ?? null } : undefined;
}

function scanHostBeforeCode(line: string, cursor: Cursor): string | null {
  HOST_BEFORE_CODE.lastIndex = cursor.at;
  const found = HOST_BEFORE_CODE.exec(line);
  if (found === null) return null;
  cursor.at += found[0].length;
  return found[1]!;
}

/** Includes the zone between the time and a colon. Of zone names only UTC is understood, as others are ambiguous. */
function withZone(line: string, start: number, time: ScannedTime, context: TimeContext): ScannedTime | undefined {
  ZONE_OFFSET.lastIndex = time.end;
  const offset = ZONE_OFFSET.exec(line);
  if (offset !== null) {
    const [whole, sign, hours, minutes = "0"] = offset;
    const inUtc = scanTime(line, start, { ...context, timezone: "UTC" }) ?? time;
    const shiftMs = (Number(hours) * 60 + Number(minutes)) * 60_000;
    return { ms: sign === "-" ? inUtc.ms + shiftMs : inUtc.ms - shiftMs, end: time.end + whole.length };
  }
  const inZone = scanTimeWithZone(line, start, time.end, context);
  if (inZone !== undefined) return inZone;
  ZONE_WORD.lastIndex = time.end;
  const word = ZONE_WORD.exec(line);
  return word === null ? undefined : { ms: time.ms, end: time.end + word[0].length };
}

/** Skips a zone that takes the place of a program in a router's header without a sequence number. */
function skipZone(line: string, start: number, time: ScannedTime, cursor: Cursor, context: TimeContext): ScannedTime {
  const inZone = withZone(line, start, time, context);
  if (inZone === undefined || !line.startsWith(": %", inZone.end)) return time;
  cursor.at = inZone.end + 2;
  return inZone;
}

/** Parses `<134>`; null if there is none. An invalid one, such as `<999>` or `<>`, is skipped. */
function scanPriority(line: string, cursor: Cursor): number | null {
  if (line.charCodeAt(cursor.at) !== 0x3c) return null;
  const end = line.indexOf(">", cursor.at);
  if (end < 0 || end - cursor.at > 5) return null;
  const text = line.slice(cursor.at + 1, end).trim();
  const priority = integer(text);
  if (priority === null && text !== "") return null;
  cursor.at = end + 1;
  skipBlanks(line, cursor);
  return priority !== null && priority <= PRIORITY_MAX ? priority : null;
}

/** Parses a field of the header; null for `-`, and if the message starts in its place. */
function scanWord(line: string, cursor: Cursor, max: number): string | null {
  skipBlanks(line, cursor);
  const end = wordEnd(line, cursor.at);
  if (end === cursor.at || end - cursor.at > max) return null;
  const first = line.charCodeAt(cursor.at);
  if (first === OPEN || first === BRACE) return null;
  const word = line.slice(cursor.at, end);
  if (beginsOwnHeader(line, cursor.at) || word.includes("|")) return null;
  cursor.at = end;
  return word === "-" ? null : word;
}

/** Parses the host after the time, which some devices repeat; null if the message starts there. */
function scanHost(line: string, cursor: Cursor): string | null {
  const end = wordEnd(line, cursor.at);
  const word = line.slice(cursor.at, end);
  const last = word.charCodeAt(word.length - 1);
  const isHost =
    word !== "" &&
    word.length <= HOST_CHARACTERS_MAX &&
    last !== COLON &&
    !word.includes("[") &&
    !word.includes("|") &&
    !word.includes("=") &&
    word.charCodeAt(0) !== BRACE;
  // An IPv6 address may end in two colons.
  if (!isHost && !(word.endsWith("::") && word.length > 2)) return null;
  cursor.at = end;
  skipBlanks(line, cursor);
  if (line.startsWith(word, cursor.at) && wordEnd(line, cursor.at) === cursor.at + word.length) {
    cursor.at += word.length;
    skipBlanks(line, cursor);
  }
  return word;
}

/** Parses `sshd[4711]:` or `kernel:`. Returns undefined and skips nothing if the message starts without a program. */
function scanProgram(line: string, cursor: Cursor): { name: string; processId: number | null } | undefined {
  let at = cursor.at;
  while (isProgramCharacter(line.charCodeAt(at)) && at - cursor.at <= PROGRAM_CHARACTERS_MAX) at++;
  const nameEnd = at;
  if (nameEnd === cursor.at || nameEnd - cursor.at > PROGRAM_CHARACTERS_MAX) return undefined;
  let processId: number | null = null;
  if (line.charCodeAt(at) === OPEN) {
    const close = line.indexOf("]", at);
    if (close < 0 || close - at > 12) return undefined;
    processId = integer(line.slice(at + 1, close));
    at = close + 1;
  }
  if (line.charCodeAt(at) !== COLON) return undefined;
  const name = line.slice(cursor.at, nameEnd);
  if (beginsOwnHeader(line, cursor.at)) return undefined;
  cursor.at = at + 1;
  skipBlanks(line, cursor);
  return { name, processId };
}

/** Parses `[id name="value" ...][id ...]`; null if there is none. Elements past the limit remain only in the line. */
function scanStructuredData(line: string, cursor: Cursor): JsonObject | null {
  if (line.charCodeAt(cursor.at) !== OPEN) return null;
  const data: JsonObject = {};
  let fieldsLeft = FIELDS_MAX;
  let at = cursor.at;
  while (line.charCodeAt(at) === OPEN) {
    at++;
    const idStart = at;
    while (at < line.length && line.charCodeAt(at) > SPACE && line.charCodeAt(at) !== CLOSE) at++;
    const element: JsonObject = {};
    const id = line.slice(idStart, at);
    while (line.charCodeAt(at) === SPACE) {
      while (line.charCodeAt(at) === SPACE) at++;
      const nameStart = at;
      while (at < line.length && line.charCodeAt(at) > SPACE && !isNameEnd(line.charCodeAt(at))) at++;
      const name = line.slice(nameStart, at);
      if (line.charCodeAt(at) !== 0x3d || line.charCodeAt(at + 1) !== QUOTE) break;
      const end = valueEnd(line, at + 2);
      if (end < 0) return null;
      if (fieldsLeft-- > 0) putForeign(element, name, unescape(line.slice(at + 2, end)));
      at = end + 1;
    }
    // No structured data, but a message that starts with a bracket.
    if (line.charCodeAt(at) !== CLOSE) return null;
    if (fieldsLeft-- > 0) putForeign(data, id, element);
    at++;
  }
  cursor.at = at;
  return data;
}

function isNameEnd(code: number): boolean {
  return code === 0x3d || code === CLOSE || code === QUOTE;
}

/** Position of the quote that ends a value; -1 if there is none. */
function valueEnd(line: string, start: number): number {
  for (let at = start; at < line.length; at++) {
    const code = line.charCodeAt(at);
    if (code === BACKSLASH) at++;
    else if (code === QUOTE) return at;
  }
  return -1;
}

function unescape(text: string): string {
  return text.includes("\\") ? text.replaceAll(/\\(["\\\]])/g, "$1") : text;
}

function wordEnd(line: string, start: number): number {
  let end = start;
  while (end < line.length && !isBlank(line.charCodeAt(end))) end++;
  return end;
}

function skipBlanks(line: string, cursor: Cursor): void {
  while (isBlank(line.charCodeAt(cursor.at))) cursor.at++;
}

/** Some devices separate the parts by tabs. */
function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

function integer(text: string): number | null {
  return text.length <= 9 ? (integerOf(text) ?? null) : null;
}

function isLetter(code: number): boolean {
  return (code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a;
}

function isProgramCharacter(code: number): boolean {
  return (
    isLetter(code) || (code >= 0x2b && code <= 0x39) || code === 0x5f || code === 0x40 || code === 0x28 || code === 0x29
  );
}
