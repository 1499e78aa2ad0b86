/** The rule of the examples in the OpenAPI document. */
export const RULE_INPUT_EXAMPLE = {
  name: "site.repeated_login_failure",
  description: "Five failed logins from one address within five minutes",
  severity: "high",
  tags: ["attack.t1110"],
  title: "Failed logins from {{raw.src_ip}}",
  conditions: [{ field: "type", equals: "login_failure" }],
  window: "5m",
  threshold: { count: 5, group_by: "raw.src_ip" },
  actions: [{ alert: { channels: [] } }],
  tests: [
    {
      name: "five within a minute",
      events: [{ type: "login_failure", raw: { src_ip: "192.0.2.17" }, repeat: 5, every: "10s" }],
      alerts: 1,
    },
  ],
};
