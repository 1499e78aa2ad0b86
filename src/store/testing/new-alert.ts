import { idMaker } from "../../lib/id.ts";
import { UNTOUCHED, type Alert, type AlertSummary } from "../../model/alert.ts";

export const newAlertId = idMaker("alt_");
export const newEventId = (n: number) => `evt_${n.toString(16).padStart(32, "0")}`;

/** A record of an alert with the fields that a test does not care about. */
export function newAlert(more: Partial<Alert> = {}): Alert {
  return {
    ...UNTOUCHED,
    id: newAlertId(),
    rule: { id: "rule_1", name: "site.one", description: "One.", tags: ["a"] },
    foldKey: '["192.0.2.1"]',
    group: { field: "raw.src_ip", value: "192.0.2.1" },
    title: "Failed logins from 192.0.2.1",
    description: "Somebody tries passwords.",
    severity: "high",
    source: "custom",
    eventCount: 5,
    firstEventAt: 1000,
    lastEventAt: 2000,
    createdAt: 3000,
    enrichment: { geo: { country: "AT" } },
    relatedEvents: [{ id: "evt_1", timestampMs: 2000 }],
    ...more,
  };
}

/** The next version of the alert. */
export function nextAlert(alert: Alert, more: Partial<Alert>): Alert {
  return { ...alert, ...more, version: alert.version + 1 };
}

/** The alert as lists have it. */
export function summaryOf(alert: Alert): AlertSummary {
  const { relatedEvents: _events, ...summary } = alert;
  return summary;
}
