import { describe, expect, test } from "vitest";
import { readAnyTime, readWordyTime, scanTime } from "./device-times.ts";

const context = { nowMs: Date.parse("2026-11-15T20:00:00Z"), timezone: "UTC" };
const iso = (ms: number | null | undefined) => (ms === null || ms === undefined ? null : new Date(ms).toISOString());

describe("times of devices", () => {
  test.each([
    ["2026-08-29T01:29:30.869Z", "2026-08-29T01:29:30.869Z"],
    ["2017-03-25T15:06:10.280807-0600", "2017-03-25T21:06:10.280Z"],
    ["2026-08-29T01:29:30+02:00", "2026-08-28T23:29:30.000Z"],
    ["2026-08-29T01:29:30+02", "2026-08-28T23:29:30.000Z"],
    ["2026-08-29 01:29:30", "2026-08-29T01:29:30.000Z"],
    ["2026/08/29 01:29:30", "2026-08-29T01:29:30.000Z"],
    ["2026-08-29 T01:29:30Z", "2026-08-29T01:29:30.000Z"],
    ["2026-08-29T 01:29:30Z", "2026-08-29T01:29:30.000Z"],
    ["2026-08-29T01:29:30 +0100", "2026-08-29T00:29:30.000Z"],
    ["2026-08-29T01:29:30,5 Z", "2026-08-29T01:29:30.500Z"],
    ["2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000Z"],
    ["2026-06-30T23:59:60Z", "2026-06-30T23:59:59.000Z"],
    ["1788011392204", "2026-08-29T13:49:52.204Z"],
    ["1788011392", "2026-08-29T13:49:52.000Z"],
    ["Nov 15 19:59:59", "2026-11-15T19:59:59.000Z"],
    ["Nov  5 19:59:59.250", "2026-11-05T19:59:59.250Z"],
    ["Aug 28, 2026 at 9:29:29.569 PM", "2026-08-28T21:29:29.569Z"],
    ["Aug 28, 2026 at 12:00:00 AM", "2026-08-28T00:00:00.000Z"],
    ["Aug 28, 2026, 21:29:29", "2026-08-28T21:29:29.000Z"],
    ["Nov 15 2026 19:59:59 GMT", "2026-11-15T19:59:59.000Z"],
    ["Nov 15 2026 19:59:59.250 +0200", "2026-11-15T17:59:59.250Z"],
    ["Nov 15 19:59:59 -03:30", "2026-11-15T23:29:59.000Z"],
    ["Sun Nov 15 19:59:59 2026", "2026-11-15T19:59:59.000Z"],
    ["15/Nov/2026:19:59:59 +0200", "2026-11-15T17:59:59.000Z"],
    ["15/Nov/2026:19:59:59.250", "2026-11-15T19:59:59.250Z"],
    ["15-Nov-2026 19:59:59", "2026-11-15T19:59:59.000Z"],
    ["2026-11-15 19:59:59 UTC", "2026-11-15T19:59:59.000Z"],
  ])("%s", (text, expected) => expect(iso(readAnyTime(text, context))).toBe(expected));

  test.each([
    "",
    "yesterday",
    "2026-02-30T00:00:00Z",
    "2026-08-29",
    "2026-08-29T25:00:00Z",
    "not-a-timestamp",
    "Foo 12 10:10:10",
    "Sun Foo 12 10:10:10",
    "Nov 15 2026 19:59:59 Foo",
    "Nov 15 2026 19:59:59 GMTX",
  ])("%j is not a time", (text) => expect(readAnyTime(text, context)).toBeNull());

  test.each([
    [1_763_364_467, "2025-11-17T07:27:47.000Z"],
    [1_763_364_467.123456, "2025-11-17T07:27:47.123Z"],
    [1_763_364_467_123, "2025-11-17T07:27:47.123Z"],
    [1_763_364_467_123_456, "2025-11-17T07:27:47.123Z"],
    [1_763_364_467_123_456_789n, "2025-11-17T07:27:47.123Z"],
    ["1763364467123456789", "2025-11-17T07:27:47.123Z"],
  ])("%s is a time since 1970, in the unit given by its size", (value, expected) =>
    expect(iso(readAnyTime(value, context))).toBe(expected),
  );

  test.each([0, -5, Number.NaN, Number.POSITIVE_INFINITY, 1e30, true, null, undefined, {}])(
    "%s is not a time",
    (value) => expect(readAnyTime(value, context)).toBeNull(),
  );
});

describe("a time without a year", () => {
  const at = (text: string, now: string) => iso(scanTime(text, 0, { nowMs: Date.parse(now), timezone: "UTC" })?.ms);
  test.each([
    ["Dec 31 23:59:58", "2027-01-01T00:00:10Z", "2026-12-31T23:59:58.000Z"],
    ["Jan  1 00:00:03", "2026-12-31T23:59:50Z", "2027-01-01T00:00:03.000Z"],
    ["Feb 29 10:00:00", "2026-11-15T20:00:00Z", "2024-02-29T10:00:00.000Z"],
    ["Feb 29 10:00:00", "2028-02-29T20:00:00Z", "2028-02-29T10:00:00.000Z"],
    ["Nov 14 10:00:00", "2026-11-15T20:00:00Z", "2026-11-14T10:00:00.000Z"],
    ["Dec 30 10:00:00", "2026-11-15T20:00:00Z", "2025-12-30T10:00:00.000Z"],
    ["May 14 12:25:22", "2026-11-15T20:00:00Z", "2026-05-14T12:25:22.000Z"],
    ["Feb 29 12:00:00", "2028-03-01T00:00:00Z", "2028-02-29T12:00:00.000Z"],
  ])("%s, read at %s", (text, now, expected) => expect(at(text, now)).toBe(expected));
});

test("a time without a zone is in the site's zone, in summer and in winter", () => {
  const berlin = { ...context, timezone: "Europe/Berlin" };
  expect(iso(readAnyTime("2026-07-01 12:00:00", berlin))).toBe("2026-07-01T10:00:00.000Z");
  expect(iso(readAnyTime("2026-12-01 12:00:00", berlin))).toBe("2026-12-01T11:00:00.000Z");
  expect(iso(readAnyTime("2026-07-01T12:00:00Z", berlin))).toBe("2026-07-01T12:00:00.000Z");
  expect(iso(readAnyTime("Jul 01 2026 12:00:00 GMT", berlin))).toBe("2026-07-01T12:00:00.000Z");
  expect(iso(readWordyTime("Jul 1, 2026 at 12:00:00 PM", berlin))).toBe("2026-07-01T10:00:00.000Z");
});
