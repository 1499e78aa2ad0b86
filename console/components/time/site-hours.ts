import { absoluteRange, type RangeSearch } from "./range.ts";
import { fromWallClock, startOfDayMs, zoneOffsetMs } from "./zone.ts";

// The working hours of the site as ranges: in the zone of the site, whatever zone the reader sees times in.

export interface SiteHours {
  /** `mon` to `sun`. */
  readonly days: readonly string[];
  /** `08:00`; an end before the start is on the next day. */
  readonly from: string;
  readonly to: string;
}

export interface NamedRange {
  readonly label: string;
  readonly search: RangeSearch;
}

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const DAY_NAMES = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/** Long enough for two working days, if there is one in a week. */
const DAYS_BACK = 16;

interface Period {
  readonly fromMs: number;
  readonly toMs: number;
}

const minutesOf = (clockText: string) => {
  const [hours, minutes] = clockText.split(":").map(Number);
  return hours! * 60 + minutes!;
};

/** The hours of each working day that have begun, oldest first. */
function begunPeriods({ days, from, to }: SiteHours, zone: string, nowMs: number): Period[] {
  const [fromMinutes, toMinutes] = [minutesOf(from), minutesOf(to)];
  const todayMs = startOfDayMs(nowMs, zone);
  // The calendar of the wall clock: every day has 24 hours there.
  const today = Math.floor((todayMs + zoneOffsetMs(todayMs, zone) + DAY_MS / 2) / DAY_MS);
  const periods: Period[] = [];
  for (let date = today - DAYS_BACK; date <= today; date++) {
    if (!days.includes(DAY_NAMES[new Date(date * DAY_MS).getUTCDay()]!)) continue;
    const fromMs = fromWallClock(date * DAY_MS + fromMinutes * MINUTE_MS, zone);
    const lastMinutes = toMinutes > fromMinutes ? toMinutes : toMinutes + 24 * 60;
    const toMs = fromWallClock(date * DAY_MS + lastMinutes * MINUTE_MS, zone);
    if (fromMs < nowMs) periods.push({ fromMs, toMs });
  }
  return periods;
}

const day = (atMs: number, zone: string) =>
  new Intl.DateTimeFormat("en-GB", { timeZone: zone, weekday: "short", day: "numeric", month: "short" }).format(atMs);

/** `today`, `yesterday`, or `on Fri 13 Nov`. */
function dayWords(atMs: number, zone: string, nowMs: number): string {
  const todayMs = startOfDayMs(nowMs, zone);
  const dayMs = startOfDayMs(atMs, zone);
  if (dayMs === todayMs) return "today";
  return dayMs === startOfDayMs(todayMs - DAY_MS / 2, zone) ? "yesterday" : `on ${day(atMs, zone)}`;
}

function gapWords({ fromMs, toMs }: Period, zone: string, nowMs: number): string {
  if (toMs === nowMs) return "Since the site's hours ended";
  const isLastNight = dayWords(toMs, zone, nowMs) === "today" && dayWords(fromMs, zone, nowMs) === "yesterday";
  return isLastNight ? "Outside site hours, last night" : `Outside site hours until ${day(toMs, zone)}`;
}

/** The latest working hours and those before, and the time between them, all up to now. */
export function siteHourRanges(hours: SiteHours, zone: string, nowMs: number): NamedRange[] {
  const periods = begunPeriods(hours, zone, nowMs);
  const [before, latest] = periods.slice(-2);
  if (before === undefined || latest === undefined) return [];
  const named = (label: string, { fromMs, toMs }: Period): NamedRange => ({
    label,
    search: absoluteRange(fromMs, Math.min(toMs, nowMs)),
  });
  const gaps = [
    { fromMs: latest.toMs, toMs: nowMs },
    { fromMs: before.toMs, toMs: latest.fromMs },
  ].filter(({ fromMs, toMs }) => fromMs < toMs);
  return [
    ...[latest, before].map((period) => named(`Site hours ${dayWords(period.fromMs, zone, nowMs)}`, period)),
    ...gaps.map((gap) => named(gapWords(gap, zone, nowMs), gap)),
  ];
}

/** `mon, tue, wed, thu, fri 08:00 to 18:00` in short. */
export function hoursWords({ days, from, to }: SiteHours): string {
  const names = days.map((name) => name.charAt(0).toUpperCase() + name.slice(1));
  const indexes = days.map((name) => (DAY_NAMES.indexOf(name) + 6) % 7);
  const isRun = indexes.every((index, i) => i === 0 || index === indexes[i - 1]! + 1);
  const text =
    names.length === 7 ? "every day" : isRun && names.length > 2 ? `${names[0]} to ${names.at(-1)}` : names.join(", ");
  return from === "00:00" && to === "24:00" ? text : `${text}, ${from} to ${to}`;
}
