import { DAY_MS } from "../lib/time.ts";
import { zoneOffset } from "../model/hours.ts";

// Numbers and times as people read them.

const MINUTE_MS = 60_000;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const BYTE_UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

export function number(value: number): string {
  return Math.round(value).toLocaleString("en");
}

/** `1 alert`, `2 alerts`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** `884 B`, `1.2 GB`. */
export function byteSize(bytes: number): string {
  let [value, unit] = [bytes, 0];
  // What would be rounded to 1000 of a unit is 1 of the next.
  while (value >= 999.5 && unit < BYTE_UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value < 9.95 && unit > 0 ? value.toFixed(1) : value.toFixed(0)} ${BYTE_UNITS[unit]!}`;
}

export function percent(share: number): string {
  return share > 0 && share < 0.005 ? "under 1%" : `${Math.round(share * 100)}%`;
}

/** `45 s`, `12 min`, `2 h 15 min`, `3 d 4 h`. */
export function timeSpan(seconds: number): string {
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 24 * 60) return pair(Math.floor(minutes / 60), "h", minutes % 60, "min");
  const hours = Math.round(seconds / 3600);
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

const two = (value: number) => String(value).padStart(2, "0");

/** Times in one zone. */
export class ZoneClock {
  readonly zone: string;

  constructor(zone: string) {
    this.zone = zone;
  }

  /** `17 Nov 08:30`. */
  moment(ms: number): string {
    return `${this.day(ms)} ${this.time(ms)}`;
  }

  /** `08:30`. */
  time(ms: number): string {
    const local = this.#local(ms);
    return `${two(local.getUTCHours())}:${two(local.getUTCMinutes())}`;
  }

  /** `17 Nov`. */
  day(ms: number): string {
    const local = this.#local(ms);
    return `${local.getUTCDate()} ${MONTHS[local.getUTCMonth()]!}`;
  }

  /** `Tue 17`. */
  weekday(ms: number): string {
    const local = this.#local(ms);
    return `${WEEKDAYS[local.getUTCDay()]!} ${local.getUTCDate()}`;
  }

  /** `Tue 17 Nov 2026, 08:00 to 20:00`, the second day only if it is another one. */
  range(fromMs: number, toMs: number): string {
    const dayOf = (ms: number) => {
      const local = this.#local(ms);
      return `${WEEKDAYS[local.getUTCDay()]!} ${this.day(ms)} ${local.getUTCFullYear()}`;
    };
    const [first, last] = [dayOf(fromMs), dayOf(toMs)];
    return `${first}, ${this.time(fromMs)} to ${last === first ? "" : `${last}, `}${this.time(toMs)}`;
  }

  /** `Europe/Berlin, UTC+1`; both offsets if the clocks change in between. */
  zoneIn(fromMs: number, toMs: number): string {
    const [first, last] = [this.#offsetText(fromMs), this.#offsetText(toMs)];
    if (this.zone === "UTC") return "UTC";
    return `${this.zone}, ${first}${last === first ? "" : `, then ${last}`}`;
  }

  /** The multiples of `stepMs` of local time that lie in the range. */
  marks(fromMs: number, toMs: number, stepMs: number): number[] {
    const marks: number[] = [];
    const first = Math.ceil((fromMs + zoneOffset(this.zone, fromMs)) / stepMs) * stepMs;
    // Local time gains or loses at most a day against UTC within a range.
    for (let local = first; local - stepMs < toMs + 2 * DAY_MS; local += stepMs) {
      const ms = local - zoneOffset(this.zone, local - zoneOffset(this.zone, local));
      if (ms >= toMs) break;
      if (ms >= fromMs) marks.push(ms);
    }
    return marks;
  }

  isMidnight(ms: number): boolean {
    return (ms + zoneOffset(this.zone, ms)) % DAY_MS === 0;
  }

  #local(ms: number): Date {
    return new Date(ms + zoneOffset(this.zone, ms));
  }

  #offsetText(ms: number): string {
    const minutes = Math.round(zoneOffset(this.zone, ms) / MINUTE_MS);
    const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
    return `UTC${minutes < 0 ? "−" : "+"}${hours}${rest === 0 ? "" : `:${two(rest)}`}`;
  }
}
