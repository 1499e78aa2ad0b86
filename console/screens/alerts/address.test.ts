import { describe, expect, test } from "vitest";
import { readList, readStoredView, toFilters, viewSearch, writeFilters } from "./address.ts";

const RANGE = { fromMs: Date.parse("2026-11-10T00:00:00Z"), toMs: undefined };

describe("the list that an address shows", () => {
  test("is the first view without anything", () => {
    const { view, filters, grouping, isChanged } = readList({}, []);
    expect(view?.id).toBe("todo");
    expect(filters).toEqual({ status: "open", severity: "critical,high" });
    expect([grouping, isChanged]).toEqual(["rule", false]);
  });

  test("is exactly what filters without a view say", () => {
    const { view, filters } = readList({ status: "open" }, []);
    expect(view).toBeUndefined();
    expect(filters).toEqual({ status: "open" });
  });

  test("adds filters to a view, and takes away what is any", () => {
    const { filters, isChanged } = readList({ view: "todo", severity: "any", search: "door" }, []);
    expect(filters).toEqual({ status: "open", search: "door" });
    expect(isChanged).toBe(true);
  });

  test("leaves out a grouping and an order that do not exist", () => {
    const { grouping, sort } = readList({ view: "todo", group: "moon", sort: "moon" }, []);
    expect([grouping, sort]).toEqual(["rule", "severity"]);
  });
});

describe("a change of a filter", () => {
  const state = readList({ view: "todo" }, []);

  test.each([
    ["taken away", "severity", undefined, { severity: "any" }],
    ["added", "tag", "vip", { tag: "vip" }],
    ["set back to that of the view", "severity", "critical,high", { severity: undefined }],
    ["taken away that the view does not have", "tag", undefined, { tag: undefined }],
  ] as const)("%s", (_how, name, text, expected) => expect(writeFilters(state, { [name]: text })).toEqual(expected));

  test("that takes the last one away shows everything", () => {
    const written = writeFilters(readList({ status: "open" }, []), { status: undefined });
    expect(readList(written, []).filters).toEqual({});
  });
});

test("a stored view is read as it was written", () => {
  const state = readList({ view: "all", tag: "vip", group: "none", sort: "event_count" }, []);
  const stored = {
    id: "view_1",
    name: "VIP",
    search: viewSearch(state),
    density: "compact" as const,
    grouping: state.grouping,
  };
  const again = readList({ view: "view_1" }, [readStoredView(stored)]);
  expect(again).toMatchObject({ filters: state.filters, grouping: "none", sort: "event_count", isChanged: false });
  const legacy = readStoredView({ ...stored, search: `${stored.search}&group=none`, grouping: null });
  expect(legacy.grouping).toBe("none");
});

test("a view is changed by another order, grouping or height of rows, too", () => {
  const view = readStoredView({
    id: "view_1",
    name: "VIP",
    search: "tag=vip&sort=event_count",
    density: "compact",
    grouping: "none",
  });
  const changedBy = (search: Record<string, string>) => readList({ view: "view_1", ...search }, [view]).isChanged;
  expect(changedBy({})).toBe(false);
  expect(changedBy({ sort: "event_count", group: "none", density: "compact" })).toBe(false);
  for (const [name, value] of [
    ["sort", "severity"],
    ["group", "rule"],
    ["density", "comfortable"],
  ] as const) {
    expect(changedBy({ [name]: value }), name).toBe(true);
  }
});

describe("filters for the service", () => {
  test("name the reader", () => {
    expect(toFilters({ assignee: "me,none" }, RANGE, "eva@example.com")).toEqual({
      assignee: ["eva@example.com", "none"],
      time: "overlap",
      from: "2026-11-10T00:00:00.000Z",
    });
  });

  test("are none while nobody knows who the reader is", () => {
    expect(toFilters({ assignee: "me" }, RANGE, undefined)).toBeUndefined();
  });

  test("keep the comma of an entity", () => {
    expect(toFilters({ entity: "door:Hall, east" }, RANGE, undefined)?.entity).toEqual(["door:Hall, east"]);
  });
});
