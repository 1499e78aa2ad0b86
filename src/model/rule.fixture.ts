import type { Rule } from "./rule.ts";

/** A minimal rule; a test overrides the fields that matter. */
export function plainRule(more: Partial<Rule> = {}): Rule {
  return {
    id: "rule_1",
    name: "test.rule",
    description: "Something happened",
    severity: "high",
    enabled: true,
    source: "any",
    tags: [],
    title: null,
    references: [],
    conditions: [],
    window: null,
    threshold: null,
    sequence: null,
    sequenceOrder: "in_order",
    groupBy: null,
    absence: null,
    dedup: { period: "1h", by: null },
    exceptions: [],
    actions: [{ alert: { channels: [] } }],
    builtin: false,
    createdAt: 0,
    updatedAt: 0,
    revision: 1,
    activeAfter: null,
    ...more,
  };
}
