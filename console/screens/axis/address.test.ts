import { expect, test } from "vitest";
import { durationText, readEntities, writeEntities } from "./address.ts";

test("entities are read as they were written, commas and colons in their names included", () => {
  const entities = [
    { kind: "door", value: "Dock, east: 2" },
    { kind: "device", value: "02:00:5e:66:06:66" },
  ] as const;
  expect(readEntities(writeEntities(entities))).toEqual(entities);
  expect(writeEntities([])).toBeUndefined();
});

test("what is no entity is left out, and so is the same one again", () => {
  expect(readEntities("door:East,door:East")).toEqual([{ kind: "door", value: "East" }]);
  expect(readEntities("oven:hot")).toEqual([]);
  expect(readEntities("door:")).toEqual([]);
  expect(readEntities(undefined)).toEqual([]);
});

test("a length is written in the largest unit that says it", () => {
  const minutes = (count: number) => durationText(count * 60_000);
  expect([minutes(0.5), minutes(33.2), minutes(60), minutes(90), minutes(1440), minutes(10_080)]).toEqual([
    "30s",
    "33m",
    "1h",
    "90m",
    "24h",
    "7d",
  ]);
});
