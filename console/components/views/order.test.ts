import { expect, test } from "vitest";
import { moved } from "./order.ts";

test.each([
  ["a", 2, "bca"],
  ["c", 0, "cab"],
  ["b", 1, "abc"],
])("%s moved to %i", (item, to, expected) => expect(moved([..."abc"], item, to).join("")).toBe(expected));
