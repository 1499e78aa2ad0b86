import { describe, expect, test } from "vitest";
import type { AlertGroup } from "../../../data/alert-groups.ts";
import { inFrozenOrder, inOrder, sharedTitle } from "./groups.ts";

const group = (rule: string, differences: Partial<AlertGroup> = {}): AlertGroup => ({
  rule,
  count: 2,
  severity: "high",
  source: "custom",
  eventCount: 2,
  score: null,
  lastMs: 0,
  titles: [],
  assignees: [],
  isPartlyUnassigned: true,
  when: [],
  ...differences,
});
const rules = (groups: readonly AlertGroup[]) => groups.map(({ rule }) => rule);

test("groups are ordered by severity, score and time", () => {
  const groups = [
    group("late", { lastMs: 2 }),
    group("scored", { score: 5 }),
    group("early", { lastMs: 1 }),
    group("worst", { severity: "critical" }),
  ];
  expect(rules(inOrder(groups))).toEqual(["worst", "scored", "late", "early"]);
});

test("a frozen order keeps places: nothing new comes in, nothing that was there leaves", () => {
  const before = new Map([["gone", group("gone")]]);
  const shown = inFrozenOrder(["b", "gone", "a"], [group("a"), group("b", { count: 9 }), group("new")], before);
  expect(shown.map(({ rule, count }) => [rule, count])).toEqual([
    ["b", 9],
    ["gone", 0],
    ["a", 2],
  ]);
});

describe("the name of a group", () => {
  test.each([
    [["Door Archive was forced", "Door Main entrance was forced"], "Door … was forced"],
    [
      ["eva connected from several countries", "ben connected from several countries"],
      "… connected from several countries",
    ],
    [["One title"], "One title"],
    [["A b", "C d"], "Network: ids high"],
    [[], "network.ids_high"],
    [["same same", "same same same"], "Network: ids high"],
  ])("of %j", (titles, name) => expect(sharedTitle(titles, "network.ids_high")).toBe(name));
});
