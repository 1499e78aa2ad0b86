import { expect, test } from "vitest";
import { entityFilter, knownNames, knownWords, namingOf, relatedGroups } from "./known.ts";

const seen = { first_seen: "2026-11-14T19:01:00.000Z", last_seen: "2026-11-14T19:04:00.000Z" };
const related = {
  entities: [
    { kind: "address" as const, value: "10.20.0.1", events: 9, ...seen },
    { kind: "device" as const, value: "02:00:5e:66:06:66", events: 10, ...seen },
    { kind: "device" as const, value: "switch-2", events: 1, ...seen },
    { kind: "user" as const, value: "ada", events: 5, ...seen },
  ],
  events_read: 10,
  complete: true,
};

test("an address is called as its own events say", () => {
  const naming = namingOf({ kind: "address", value: "10.20.1.16" })!;
  const values = new Map([
    [
      "raw.host",
      {
        values: [
          { value: "laptop-grace", count: 9 },
          { value: "old-name", count: 1 },
        ],
        others: 0,
      },
    ],
    ["raw.src_mac", { values: [], others: 0 }],
  ]);
  expect(naming.field).toBe("raw.src_ip");
  expect(knownNames(naming, values)).toEqual([{ kind: "device", value: "laptop-grace" }]);
});

test("a device is known by its hardware address or by its name", () => {
  expect(namingOf({ kind: "device", value: "02:00:5e:66:06:66" })!.field).toBe("raw.src_mac");
  expect(namingOf({ kind: "device", value: "laptop-grace" })!.field).toBe("raw.host");
  expect(namingOf({ kind: "door", value: "Loading dock" })).toBeUndefined();
});

test("place and reputation in words", () => {
  const enrichment = { geo: { city: "Hanoi", country: "VN" }, abuse_ipdb: { score: 72 }, lists: ["a"] };
  expect(knownWords({ enrichment })).toEqual(["Hanoi, VN", "abuse score 72 of 100", "on a list"]);
  expect(knownWords({ enrichment: { geo: { city: 7 }, abuse_ipdb: null } })).toEqual([]);
});

test("the events that name two things", () => {
  expect(entityFilter({ kind: "door", value: "Dock, east" }, { kind: "user", value: "ada" })).toBe(
    String.raw`entity=door:Dock\, east,entity=user:ada`,
  );
});

test("what was seen with it, by kind", () => {
  expect(relatedGroups({ related }).map(({ kind, entities }) => [kind, entities.length])).toEqual([
    ["address", 1],
    ["device", 2],
    ["user", 1],
  ]);
});
