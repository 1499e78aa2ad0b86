import { describe, expect, test } from "vitest";
import type { AlertGroup } from "../../../data/alert-groups.ts";
import { freeze, groupTitle, inOrder, NOT_FROZEN } from "./groups.ts";

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

describe("an order that is frozen", () => {
  const before = freeze(NOT_FROZEN, "key", [
    group("b"),
    group("gone", { count: 1 }),
    group("a"),
    group("one", { count: 1 }),
  ]);
  const read = ({ groups }: typeof before) => groups.map(({ rule, count }) => [rule, count]);

  test("keeps places: nothing new comes in, nothing that was there leaves", () => {
    const now = [group("a"), group("b", { count: 9, severity: "critical" }), group("new"), group("one", { count: 1 })];
    expect(read(freeze(before, "key", now))).toEqual([
      ["b", 9],
      ["gone", 0],
      ["a", 2],
      ["one", 1],
    ]);
  });

  test("knows which groups are one alert: one that grows is a group, one that is emptied stays", () => {
    expect([...before.singles]).toEqual(["gone", "one"]);
    const after = freeze(before, "key", [group("a", { count: 1 }), group("one", { count: 2 })]);
    expect([...after.singles]).toEqual(["gone"]);
  });

  test("is the same while nothing has changed, and another for another key", () => {
    expect(freeze(before, "key", before.data)).toBe(before);
    expect(read(freeze(before, "other", [group("new")]))).toEqual([["new", 2]]);
  });
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
