import type { ReadContext, ReadEvent, Reading } from "./reading.ts";

// For tests of readers: one moment, one sender, and the one event that something became.

export const NOW = Date.parse("2026-11-15T20:00:00Z");
export const CONTEXT: ReadContext = { nowMs: NOW, sender: "192.0.2.1", timezone: "UTC" };

export function onlyEvent(reading: Reading): ReadEvent {
  if (reading.kind !== "events" || reading.events.length !== 1)
    throw new Error(`not one event: ${JSON.stringify(reading)}`);
  return reading.events[0]!;
}

export function eventsOf(reading: Reading): readonly ReadEvent[] {
  return reading.kind === "events" ? reading.events : [];
}
