import { isDeepStrictEqual } from "node:util";
import { formatTime, parseTime } from "../../../lib/time.ts";
import { GENERIC } from "../generic/generic.ts";
import type { LineFormats } from "../line-formats.ts";
import { readWithFormats } from "../read-with-formats.ts";
import { UNPARSED_TYPE } from "../reading.ts";
import type { LineTest } from "./description.ts";

// The tests of a description: lines, and what becomes of them.

const SENDER = "192.0.2.1";

/**
 * What differs, in words; empty if the test passes. The line is read as on the day of its stated time, so that a date without a
 * year does not depend on the clock; and in UTC, whatever the zone of the site is.
 */
export function runLineTest(test: LineTest, name: string, formats: LineFormats): string[] {
  const nowMs = (test.time === undefined ? undefined : parseTime(test.time)) ?? Date.now();
  const reading = readWithFormats(formats, test.line, { nowMs, sender: SENDER, timezone: "UTC" });
  if (reading.kind === "nothing") return test.nothing ? [] : ["the line is read as no news"];
  if (reading.kind !== "events") return [`the line is read as ${reading.kind}`];
  const [event] = reading.events;
  if (test.unparsed) {
    const isUnparsed = event!.type === UNPARSED_TYPE || reading.format === GENERIC;
    return isUnparsed ? [] : [`the line is read by ${reading.format}`];
  }
  if (test.nothing) return ["the line becomes an event"];
  if (reading.format !== name) return [`the line is read by ${reading.format ?? "no format"}, not by ${name}`];
  const differences: string[] = [];
  const compare = (what: string, wanted: unknown, is: unknown) => {
    if (wanted !== undefined && !isDeepStrictEqual(wanted, is)) {
      differences.push(`${what} is ${JSON.stringify(is) ?? "absent"}, not ${JSON.stringify(wanted)}`);
    }
  };
  compare("type", test.type, event!.type);
  compare("severity", test.severity, event!.severity);
  compare("source", test.source, event!.source);
  if (test.time !== undefined)
    compare("time", test.time, event!.timestampMs === null ? null : formatTime(event!.timestampMs));
  for (const [field, wanted] of Object.entries(test.fields ?? {})) {
    compare(`raw.${field}`, wanted === null ? "absent" : wanted, event!.raw[field] ?? "absent");
  }
  return differences;
}
