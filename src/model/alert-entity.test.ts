import { expect, test } from "vitest";
import {
  ALERT_ENTITIES_MAX,
  addEntities,
  addGroupEntities,
  entityText,
  NO_ENTITIES,
  parseEntityText,
  type AlertEntities,
} from "./alert-entity.ts";
import type { Entity } from "./entity.ts";

const address = (value: string): Entity => ({ kind: "address", value });
const texts = ({ entities }: AlertEntities) => entities.map((entity) => `${entity.count} ${entityText(entity)}`);

test("the most frequent entity comes first, and of equals the one seen last", () => {
  const first = addEntities(NO_ENTITIES, [[address("b")], [address("a"), { kind: "user", value: "eva" }]]);
  expect(texts(first)).toEqual(["1 address:b", "1 address:a", "1 user:eva"]);
  const second = addEntities(first, [[address("c")], [address("a")]]);
  expect(texts(second)).toEqual(["2 address:a", "1 address:c", "1 address:b", "1 user:eva"]);
  expect(second.entitiesCut).toBeUndefined();
});

test("past the limit the least frequent are dropped, and the alert says so from then on", () => {
  const many = Array.from({ length: ALERT_ENTITIES_MAX }, (_, i) => [address(`n${i}`)]);
  const full = addEntities(addEntities(NO_ENTITIES, [[address("often")], [address("often")]]), many);
  expect(full.entities).toHaveLength(ALERT_ENTITIES_MAX);
  expect(full.entities[0]).toEqual({ kind: "address", value: "often", count: 2 });
  expect(full.entitiesCut).toBe(true);
  expect(addEntities({ ...full, entities: [] }, [[address("x")]]).entitiesCut).toBe(true);
});

test("the group of an absence names entities that no event names", () => {
  const group = { field: "raw.door, raw.zone, raw.user", value: "Loading dock, north, eva" };
  expect(texts(addGroupEntities(NO_ENTITIES, group))).toEqual(["0 user:eva", "0 door:Loading dock"]);
  const single = { field: "raw.door", value: "Gate, north" };
  const known = addEntities(NO_ENTITIES, [[{ kind: "door", value: "Gate, north" }]]);
  expect(texts(addGroupEntities(known, single))).toEqual(["1 door:Gate, north"]);
  expect(addGroupEntities(NO_ENTITIES, { field: "raw.door, raw.user", value: "a, b, c" }).entities).toEqual([]);
  expect(addGroupEntities(NO_ENTITIES, { field: "enrichment.door", value: "a" }).entities).toEqual([]);
  expect(addGroupEntities(NO_ENTITIES, null).entities).toEqual([]);
});

test("an entity is written as kind and value", () => {
  expect(parseEntityText("device:02:00:5e:00:53:01")).toEqual({ kind: "device", value: "02:00:5e:00:53:01" });
  for (const text of ["02:00:5e:00:53:01", "door:", "door", "2001:db8::1", ":x", ""]) {
    expect(parseEntityText(text), text).toBeUndefined();
  }
});
