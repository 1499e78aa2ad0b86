// Times as people write them. Inside the service a time is a number: milliseconds since 1970, UTC.

export const DAY_MS = 86_400_000;

const ISO = /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s?([Zz]|[+-]\d\d(?::?\d\d)?))?$/;

/** ISO 8601 with an offset or Z; a bare date means midnight UTC. Anything else is undefined. */
export function parseTime(text: string): number | undefined {
  const match = ISO.exec(text);
  if (!match) return undefined;
  const [, year, month, day, hour = "0", minute = "0", second = "0", fraction = "", offset = "Z"] = match;
  const [y, mo, d, h, mi, s] = [Number(year), Number(month), Number(day), Number(hour), Number(minute), Number(second)];
  if (h > 23 || mi > 59 || s > 59) return undefined;
  const midnight = Date.UTC(y, mo - 1, d);
  const date = new Date(midnight);
  // Date.UTC rolls 31 February over into March; a date that does not exist is refused instead.
  if (y < 1000 || date.getUTCMonth() !== mo - 1 || date.getUTCDate() !== d) return undefined;
  const ms = Number(fraction.padEnd(3, "0").slice(0, 3));
  const shift = parseOffset(offset);
  return shift === undefined ? undefined : midnight + h * 3_600_000 + mi * 60_000 + s * 1000 + ms - shift;
}

/**
 * The same, a part of a millisecond counted as a whole one. Stored times are whole: one that is not before
 * 10:00:00.0009 is not before 10:00:00.001, and one that is before the one is before the other.
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

/** The UTC day as units of storage are named: 2026.11.15 */
export function formatDay(ms: number): string {
  return formatTime(ms).slice(0, 10).replaceAll("-", ".");
}
