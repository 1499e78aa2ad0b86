import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { DigestCache } from "./digest-cache.ts";

test("an entry stays until it is evicted or the cache is cleared", () => {
  const remembered = new DigestCache<number>(2);
  remembered.set("first", 1);
  remembered.set("second", 2);
  expect(remembered.get("first")).toBe(1);
  remembered.set("third", 3);
  expect(["first", "second", "third"].map((key) => remembered.get(key))).toEqual([1, undefined, 3]);
  remembered.clear();
  expect(remembered.get("third")).toBeUndefined();
});

test("keys that differ only in their last character have separate entries, however long they are", () => {
  const remembered = new DigestCache<number>(10);
  const long = "x".repeat(1_000_000);
  remembered.set(`${long}a`, 1);
  remembered.set(`${long}b`, 2);
  expect(remembered.get(`${long}a`)).toBe(1);
  expect(remembered.get(`${long}b`)).toBe(2);
  expect(remembered.get(long)).toBeUndefined();
});

test("a hundred keys of a megabyte each take no megabytes", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const remembered = new DigestCache<number>(1000);
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let n = 0; n < 100; n++) remembered.set(JSON.stringify([n, "x".repeat(1_000_000)]), n);
  collect();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(20_000_000);
  expect(remembered.get(JSON.stringify([99, "x".repeat(1_000_000)]))).toBe(99);
});
