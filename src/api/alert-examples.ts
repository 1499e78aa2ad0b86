// One alert, as the document of the API shows it.

const EVENT_EXAMPLE = {
  id: "evt_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
  type: "login_failure",
  source: "custom",
  class: "security",
  severity: "medium",
  timestamp: "2026-11-15T08:30:00.000Z",
  raw: { user: "alice", src_ip: "192.0.2.17" },
  enrichment: {},
};

export const ALERT_EXAMPLE = {
  id: "alt_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
  rule_name: "site.repeated_login_failure",
  title: "Failed logins from 192.0.2.17",
  description: "Five failed logins from one address within five minutes",
  severity: "high",
  status: "acknowledged",
  source: "custom",
  event_count: 5,
  first_event_at: "2026-11-15T08:26:11.000Z",
  last_event_at: "2026-11-15T08:30:00.000Z",
  created_at: "2026-11-15T08:30:00.120Z",
  enrichment: {},
  ai_analysis: null,
  assignee: "anna@example.com",
  resolution: null,
};

export const COMMENT_EXAMPLE = {
  id: "cmt_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
  body: "The address belongs to the **guest** network.",
  author: "console",
  created_at: "2026-11-15T08:41:00.000Z",
};

const ENTRY_ID = "tln_019a84f2c0d17a3e8b5d4e6f7a8b9c0d";

export const ALERT_DETAIL_EXAMPLE = {
  ...ALERT_EXAMPLE,
  actions_taken: [],
  acknowledged_at: "2026-11-15T08:40:00.000Z",
  resolved_at: null,
  group: { field: "raw.src_ip", value: "192.0.2.17" },
  rule: {
    id: "rule_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
    name: ALERT_EXAMPLE.rule_name,
    description: ALERT_EXAMPLE.description,
    tags: ["attack.t1110"],
  },
  related_events: [EVENT_EXAMPLE],
  related_events_total: ALERT_EXAMPLE.event_count,
  timeline: [
    { id: ENTRY_ID, at: ALERT_EXAMPLE.created_at, kind: "created", actor: "system", count: ALERT_EXAMPLE.event_count },
    {
      id: ENTRY_ID,
      at: "2026-11-15T08:40:00.000Z",
      kind: "acknowledged",
      actor: "console",
      assignee: "anna@example.com",
    },
    { id: ENTRY_ID, at: COMMENT_EXAMPLE.created_at, kind: "commented", actor: "console", comment: COMMENT_EXAMPLE },
  ],
};
