import { describe, expect, test } from "vitest";
import type { AlertGroup } from "../../../data/alert-groups.ts";
import { inFrozenOrder, inOrder, groupTitle } from "./groups.ts";

const group = (rule: string, differences: Partial<AlertGroup> = {}): AlertGroup => ({
  rule,
  count: 2,
  severity: "high",
  source: "custom",
  eventCount: 2,
  score: null,
  lastMs: 0,
  samples: [],
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
  const sample = (title: string): AlertGroup["samples"][number] => ({
    title,
    group: null,
    entities: [{ kind: "door", value: "Archive", count: 1 }],
  });
  const nameOf = (titles: string[], count = 9) =>
    groupTitle({ rule: "network.ids_high", samples: titles.map(sample), count });

  test.each([
    [["Door Archive was forced", "Door Main entrance was forced"], "Door … was forced"],
    [["eva connected from two countries", "ben connected from two countries"], "… connected from two countries"],
    [["Door Archive was forced"], "Door … was forced"],
    [["A b", "C d"], "Network: ids high"],
    [[], "Network: ids high"],
    [["same same", "same same same"], "Network: ids high"],
  ])("of %j", (titles, name) => expect(nameOf(titles)).toBe(name));

  test("is the title where all have the same", () => {
    expect(nameOf(["Door Archive was forced", "Door Archive was forced"], 2)).toBe("Door Archive was forced");
  });
});
