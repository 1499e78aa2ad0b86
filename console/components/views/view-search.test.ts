import { expect, test } from "vitest";
import { isSameSearch, pickSearch, readViewSearch, writeViewSearch } from "./view-search.ts";

const NAMES = ["search", "filter", "columns"];

test("a view keeps the named parameters, and is read as it was written", () => {
  const search = { search: "a & b", filter: "raw.user=1,2", columns: "type,raw.user", range: "7d", view: "view_1" };
  const written = writeViewSearch(search, NAMES);
  expect(written.columns).toEqual(["type", "raw.user"]);
  expect(written.search).not.toContain("range");
  expect(isSameSearch(readViewSearch(written, NAMES), pickSearch(search, NAMES), NAMES)).toBe(true);
});

test("no columns at all are not those of the screen", () => {
  expect(writeViewSearch({ columns: "none" }, NAMES)).toEqual({ search: "", columns: [] });
  expect(readViewSearch({ search: "", columns: [] }, NAMES)).toEqual({ columns: "none" });
  expect(readViewSearch({ search: "", columns: null }, NAMES)).toEqual({});
});

test("what a screen does not know is not read from a view", () => {
  expect(readViewSearch({ search: "search=x&moon=1&range=7d", columns: ["type"] }, ["search"])).toEqual({
    search: "x",
  });
});
