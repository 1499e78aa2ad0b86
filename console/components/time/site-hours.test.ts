import { expect, test } from "vitest";
import { hoursWords, siteHourRanges } from "./site-hours.ts";

const BERLIN = "Europe/Berlin";
const OFFICE = { days: ["mon", "tue", "wed", "thu", "fri"], from: "08:00", to: "18:00" };
const ranges = (now: string, hours = OFFICE, zone = BERLIN) =>
  siteHourRanges(hours, zone, Date.parse(now)).map(({ label, search }) => [
    label,
    search.from?.slice(0, 16),
    search.to?.slice(0, 16),
  ]);

test("during the day: today so far, yesterday, and last night", () => {
  expect(ranges("2026-11-18T11:00:00Z")).toEqual([
    ["Site hours today", "2026-11-18T07:00", "2026-11-18T11:00"],
    ["Site hours yesterday", "2026-11-17T07:00", "2026-11-17T17:00"],
    ["Outside site hours, last night", "2026-11-17T17:00", "2026-11-18T07:00"],
  ]);
});

test("in the evening the time since the hours ended is offered, too", () => {
  expect(ranges("2026-11-18T19:00:00Z").slice(2)).toEqual([
    ["Since the site's hours ended", "2026-11-18T17:00", "2026-11-18T19:00"],
    ["Outside site hours, last night", "2026-11-17T17:00", "2026-11-18T07:00"],
  ]);
});

test("on a Monday the whole weekend lies between the hours", () => {
  const [today, friday, weekend] = ranges("2026-11-16T09:00:00Z");
  expect(today).toEqual(["Site hours today", "2026-11-16T07:00", "2026-11-16T09:00"]);
  expect(friday).toEqual(["Site hours on Fri 13 Nov", "2026-11-13T07:00", "2026-11-13T17:00"]);
  expect(weekend).toEqual(["Outside site hours until Mon 16 Nov", "2026-11-13T17:00", "2026-11-16T07:00"]);
});

test("the clocks change in the night, and the hours stay where the clocks of the site are", () => {
  // 25 October 2026: an hour twice. 29 March 2026: an hour less.
  const daily = { ...OFFICE, days: ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] };
  expect(ranges("2026-10-25T12:00:00Z", daily)[2]).toEqual([
    "Outside site hours, last night",
    "2026-10-24T16:00",
    "2026-10-25T07:00",
  ]);
  expect(ranges("2026-03-29T12:00:00Z", daily)[2]).toEqual([
    "Outside site hours, last night",
    "2026-03-28T17:00",
    "2026-03-29T06:00",
  ]);
});

test("hours past midnight belong to the day on which they begin, and whole days leave no gap", () => {
  const nights = { days: ["mon", "tue"], from: "22:00", to: "06:00" };
  expect(ranges("2026-11-18T03:00:00Z", nights)[0]).toEqual([
    "Site hours yesterday",
    "2026-11-17T21:00",
    "2026-11-18T03:00",
  ]);
  const always = { days: ["mon", "tue", "wed", "thu", "fri", "sat", "sun"], from: "00:00", to: "24:00" };
  expect(ranges("2026-11-18T03:00:00Z", always)).toHaveLength(2);
  expect(ranges("2026-11-18T03:00:00Z", { ...OFFICE, days: [] })).toEqual([]);
});

test("hours in words", () => {
  expect(hoursWords(OFFICE)).toBe("Mon to Fri, 08:00 to 18:00");
  expect(hoursWords({ days: ["sat", "sun"], from: "00:00", to: "24:00" })).toBe("Sat, Sun");
  expect(hoursWords({ days: ["mon", "wed", "fri"], from: "22:00", to: "06:00" })).toBe("Mon, Wed, Fri, 22:00 to 06:00");
});
