import { loadBuiltinRules } from "../../detection/rules/builtin.ts";
import { Reference } from "../../detection/testing/reference-engine.ts";
import { formatTime } from "../../lib/time.ts";
import { classOfType, sourceName, type Event, type JsonValue } from "../../model/event.ts";
import type { Finding } from "../../model/finding.ts";
import { CONTEXT, eventsOf, NOW } from "./context.fixture.ts";
import { readEve } from "./eve/eve.ts";
import { readLine } from "./read-line.ts";
import type { ParsedEvent } from "./reading.ts";
import { OpenEvents } from "./unifi/open-events.ts";
import { readBody, type BodyName } from "./unifi/webhooks.ts";

// Evaluates the built-in rules on lines and bodies of devices.

// Absence rules depend on the clock and are left out.
const rules = loadBuiltinRules({ platform: "platform", timezone: "UTC" }).filter(({ absence }) => !absence);

/** Findings of the built-in rules. */
export function found(read: readonly ParsedEvent[]): readonly Finding[] {
  const events = read.map((event, index): Event => ({
    id: `evt_${String(index).padStart(8, "0")}`,
    type: event.type,
    source: sourceName("platform", event.source),
    class: classOfType(event.type, event.class),
    severity: event.severity,
    timestamp: formatTime(event.timestampMs ?? NOW),
    raw: event.raw,
    enrichment: {},
  }));
  return new Reference(rules).process(events, NOW).findings;
}

export function fired(read: readonly ParsedEvent[]): string[] {
  return [...new Set(found(read).map(({ rule }) => rule.name))].sort();
}

/** Titles of one rule's findings, in order. */
export const titles = (name: string, read: readonly ParsedEvent[]) =>
  found(read)
    .filter(({ rule }) => rule.name === name)
    .map(({ title }) => title);

export const times = <Made>(count: number, make: (index: number) => Made): Made[] =>
  Array.from({ length: count }, (_, i) => make(i));
export const line = (text: string) => eventsOf(readLine(text, CONTEXT));
export const body = (name: BodyName, value: JsonValue, open = new OpenEvents()) =>
  eventsOf(readBody(name, value, CONTEXT, open));
export const eve = (record: unknown) => eventsOf(readEve(JSON.stringify(record), CONTEXT));
export const clock = (index: number) =>
  `Nov 15 19:${String(10 + Math.floor(index / 60)).padStart(2, "0")}:${String(index % 60).padStart(2, "0")}`;
