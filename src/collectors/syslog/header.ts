import type { JsonObject } from "../../model/event.ts";
import { FIELDS_MAX, integerOf, macOf, putForeign } from "../fields.ts";
import { scanTime, scanZoneBehind, type ScannedTime, type TimeContext } from "../times.ts";

// What stands before the message in a syslog line: RFC 5424, RFC 3164, and what devices make of them. Nothing in it has to
// be there: what is missing is null, and all that is left is the message.

export interface SyslogHeader {
  readonly facility: number | null;
  readonly severity: number | null;
  readonly timeMs: number | null;
  readonly host: string | null;
  readonly program: string | null;
  readonly processId: number | null;
  readonly messageId: string | null;
  readonly structuredData: JsonObject | null;
  /** Of an access point or switch that says what it is in place of a program. */
  readonly deviceMac: string | null;
  readonly model: string | null;
  readonly message: string;
  /** The host that passed the message on, where the message has a header of its own. */
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

interface Place {
  at: number;
}

export function readHeader(line: string, context: TimeContext): SyslogHeader {
  const place: Place = { at: 0 };
  if (line.charCodeAt(0) === BYTE_ORDER_MARK) place.at = 1;
  skipBlanks(line, place);
  const { at: start } = place;
  const priority = scanPriority(line, place);
  const facility = priority === null ? null : priority >> 3;
  const severity = priority === null ? null : priority & 7;
  const isVersion1 = line.charCodeAt(place.at) === 0x31 && isBlank(line.charCodeAt(place.at + 1));
  // Without a priority a line may begin with a number: then only a time makes it a header.
  const mayLackTime = place.at > start;
  const header = isVersion1 ? scanRfc5424(line, place, context, mayLackTime) : undefined;
  return { facility, severity, ...(header ?? scanRfc3164(line, place, context)) };
}

type Rest = Omit<SyslogHeader, "facility" | "severity">;

/** Whether a header begins at this place: a priority, or a time. */
export function beginsHeader(line: string, at: number, context: TimeContext): boolean {
  return scanPriority(line, { at }) !== null || scanTime(line, at, context) !== undefined;
}

/**
 * Undefined where it is not one after all: then the rest is read as the older form. Some senders leave out fields behind the
 * host, and begin with the message there.
 */
function scanRfc5424(line: string, place: Place, context: TimeContext, mayLackTime: boolean): Rest | undefined {
  const { at: start } = place;
  place.at += 2;
  skipBlanks(line, place);
  const { at: timeStart } = place;
  const isNil = mayLackTime && line.charCodeAt(place.at) === 0x2d && isBlank(line.charCodeAt(place.at + 1));
  const time = isNil ? undefined : scanTime(line, place.at, context);
  if (!isNil && time === undefined) {
    place.at = start;
    return undefined;
  }
  place.at = time === undefined ? place.at + 1 : time.end;
  const host = scanWord(line, place, HOST_CHARACTERS_MAX);
  // `sshd[4711]:` is of the older form.
  skipBlanks(line, place);
  if (line.charCodeAt(wordEnd(line, place.at) - 1) === COLON) {
    place.at = isNil ? timeStart + 1 : timeStart;
    return undefined;
  }
  const program = scanWord(line, place, PROGRAM_CHARACTERS_MAX);
  const processId = scanWord(line, place, PROGRAM_CHARACTERS_MAX);
  const messageId = scanWord(line, place, PROGRAM_CHARACTERS_MAX);
  skipBlanks(line, place);
  const structuredData = scanStructuredData(line, place);
  if (structuredData === null && wordEnd(line, place.at) === place.at + 1 && line[place.at] === "-") place.at++;
  skipBlanks(line, place);
  if (line.charCodeAt(place.at) === BYTE_ORDER_MARK) place.at++;
  return {
    timeMs: time?.ms ?? null,
    host,
    program,
    processId: processId === null ? null : integer(processId),
    messageId,
    structuredData,
    deviceMac: null,
    model: null,
    message: line.slice(place.at),
    relay: null,
  };
}

/** How some syslog daemons mark what they pass on; the original host stands behind it. */
const FORWARDED = "Message forwarded from ";

function scanRfc3164(line: string, place: Place, context: TimeContext): Rest {
  skipBlanks(line, place);
  const { at: start } = place;
  let time = scanTime(line, start, context);
  let host: string | null = null;
  const router = time === undefined ? scanRouter(line, place.at, context) : undefined;
  if (router !== undefined) {
    ({ time, host } = router);
    place.at = time.end + 1;
    skipBlanks(line, place);
  } else if (time) {
    place.at = time.end;
    // Some write a colon behind the time.
    if (line.charCodeAt(place.at) === COLON) place.at++;
    skipBlanks(line, place);
    host = line.startsWith(FORWARDED, place.at) ? scanForwarded(line, place) : scanHost(line, place);
    if (host === null && line.includes(": %", time.end)) time = passZone(line, start, time, place, context);
  }
  // Behind a relay's header stands that of the message, whose time would pass for a program: `2026-11-17T06`.
  const isRelayed = host !== null && beginsHeader(line, place.at, context);
  let program = isRelayed ? undefined : scanProgram(line, place);
  let deviceMac: string | null = null;
  let model: string | null = null;
  // `6c63f8356535,U6-Lite-6.5.28: hostapd[12]: ...`: the device stands where the program should, the program behind it.
  const comma = program?.name.indexOf(",") ?? -1;
  if (program && comma === 12 && (deviceMac = macOf(program.name.slice(0, 12)) ?? null) !== null) {
    model = program.name.slice(13);
    program = scanProgram(line, place);
  }
  if (line.charCodeAt(place.at) === BYTE_ORDER_MARK) place.at++;
  return {
    timeMs: time?.ms ?? null,
    host,
    program: program?.name ?? null,
    processId: program?.processId ?? null,
    messageId: null,
    structuredData: null,
    deviceMac,
    model,
    message: place.at === 0 ? line : line.slice(place.at),
    relay: null,
  };
}

/** `Message forwarded from gateway: sshd[12]: ...`: the host ends in a colon. Null, and nothing skipped, where it does not. */
function scanForwarded(line: string, place: Place): string | null {
  const start = place.at + FORWARDED.length;
  const end = wordEnd(line, start);
  if (end - start < 2 || end - start > HOST_CHARACTERS_MAX || line.charCodeAt(end - 1) !== COLON) return null;
  place.at = end;
  skipBlanks(line, place);
  return line.slice(start, end - 1);
}

/** Which of the lines it is, who it is where that is set, and a mark for a clock that nobody has set. */
const BEFORE_TIME = /(?:\d{1,10}: +)?(?:([A-Za-z0-9][\w.-]{0,100}): +)?[*.]?(?=[A-Z])/y;
const ZONE_WORD = / [A-Z]{2,5}(?=: )/y;

/**
 * `123: Nov 16 05:00:01.123: %SEC-6-...`, `45: core-1: *Nov 16 2026 05:00:01.123 UTC: %SYS-5-...`: how routers and switches
 * write it. Behind the time and a colon stands the message.
 */
function scanRouter(
  line: string,
  at: number,
  context: TimeContext,
): { readonly time: ScannedTime; readonly host: string | null } | undefined {
  const first = line.charCodeAt(at);
  if (first !== ASTERISK && first !== POINT && !(first >= 0x30 && first <= 0x39)) return undefined;
  BEFORE_TIME.lastIndex = at;
  const before = BEFORE_TIME.exec(line);
  if (before === null) return undefined;
  const start = at + before[0].length;
  const time = scanTime(line, start, context);
  if (time === undefined) return undefined;
  const inZone = withZone(line, start, time, context) ?? time;
  return line.charCodeAt(inZone.end) === COLON ? { time: inZone, host: before[1] ?? null } : undefined;
}

/** With what stands behind the time and before a colon; of zones that many clocks share, UTC alone is understood. */
function withZone(line: string, start: number, time: ScannedTime, context: TimeContext): ScannedTime | undefined {
  const inZone = scanZoneBehind(line, start, time.end, context);
  if (inZone !== undefined) return inZone;
  ZONE_WORD.lastIndex = time.end;
  const word = ZONE_WORD.exec(line);
  return word === null ? undefined : { ms: time.ms, end: time.end + word[0].length };
}

/** The same without a number before it: the zone stands where a program would. */
function passZone(line: string, start: number, time: ScannedTime, place: Place, context: TimeContext): ScannedTime {
  const inZone = withZone(line, start, time, context);
  if (inZone === undefined || !line.startsWith(": %", inZone.end)) return time;
  place.at = inZone.end + 2;
  return inZone;
}

/** `<134>`; null where there is none. One that cannot be, `<999>` or `<>`, is passed over, and says nothing. */
function scanPriority(line: string, place: Place): number | null {
  if (line.charCodeAt(place.at) !== 0x3c) return null;
  const end = line.indexOf(">", place.at);
  if (end < 0 || end - place.at > 5) return null;
  const text = line.slice(place.at + 1, end).trim();
  const priority = integer(text);
  if (priority === null && text !== "") return null;
  place.at = end + 1;
  skipBlanks(line, place);
  return priority !== null && priority <= PRIORITY_MAX ? priority : null;
}

/** A field of the header; null for `-`, which stands for nothing, and where the message begins in its place. */
function scanWord(line: string, place: Place, max: number): string | null {
  skipBlanks(line, place);
  const end = wordEnd(line, place.at);
  if (end === place.at || end - place.at > max) return null;
  const first = line.charCodeAt(place.at);
  if (first === OPEN || first === BRACE) return null;
  const word = line.slice(place.at, end);
  if (word.startsWith("CEF:") || word.includes("|")) return null;
  place.at = end;
  return word === "-" ? null : word;
}

/** The host behind the time, once where it stands twice; null where the message begins at once. */
function scanHost(line: string, place: Place): string | null {
  const end = wordEnd(line, place.at);
  const word = line.slice(place.at, end);
  const last = word.charCodeAt(word.length - 1);
  const isHost =
    word !== "" &&
    word.length <= HOST_CHARACTERS_MAX &&
    last !== COLON &&
    !word.includes("[") &&
    !word.includes("|") &&
    !word.includes("=") &&
    word.charCodeAt(0) !== BRACE;
  // An IPv6 address may end in two colons, and is a host then all the same.
  if (!isHost && !(word.endsWith("::") && word.length > 2)) return null;
  place.at = end;
  skipBlanks(line, place);
  if (line.startsWith(word, place.at) && wordEnd(line, place.at) === place.at + word.length) {
    place.at += word.length;
    skipBlanks(line, place);
  }
  return word;
}

/** `sshd[4711]:`, `kernel:`; undefined, and nothing passed over, where the message begins without. */
function scanProgram(line: string, place: Place): { name: string; processId: number | null } | undefined {
  let at = place.at;
  while (isProgramCharacter(line.charCodeAt(at)) && at - place.at <= PROGRAM_CHARACTERS_MAX) at++;
  const nameEnd = at;
  if (nameEnd === place.at || nameEnd - place.at > PROGRAM_CHARACTERS_MAX) return undefined;
  let processId: number | null = null;
  if (line.charCodeAt(at) === OPEN) {
    const close = line.indexOf("]", at);
    if (close < 0 || close - at > 12) return undefined;
    processId = integer(line.slice(at + 1, close));
    at = close + 1;
  }
  if (line.charCodeAt(at) !== COLON) return undefined;
  const name = line.slice(place.at, nameEnd);
  // What CEF begins with looks like a program.
  if (name === "CEF" && processId === null) return undefined;
  place.at = at + 1;
  skipBlanks(line, place);
  return { name, processId };
}

/** `[id name="value" ...][id ...]`; null where there is none. Beyond the bound elements are passed over, never lost: the line has them. */
function scanStructuredData(line: string, place: Place): JsonObject | null {
  if (line.charCodeAt(place.at) !== OPEN) return null;
  const data: JsonObject = {};
  let room = FIELDS_MAX;
  let at = place.at;
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
      if (room-- > 0) putForeign(element, name, unescape(line.slice(at + 2, end)));
      at = end + 1;
    }
    // Not structured data after all, but a message that begins with a bracket.
    if (line.charCodeAt(at) !== CLOSE) return null;
    if (room-- > 0) putForeign(data, id, element);
    at++;
  }
  place.at = at;
  return data;
}

function isNameEnd(code: number): boolean {
  return code === 0x3d || code === CLOSE || code === QUOTE;
}

/** The quote that ends a value; below zero where none does. */
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

function skipBlanks(line: string, place: Place): void {
  while (isBlank(line.charCodeAt(place.at))) place.at++;
}

/** Some write tabs between the parts. */
function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

function integer(text: string): number | null {
  return text.length <= 9 ? (integerOf(text) ?? null) : null;
}

function isProgramCharacter(code: number): boolean {
  return (
    ((code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a) ||
    (code >= 0x2b && code <= 0x39) ||
    code === 0x5f ||
    code === 0x40 ||
    code === 0x28 ||
    code === 0x29
  );
}
