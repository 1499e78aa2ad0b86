import { expect, test } from "vitest";
import { Wanted } from "./wanted.ts";

test("of too many addresses those that have waited longest go, and every drop is counted with what waited for it", () => {
  const dropped: Record<string, number> = {};
  const wanted = new Wanted((kind, count) => (dropped[kind] = (dropped[kind] ?? 0) + count));
  for (let n = 0; n < 5003; n++) {
    wanted.addEvent(`address-${n}`, `event-${n}`);
    wanted.addAlert(`address-${n}`, `alert-${n}`);
  }
  expect([wanted.size, wanted.first(), dropped]).toEqual([5000, "address-3", { address: 3, event: 3, alert: 3 }]);
  for (let n = 0; n < 60; n++) wanted.addEvent("address-3", `more-${n}`);
  expect([wanted.take("address-3")!.events.size, dropped["event"]]).toEqual([50, 3 + 11]);
  expect(wanted.addAlert("address-3", "late")).toBe(false);
});

test("an address that failed goes behind the others, and knows how often", () => {
  const wanted = new Wanted(() => undefined);
  for (const address of ["a", "b"]) wanted.addEvent(address, "event");
  expect([wanted.fail("a"), wanted.first(), wanted.fail("b"), wanted.first(), wanted.fail("a")]).toEqual([
    1,
    "b",
    1,
    "a",
    2,
  ]);
  wanted.giveUp("a");
  expect([wanted.size, wanted.fail("a")]).toEqual([1, 0]);
});
