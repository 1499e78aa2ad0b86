import type { ReadContext, Reading } from "./reading.ts";

/** What became of a line of text that some device has sent, whichever way it came. Never throws, never refuses a text. */
export function readLine(line: string, _context: ReadContext): Reading {
  if (line.trim() === "") return { kind: "nothing" };
  const event = { type: "unparsed", source: "network", severity: "info", timestampMs: null, raw: { line } } as const;
  return { kind: "events", events: [event] };
}
