// Parsing and formatting of times. Within the service a time is a number: milliseconds since 1970, UTC.

export const DAY_MS = 86_400_000;

const ISO = /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s?([Zz]|[+-]\d\d(?::?\d\d)?))?$/;

/** ISO 8601 with an offset or Z; a bare date means midnight UTC. Anything else is undefined. */
export function parseTime(text: string): number | undefined {
  const match = ISO.exec(text);
  if (!match) return parseRareTime(text);
  const [, year, month, day, hour = "0", minute = "0", second = "0", fraction = "", offset = "Z"] = match;
  const midnight = dayOf(Number(year), Number(month), Number(day));
  return midnight === undefined ? undefined : timeOn(midnight, { hour, minute, second, fraction, offset });
}

// Rare forms of ISO 8601: basic format, ordinal dates, week dates, hours without minutes.
const RARE =
  /^(?<year>\d{4})(?<dash>-?)(?:(?<month>\d\d)\k<dash>(?<day>\d\d)|(?<dayOfYear>\d{3})|[Ww](?<week>\d\d)\k<dash>(?<weekday>[1-7]))(?:[Tt ](?<hour>\d\d)(?:(?<colon>:?)(?<minute>\d\d)(?:\k<colon>(?<second>\d\d)(?:[.,](?<fraction>\d{1,9}))?)?)?\s?(?<offset>[Zz]|[+-]\d\d(?::?\d\d)?))?$/;

function parseRareTime(text: string): number | undefined {
  const parts = RARE.exec(text)?.groups;
  if (!parts) return undefined;
  const { hour = "0", minute = "0", second = "0", fraction = "", offset = "Z" } = parts;
  const midnight = rareDayOf(parts);
  return midnight === undefined ? undefined : timeOn(midnight, { hour, minute, second, fraction, offset });
}

function rareDayOf({ year, month, day, dayOfYear, week, weekday }: Record<string, string | undefined>) {
  const y = Number(year);
  if (day !== undefined) return dayOf(y, Number(month), Number(day));
  if (y < YEAR_MIN) return undefined;
  if (dayOfYear !== undefined) {
    const ms = Date.UTC(y, 0, Number(dayOfYear));
    return Number(dayOfYear) > 0 && new Date(ms).getUTCFullYear() === y ? ms : undefined;
  }
  const ms = firstMonday(y) + ((Number(week) - 1) * 7 + Number(weekday) - 1) * DAY_MS;
  return Number(week) > 0 && firstMonday(y) <= ms && ms < firstMonday(y + 1) ? ms : undefined;
}

/** The Monday of week 1, which contains 4 January. */
function firstMonday(year: number): number {
  const fourth = Date.UTC(year, 0, 4);
  return fourth - ((new Date(fourth).getUTCDay() + 6) % 7) * DAY_MS;
}

const YEAR_MIN = 1000;

function dayOf(year: number, month: number, day: number): number | undefined {
  const midnight = Date.UTC(year, month - 1, day);
  const date = new Date(midnight);
  // Date.UTC rolls 31 February over into March; a date that does not exist is refused instead.
  if (year < YEAR_MIN || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  return midnight;
}

interface Clock {
  readonly hour: string;
  readonly minute: string;
  readonly second: string;
  readonly fraction: string;
  readonly offset: string;
}

function timeOn(midnight: number, { hour, minute, second, fraction, offset }: Clock): number | undefined {
  const [h, mi, s] = [Number(hour), Number(minute), Number(second)];
  if (h > 23 || mi > 59 || s > 59) {
    // 24:00 is midnight at the end of the day.
    if (h !== 24 || mi !== 0 || s !== 0 || Number(fraction) !== 0) return undefined;
  }
  const ms = Number(fraction.padEnd(3, "0").slice(0, 3));
  const shift = parseOffset(offset);
  return shift === undefined ? undefined : midnight + h * 3_600_000 + mi * 60_000 + s * 1000 + ms - shift;
}

/**
 * parseTime rounded up to whole milliseconds, for the bound of a range. Stored times are whole milliseconds: those before
 * 10:00:00.0009 are exactly those before 10:00:00.001.
 */
export function parseTimeUp(text: string): number | undefined {
  const ms = parseTime(text);
  return ms !== undefined && /[.,]\d{3}0*[1-9]/.test(text) ? ms + 1 : ms;
}

function parseOffset(text: string): number | undefined {
  if (text === "Z" || text === "z") return 0;
  const hours = Number(text.slice(1, 3));
  const minutes = text.length > 3 ? Number(text.slice(-2)) : 0;
  if (hours > 23 || minutes > 59) return undefined;
  return (text[0] === "-" ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}

export function formatTime(ms: number): string {
  return new Date(ms).toISOString();
}

export function startOfDay(ms: number): number {
  return ms - (((ms % DAY_MS) + DAY_MS) % DAY_MS);
}

/** The UTC day in the names of storage units: 2026.11.15 */
export function formatDay(ms: number): string {
  return formatTime(ms).slice(0, 10).replaceAll("-", ".");
}
