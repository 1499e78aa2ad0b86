import { expect, test } from "vitest";
import { sentenceOf, sentenceText } from "./sentences.ts";

test("an event is said in words, and what it names is a part of its own", () => {
  const event = { type: "access_granted", raw: { user: "ada.morin", door: "Loading dock", method: "badge" } };
  expect(sentenceOf(event)).toEqual([
    { kind: "user", value: "ada.morin" },
    " opened ",
    { kind: "door", value: "Loading dock" },
    " with a ",
    "badge",
  ]);
});

test("a part in brackets is left out where the event does not say", () => {
  expect(sentenceText({ type: "door_held", raw: { door: "East" } })).toBe("East was held open");
  expect(sentenceText({ type: "door_held", raw: { door: "East", duration_s: 41 } })).toBe(
    "East was held open for 41 s",
  );
});

test("a missing or nameless thing is said so, at the start with a capital", () => {
  expect(sentenceText({ type: "login_failure", raw: { user: "unknown" } })).toBe("Somebody failed to log in");
  expect(sentenceText({ type: "dhcp_lease", raw: { src_ip: "10.0.0.7", host: "unknown" } })).toBe(
    "10.0.0.7 was given to a device",
  );
});

test("a type without a sentence is said by its name and its message or subject", () => {
  expect(sentenceText({ type: "oven_on_fire", raw: { message: "Bread" } })).toBe("Oven on fire: Bread");
  expect(sentenceText({ type: "oven_on_fire", raw: { device: "oven-1" } })).toBe("Oven on fire: oven-1");
  expect(sentenceText({ type: "oven_on_fire", raw: {} })).toBe("Oven on fire");
});

test("values of other types and overlong ones do no harm", () => {
  expect(sentenceText({ type: "door_forced", raw: { door: { a: 1 }, device: ["x"] } })).toBe("A door was forced");
  expect(sentenceText({ type: "door_forced", raw: { door: "x".repeat(5000) } }).length).toBeLessThan(300);
  expect(sentenceText({ type: "constructor", raw: {} })).toBe("Constructor");
});
