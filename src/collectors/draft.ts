import {
  classOfType,
  sourceName,
  type EventClass,
  type EventDraft,
  type JsonObject,
  type Severity,
} from "../model/event.ts";
import type { ReadEvent } from "./reading.ts";

// From what a reader understood to what is stored.

/** An event on its way between threads. Its `raw` goes as the text that is stored anyway: that is cheaper than a copy. */
export interface PackedDraft {
  readonly type: string;
  readonly source: string;
  readonly severity: Severity;
  readonly class: EventClass;
  readonly timestampMs: number;
  readonly rawText: string;
}

/** Few types make up most events: what follows from one is found out once. */
const TYPES_REMEMBERED_MAX = 1000;
const classes = new Map<string, EventClass>();

function classOf(type: string): EventClass {
  const known = classes.get(type);
  if (known) return known;
  const found = classOfType(type);
  if (classes.size < TYPES_REMEMBERED_MAX) classes.set(type, found);
  return found;
}

/** `nowMs` stands in for a time that the sender does not say. */
export function toDraft(event: ReadEvent, platform: string, nowMs: number): EventDraft {
  const { raw } = event;
  return { ...factsOf(event, platform, nowMs), raw, enrichment: {} };
}

export function packDraft(event: ReadEvent, platform: string, nowMs: number): PackedDraft {
  return { ...factsOf(event, platform, nowMs), rawText: JSON.stringify(event.raw) };
}

function factsOf(event: ReadEvent, platform: string, nowMs: number): Omit<PackedDraft, "rawText"> {
  return {
    type: event.type,
    source: sourceName(platform, event.source),
    severity: event.severity,
    class: event.class ?? classOf(event.type),
    timestampMs: event.timestampMs ?? nowMs,
  };
}

export function unpackDraft(packed: PackedDraft): EventDraft {
  return { ...packed, raw: JSON.parse(packed.rawText) as JsonObject, enrichment: {} };
}
