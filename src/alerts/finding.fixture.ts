import type { Finding } from "../model/finding.ts";

/** The deduplication period, in event time. */
export const PERIOD = 1000;
let events = 0;

/** A finding of this rule with one event at each of the given times. */
export function findingOf(ruleId: string, times: readonly number[], more: Partial<Finding> = {}): Finding {
  return {
    rule: { id: ruleId, name: `site.${ruleId}`, description: "Described.", tags: ["t"], channels: ["email"] },
    severity: "high",
    dedupKey: '["a"]',
    dedupMs: PERIOD,
    group: { field: "raw.src_ip", value: "a" },
    eventId: null,
    source: "custom",
    title: `At ${times[0]}`,
    description: "What happened.",
    enrichment: { geo: { country: "AT" } },
    eventCount: times.length,
    firstEventMs: Math.min(...times),
    lastEventMs: Math.max(...times),
    events: times
      .map((timestampMs) => ({ id: `evt_${String(++events).padStart(8, "0")}`, timestampMs }))
      .sort((a, b) => b.timestampMs - a.timestampMs),
    ...more,
  };
}
