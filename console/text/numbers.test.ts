import { expect, test } from "vitest";
import { bytesPerSecond, short } from "./numbers.ts";

test("numbers are short, and a trickle is not nothing", () => {
  expect([0, 1, 999, 1000, 12_345, 123_456, 5e9].map(short)).toEqual([
    "0",
    "1",
    "999",
    "1 k",
    "12.3 k",
    "123 k",
    "5 G",
  ]);
  expect([0, 0.0122, 0.5, 1.4, 884_000].map(bytesPerSecond)).toEqual([
    "0 B/s",
    "0.0122 B/s",
    "0.5 B/s",
    "1 B/s",
    "884 kB/s",
  ]);
});
