import { expect, test } from "vitest";
import { byteSize, percent, timeSpan, ZoneClock } from "./report-words.ts";

const HOUR = 3_600_000;

test.each([
  [0, "0 B"],
  [999, "999 B"],
  [1000, "1.0 kB"],
  [9949, "9.9 kB"],
  [9950, "10 kB"],
  [999_499, "999 kB"],
  [999_500, "1.0 MB"],
  [21_400_000_000, "21 GB"],
  [5e18, "5000 PB"],
])("%d bytes are %s", (bytes, text) => expect(byteSize(bytes)).toBe(text));

test.each([
  [0.4, "0 s"],
  [59.4, "59 s"],
  [59.6, "1 min"],
  [3599, "1 h"],
  [8100, "2 h 15 min"],
  [86_399, "1 d"],
  [273_600, "3 d 4 h"],
])("%d seconds are %s", (seconds, text) => expect(timeSpan(seconds)).toBe(text));

test("a share that is not zero does not look like it", () => {
  expect([0, 0.001, 0.25, 1].map(percent)).toEqual(["0%", "under 1%", "25%", "100%"]);
});

test("a range names its days, and both offsets if the clocks change in it", () => {
  const clock = new ZoneClock("Europe/Berlin");
  const [from, to] = [Date.UTC(2026, 9, 24, 20), Date.UTC(2026, 9, 25, 8)];
  expect(clock.range(from, to)).toBe("Sat 24 Oct 2026, 22:00 to Sun 25 Oct 2026, 09:00");
  expect(clock.zoneIn(from, to)).toBe("Europe/Berlin, UTC+2, then UTC+1");
  expect(new ZoneClock("America/St_Johns").zoneIn(to, to + 1)).toBe("America/St_Johns, UTC−2:30");
});

test("the marks of an axis are round in local time, also where the clocks change", () => {
  const clock = new ZoneClock("Europe/Berlin");
  const from = Date.UTC(2026, 9, 24, 10, 30);
  const marks = clock.marks(from, from + 36 * HOUR, 6 * HOUR);
  expect(marks.map((ms) => clock.moment(ms))).toEqual([
    "24 Oct 18:00",
    "25 Oct 00:00",
    "25 Oct 06:00",
    "25 Oct 12:00",
    "25 Oct 18:00",
  ]);
  expect(clock.isMidnight(marks[1]!)).toBe(true);
});
