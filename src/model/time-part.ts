import { DAY_MS, parseTime } from "../lib/time.ts";

// Parts of a date-time in conditions, in UTC: `hour 22-5`, `month 12`, `year 2025-`.

/** The range of each part. Weeks are ISO 8601 weeks: the first one contains 4 January. */
const PARTS = {
  minute: { from: 0, to: 59 },
  hour: { from: 0, to: 23 },
  day: { from: 1, to: 31 },
  week: { from: 1, to: 53 },
  month: { from: 1, to: 12 },
  year: { from: 0, to: 9999 },
} as const;

export type TimePartName = keyof typeof PARTS;
export const TIME_PART_NAMES = Object.keys(PARTS) as TimePartName[];

export interface TimePart {
  readonly part: TimePartName;
  /** Both inclusive; `from` after `to` wraps around. */
  readonly from: number;
  readonly to: number;
}

const PATTERN = /^([a-z]+) (?:(\d{1,4})|(\d{1,4})?-(\d{1,4})?)$/;
const WORDS = `a part of a time and a number or a range: hour 3, hour 22-5, year 2025-; parts are ${TIME_PART_NAMES.join(", ")}`;
/** Length limit of a date-time. */
const TIME_CHARACTERS_MAX = 40;

export function isTimePartName(name: string): name is TimePartName {
  return Object.hasOwn(PARTS, name);
}

export function parseTimePart(text: string): TimePart | { readonly fault: string } {
  const [, part, only, low, high] = PATTERN.exec(text) ?? [];
  if (part === undefined || !isTimePartName(part)) return { fault: WORDS };
  if (only === undefined && low === undefined && high === undefined) return { fault: WORDS };
  const least = PARTS[part];
  const from = Number(only ?? low ?? least.from);
  const to = Number(only ?? high ?? least.to);
  if ([from, to].some((number) => number < least.from || number > least.to)) {
    return { fault: `${part} is a number from ${least.from} to ${least.to}` };
  }
  if (part === "year" && from > to) return { fault: "the first year comes after the last" };
  return { part, from, to };
}

/** The text form, for parseTimePart, of a range clipped to the part's own; undefined if nothing remains. */
export function timePartText(part: TimePartName, least: number, most: number): string | undefined {
  const [from, to] = [Math.max(least, PARTS[part].from), Math.min(most, PARTS[part].to)];
  if (from > to) return undefined;
  return from === to ? `${part} ${from}` : `${part} ${from}-${to}`;
}

/** True if any of the parts matches a date-time. Other texts never match; a time without an offset is UTC. */
export function hasTimePart(wanted: readonly TimePart[], text: string): boolean {
  if (text.length > TIME_CHARACTERS_MAX) return false;
  const ms = parseTime(text) ?? (/\d$/.test(text) ? parseTime(`${text}Z`) : undefined);
  if (ms === undefined) return false;
  return wanted.some(({ part, from, to }) => {
    const number = READERS[part](ms);
    return from <= to ? number >= from && number <= to : number >= from || number <= to;
  });
}

const READERS: Readonly<Record<TimePartName, (ms: number) => number>> = {
  minute: (ms) => new Date(ms).getUTCMinutes(),
  hour: (ms) => new Date(ms).getUTCHours(),
  day: (ms) => new Date(ms).getUTCDate(),
  week: isoWeek,
  month: (ms) => new Date(ms).getUTCMonth() + 1,
  year: (ms) => new Date(ms).getUTCFullYear(),
};

/** ISO 8601 week: a week belongs to the year of its Thursday. */
function isoWeek(ms: number): number {
  const day = Math.floor(ms / DAY_MS);
  // 1970-01-01 was a Thursday.
  const weekday = (((day + 3) % 7) + 7) % 7;
  const thursday = day + 3 - weekday;
  const newYear = Date.UTC(new Date(thursday * DAY_MS).getUTCFullYear(), 0, 1) / DAY_MS;
  return Math.floor((thursday - newYear) / 7) + 1;
}
