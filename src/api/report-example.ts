import type { ShiftReport } from "../reports/shift-report-schema.ts";
import { ALERT_DETAIL_EXAMPLE } from "./alert-examples.ts";

const bySeverity = { critical: 0, high: 1, medium: 2, low: 0, info: 0 };
const { id: alert_id, title, rule_name, assignee } = ALERT_DETAIL_EXAMPLE;
const severity = "high";

/** The report of a short shift, with one row in each list. */
export const SHIFT_REPORT_EXAMPLE: ShiftReport = {
  site: "Main Street 4",
  generated_at: "2026-11-15T08:30:00.000Z",
  from: "2026-11-15T07:30:00.000Z",
  to: "2026-11-15T08:30:00.000Z",
  previous_from: "2026-11-15T06:30:00.000Z",
  timezone: "Europe/Berlin",
  alerts: {
    created: { total: 3, previous: 5, by_severity: bySeverity },
    acknowledged: { total: 3, previous: 4, by_severity: bySeverity },
    resolved: { total: 3, previous: 2, by_severity: bySeverity },
    resolutions: { true_positive: 1, false_positive: 2, benign: 0, duplicate: 0 },
    open: { total: 3, unacknowledged: 1, at_start: 3, by_severity: bySeverity },
    seconds_to_first_look: { value: 720, previous: 960 },
    seconds_to_resolve: { value: 8100, previous: null },
  },
  handled: {
    total: 3,
    items: [
      {
        alert_id,
        title,
        severity,
        rule_name,
        status: "resolved",
        assignee,
        action: "resolved",
        at: "2026-11-15T08:12:00.000Z",
        by: "console of the day shift",
        resolution: "true_positive",
        last_comment: {
          author: "console of the day shift",
          at: "2026-11-15T08:12:00.000Z",
          text: "Blocked at the gateway",
        },
      },
    ],
  },
  open: {
    total: 3,
    oldest_created_at: "2026-11-14T22:04:00.000Z",
    items: [
      {
        alert_id,
        title,
        severity,
        rule_name,
        status: "open",
        assignee: null,
        created_at: "2026-11-14T22:04:00.000Z",
        event_count: 12,
      },
    ],
  },
  trend: { interval_seconds: 60, intervals: [{ from: "2026-11-15T07:30:00.000Z", by_severity: bySeverity }] },
  rules: { items: [{ rule_name, alerts: 2, false_positive_share: 0.125 }], other_alerts: 1 },
  traffic: {
    bytes: 21_400_000_000,
    flow_count: 12_976,
    previous_bytes: 8_400_000_000,
    interval_seconds: 60,
    intervals: [{ from: "2026-11-15T07:30:00.000Z", bytes: 310_000_000, previous_bytes: 120_000_000 }],
    talkers: [{ address: "10.20.3.14", hostname: "nas.example", bytes: 3_100_000_000, flow_count: 645 }],
  },
  sources: {
    total: 1,
    in_trouble: 0,
    items: [
      {
        name: "10.20.0.1",
        kind: "syslog, udp",
        healthy: true,
        per_minute: 212,
        last_seen: "2026-11-15T08:29:58.000Z",
        summary: "receiving",
      },
    ],
  },
  losses: {
    dropped: [{ what: "flow data whose template did not arrive", count: 12 }],
    missing: [],
    retention_paused: false,
    retention_messages: [],
    disk: { total_bytes: 500_000_000_000, free_bytes: 320_000_000_000, used_bytes: 12_400_000_000 },
  },
};
