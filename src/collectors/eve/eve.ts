import type { ReadContext, Reading } from "../reading.ts";

/** What became of a line of Suricata's EVE JSON: events, or the two directions of a flow. Never throws. */
export function readEve(_line: string, _context: ReadContext): Reading {
  return { kind: "refused", reason: "malformed", message: "not a JSON object" };
}
