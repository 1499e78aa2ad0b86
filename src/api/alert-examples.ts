// The example alert of the OpenAPI document.

export const EVENT_EXAMPLE = {
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
  tags: [] as string[],
  group: { field: "raw.src_ip", value: "192.0.2.17" },
  entities: [
    { kind: "address", value: "192.0.2.17", count: 5 },
    { kind: "user", value: "alice", count: 4 },
  ],
  entities_cut: false,
};

export const COMMENT_EXAMPLE = {
  id: "cmt_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
  body: "The address belongs to the **guest** network.",
  author: "console",
  created_at: "2026-11-15T08:41:00.000Z",
};

const CONSOLE = COMMENT_EXAMPLE.author;
let entries = 0;
const entry = (at: string, kind: string, more: object, actor = CONSOLE) => ({
  id: `tln_019a84f2c0d17a3e8b5d4e6f7a8b9c${String(++entries).padStart(2, "0")}`,
  at,
  kind,
  actor,
  ...more,
});
const commented = (at: string, body: string) =>
  entry(at, "commented", { comment: { ...COMMENT_EXAMPLE, body, created_at: at } });

const ACKNOWLEDGED_AT = "2026-11-15T08:40:00.000Z";
const RESOLVED_AT = "2026-11-15T09:05:00.000Z";
const REOPENED_AT = "2026-11-15T09:30:00.000Z";

export const ACKNOWLEDGEMENT_EXAMPLE = { comment: "Looking into it", assignee: ALERT_EXAMPLE.assignee };
export const RESOLVING_EXAMPLE = {
  resolution: "true_positive",
  comment: "The account was locked and the user informed.",
  actions_taken: ["locked the account", "blocked 192.0.2.17"],
};
export const REOPENING_EXAMPLE = { comment: "It happened again" };

export const ACKNOWLEDGED_EXAMPLE = {
  ...ALERT_EXAMPLE,
  actions_taken: [] as string[],
  acknowledged_at: ACKNOWLEDGED_AT,
  resolved_at: null,
  rule: {
    id: "rule_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
    name: ALERT_EXAMPLE.rule_name,
    description: ALERT_EXAMPLE.description,
    tags: ["attack.t1110"],
  },
  related_events: [EVENT_EXAMPLE],
  related_events_total: ALERT_EXAMPLE.event_count,
  timeline: [
    entry(ALERT_EXAMPLE.created_at, "created", { count: ALERT_EXAMPLE.event_count }, "system"),
    entry(ACKNOWLEDGED_AT, "acknowledged", { assignee: ALERT_EXAMPLE.assignee }),
    commented(ACKNOWLEDGED_AT, ACKNOWLEDGEMENT_EXAMPLE.comment),
  ],
  match: {
    rule_as: "stored",
    kind: "threshold",
    window: "5m",
    group_by: ["raw.src_ip"],
    threshold: {
      count: 5,
      distinct: [],
      sum: null,
      avg: null,
      percentile: null,
      gte: null,
      gt: null,
      lte: null,
      lt: null,
    },
    order: null,
    steps_min: null,
    steps: [],
    absence: null,
    parts: [],
    events: [
      {
        event_id: EVENT_EXAMPLE.id,
        part: null,
        step: null,
        step_number: null,
        fields: [{ field: "type", operator: "equals", value: EVENT_EXAMPLE.type, expected: EVENT_EXAMPLE.type }],
        complete: true,
      },
    ],
  },
};

export const ALERT_DETAIL_EXAMPLE = {
  ...ACKNOWLEDGED_EXAMPLE,
  timeline: [...ACKNOWLEDGED_EXAMPLE.timeline, commented(COMMENT_EXAMPLE.created_at, COMMENT_EXAMPLE.body)],
};

const { resolution, comment, actions_taken } = RESOLVING_EXAMPLE;
export const RESOLVED_EXAMPLE = {
  ...ALERT_DETAIL_EXAMPLE,
  status: "resolved",
  resolution,
  actions_taken,
  resolved_at: RESOLVED_AT,
  timeline: [
    ...ALERT_DETAIL_EXAMPLE.timeline,
    entry(RESOLVED_AT, "resolved", { resolution, actions_taken }),
    commented(RESOLVED_AT, comment),
  ],
};

export const REOPENED_EXAMPLE = {
  ...RESOLVED_EXAMPLE,
  status: "open",
  resolution: null,
  actions_taken: [],
  acknowledged_at: null,
  resolved_at: null,
  timeline: [
    ...RESOLVED_EXAMPLE.timeline,
    entry(REOPENED_AT, "reopened", {}),
    commented(REOPENED_AT, REOPENING_EXAMPLE.comment),
  ],
};
