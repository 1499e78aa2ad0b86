import { expect, test } from "vitest";
import {
  conditionOf,
  kindOf,
  operatorOf,
  readScalar,
  readValue,
  scalarText,
  valueText,
  withOperator,
} from "./condition-model.ts";
import { faultsOfRule, pathsText, readPath, readPaths, valueAt, withValue, writePath } from "./draft.ts";
import { measureOf, timingOf, withBound, withInputOf, withMeasure, withTiming } from "./timing-model.ts";

test("a path of a fault is read and written", () => {
  const path = ["conditions", 2, "any", 0, "cidr"];
  expect(readPath("conditions[2].any[0].cidr")).toEqual(path);
  expect(writePath(path)).toBe("conditions[2].any[0].cidr");
  expect(readPath("")).toEqual([]);
});

test("a value is replaced without changing the draft, and a removed one is gone", () => {
  const draft = { name: "a.b", conditions: [{ field: "type" }, { field: "raw.a" }] };
  expect(withValue(draft, ["conditions", 1, "equals"], 5)).toEqual({
    name: "a.b",
    conditions: [{ field: "type" }, { field: "raw.a", equals: 5 }],
  });
  expect(withValue(draft, ["conditions", 0], undefined)).toEqual({ name: "a.b", conditions: [{ field: "raw.a" }] });
  expect(withValue(draft, ["threshold", "count"], 3)).toEqual({ ...draft, threshold: { count: 3 } });
  expect(draft.conditions).toHaveLength(2);
  expect(valueAt(draft, ["conditions", 1, "field"])).toBe("raw.a");
  expect(valueAt(draft, ["constructor"])).toBeUndefined();
});

test("a new item is appended", () => {
  expect(withValue({ steps: ["a"] }, ["steps", 1], "b")).toEqual({ steps: ["a", "b"] });
  expect(withValue({}, ["steps", 0], "a")).toEqual({ steps: ["a"] });
});

test("the fields of a simulated rule are those of the rule", () => {
  expect(faultsOfRule([{ field: "rule.window", message: "x" }])).toEqual([{ field: "window", message: "x" }]);
});

test("paths are typed with commas", () => {
  expect(readPaths(" raw.a , raw.b,")).toEqual(["raw.a", "raw.b"]);
  expect(readPaths("raw.a")).toBe("raw.a");
  expect(readPaths(" ")).toBeUndefined();
  expect(pathsText(["raw.a", "raw.b"])).toBe("raw.a, raw.b");
});

test("a value that is typed keeps its type, there and back", () => {
  for (const value of ["a", 5, -1.5, true, "5", "true", "0012", "", ' "x"', '"', "a, b"]) {
    expect(readScalar(scalarText(value)), String(value)).toBe(value);
  }
  expect(scalarText("5")).toBe('"5"');
});

test("several values stand one a line", () => {
  expect(valueText("scalars", [53, "80"])).toBe('53\n"80"');
  expect(readValue("scalars", "53\n\nx")).toEqual([53, "x"]);
  expect(readValue("texts", "a,b\n")).toBe("a,b");
});

test("a condition changes its operator and its kind without losing what was typed", () => {
  expect(withOperator({ field: "raw.a", equals: 5 }, "in")).toEqual({ field: "raw.a", in: [5] });
  expect(withOperator({ field: "raw.a", in: ["a", "b"] }, "contains")).toEqual({
    field: "raw.a",
    contains: ["a", "b"],
  });
  expect(withOperator({ field: "raw.a", equals: 5 }, "exists")).toEqual({ field: "raw.a", exists: true });
  const before = { field: "raw.a", equals: 5 };
  expect(conditionOf("not", before)).toEqual({ not: before });
  expect(conditionOf("any", before)).toEqual({ any: [before] });
  expect(kindOf({ any: [] })).toBe("any");
  expect(kindOf("x")).toBe("unknown");
  expect(operatorOf({ field: "raw.a", prefix: "x" })).toMatchObject({ name: "prefix", kind: "texts" });
});

test("the timing is known by its fields, and another takes along what fits", () => {
  const rule = { name: "a.b", conditions: [{ field: "type", equals: "x" }], window: "5m", threshold: { count: 5 } };
  expect(timingOf(rule)).toBe("many");
  expect(timingOf({ ...rule, threshold: null, absence: "1h" })).toBe("silence");
  expect(withTiming(rule, "each")).toEqual({ name: "a.b", conditions: rule.conditions });
  expect(withTiming(rule, "steps")).toMatchObject({
    conditions: [],
    window: "5m",
    sequence: [{ conditions: rule.conditions }, {}],
  });
});

test("a threshold changes what it measures, and keeps the field and the groups", () => {
  const counted = { count: 5, group_by: "raw.a" };
  const distinct = withMeasure(counted, "distinct");
  expect(distinct).toEqual({ count: 5, group_by: "raw.a", distinct: "" });
  expect(withMeasure({ ...distinct, distinct: ["raw.b", "raw.c"] }, "sum")).toEqual({
    group_by: "raw.a",
    sum: "raw.b",
    gte: 100,
  });
  expect(withMeasure({ sum: "raw.b", gt: 7 }, "percentile")).toEqual({ percentile: { of: "raw.b", rank: 95 }, gt: 7 });
  expect(withMeasure({ percentile: { of: "raw.b", rank: 99 }, lt: 7 }, "count")).toEqual({ count: 5 });
  expect(measureOf({ avg: "raw.b", gte: 1 })).toBe("avg");
  expect(withBound({ sum: "raw.b", gte: 7 }, ["gte", "gt"], "gt", 7)).toEqual({ sum: "raw.b", gt: 7 });
  expect(withBound({ sum: "raw.b", lt: 7 }, ["lte", "lt"], undefined, 7)).toEqual({ sum: "raw.b" });
});

test("a step counts events or a part", () => {
  const step = { name: "a", conditions: [{ field: "type", equals: "x" }], count: 2 };
  expect(withInputOf(step, "guessing")).toEqual({ name: "a", count: 2, part: "guessing" });
  expect(withInputOf({ name: "a", part: "guessing" }, undefined)).toHaveProperty("conditions");
});
