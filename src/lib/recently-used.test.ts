import { expect, test } from "vitest";
import { recentlyUsed } from "./recently-used.ts";

test("so many entries are kept, and the one that was used longest ago goes first", () => {
  const table = recentlyUsed<string, number>(3);
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
