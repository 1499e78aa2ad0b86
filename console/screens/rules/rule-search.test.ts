import { expect, test } from "vitest";
import type { Rule } from "../../data/client.ts";
import { filterOf, isRule, isRuleName, sortOf, sortRules } from "./rule-search.ts";

const rule = (name: string, alerts: number, share: number | null = null) =>
  ({ name, stats: { alerts_7d: alerts, false_positive_share: share, last_match: null } }) as Rule;

test("the address is read, and what it does not mean is left out", () => {
  const choices = { sources: ["platform_access", "custom"], severities: ["high", "low"] as const };
  expect(filterOf({ search: "  door ", source: "custom", severity: "high", enabled: "false" }, choices)).toEqual({
    search: "door",
    source: "custom",
    severity: "high",
    enabled: false,
  });
  expect(filterOf({ search: " ", source: "elsewhere", severity: "worst", enabled: "maybe" }, choices)).toEqual({});
  expect(sortOf({ sort: "alerts" })).toBe("alerts");
  expect(sortOf({ sort: "colour" })).toBe("name");
});

test("the noisiest come first, and equal ones by name", () => {
  const rules = [rule("a.a", 1), rule("a.b", 7, 0.5), rule("a.c", 7, 0)];
  expect(sortRules(rules, "alerts").map(({ name }) => name)).toEqual(["a.b", "a.c", "a.a"]);
  expect(sortRules(rules, "false").map(({ name }) => name)).toEqual(["a.b", "a.c", "a.a"]);
  expect(sortRules(rules, "name")).toBe(rules);
});

test("a rule is meant by its name or its id", () => {
  const one = { id: "rule_1", name: "network.brute_force" };
  expect([one.id, one.name, "other.rule", undefined].map((reference) => isRule(one, reference))).toEqual([
    true,
    true,
    false,
    false,
  ]);
  expect([isRuleName(one.name), isRuleName(one.id)]).toEqual([true, false]);
});
