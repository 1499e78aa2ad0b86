import { fromWallClock, isoWithOffset, startOfDayMs, zoneOffsetMs } from "./zone.ts";
import { clock, day, duration } from "./format.ts";

// The range of time that every screen shows. In the address it is `range=7d`, which follows the clock, or `from` and `to` in UTC.

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const UNIT_MS: Record<string, number> = { s: 1000, m: MINUTE_MS, h: 60 * MINUTE_MS, d: DAY_MS, w: 7 * DAY_MS };
const RANGE_MS_MAX = 3660 * DAY_MS;

const RANGE_DEFAULT = "7d";

export interface RangeSearch {
  readonly range?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

export interface TimeRange {
  readonly fromMs: number;
  readonly toMs: number;
  /** Follows the clock. */
  readonly isRelative: boolean;
  readonly label: string;
}

export const PRESETS = ["15m", "1h", "4h", "24h", "7d", "30d", "90d"] as const;

const UNIT_NAMES: Record<string, string> = { s: "second", m: "minute", h: "hour", d: "day", w: "week" };

/** `7d` is "Last 7 days". */
export function presetLabel(range: string): string {
  const [, count, unit] = /^(\d+)([smhdw])$/.exec(range)!;
  return `Last ${count} ${UNIT_NAMES[unit!]}${count === "1" ? "" : "s"}`;
}

function parseDuration(text: string): number | undefined {
  const match = /^(\d{1,6})\s*([smhdw])$/.exec(text.trim());
  if (match === null) return undefined;
  const ms = Number(match[1]) * UNIT_MS[match[2]!]!;
  return ms > 0 && ms <= RANGE_MS_MAX ? ms : undefined;
}

/** The part of the address that means something; anything else is left out. */
export function readRange(search: Record<string, unknown>): RangeSearch {
  const { range, from, to } = search;
  if (typeof range === "string" && parseDuration(range) !== undefined) return { range };
  if (typeof from === "string" && typeof to === "string") {
    const fromMs = Date.parse(from);
    const toMs = Date.parse(to);
    if (fromMs < toMs) return { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() };
  }
  return {};
}

export function resolveRange(search: RangeSearch, nowMs: number): TimeRange {
  if (search.from !== undefined && search.to !== undefined) {
    const fromMs = Date.parse(search.from);
    const toMs = Date.parse(search.to);
    return { fromMs, toMs, isRelative: false, label: `${day(fromMs)} ${clock(fromMs)} for ${duration(toMs - fromMs)}` };
  }
  const range = search.range ?? RANGE_DEFAULT;
  return { fromMs: nowMs - parseDuration(range)!, toMs: nowMs, isRelative: true, label: presetLabel(range) };
}

export function absoluteRange(fromMs: number, toMs: number): RangeSearch {
  return { range: undefined, from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() };
}

export const copyableRange = (range: TimeRange, zone: string) =>
  `${isoWithOffset(range.fromMs, zone)}/${isoWithOffset(range.toMs, zone)}`;

/** Both ends in UTC, to compare with what others write down. */
export const utcRange = (range: TimeRange) =>
  `${new Date(range.fromMs).toISOString()} to ${new Date(range.toMs).toISOString()} (UTC)`;

/** A moment that stands alone is shown with this much before and after it. */
const AROUND_MS = 15 * MINUTE_MS;

/**
 * What a person typed: `3h`, `yesterday 18:00 for 2h`, `2026-11-14 19:40 for 30m`, two ISO times, a day, or one pasted moment.
 * Undefined if it is none of these.
 */
export function parseRangeText(text: string, zone: string, nowMs: number): RangeSearch | undefined {
  const trimmed = text.trim().toLowerCase();
  const relative = trimmed.replace(/^last\s+/, "").replace(/\s+/g, "");
  if (parseDuration(relative) !== undefined) return { range: relative, from: undefined, to: undefined };
  const forMatch = /^(.+?)\s+for\s+(\d+\s*[smhdw])$/.exec(trimmed);
  if (forMatch !== null) {
    const fromMs = parseMoment(forMatch[1]!, zone, nowMs);
    const lengthMs = parseDuration(forMatch[2]!);
    return fromMs === undefined || lengthMs === undefined ? undefined : absoluteRange(fromMs, fromMs + lengthMs);
  }
  if (/^(today|yesterday|\d{4}-\d{2}-\d{2})$/.test(trimmed)) {
    const fromMs = parseMoment(trimmed, zone, nowMs);
    if (fromMs === undefined) return undefined;
    const endMs = startOfDayMs(fromMs + 1.5 * DAY_MS, zone);
    return absoluteRange(fromMs, fromMs < nowMs ? Math.min(nowMs, endMs) : endMs);
  }
  const ends = trimmed.split(/\s*(?:\/|\s+to\s+|\s+until\s+)\s*/);
  if (ends.length === 1 && /\d:\d/.test(trimmed)) {
    const atMs = parseMoment(trimmed, zone, nowMs);
    return atMs === undefined ? undefined : absoluteRange(atMs - AROUND_MS, atMs + AROUND_MS);
  }
  if (ends.length !== 2) return undefined;
  const [fromMs, toMs] = ends.map((end) => parseMoment(end, zone, nowMs));
  return fromMs !== undefined && toMs !== undefined && fromMs < toMs ? absoluteRange(fromMs, toMs) : undefined;
}

function parseMoment(text: string, zone: string, nowMs: number): number | undefined {
  if (text === "now") return nowMs;
  const named = /^(today|yesterday)(?:\s+(\d{1,2}):(\d{2}))?$/.exec(text);
  if (named !== null) {
    const todayMs = startOfDayMs(nowMs, zone);
    const dayMs = named[1] === "today" ? todayMs : startOfDayMs(todayMs - DAY_MS / 2, zone);
    return atClock(dayMs, Number(named[2] ?? 0), Number(named[3] ?? 0), zone);
  }
  const local = /^(\d{4})-(\d{2})-(\d{2})(?:[t ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?)?$/.exec(text);
  if (local !== null) {
    const [year, month, date, hours, minutes, seconds] = local.slice(1).map((part) => Number(part ?? 0));
    const wallMs = Date.UTC(year!, month! - 1, date, hours, minutes, seconds);
    // The 31st of February is no day, and 25:00 no time.
    if (new Date(wallMs).getUTCDate() !== date || hours! > 23 || minutes! > 59 || seconds! > 59) return undefined;
    return fromWallClock(wallMs, zone);
  }
  // A pasted time keeps its own zone.
  const withZone = /^\d{4}-\d{2}-\d{2}t.+(z|[+-]\d{2}:?\d{2})$/.test(text)
    ? Date.parse(text.toUpperCase())
    : Number.NaN;
  return Number.isNaN(withZone) ? undefined : withZone;
}

function atClock(dayMs: number, hours: number, minutes: number, zone: string): number | undefined {
  if (hours > 23 || minutes > 59) return undefined;
  const wall = dayMs + zoneOffsetMs(dayMs, zone) + (hours * 60 + minutes) * MINUTE_MS;
  return fromWallClock(wall, zone);
}
