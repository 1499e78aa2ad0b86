import { parseExact, parseSent } from "../../lib/exact-json.ts";
import { flawOf } from "../../lib/json.ts";
import type { JsonObject } from "../../model/event.ts";
import { objectOf } from "./device-values.ts";

/** Deeper than any record of a sensor; deeper objects could not be stored. */
const DEPTH_MAX = 32;

const ESCAPED_OR_EXPONENT = /\d[eE]|\\u[dD]/;

/** True for a text that cannot be too deep, since it opens few objects and lists, and that has no exponent and no surrogate. */
function isShallow(line: string): boolean {
  let opened = 0;
  for (let at = line.indexOf("{"); at >= 0 && opened <= DEPTH_MAX; at = line.indexOf("{", at + 1)) opened++;
  for (let at = line.indexOf("["); at >= 0 && opened <= DEPTH_MAX; at = line.indexOf("[", at + 1)) opened++;
  return opened <= DEPTH_MAX && !ESCAPED_OR_EXPONENT.test(line) && line.isWellFormed();
}

/** Parses a line; undefined if it is not an object, or nested too deep. */
export function parseRecord(line: string): JsonObject | undefined {
  let record: unknown;
  try {
    record = parseExact(line);
  } catch {
    return undefined;
  }
  const object = objectOf(record);
  if (object !== undefined && isShallow(line)) return object;
  const flaw = object === undefined ? "too deep" : flawOf(object, DEPTH_MAX);
  if (flaw === "too deep") return undefined;
  const mayHaveUnpairedSurrogates = line.includes("\\ud") || line.includes("\\uD") || !line.isWellFormed();
  return flaw === "rounded" || mayHaveUnpairedSurrogates ? (parseSent(line) as JsonObject) : object;
}

/**
 * Parses a line whose reader takes over only texts, numbers and lists of them, so that depth does not matter; undefined if it is
 * not an object.
 */
export function parseFlatRecord(line: string): JsonObject | undefined {
  try {
    const mayHaveUnpairedSurrogates = line.includes("\\ud") || line.includes("\\uD") || !line.isWellFormed();
    return objectOf(mayHaveUnpairedSurrogates ? parseSent(line) : parseExact(line));
  } catch {
    return undefined;
  }
}
