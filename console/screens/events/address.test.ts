import { expect, test } from "vitest";
import {
  readColumns,
  readFilter,
  readSort,
  toggled,
  withCondition,
  writeColumns,
  writeFilter,
  writeSort,
} from "./address.ts";

test("source, type and severity have parameters of their own", () => {
  const search = {
    search: "ada",
    source: "custom",
    type: undefined,
    severity: "critical,high",
    filter: "raw.user!=root",
  };
  expect(writeFilter(readFilter(search))).toEqual(search);
});

test("what is no severity is left out", () => {
  expect(readFilter({ severity: "urgent,low" }).conditions).toEqual([
    { field: "severity", operator: "=", value: "low" },
  ]);
});

test("the same condition counts once", () => {
  expect(readFilter({ type: "motion", filter: "type=motion" }).conditions).toHaveLength(1);
});

test("a value that is clicked twice is as before", () => {
  const before = readFilter({ filter: "raw.user=ada" });
  expect(toggled(toggled(before, "raw.door", "east", false), "raw.door", "east", false)).toEqual(before);
});

test("filtering a value out ends filtering for it", () => {
  const filter = toggled(readFilter({ type: "motion" }), "type", "motion", true);
  expect(writeFilter(filter)).toMatchObject({ type: undefined, filter: "type!=motion" });
});

test("a clicked value means itself, also with a star in it", () => {
  const filter = toggled(readFilter({}), "raw.user", "a*", false);
  expect(filter.conditions).toEqual([{ field: "raw.user", operator: "=", value: "a\\*" }]);
});

test("comparisons have no opposite to remove", () => {
  const filter = withCondition(readFilter({ filter: "raw.n=5" }), { field: "raw.n", operator: ">", value: "5" });
  expect(filter.conditions).toHaveLength(2);
});

test("columns and order", () => {
  expect(readColumns(undefined)).toEqual(["type"]);
  expect(writeColumns(["type"])).toBeUndefined();
  expect(readColumns(writeColumns([]))).toEqual([]);
  expect(readColumns("user,raw.user,raw.door")).toEqual(["raw.user", "raw.door"]);
  expect(readSort(undefined)).toEqual({ field: "timestamp", isDescending: true });
  expect(writeSort(readSort("-raw.dst_port"))).toBe("-raw.dst_port");
  expect(writeSort(readSort("timestamp"))).toBe("timestamp");
  expect(writeSort(readSort("-timestamp"))).toBeUndefined();
});
