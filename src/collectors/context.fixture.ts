import { classOfType } from "../model/event.ts";
import type { ReadContext, ReadEvent, Reading } from "./reading.ts";

// For tests of readers: one moment, one sender, and the one event that something became.

export const NOW = Date.parse("2026-11-15T20:00:00Z");
export const CONTEXT: ReadContext = { nowMs: NOW, sender: "192.0.2.1", timezone: "UTC" };

/** With the class that it is stored with. */
export function onlyEvent(reading: Reading): ReadEvent {
  if (reading.kind !== "events" || reading.events.length !== 1)
    throw new Error(`not one event: ${JSON.stringify(reading)}`);
  const [event] = reading.events as [ReadEvent];
  return { ...event, class: classOfType(event.type, event.class) };
}

export function eventsOf(reading: Reading): readonly ReadEvent[] {
  return reading.kind === "events" ? reading.events : [];
}
