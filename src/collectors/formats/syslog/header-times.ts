import { readAnyTime, scanTime, type ScannedTime, type TimeContext } from "../device-times.ts";

// Times of syslog headers, in the notations of vendors that scanTime does not know: a zone behind the time, seconds since 1970, a
// compact date, the day before the month.

const SPACE = 0x20;
const PLUS = 0x2b;
const MINUS = 0x2d;
const MINUTE_MS = 60_000;
/** A number of seconds that is further from now is a number. */
const EPOCH_MS_MAX = 2 * 366 * 24 * 60 * MINUTE_MS;

/** `+01:00`, ` +0100`, ` GMT+01:00` behind a time. */
const OFFSET = / {0,2}(?:GMT|UTC)?([+-])(\d\d):?(\d\d)(?=[ \t:])/y;
/** ` UTC 2026` behind a time. */
const ZONE_AND_YEAR = / ([A-Z]{3,5}) (20\d\d)(?= )/y;
/** A zone behind a time, if a host and a program follow: a host may be called like a zone. */
const ZONE_BEFORE_HOST = / {1,2}([A-Z]{1,5})(?= [^\s:[\]=|]{1,255} {1,2}[\w./()@-]{1,128}(?:\[\d{1,12}\])?:)/y;
const UTC_NAMES = new Set(["UTC", "GMT", "Z"]);
/** Other names are ambiguous (CST is in America, China and Cuba): the time is taken to be in the site's zone. */
const ZONE_NAMES = new Set(
  [
    "ACST",
    "ADT",
    "AEDT",
    "AEST",
    "AKDT",
    "AKST",
    "AST",
    "AWST",
    "BRT",
    "BST",
    "CAT",
    "CDT",
    "CEST",
    "CET",
    "CST",
  ].concat(
    ["EDT", "EEST", "EET", "EST", "HKT", "HST", "IST", "JST", "KST", "MDT", "MSK", "MST", "NZDT", "NZST", "PDT", "PST"],
    ["SAST", "SGT", "WEST", "WET", "WIB"],
  ),
);
const EPOCH = /\d{10}(?:\.\d{1,9})?(?= )/y;
const COMPACT = /(\d{4})(\d\d)(\d\d)T?(\d\d)(\d\d)(\d\d)(\.\d{1,9})?(Z|[+-]\d\d:?\d\d)?(?=[ \t:])/y;
const DAY_FIRST = /(\d{1,2}) ([A-Z][a-z]{2}) (20\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?=[ \t:])/y;

/** Parses the time of a header at a position. */
export function scanHeaderTime(text: string, start: number, context: TimeContext): ScannedTime | undefined {
  const first = text.charCodeAt(start);
  const isDigit = first >= 0x30 && first <= 0x39;
  const scanned = scanTime(text, start, context);
  if (scanned === undefined) return isDigit ? scanDigits(text, start, context) : undefined;
  const after = text.charCodeAt(scanned.end);
  if (after === PLUS || after === MINUS || (after === SPACE && isZoneStart(text.charCodeAt(scanned.end + 1)))) {
    return scanZoneBehind(text, start, scanned, context) ?? scanned;
  }
  return scanned;
}

/** Seconds since 1970 at a position, as some devices write them behind the version of RFC 5424. */
export function scanEpoch(text: string, start: number, context: TimeContext): ScannedTime | undefined {
  const epoch = matchAt(EPOCH, text, start);
  const ms = epoch === null ? null : readAnyTime(epoch[0], context);
  if (ms === null || Math.abs(ms - context.nowMs) > EPOCH_MS_MAX) return undefined;
  return { ms, end: start + epoch![0].length };
}

function scanDigits(text: string, start: number, context: TimeContext): ScannedTime | undefined {
  const compact = matchAt(COMPACT, text, start);
  if (compact !== null) {
    const [whole, year, month, day, hour, minute, second, fraction = "", zone = ""] = compact;
    return inPlace(`${year}-${month}-${day}T${hour}:${minute}:${second}${fraction}${zone}`, start, whole, context);
  }
  const dayFirst = matchAt(DAY_FIRST, text, start);
  if (dayFirst !== null) {
    const [whole, day, month, year, clock] = dayFirst;
    return inPlace(`${month} ${day} ${year} ${clock}`, start, whole, context);
  }
  return scanEpoch(text, start, context);
}

function scanZoneBehind(
  text: string,
  start: number,
  { ms, end }: ScannedTime,
  context: TimeContext,
): ScannedTime | undefined {
  const inUtc = { ...context, timezone: "UTC" };
  const offset = matchAt(OFFSET, text, end);
  if (offset !== null) {
    const [whole, sign, hours, minutes] = offset;
    const utc = scanTime(text, start, inUtc)!;
    const shiftMs = (Number(hours) * 60 + Number(minutes)) * MINUTE_MS;
    return { ms: sign === "-" ? utc.ms + shiftMs : utc.ms - shiftMs, end: end + whole.length };
  }
  const zoneAndYear = matchAt(ZONE_AND_YEAR, text, end);
  if (zoneAndYear !== null) {
    const [whole, zone, year] = zoneAndYear;
    const zoned = UTC_NAMES.has(zone!) ? inUtc : context;
    return inPlace(`${text.slice(start, end)} ${year}`, start, text.slice(start, end) + whole, zoned);
  }
  const zone = matchAt(ZONE_BEFORE_HOST, text, end);
  if (zone === null) return undefined;
  const [whole, name] = zone;
  if (UTC_NAMES.has(name!)) return { ms: scanTime(text, start, inUtc)!.ms, end: end + whole.length };
  return ZONE_NAMES.has(name!) ? { ms, end: end + whole.length } : undefined;
}

/** A time in another notation, which stands for `whole` in the text. */
function inPlace(time: string, start: number, whole: string, context: TimeContext): ScannedTime | undefined {
  const scanned = scanTime(time, 0, context);
  return scanned?.end === time.length ? { ms: scanned.ms, end: start + whole.length } : undefined;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

const isZoneStart = (code: number) =>
  code === PLUS || code === MINUS || code === SPACE || (code >= 0x41 && code <= 0x5a);
