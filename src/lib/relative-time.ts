import { UNIT_MS } from "./duration.ts";

const WEEK_MS = 7 * UNIT_MS.d;
const RELATIVE = /^now(?:-(\d{1,9})([smhdw]))?$/;

/** `now`, `now-30m`, `now-7d`: a time at or before `nowMs`, but not before 1970. Anything else is undefined. */
export function parseRelativeTime(text: string, nowMs: number): number | undefined {
  const match = RELATIVE.exec(text);
  if (!match) return undefined;
  const [, number = "0", unit = "s"] = match;
  const ms = nowMs - Number(number) * (unit === "w" ? WEEK_MS : UNIT_MS[unit as keyof typeof UNIT_MS]);
  return ms >= 0 ? ms : undefined;
}
