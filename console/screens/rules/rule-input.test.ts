import { expect, test } from "vitest";
import type { Rule } from "../../data/client.ts";
import { copyOf, duplicateOf, inputOf, readEdit } from "./rule-input.ts";

const RULE = {
  id: "rule_1",
  name: "network.brute_force",
  description: "x",
  severity: "high",
  enabled: false,
  source: "any",
  tags: [],
  title: null,
  references: [],
  conditions: [],
  window: "5m",
  threshold: { count: 5 },
  sequence: null,
  sequence_order: "in_order",
  sequence_min: null,
  group_by: null,
  absence: null,
  parts: [],
  dedup: { period: "1h", by: null },
  exceptions: [
    {
      id: "exc_1",
      conditions: [],
      reason: "ours",
      author: "ada",
      created_at: "2026-01-01T00:00:00Z",
      expires_at: null,
    },
  ],
  actions: [{ alert: { channels: [] } }],
  origin: null,
  builtin: true,
  created_at: "2026-01-01T00:00:00Z",
  updated_at: "2026-01-01T00:00:00Z",
  stats: { matches_24h: 0, matches_7d: 0, last_match: null, alerts_7d: 0, false_positive_share: null },
} satisfies Rule;

test("a rule is sent without what the service decides and without defaults, but with its exceptions", () => {
  expect(inputOf(RULE)).toEqual({
    name: "network.brute_force",
    description: "x",
    severity: "high",
    enabled: false,
    source: "any",
    conditions: [],
    window: "5m",
    threshold: { count: 5 },
    dedup: { period: "1h" },
    exceptions: RULE.exceptions,
    actions: [{ alert: { channels: [] } }],
  });
});

test("a copy has a name of its own, is on, and has no exceptions", () => {
  expect(duplicateOf(RULE)).toMatchObject({ name: "site.brute_force", enabled: true });
  expect(duplicateOf(RULE)).not.toHaveProperty("exceptions");
  expect(duplicateOf({ ...RULE, name: "site.door" }).name).toBe("site.door_copy");
});

test("the address says what is edited", () => {
  expect(readEdit(undefined)).toBeUndefined();
  expect(readEdit("new")).toEqual({ kind: "new" });
  expect(readEdit(copyOf("rule_1"))).toEqual({ kind: "copy", id: "rule_1" });
  expect(readEdit("rule_1")).toEqual({ kind: "existing", id: "rule_1" });
});
