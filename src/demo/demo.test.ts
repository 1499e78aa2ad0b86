import { isDeepStrictEqual } from "node:util";
import { expect, test } from "vitest";
import { DAY_MS } from "../lib/time.ts";
import { CLASSES, SEVERITIES, sourceNames, type EventDraft } from "../model/event.ts";
import { typeSchema } from "../model/event-schema.ts";
import { demoEvents, type DemoEventsOptions } from "./demo.ts";
import { randomFrom } from "./random.ts";
import { makeSite } from "./site.ts";

const to = Date.UTC(2026, 10, 15, 14, 30);
const week: DemoEventsOptions = { seed: 7, from: to - 7 * DAY_MS, to, count: 20_000, platform: "yard" };
const events = [...demoEvents(week)];

const where = (test: (event: EventDraft) => boolean) => events.filter(test);

test("the same options give the same events, another seed gives others", () => {
  const first = JSON.stringify([...demoEvents({ ...week, count: 2000 })]);
  expect(JSON.stringify([...demoEvents({ ...week, count: 2000 })])).toBe(first);
  expect(JSON.stringify([...demoEvents({ ...week, count: 2000, seed: 8 })])).not.toBe(first);
});

test.each([0, 1, 10, 999, 20_000])("a demo of %i events has exactly as many", (count) => {
  expect([...demoEvents({ ...week, count })]).toHaveLength(count);
});

test("events are in chronological order, within the range", () => {
  const times = events.map(({ timestampMs }) => timestampMs);
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  expect(times[0]).toBeGreaterThanOrEqual(week.from);
  expect(times.at(-1)).toBeLessThan(week.to);
});

test("every event is valid", () => {
  const sources = sourceNames("yard");
  const invalid = where(
    ({ type, source, severity, class: eventClass, timestampMs, raw }) =>
      !typeSchema.safeParse(type).success ||
      !sources.includes(source) ||
      !SEVERITIES.includes(severity) ||
      !CLASSES.includes(eventClass) ||
      !Number.isInteger(timestampMs) ||
      !isDeepStrictEqual(JSON.parse(JSON.stringify(raw)), raw),
  );
  expect(invalid).toEqual([]);
});

test("all five sources, all severities and all classes occur", () => {
  expect(new Set(events.map(({ source }) => source))).toEqual(new Set(sourceNames("yard")));
  expect(new Set(events.map(({ severity }) => severity))).toEqual(new Set(SEVERITIES));
  expect(new Set(events.map((event) => event.class))).toEqual(new Set(CLASSES));
});

test("there is more activity by day than at night, and on Friday than on Saturday", () => {
  const granted = where(({ type }) => type === "access_granted").map(({ timestampMs }) => new Date(timestampMs));
  const inHours = (from: number, to: number) =>
    granted.filter((date) => date.getUTCHours() >= from && date.getUTCHours() < to).length;
  expect(inHours(9, 15)).toBeGreaterThan(5 * inHours(0, 6));
  const on = (day: number) => granted.filter((date) => date.getUTCDay() === day).length;
  expect(on(5)).toBeGreaterThan(1.5 * on(6));
});

test("the scenarios are included: a brute-forced password, a port scan, an unknown device, toll fraud", () => {
  const from = (ip: string) => where(({ raw }) => raw["src_ip"] === ip).map(({ type }) => type);
  expect(from("203.0.113.66").slice(-3)).toEqual(["admin_login", "config_changed", "config_changed"]);
  expect(from("203.0.113.66").filter((type) => type === "login_failure").length).toBeGreaterThan(100);
  expect(from("198.51.100.23").at(-1)).toBe("ids_alert");
  expect(from("10.20.3.240")).toEqual(["client_connected", "dhcp_lease", "dns_query", "ids_alert"]);
  expect(from("192.0.2.199").filter((type) => type === "call_ended")).toHaveLength(36);
});

test("every public address is reserved for documentation, and is enriched", () => {
  const outside = where(({ raw }) => typeof raw["src_ip"] === "string" && !raw["src_ip"].startsWith("10."));
  const invalid = outside.filter(
    ({ raw, enrichment }) =>
      !/^(192\.0\.2|198\.51\.100|203\.0\.113)\.|^2001:db8:/.test(String(raw["src_ip"])) ||
      !isDeepStrictEqual(Object.keys(enrichment), ["geo", "abuse_ipdb"]),
  );
  expect(outside.length).toBeGreaterThan(1000);
  expect(invalid).toEqual([]);
});

test("a person, a device and an address are the same in every event", () => {
  const pairs = [
    ["src_mac", "src_ip"],
    ["src_mac", "host"],
    ["badge", "user"],
    ["camera", "zone"],
    ["door", "zone"],
  ] as const;
  for (const [one, other] of pairs) {
    const known = new Map<unknown, unknown>();
    const namesBoth = where(({ raw }) => one in raw && other in raw);
    expect(namesBoth.length, `${one} and ${other}`).toBeGreaterThan(100);
    for (const { raw } of namesBoth) {
      if (!known.has(raw[one])) known.set(raw[one], raw[other]);
      expect(raw[other], `${other} of ${String(raw[one])}`).toBe(known.get(raw[one]));
    }
  }
});

test("people use their own devices and extensions", () => {
  const { people, devices } = makeSite(randomFrom(week.seed));
  const owners = new Map(devices.map(({ ip, user }) => [ip, user]));
  const named = where(({ raw }) => owners.has(String(raw["src_ip"])) && "user" in raw);
  expect(named.length).toBeGreaterThan(500);
  expect(named.filter(({ raw }) => owners.get(String(raw["src_ip"])) !== raw["user"])).toEqual([]);
  const extensions = new Map(people.map(({ user, extension }) => [user, extension]));
  const calls = where(({ type, raw }) => type.startsWith("call_") && "user" in raw);
  const extensionOf = ({ raw }: EventDraft) => extensions.get(String(raw["user"]));
  expect(calls.filter((event) => ![event.raw["from"], event.raw["to"]].includes(extensionOf(event)!))).toEqual([]);
});
