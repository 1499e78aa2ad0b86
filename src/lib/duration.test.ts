import { expect, test } from "vitest";
import { formatDuration } from "./duration.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

test.each([
  [0, "0s"],
  [499, "0s"],
  [45 * SECOND, "45s"],
  [59.4 * SECOND, "59s"],
  [59.6 * SECOND, "1m"],
  [12 * MINUTE + 20 * SECOND, "12m"],
  [59 * MINUTE + 40 * SECOND, "1h 0m"],
  [2 * HOUR + 15 * MINUTE, "2h 15m"],
  [23 * HOUR + 59 * MINUTE + 40 * SECOND, "1d 0h"],
  [3 * DAY + 4 * HOUR + 10 * MINUTE, "3d 4h"],
  [400 * DAY, "400d 0h"],
])("%d milliseconds are %s", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});
