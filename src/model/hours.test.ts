import { describe, expect, test } from "vitest";
import { isLocalHours, parseHours, withinHours, zoneOffset } from "./hours.ts";

const within = (text: string, time: string): boolean => {
  const hours = parseHours(text);
  if ("fault" in hours) throw new Error(hours.fault);
  return withinHours(hours, Date.parse(time));
};

describe("hours", () => {
  test.each([
    // 2026-11-13 was a Friday.
    ["08:00-18:00", "2026-11-13T08:00:00Z", true],
    ["08:00-18:00", "2026-11-13T17:59:59.999Z", true],
    ["08:00-18:00", "2026-11-13T18:00:00Z", false],
    ["08:00-18:00", "2026-11-13T07:59:59.999Z", false],
    ["22:00-06:00", "2026-11-13T23:30:00Z", true],
    ["22:00-06:00", "2026-11-14T05:59:59Z", true],
    ["22:00-06:00", "2026-11-14T06:00:00Z", false],
    ["22:00-24:00", "2026-11-13T23:59:59Z", true],
    ["22:00-24:00", "2026-11-14T00:00:00Z", false],
    ["sat-sun", "2026-11-14T12:00:00Z", true],
    ["sat-sun", "2026-11-16T00:00:00Z", false],
    ["fri", "2026-11-13T00:00:00Z", true],
    ["fri", "2026-11-12T23:59:59Z", false],
    // Across the end of the week.
    ["sat-mon", "2026-11-15T12:00:00Z", true],
    ["sat-mon", "2026-11-16T12:00:00Z", true],
    ["sat-mon", "2026-11-17T12:00:00Z", false],
    // A night belongs to the day on which it starts.
    ["fri 22:00-06:00", "2026-11-14T05:00:00Z", true],
    ["fri 22:00-06:00", "2026-11-13T05:00:00Z", false],
    ["sun 22:00-06:00", "2026-11-16T01:00:00Z", true],
    ["mon-fri 08:00-18:00 Europe/Berlin", "2026-11-13T07:00:00Z", true],
    ["mon-fri 08:00-18:00 Europe/Berlin", "2026-11-13T17:00:00Z", false],
    // After midnight it is another day.
    ["sat Asia/Tokyo", "2026-11-13T15:00:00Z", true],
    ["sat Asia/Tokyo", "2026-11-13T14:59:59Z", false],
    ["00:00-01:00 Asia/Kolkata", "2026-11-13T18:30:00Z", true],
    // Dates before 1970 work the same.
    ["thu 00:00-01:00", "1970-01-01T00:30:00Z", true],
    ["wed 23:00-24:00", "1969-12-31T23:30:00Z", true],
  ])("%s contains %s: %s", (hours, time, wanted) => {
    expect(within(hours, time)).toBe(wanted);
  });

  test("hours follow the wall clock across daylight saving changes", () => {
    // Berlin went to summer time on 2026-03-29 at 01:00 UTC, and back on 2026-10-25 at 01:00 UTC.
    expect(within("03:00-04:00 Europe/Berlin", "2026-03-29T01:00:00Z")).toBe(true);
    expect(within("02:00-03:00 Europe/Berlin", "2026-03-29T00:59:59Z")).toBe(false);
    expect(within("01:00-02:00 Europe/Berlin", "2026-03-29T00:59:59Z")).toBe(true);
    expect(within("02:00-03:00 Europe/Berlin", "2026-10-25T00:30:00Z")).toBe(true);
    expect(within("02:00-03:00 Europe/Berlin", "2026-10-25T01:30:00Z")).toBe(true);
    expect(within("02:00-03:00 Europe/Berlin", "2026-10-25T02:00:00Z")).toBe(false);
  });

  test("the offset of a zone depends on the time", () => {
    expect(zoneOffset("Europe/Berlin", Date.UTC(2026, 6, 1))).toBe(7_200_000);
    expect(zoneOffset("Europe/Berlin", Date.UTC(2026, 0, 1))).toBe(3_600_000);
    expect(zoneOffset("America/St_Johns", Date.UTC(2026, 0, 1))).toBe(-12_600_000);
    expect(zoneOffset("UTC", 0)).toBe(0);
  });

  test("zone names ignore case and are cached under one spelling", () => {
    for (const spelled of ["Europe/Berlin", "europe/berlin", "EUROPE/BERLIN", "eUROPE/bERLIN"]) {
      expect(parseHours(`sat ${spelled}`)).toMatchObject({ zone: "Europe/Berlin" });
      expect(zoneOffset(spelled, Date.UTC(2026, 0, 1))).toBe(3_600_000);
    }
    expect(parseHours("sat utc")).toMatchObject({ zone: "UTC" });
  });

  test("every zone has an offset, even beyond the size of the cache", () => {
    for (const zone of Intl.supportedValuesOf("timeZone")) {
      expect(Math.abs(zoneOffset(zone, Date.UTC(2026, 0, 1)))).toBeLessThanOrEqual(14 * 3_600_000);
    }
  });

  test.each([
    ["", "days, hours"],
    ["Europe/Berlin", "days, hours"],
    ["25:00-26:00", "00:00 to 24:00"],
    ["08:60-09:00", "00:00 to 24:00"],
    ["08:00-24:01", "00:00 to 24:00"],
    ["moo", "days are"],
    ["mon-xyz 08:00-09:00", "days are"],
    ["08:00-09:00 Mars/Olympus", "not a time zone"],
    ["8:00-9:00", "days, hours"],
  ])("%s is refused with an explanation", (text, words) => {
    expect(parseHours(text)).toEqual({ fault: expect.stringContaining(words) });
  });
});

test("hours of a site have no zone of their own", () => {
  for (const text of ["mon-fri 08:00-18:00", "22:00-06:00", "sat-sun", "mon 00:00-24:00"]) {
    expect(isLocalHours(text), text).toBe(true);
  }
  for (const text of ["", "mon-fri 08:00-18:00 Europe/Berlin", "sat utc", "moon 08:00-18:00", "25:00-26:00", "08:00"]) {
    expect(isLocalHours(text), text).toBe(false);
  }
});
