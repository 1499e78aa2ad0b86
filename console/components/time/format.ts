import { currentZone, fromWallClock, startOfDayMs, zoneOffsetMs } from "./zone.ts";

// Times in words, in the reader's zone. Day names at midnight; 24 hours.

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const STYLES = {
  clock: { hour: "2-digit", minute: "2-digit" },
  clockSeconds: { hour: "2-digit", minute: "2-digit", second: "2-digit" },
  day: { weekday: "short", day: "numeric", month: "short" },
  full: {
    weekday: "short",
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  },
  dateTime: { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>;

const formats = new Map<string, Intl.DateTimeFormat>();

function format(at: number | string, style: keyof typeof STYLES): string {
  const zone = currentZone();
  const key = `${style} ${zone}`;
  let made = formats.get(key);
  if (made === undefined) {
    made = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hourCycle: "h23", ...STYLES[style] });
    formats.set(key, made);
  }
  return made.format(new Date(at));
}

export const clock = (at: number | string) => format(at, "clock");
export const clockSeconds = (at: number | string) => format(at, "clockSeconds");
export const day = (at: number | string) => format(at, "day");
export const full = (at: number | string) => format(at, "full");
export const dateTime = (at: number | string) => format(at, "dateTime");

/** How long ago: `now`, `4 min`, `2 h`, `3 d`. */
export function age(at: number | string, nowMs: number): string {
  const ms = Math.max(0, nowMs - new Date(at).getTime());
  if (ms < MINUTE_MS) return "now";
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  if (ms < DAY_MS) return `${Math.floor(ms / HOUR_MS)} h`;
  return `${Math.floor(ms / DAY_MS)} d`;
}

export const ago = (at: number | string, nowMs: number) => {
  const text = age(at, nowMs);
  return text === "now" ? "just now" : `${text} ago`;
};

/** A length of time: `41 s`, `8 min 18 s`, `2 h 15 min`, `3 d 4 h`. */
export function duration(ms: number): string {
  const s = Math.round(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s % 60 !== 0 && s < 600 ? ` ${s % 60} s` : ""}`;
  if (s < 86_400) {
    const minutes = Math.floor((s % 3600) / 60);
    return `${Math.floor(s / 3600)} h${minutes === 0 ? "" : ` ${minutes} min`}`;
  }
  const hours = Math.floor((s % 86_400) / 3600);
  return `${Math.floor(s / 86_400)} d${hours === 0 ? "" : ` ${hours} h`}`;
}

const STEPS_MS = [
  1000,
  5000,
  10_000,
  30_000,
  MINUTE_MS,
  5 * MINUTE_MS,
  10 * MINUTE_MS,
  15 * MINUTE_MS,
  30 * MINUTE_MS,
  HOUR_MS,
  2 * HOUR_MS,
  3 * HOUR_MS,
  6 * HOUR_MS,
  12 * HOUR_MS,
  DAY_MS,
  2 * DAY_MS,
  7 * DAY_MS,
  14 * DAY_MS,
];

export interface Tick {
  readonly atMs: number;
  readonly label: string;
  readonly isMidnight: boolean;
}

/** Ticks at whole minutes, hours and days of the reader's clocks, at most about `most` of them. */
export function timeTicks(fromMs: number, toMs: number, most: number): Tick[] {
  const zone = currentZone();
  const stepMs = STEPS_MS.find((step) => (toMs - fromMs) / step <= most) ?? STEPS_MS.at(-1)!;
  const ticks: Tick[] = [];
  // On the wall clock, so that a change to summer time moves no tick off its hour.
  let wall = Math.ceil((fromMs + zoneOffsetMs(fromMs, zone)) / stepMs) * stepMs;
  for (;;) {
    const atMs = fromWallClock(wall, zone);
    if (atMs > toMs) return ticks;
    const isMidnight = startOfDayMs(atMs, zone) === atMs;
    const label = isMidnight ? day(atMs) : stepMs < MINUTE_MS ? clockSeconds(atMs) : clock(atMs);
    if (atMs >= fromMs) ticks.push({ atMs, label, isMidnight });
    wall += stepMs;
  }
}
