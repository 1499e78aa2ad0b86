import { loadBuiltinRules } from "../../detection/rules/builtin.ts";
import { Reference } from "../../detection/testing/reference-engine.ts";
import { formatTime } from "../../lib/time.ts";
import type { Finding } from "../../model/finding.ts";
import { classOfType, sourceName, type Event } from "../../model/event.ts";
import { NOW } from "./context.fixture.ts";
import type { ParsedEvent } from "./reading.ts";

// The findings of the built-in rules in events of devices.

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
