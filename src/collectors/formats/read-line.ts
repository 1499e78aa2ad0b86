import { knownFormats } from "./known-formats.ts";
import { readWithFormats } from "./read-with-formats.ts";
import type { ReadContext, Reading } from "./reading.ts";

/** Reads a line with the formats that come with the service. Never throws or refuses. */
export function readLine(line: string, context: ReadContext): Reading {
  return readWithFormats(knownFormats(), line, context);
}
