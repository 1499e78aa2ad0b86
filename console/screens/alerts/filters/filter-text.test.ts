import { expect, test } from "vitest";
import { chipsOf, parseFilterText } from "./filter-text.ts";

test.each([
  ["dock forced", { search: "dock forced" }],
  ["severity:high,critical  dock", { severity: "high,critical", search: "dock" }],
  ["severity:high severity:low", { severity: "high,low" }],
  ["rule:access.door_forced tag:vip", { rule_name: "access.door_forced", tag: "vip" }],
  ['door:"Loading dock" assignee:me', { entity: "door:Loading dock", assignee: "me" }],
  ["person:eva", { entity: "user:eva" }],
  ["address:10.0.0.1", { entity: "address:10.0.0.1" }],
  ["02:00:5e:66:06:66", { search: "02:00:5e:66:06:66" }],
  ["moon:high tag:", { search: "moon:high tag:" }],
  ["constructor:x", { search: "constructor:x" }],
  ["  ", {}],
])("%s", (text, filters) => expect(parseFilterText(text)).toEqual(filters));

test("filters are read as words", () => {
  const filters = {
    source: "platform_access,custom",
    assignee: "me,none",
    entity: "door:Hall: east",
    search: "two words",
    time: "created",
  };
  expect(chipsOf(filters).map(({ label, value }) => `${label} ${value}`)).toEqual([
    "from Doors, Site",
    "assigned to me, nobody",
    "door Hall: east",
    "words “two words”",
    "time raised in the range",
  ]);
});

test("an entity of no kind is what the alert is about", () => {
  expect(chipsOf({ entity: "fe80::1" })[0]).toMatchObject({ label: "about", value: "fe80::1" });
});
