import type { JsonValue } from "../../model/event.ts";
import type { ReadContext, Reading } from "../reading.ts";
import type { OpenEvents } from "./open-events.ts";

/** Whose bodies are read: the last part of the path that they are sent to. */
export const BODY_NAMES = ["network", "protect", "access", "talk"] as const;

export type BodyName = (typeof BODY_NAMES)[number];

/**
 * What became of the JSON that a controller has sent: an object, or an array of them. `open` remembers what has begun and
 * not ended; one for the whole service, kept from body to body. Never throws.
 */
export function readBody(_name: BodyName, body: JsonValue, _context: ReadContext, _open: OpenEvents): Reading {
  if (typeof body !== "object" || body === null) {
    return { kind: "refused", reason: "malformed", message: "the body is neither an object nor an array" };
  }
  return { kind: "nothing" };
}
