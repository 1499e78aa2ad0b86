import { zoneOffset } from "../../model/hours.ts";

// Parses times in the notations of devices. A time without a zone is in the site's zone. A time without a year is in the
// year nearest to now, but never more than a week ahead.

/** Longest distance between leap years. */
const YEARS_WITHOUT_LEAP_MAX = 8;
const MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec";
const WEEKDAYS = "MonTueWedThuFriSatSun";
const ZERO = 0x30;
const SPACE = 0x20;
const TAB = 0x09;
const COLON = 0x3a;
const SLASH = 0x2f;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** Numbers below this are seconds; those above a thousand times this are microseconds or nanoseconds. */
const SECONDS_MAX = 100_000_000_000;
/** Largest lead of a device's clock; a date without a year that is further ahead is from the year before. */
const AHEAD_MS_MAX = 7 * 24 * HOUR_MS;
/** Stray spaces accepted between the parts of a time. */
const STRAY_SPACES_MAX = 2;

export interface ScannedTime {
  readonly ms: number;
  /** Position after the time. */
  readonly end: number;
}

export interface TimeContext {
  readonly nowMs: number;
  readonly timezone: string;
}

/** Parses the time at a position, in any form of a syslog header. */
export function scanTime(text: string, start: number, context: TimeContext): ScannedTime | undefined {
  const first = text.charCodeAt(start);
  if (!(first >= ZERO && first <= ZERO + 9)) return scanBsd(text, start, context);
  return text.charCodeAt(start + 4) === SPACE ? scanYearFirst(text, start, context) : scanIso(text, start, context);
}

/** Parses a text that is nothing but a time; null if it is not. */
function readTime(text: string, context: TimeContext): number | null {
  const scanned = scanTime(text, 0, context);
  if (scanned === undefined) return null;
  if (text.trimEnd().length <= scanned.end) return scanned.ms;
  const inZone = scanTimeWithZone(text, 0, scanned.end, context);
  return inZone && text.trimEnd().length <= inZone.end ? inZone.ms : null;
}

const ZONE_AFTER = / {1,2}(?:(UTC|GMT|Z)|([+-]\d\d):?(\d\d))(?![A-Za-z0-9])/y;

/**
 * Parses the time at `start` whose zone follows it at `end`: `Nov 16 2026 04:59:59 GMT`. Not part of scanTime: in a usual
 * header a host follows the time, and it may have any name.
 */
export function scanTimeWithZone(
  text: string,
  start: number,
  end: number,
  { nowMs }: TimeContext,
): ScannedTime | undefined {
  ZONE_AFTER.lastIndex = end;
  const zone = ZONE_AFTER.exec(text);
  const scanned = zone === null ? undefined : scanTimeUncached(text, start, { nowMs, timezone: "UTC" });
  if (zone === null || scanned === undefined) return undefined;
  const [whole, , hours = "0", minutes = "0"] = zone;
  const shiftMs = Math.abs(Number(hours)) * HOUR_MS + Number(minutes) * MINUTE_MS;
  return { ms: hours.startsWith("-") ? scanned.ms + shiftMs : scanned.ms - shiftMs, end: end + whole.length };
}

/** Parses a time without the cache of scanBsd. */
function scanTimeUncached(text: string, start: number, context: TimeContext): ScannedTime | undefined {
  return scanAnyBsd(text, start, context) ?? scanIso(text, start, context) ?? scanYearFirst(text, start, context);
}

/** Parses a number of seconds, milliseconds, microseconds or nanoseconds since 1970, or a text that is a time. */
export function readAnyTime(value: unknown, context: TimeContext): number | null {
  if (typeof value === "string") {
    if (value !== "" && value.length <= 20 && /^\d+(\.\d+)?$/.test(value)) return readAnyTime(Number(value), context);
    return readTime(value, context) ?? readWordyTime(value, context) ?? readServerTime(value, context);
  }
  // A double is precise enough for milliseconds.
  if (typeof value === "bigint") return readAnyTime(Number(value), context);
  if (typeof value !== "number" || !(value > 0)) return null;
  if (value < SECONDS_MAX) return Math.round(value * 1000);
  let ms = value;
  for (let unit = 0; unit < 2 && ms >= SECONDS_MAX * 1000; unit++) ms /= 1000;
  return ms < SECONDS_MAX * 1000 ? Math.round(ms) : null;
}

const WORDY =
  /^([A-Z][a-z]{2}) (\d{1,2}), (\d{4})(?: at|,)? (\d{1,2}):(\d\d):(\d\d)(?:\.(\d{1,3}))?[ \u00a0\u202f]?([AP]M)?$/;

/** Parses `Aug 28, 2026 at 9:29:29.569 PM`, in the site's zone. */
export function readWordyTime(text: string, { timezone }: TimeContext): number | null {
  const match = text.length > 40 ? null : WORDY.exec(text);
  if (!match) return null;
  const [, name, day, year, hour, minute, second, fraction = "0", half] = match;
  const month = MONTHS.indexOf(name!);
  const hours = half === undefined ? Number(hour) : (Number(hour) % 12) + (half === "PM" ? 12 : 0);
  if (month < 0 || month % 3 !== 0) return null;
  const at = civil(Number(year), month / 3 + 1, Number(day), hours, Number(minute), Number(second));
  return at === undefined ? null : toUtc(at + Number(fraction.padEnd(3, "0")), timezone);
}

const SERVER_TIME =
  /^(\d{1,2})[/-]([A-Z][a-z]{2})[/-](\d{4})[: ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?: ?([+-])(\d\d):?(\d\d))?$/;

/** Parses `15/Nov/2026:10:00:00 +0100`, as web servers write it. */
function readServerTime(text: string, { timezone }: TimeContext): number | null {
  const match = text.length > 40 ? null : SERVER_TIME.exec(text);
  if (!match) return null;
  const [, day, name, year, hour, minute, second, fraction = "0", sign, hours, minutes] = match;
  const month = MONTHS.indexOf(name!);
  if (month < 0 || month % 3 !== 0) return null;
  const at = civil(Number(year), month / 3 + 1, Number(day), Number(hour), Number(minute), Number(second));
  if (at === undefined) return null;
  const ms = at + Number(fraction.slice(0, 3).padEnd(3, "0"));
  if (sign === undefined) return toUtc(ms, timezone);
  const shiftMs = Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS;
  return sign === "-" ? ms + shiftMs : ms - shiftMs;
}

function scanIso(text: string, start: number, { timezone }: TimeContext): ScannedTime | undefined {
  // Some programs write the date with slashes: `2026/11/15 10:00:00`.
  const between = text.charCodeAt(start + 4);
  if ((between !== 0x2d && between !== SLASH) || text.charCodeAt(start + 7) !== between) return undefined;
  let at = skipSpaces(text, start + 10);
  const separator = text.charCodeAt(at) | 0x20;
  if (separator === 0x74) at = skipSpaces(text, at + 1);
  else if (at === start + 10) return undefined;
  if (text.charCodeAt(at + 2) !== COLON || text.charCodeAt(at + 5) !== COLON) return undefined;
  const year = two(text, start) * 100 + two(text, start + 2);
  const ms = civil(
    year,
    two(text, start + 5),
    two(text, start + 8),
    two(text, at),
    two(text, at + 3),
    two(text, at + 6),
  );
  if (ms === undefined || year < 1000) return undefined;
  const fraction = scanFraction(text, at + 8);
  return scanZone(text, ms + fraction.ms, fraction.end, timezone);
}

function scanZone(text: string, localMs: number, end: number, timezone: string): ScannedTime {
  const at = skipSpaces(text, end);
  const sign = text.charCodeAt(at);
  if ((sign | 0x20) === 0x7a && !isWordCharacter(text.charCodeAt(at + 1))) return { ms: localMs, end: at + 1 };
  if (sign === 0x2b || sign === 0x2d) {
    const hours = two(text, at + 1);
    const hasColon = text.charCodeAt(at + 3) === COLON;
    const minutes = two(text, at + (hasColon ? 4 : 3));
    const after = at + 3 + (minutes < 0 ? 0 : hasColon ? 3 : 2);
    if (hours >= 0 && hours < 24 && minutes < 60 && !isWordCharacter(text.charCodeAt(after))) {
      const shift = hours * HOUR_MS + Math.max(0, minutes) * MINUTE_MS;
      return { ms: sign === 0x2b ? localMs - shift : localMs + shift, end: after };
    }
  }
  return { ms: toUtc(localMs, timezone), end };
}

/** Parses `2026 Nov 15 10:00:00`. */
function scanYearFirst(text: string, start: number, context: TimeContext): ScannedTime | undefined {
  const year = two(text, start) * 100 + two(text, start + 2);
  return year >= 2000 && year < 2100 ? scanAnyBsd(text, start + 5, context, year) : undefined;
}

interface LastTime extends TimeContext {
  readonly text: string;
  readonly ms: number;
}

let last: LastTime | undefined;

/**
 * Parses `Aug  6 00:22:02`, also with a weekday before it, a year after the day or at the end, and a fraction. Caches the last
 * time, since most lines are from the same second as the one before.
 */
function scanBsd(text: string, start: number, context: TimeContext): ScannedTime | undefined {
  if (last !== undefined && last.timezone === context.timezone && Math.abs(last.nowMs - context.nowMs) < HOUR_MS) {
    const end = start + last.text.length;
    const isSame = text.charCodeAt(end) === SPACE && text.slice(start, end) === last.text;
    if (isSame && yearAfter(text, end) === undefined) return { ms: last.ms, end };
  }
  const scanned = scanAnyBsd(text, start, context);
  if (scanned) {
    const { nowMs, timezone } = context;
    last = { nowMs, timezone, text: text.slice(start, scanned.end), ms: scanned.ms };
  }
  return scanned;
}

function scanAnyBsd(
  text: string,
  start: number,
  { nowMs, timezone }: TimeContext,
  yearBefore?: number,
): ScannedTime | undefined {
  if (text.charCodeAt(start + 3) !== SPACE) return undefined;
  let at = start;
  let word = text.slice(at, at + 3);
  if (WEEKDAYS.includes(word) && WEEKDAYS.indexOf(word) % 3 === 0) {
    at = skipSpaces(text, at + 3);
    word = text.slice(at, at + 3);
  }
  const month = word.length === 3 && text.charCodeAt(at + 3) === SPACE ? MONTHS.indexOf(word) : -1;
  if (month < 0 || month % 3 !== 0) return undefined;
  at = skipSpaces(text, at + 3);
  let day = digit(text, at++);
  if (digit(text, at) >= 0) day = day * 10 + digit(text, at++);
  at = skipSpaces(text, at);
  let year = yearBefore;
  if (year === undefined && two(text, at) >= 0 && two(text, at + 2) >= 0) {
    year = two(text, at) * 100 + two(text, at + 2);
    at = skipSpaces(text, at + 4);
  }
  if (text.charCodeAt(at + 2) !== COLON || text.charCodeAt(at + 5) !== COLON) return undefined;
  const [hour, minute, second] = [two(text, at), two(text, at + 3), two(text, at + 6)];
  const fraction = scanFraction(text, at + 8);
  const inYear = (candidate: number) => {
    const ms = civil(candidate, month / 3 + 1, day, hour, minute, second);
    return ms === undefined ? undefined : toUtc(ms + fraction.ms, timezone);
  };
  const trailingYear = year === undefined ? yearAfter(text, fraction.end) : undefined;
  year ??= trailingYear;
  const ms = year === undefined ? nearest(nowMs, inYear) : inYear(year);
  return ms === undefined ? undefined : { ms, end: fraction.end + (trailingYear === undefined ? 0 : " 2026".length) };
}

/** The year in `Nov 15 10:00:00 2026`; undefined if something else follows the time, such as a host of digits. */
function yearAfter(text: string, end: number): number | undefined {
  if (digit(text, end + 1) !== 2 || text.charCodeAt(end) !== SPACE) return undefined;
  const year = two(text, end + 1) * 100 + two(text, end + 3);
  const after = text.charCodeAt(end + 5);
  const isColon = after === COLON && text.charCodeAt(end + 6) === SPACE;
  const isWhole = after === SPACE || after === TAB || isColon || end + 5 === text.length;
  return isWhole && two(text, end + 3) >= 0 && year < 2100 && year >= 2000 ? year : undefined;
}

function nearest(nowMs: number, inYear: (year: number) => number | undefined): number | undefined {
  const thisYear = new Date(nowMs).getUTCFullYear();
  let best = inYear(thisYear);
  if (best !== undefined && Math.abs(best - nowMs) < AHEAD_MS_MAX) return best;
  best = undefined;
  for (let year = thisYear - 1; year <= thisYear + 1; year++) {
    const ms = inYear(year);
    if (ms === undefined || (best !== undefined && ms > nowMs + AHEAD_MS_MAX)) continue;
    if (best === undefined || Math.abs(ms - nowMs) < Math.abs(best - nowMs)) best = ms;
  }
  // The 29th of February in a year without one: the most recent leap year.
  for (let year = thisYear - 2; best === undefined && year >= thisYear - YEARS_WITHOUT_LEAP_MAX; year--)
    best = inYear(year);
  return best;
}

function scanFraction(text: string, start: number): ScannedTime {
  const from = skipSpaces(text, start);
  const point = text.charCodeAt(from);
  if (point !== 0x2e && point !== 0x2c) return { ms: 0, end: start };
  // After a stray space a digit must follow: a word may start with a point.
  if (from > start && digit(text, from + 1) < 0) return { ms: 0, end: start };
  let ms = 0;
  let unit = 100;
  let at = from + 1;
  for (let value = digit(text, at); value >= 0; value = digit(text, ++at)) {
    ms += value * unit;
    unit = Math.floor(unit / 10);
  }
  return { ms, end: at };
}

const DAYS_IN_MONTH = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Undefined for an invalid date or time. A leap second becomes the second before it. */
function civil(year: number, month: number, day: number, hour: number, minute: number, second: number) {
  if (!(month >= 1 && month <= 12 && day >= 1 && day <= DAYS_IN_MONTH[month - 1]!)) return undefined;
  if (!(hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second <= 60)) return undefined;
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  if (month === 2 && day === 29 && !isLeap) return undefined;
  return Date.UTC(year, month - 1, day, hour, minute, Math.min(59, second));
}

/** Converts local time of a zone to UTC. An ambiguous hour is taken as its first occurrence. */
function toUtc(localMs: number, timezone: string): number {
  if (timezone === "UTC") return localMs;
  const first = localMs - zoneOffset(timezone, localMs - 12 * HOUR_MS);
  if (first + zoneOffset(timezone, first) === localMs) return first;
  return localMs - zoneOffset(timezone, first);
}

function skipSpaces(text: string, start: number): number {
  let at = start;
  while (at < start + STRAY_SPACES_MAX && text.charCodeAt(at) === SPACE) at++;
  return at;
}

function digit(text: string, at: number): number {
  const value = text.charCodeAt(at) - ZERO;
  return value >= 0 && value <= 9 ? value : -1;
}

/** A two-digit number; negative if the characters are not digits. */
function two(text: string, at: number): number {
  const tens = digit(text, at);
  const ones = digit(text, at + 1);
  return tens < 0 || ones < 0 ? -1 : tens * 10 + ones;
}

function isWordCharacter(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || ((code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a);
}
