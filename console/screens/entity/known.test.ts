import { expect, test } from "vitest";
import { entityFilter, knownNames, knownWords, relatedGroups } from "./known.ts";

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

test("an address is called by the device and the person of most of its events", () => {
  expect(knownNames({ kind: "address", related })).toEqual([
    { kind: "device", value: "02:00:5e:66:06:66" },
    { kind: "user", value: "ada" },
  ]);
});

test("a door is nobody's", () => {
  expect(knownNames({ kind: "door", related })).toEqual([]);
  expect(knownNames({ kind: "address", related: null })).toEqual([]);
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
