import { formatTime } from "../lib/time.ts";
import { SEVERITIES } from "../model/event.ts";
import type { ShiftReport } from "./shift-report-schema.ts";

const FROM = Date.UTC(2026, 10, 15, 6);
const HOUR = 3_600_000;
const at = (hours: number) => formatTime(FROM + hours * HOUR);
const COUNTS = { critical: 1, high: 2, medium: 0, low: 3, info: 4 };

/** A report that has everything once. Each text that comes from outside is made by `text`. */
export function sampleReport(text: () => string): ShiftReport {
  const alert = (severity: (typeof SEVERITIES)[number]) =>
    ({
      alert_id: "alt_01a1eb0a0e20700099ccff20a60e10d9",
      title: text(),
      severity,
      rule_name: text(),
      status: "acknowledged",
      assignee: text(),
    }) as const;
  return {
    site: text(),
    generated_at: at(12),
    from: at(0),
    to: at(12),
    previous_from: at(-12),
    timezone: "Europe/Berlin",
    alerts: {
      created: { total: 10, previous: 12, by_severity: COUNTS },
      acknowledged: { total: 10, previous: 10, by_severity: COUNTS },
      resolved: { total: 10, previous: 0, by_severity: COUNTS },
      resolutions: { true_positive: 4, false_positive: 3, benign: 2, duplicate: 1 },
      open: { total: 40, unacknowledged: 7, at_start: 39, by_severity: COUNTS },
      seconds_to_first_look: { value: 720, previous: 1020 },
      seconds_to_resolve: { value: 8100, previous: null },
    },
    handled: {
      total: SEVERITIES.length + 23,
      items: SEVERITIES.map((severity) => ({
        ...alert(severity),
        action: "resolved",
        at: at(3),
        by: text(),
        resolution: "false_positive",
        last_comment: { author: text(), at: at(2), text: text() },
      })),
    },
    open: {
      total: 40,
      oldest_created_at: at(-70),
      items: SEVERITIES.map((severity) => ({ ...alert(severity), created_at: at(-2), event_count: 3 })),
    },
    trend: {
      interval_seconds: 3600,
      intervals: Array.from({ length: 12 }, (_, hour) => ({ from: at(hour), by_severity: COUNTS })),
    },
    rules: { items: [{ rule_name: text(), alerts: 7, false_positive_share: 0.25 }], other_alerts: 3 },
    traffic: {
      bytes: 5_000_000,
      flow_count: 120,
      previous_bytes: 4_000_000,
      interval_seconds: 3600,
      intervals: Array.from({ length: 12 }, (_, hour) => ({ from: at(hour), bytes: 400_000, previous_bytes: 300_000 })),
      talkers: [{ address: text(), hostname: text(), bytes: 2_000_000, flow_count: 60 }],
    },
    sources: {
      total: 2,
      in_trouble: 1,
      items: [true, false].map((healthy) => ({
        name: text(),
        kind: text(),
        healthy,
        per_minute: 12,
        last_seen: at(11),
        summary: text(),
      })),
    },
    losses: {
      dropped: [{ what: text(), count: 12 }],
      missing: [text()],
      retention_paused: true,
      retention_messages: [text()],
      disk: { total_bytes: 1e12, free_bytes: 2e11, used_bytes: 3e10 },
    },
  };
}
