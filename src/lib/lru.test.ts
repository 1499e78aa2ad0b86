import { expect, test } from "vitest";
import { createLruCache } from "./lru.ts";

test("the cache keeps its limit of entries and evicts the least recently used", () => {
  const table = createLruCache<string, number>(3);
  for (const [n, name] of ["a", "b", "c"].entries()) table.set(name, n);
  table.get("a");
  table.set("c", 7);
  table.set("d", 8);
  expect([...table.keys()].sort()).toEqual(["a", "c", "d"]);
  table.delete("c");
  table.set("e", 9);
  expect([...table.keys()].sort()).toEqual(["a", "d", "e"]);
  for (let n = 0; n < 1000; n++) table.set(`more ${n}`, n);
  expect(table.size).toBe(3);
});
