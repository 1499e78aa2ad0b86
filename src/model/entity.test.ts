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

test("the spellings of an address are one entity", () => {
  const raw = { src_ip: "2001:DB8:0:0::1", dst_ip: "2001:db8::1", local_ip: "::ffff:10.0.0.1", device_ip: "gateway" };
  expect(entitiesOf(raw).map(({ value }) => value)).toEqual(["2001:db8::1", "10.0.0.1", "gateway"]);
});
