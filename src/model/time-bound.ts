import { z } from "zod";
import { parseRelativeTime } from "../lib/relative-time.ts";
import { parseTime, parseTimeUp } from "../lib/time.ts";

// Times in requests: absolute ones, and bounds of time ranges, which may also be relative to the time of the request.

/** The time of the request that is being parsed. Parsing is synchronous, so that no other request ever sees it. */
let requestMs: number | undefined;

/** Parses with every relative time resolved at this time. Outside of it, relative times are refused. */
export function parseAt<Value>(nowMs: number, parse: () => Value): Value {
  const outer = requestMs;
  requestMs = nowMs;
  try {
    return parse();
  } finally {
    requestMs = outer;
  }
}

/** Reads `now` and `now-24h`; undefined for anything else. */
export function readRelativeTime(text: string): number | undefined {
  return requestMs === undefined ? undefined : parseRelativeTime(text, requestMs);
}

function timeBy(read: (text: string) => number | undefined, message: string) {
  return (
    z
      .string()
      .transform((text, context) => {
        const ms = read(text);
        if (ms !== undefined) return ms;
        context.addIssue({ code: "custom", message });
        return z.NEVER;
      })
      // Dates and relative times are accepted too. The format stays date-time, so that generated clients have one type.
      .meta({ type: "string", format: "date-time" })
  );
}

/** A time in a request, converted to milliseconds. */
export const timeSchema = timeBy(
  parseTime,
  "must be an ISO 8601 time with an offset or Z, or a date: 2026-11-15T08:30:00Z",
);

const BOUND_WORDS =
  "must be an ISO 8601 time with an offset or Z, a date, or relative to now: 2026-11-15T08:30:00Z, now-24h";

/** A bound of a time range. */
export const boundSchema = timeBy((text) => readRelativeTime(text) ?? parseTimeUp(text), BOUND_WORDS);

/** A bound in a query string, where an unencoded plus arrives as a space. */
export const boundParameter = timeBy(
  (text) => readRelativeTime(text) ?? parseTimeUp(text.replace(/ (?=\d\d(?::?\d\d)?$)/, "+")),
  BOUND_WORDS,
);

export function refuseBackwards(
  range: { from?: number | undefined; to?: number | undefined },
  context: z.RefinementCtx,
): void {
  if (typeof range.from === "number" && typeof range.to === "number" && range.from > range.to) {
    context.addIssue({ code: "custom", path: ["from"], message: "is after to" });
  }
}
