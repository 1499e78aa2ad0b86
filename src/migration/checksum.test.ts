import { expect, test } from "vitest";
import { Checksum } from "./checksum.ts";

const of = (...texts: string[]) => {
  const sum = new Checksum();
  for (const text of texts) sum.add(text);
  return sum.value;
};

test("a checksum depends on the rows and how often each is there, not on their order", () => {
  expect(of("a", "b", "c")).toEqual(of("c", "a", "b"));
  expect(of("a", "b")).not.toEqual(of("a", "c"));
  expect(of("a", "a", "b", "b").checksum).not.toBe(of().checksum);
  expect(of("a", "a", "b").checksum).not.toBe(of("a", "b", "b").checksum);
  expect(of()).toEqual({ rows: 0, checksum: "0".repeat(32) });
});
