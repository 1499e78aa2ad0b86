import { expect, test } from "vitest";
import { ENTITY_CHARACTERS_MAX, entitiesOf } from "./entity.ts";

test("an event's entities are its addresses, people, doors, cameras, devices and numbers, each once", () => {
  const raw = {
    user: "ada.morin",
    door: "Loading dock",
    src_ip: "10.20.3.240",
    dst_ip: "10.20.3.240",
    src_mac: "02:00:5e:66:06:66",
    host: "laptop-ada",
    from: "101",
    message: "ignored",
  };
  expect(entitiesOf(raw)).toEqual([
    { kind: "address", value: "10.20.3.240" },
    { kind: "user", value: "ada.morin" },
    { kind: "door", value: "Loading dock" },
    { kind: "device", value: "02:00:5e:66:06:66" },
    { kind: "device", value: "laptop-ada" },
    { kind: "phone", value: "101" },
  ]);
});

test("a placeholder, another type or an overlong text names no entity", () => {
  const raw = { user: " Unknown ", host: "-", door: 7, camera: "x".repeat(ENTITY_CHARACTERS_MAX + 1), src_ip: "" };
  expect(entitiesOf(raw)).toEqual([]);
});
