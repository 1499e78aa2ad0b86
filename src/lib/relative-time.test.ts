import { expect, test } from "vitest";
import { parseRelativeTime } from "./relative-time.ts";

const NOW = Date.UTC(2026, 10, 15, 12);

test.each([
  ["now", 0],
  ["now-0s", 0],
  ["now-30s", 30_000],
  ["now-15m", 15 * 60_000],
  ["now-24h", 24 * 3_600_000],
  ["now-7d", 7 * 86_400_000],
  ["now-2w", 14 * 86_400_000],
])("%s is %i ms ago", (text, ago) => {
  expect(parseRelativeTime(text, NOW)).toBe(NOW - ago);
});

test.each([
  "",
  "Now",
  "now ",
  "now-",
  "now-1",
  "now-1y",
  "now-1M",
  "now+1h",
  "now-1.5h",
  "now--1h",
  "-1h",
  "now-3000w",
])("%j is not a relative time", (text) => {
  expect(parseRelativeTime(text, NOW)).toBeUndefined();
});
