import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parseRangeText, readRange } from "./range.ts";
import { fromWallClock, isoWithOffset, startOfDayMs, zoneOffsetMs } from "./zone.ts";

const NOW_MS = Date.parse("2026-11-17T18:30:00Z");
const BERLIN = "Europe/Berlin";
const ZONES = ["UTC", BERLIN, "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia"];
const HOUR_MS = 3_600_000;

test("a length, a named day and two moments are understood as typed", () => {
  const parse = (text: string) => parseRangeText(text, BERLIN, NOW_MS);
  expect(parse("3h")).toMatchObject({ range: "3h" });
  expect(parse("Last 2 d")).toMatchObject({ range: "2d" });
  expect(parse("yesterday 18:00 for 2h")).toMatchObject({
    from: "2026-11-16T17:00:00.000Z",
    to: "2026-11-16T19:00:00.000Z",
  });
  expect(parse("2026-11-14 19:40 to 2026-11-14 20:10")).toMatchObject({ from: "2026-11-14T18:40:00.000Z" });
  expect(parse("today")).toMatchObject({ from: "2026-11-16T23:00:00.000Z", to: "2026-11-17T18:30:00.000Z" });
});

test("a pasted time keeps its own zone", () => {
  const pasted = "2026-11-14T19:40:00+05:30/2026-11-14T15:00:00Z";
  expect(parseRangeText(pasted, BERLIN, NOW_MS)).toMatchObject({
    from: "2026-11-14T14:10:00.000Z",
    to: "2026-11-14T15:00:00.000Z",
  });
});

test("a day is shown whole, and one pasted moment with what was around it", () => {
  const parse = (text: string) => parseRangeText(text, BERLIN, NOW_MS);
  expect(parse("2026-11-14")).toMatchObject({ from: "2026-11-13T23:00:00.000Z", to: "2026-11-14T23:00:00.000Z" });
  // The day on which the clocks change has 25 hours.
  expect(parse("2026-10-25")).toMatchObject({ from: "2026-10-24T22:00:00.000Z", to: "2026-10-25T23:00:00.000Z" });
  expect(parse("2026-11-14T19:40:00+05:30")).toMatchObject({
    from: "2026-11-14T13:55:00.000Z",
    to: "2026-11-14T14:25:00.000Z",
  });
  expect(parse("2026-11-14T19:40:00+05:30 for 2h")).toMatchObject({
    from: "2026-11-14T14:10:00.000Z",
    to: "2026-11-14T16:10:00.000Z",
  });
});

test("what cannot be understood is no range", () => {
  for (const text of [
    "",
    "soon",
    "yesterday 25:00 for 2h",
    "today to yesterday",
    "0h",
    "2026-11-14 for 1y",
    "2026-02-31",
    "2026-11-14 25:00",
  ]) {
    expect(parseRangeText(text, BERLIN, NOW_MS), text).toBeUndefined();
  }
});

test("an address with a wrong range shows the default", () => {
  expect(readRange({ range: "7 parsecs" })).toEqual({});
  expect(readRange({ from: "2026-11-15", to: "2026-11-14" })).toEqual({});
  expect(readRange({ from: "2026-11-14", to: "2026-11-15" })).toEqual({
    from: "2026-11-14T00:00:00.000Z",
    to: "2026-11-15T00:00:00.000Z",
  });
});

test("a moment on the wall clock is the moment again, in every zone and across changes of the clocks", () => {
  const moment = fc.integer({ min: Date.parse("2025-01-01"), max: Date.parse("2028-01-01") });
  fc.assert(
    fc.property(moment, fc.constantFrom(...ZONES), (atMs, zone) => {
      const back = fromWallClock(atMs + zoneOffsetMs(atMs, zone), zone);
      // Where clocks show an hour twice, the first of the two is meant.
      expect([0, HOUR_MS / 2, HOUR_MS]).toContain(atMs - back);
      expect(Date.parse(isoWithOffset(atMs, zone))).toBe(atMs);
      const dayMs = startOfDayMs(atMs, zone);
      expect(dayMs).toBeLessThanOrEqual(atMs);
      expect(atMs - dayMs).toBeLessThan(25 * HOUR_MS);
    }),
  );
});
