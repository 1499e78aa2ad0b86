import { DAY_MS } from "../lib/time.ts";

// Weekly hours: `22:00-06:00`, `sat-sun`, `mon-fri 08:00-18:00 Europe/Berlin`.

export const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
const MINUTE_MS = 60_000;
const DAY_MINUTES = 24 * 60;
/** Clock changes happen at full quarters of an hour. */
const QUARTER_MS = 15 * MINUTE_MS;
const OFFSETS_REMEMBERED_MAX = 4096;
const ZONE_NAMES_REMEMBERED_MAX = 1024;
/** A format takes tens of kilobytes. */
const ZONE_FORMATS_REMEMBERED_MAX = 64;

export interface Hours {
  /** Included days, Monday first. Hours that run past midnight belong to the day on which they start. */
  readonly days: readonly boolean[];
  /** Minutes of the day, `to` exclusive; `from` after `to` runs past midnight. */
  readonly from: number;
  readonly to: number;
  /** Canonical name of the time zone. */
  readonly zone: string;
}

const PATTERN = /^(?:([a-z]{3})(?:-([a-z]{3}))?)?(?:(?:^|\s)(\d\d):(\d\d)-(\d\d):(\d\d))?(?:\s([A-Za-z][\w+/-]*))?$/;
const WORDS = "days, hours or both, and a time zone: 22:00-06:00, sat-sun, mon-fri 08:00-18:00 Europe/Berlin";

export function parseHours(text: string): Hours | { readonly fault: string } {
  const match = PATTERN.exec(text);
  if (!match) return { fault: WORDS };
  const [, firstDay, lastDay = firstDay, ...rest] = match;
  const [fromHour, fromMinute, toHour, toMinute] = rest.slice(0, 4).map((digits) => Number(digits ?? Number.NaN));
  const zoneText = rest[4] ?? "UTC";
  const hasHours = !Number.isNaN(fromHour);
  if (firstDay === undefined && !hasHours) return { fault: WORDS };
  const first = firstDay === undefined ? 0 : DAYS.indexOf(firstDay as (typeof DAYS)[number]);
  const last = lastDay === undefined ? 6 : DAYS.indexOf(lastDay as (typeof DAYS)[number]);
  if (first < 0 || last < 0) return { fault: `days are ${DAYS.join(", ")}` };
  const from = hasHours ? fromHour! * 60 + fromMinute! : 0;
  const to = hasHours ? toHour! * 60 + toMinute! : DAY_MINUTES;
  if (hasHours && (fromMinute! > 59 || toMinute! > 59 || from >= DAY_MINUTES || to > DAY_MINUTES)) {
    return { fault: "hours are 00:00 to 24:00" };
  }
  const zone = canonicalZone(zoneText);
  if (zone === undefined) return { fault: `${zoneText} is not a time zone; use one such as UTC or Europe/Berlin` };
  const days = DAYS.map((_, day) => (first <= last ? day >= first && day <= last : day >= first || day <= last));
  return { days, from, to, zone };
}

/** Hours in the zone of whoever reads them: without a zone of their own. */
export function isLocalHours(text: string): boolean {
  return /^(?:[a-z]{3}(?:-[a-z]{3})?)?(?:(?:^|\s)\d\d:\d\d-\d\d:\d\d)?$/.test(text) && !("fault" in parseHours(text));
}

const clockText = (minutes: number) =>
  `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;

/** The days by name, and both ends as `08:00`; an end at midnight is `24:00`. */
export function describeHours({ days, from, to }: Hours) {
  return { days: DAYS.filter((_, i) => days[i]), from: clockText(from), to: clockText(to) };
}

export function withinHours({ days, from, to, zone }: Hours, ms: number): boolean {
  const local = ms + zoneOffset(zone, ms);
  const minute = Math.floor((((local % DAY_MS) + DAY_MS) % DAY_MS) / MINUTE_MS);
  // 1970-01-01 was a Thursday.
  const day = (((Math.floor(local / DAY_MS) + 3) % 7) + 7) % 7;
  if (from < to) return days[day]! && minute >= from && minute < to;
  return (days[day]! && minute >= from) || (days[(day + 6) % 7]! && minute < to);
}

export function isZone(zone: string): boolean {
  return canonicalZone(zone) !== undefined;
}

/** Canonical zone names by lower-case spelling: a name can be written in thousands of mixed-case variants. */
const names = new Map<string, string>();
const formats = new Map<string, Intl.DateTimeFormat>();

/** The canonical name of a zone, regardless of case; undefined if there is no such zone. */
function canonicalZone(zone: string): string | undefined {
  if (zone === "UTC") return zone;
  // Intl takes a millisecond, and thousands of rules share few zones.
  const key = zone.toLowerCase();
  let name = names.get(key);
  if (name === undefined) {
    try {
      name = new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone;
    } catch {
      return undefined;
    }
    if (names.size >= ZONE_NAMES_REMEMBERED_MAX) names.clear();
    names.set(key, name);
  }
  return name;
}

const offsets = new Map<string, number>();

/** Offset of a zone from UTC. Intl takes microseconds, so offsets are cached by quarter of an hour. */
export function zoneOffset(zone: string, ms: number): number {
  if (zone === "UTC") return 0;
  const quarter = Math.floor(ms / QUARTER_MS);
  const key = `${quarter} ${zone}`;
  let offset = offsets.get(key);
  if (offset === undefined) {
    offset = askOffset(zone, quarter * QUARTER_MS);
    if (offsets.size >= OFFSETS_REMEMBERED_MAX) offsets.clear();
    offsets.set(key, offset);
  }
  return offset;
}

function askOffset(spelled: string, ms: number): number {
  const zone = canonicalZone(spelled) ?? spelled;
  let format = formats.get(zone);
  if (!format) {
    const numeric = "2-digit";
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: numeric,
      day: numeric,
      hour: numeric,
      minute: numeric,
      second: numeric,
    });
    if (formats.size >= ZONE_FORMATS_REMEMBERED_MAX) formats.clear();
    formats.set(zone, format);
  }
  const part = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
  return (
    Date.UTC(part["year"]!, part["month"]! - 1, part["day"]!, part["hour"]!, part["minute"]!, part["second"]!) - ms
  );
}
