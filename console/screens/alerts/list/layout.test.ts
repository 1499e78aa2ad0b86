import { describe, expect, test } from "vitest";
import { layOut, type Segment } from "./layout.ts";
import { isWhole, rowsIn, unread, withPage } from "./pages.ts";

const PER_PAGE = 100;

describe("pages of a long list", () => {
  test("take their place before they are read", () => {
    const first = unread(250, PER_PAGE);
    expect(rowsIn(first)).toBe(100);
    const second = withPage(first, 0, { rows: 100, next: "a", total: 250 }, PER_PAGE);
    expect([rowsIn(second), isWhole(second)]).toEqual([200, false]);
    const third = withPage(second, 1, { rows: 100, next: "b", total: 250 }, PER_PAGE);
    expect(third.marks[2]).toEqual({ after: "b", size: 50, isRead: false });
    expect(isWhole(withPage(third, 2, { rows: 50, next: null, total: 250 }, PER_PAGE))).toBe(true);
  });

  test("keep their length when they are read again", () => {
    const read = withPage(unread(100, PER_PAGE), 0, { rows: 100, next: null, total: 100 }, PER_PAGE);
    expect(withPage(read, 0, { rows: 97, next: null, total: 97 }, PER_PAGE)).toBe(read);
  });

  test("of an empty list are one without rows", () => {
    expect(rowsIn(withPage(unread(0, PER_PAGE), 0, { rows: 0, next: null, total: 0 }, PER_PAGE))).toBe(0);
  });
});

describe("the places of rows", () => {
  const pages = (size: number) =>
    withPage(unread(size, PER_PAGE), 0, { rows: size, next: null, total: size }, PER_PAGE);
  const segments: Segment[] = [
    { rule: "a", isOpen: true, hasHead: true, freshIds: ["new"], pages: pages(3) },
    { rule: "b", isOpen: false, hasHead: true, freshIds: [], pages: pages(50) },
    { rule: "c", isOpen: true, hasHead: false, freshIds: [], pages: pages(1) },
  ];

  test("are heads, fresh alerts and alerts of pages; a folded group is its head", () => {
    const layout = layOut(segments);
    const places = Array.from({ length: layout.count + 1 }, (_, index) => layout.at(index));
    expect(places).toEqual([
      { kind: "head", rule: "a" },
      { kind: "fresh", rule: "a", id: "new" },
      { kind: "paged", rule: "a", page: 0, row: 0 },
      { kind: "paged", rule: "a", page: 0, row: 1 },
      { kind: "paged", rule: "a", page: 0, row: 2 },
      { kind: "head", rule: "b" },
      { kind: "paged", rule: "c", page: 0, row: 0 },
      undefined,
    ]);
  });

  test("are found again", () => {
    const layout = layOut(segments);
    expect([layout.headOf("b"), layout.startOf("c", 0), layout.freshAt("new")]).toEqual([5, 6, 1]);
    expect([layout.headOf("c"), layout.startOf("b", 0), layout.freshAt("old")]).toEqual([-1, -1, -1]);
  });

  test("of a hundred thousand rows are found without going through them", () => {
    let long = unread(100_000, PER_PAGE);
    for (let page = 0; page < 1000; page++) {
      const next = page === 999 ? null : `cursor ${page}`;
      long = withPage(long, page, { rows: 100, next, total: 100_000 }, PER_PAGE);
    }
    const layout = layOut([{ rule: null, isOpen: true, hasHead: false, freshIds: [], pages: long }]);
    expect(layout.count).toBe(100_000);
    expect(layout.at(77_777)).toEqual({ kind: "paged", rule: null, page: 777, row: 77 });
  });
});
