import { classOfType } from "../../model/event.ts";
import { readInput } from "./detect-format.ts";
import { knownFormats } from "./known-formats.ts";
import { OpenEvents } from "./unifi/open-events.ts";
import type { ReadContext, ParsedEvent, Reading } from "./reading.ts";

// Shared by the tests of readers: a fixed time and sender, and access to the events of a reading.

export const NOW = Date.parse("2026-11-15T20:00:00Z");
export const CONTEXT: ReadContext = { nowMs: NOW, sender: "192.0.2.1", timezone: "UTC" };

/** The only event of a reading, with the class under which it is stored. */
export function onlyEvent(reading: Reading): ParsedEvent {
  if (reading.kind !== "events" || reading.events.length !== 1)
    throw new Error(`not one event: ${JSON.stringify(reading)}`);
  const [event] = reading.events as [ParsedEvent];
  return { ...event, class: classOfType(event.type, event.class) };
}

/** Reads text whose format is detected, as `tocsin parse` does. */
export function readDetected(text: string): Reading {
  const options = { formats: knownFormats(), lineBytesMax: Infinity, bodyBytesMax: Infinity, keepsUnparsed: true };
  return readInput("auto", Buffer.from(text), options, CONTEXT, new OpenEvents());
}

export function eventsOf(reading: Reading): readonly ParsedEvent[] {
  return reading.kind === "events" ? reading.events : [];
}
