import { UNTOUCHED, type Alert } from "../model/alert.ts";
import type { AlertEvidence } from "./evidence.ts";

export function someAlert(more: Partial<Alert> = {}): Alert {
  return {
    ...UNTOUCHED,
    id: "alt_1",
    rule: { id: "rule_1", name: "site.failed_logins", description: "Described.", tags: [] },
    foldKey: "[]",
    group: { field: "raw.src_ip", value: "192.0.2.17" },
    title: "Failed logins from 192.0.2.17",
    description: "Five failed logins from one address.",
    severity: "medium",
    source: "custom",
    eventCount: 5,
    firstEventAt: 1_700_000_000_000,
    lastEventAt: 1_700_000_060_000,
    createdAt: 1_700_000_061_000,
    enrichment: {},
    relatedEvents: [],
    ...more,
  };
}

export function someEvidence(more: Partial<AlertEvidence> = {}, alert: Partial<Alert> = {}): AlertEvidence {
  return {
    alert: someAlert(alert),
    events: [],
    abuseScore: null,
    lists: [],
    senders: 1,
    targets: 1,
    sources: 1,
    noveltyDays: 30,
    earlierOfRule: 2,
    earlierOfGroup: 1,
    earlierSearched: more.earlierOfRule ?? 2,
    resolutions: { true_positive: 0, false_positive: 0, benign: 0, duplicate: 0 },
    ...more,
  };
}
