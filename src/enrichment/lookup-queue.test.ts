import { expect, test } from "vitest";
import { LookupQueue } from "./lookup-queue.ts";

test("beyond the limit the oldest addresses are dropped, and drops are counted with their events and alerts", () => {
  const dropped: Record<string, number> = {};
  const queue = new LookupQueue((kind, count) => (dropped[kind] = (dropped[kind] ?? 0) + count));
  for (let n = 0; n < 5003; n++) {
    queue.addEvent(`address-${n}`, `event-${n}`);
    queue.addAlert(`address-${n}`, `alert-${n}`);
  }
  expect([queue.size, queue.first(), dropped]).toEqual([5000, "address-3", { address: 3, event: 3, alert: 3 }]);
  for (let n = 0; n < 60; n++) queue.addEvent("address-3", `more-${n}`);
  expect([queue.take("address-3")!.events.size, dropped["event"]]).toEqual([50, 3 + 11]);
  expect(queue.addAlert("address-3", "late")).toBe(false);
});

test("a failed address moves to the end, and its failures are counted", () => {
  const queue = new LookupQueue(() => undefined);
  for (const address of ["a", "b"]) queue.addEvent(address, "event");
  expect([queue.fail("a"), queue.first(), queue.fail("b"), queue.first(), queue.fail("a")]).toEqual([
    1,
    "b",
    1,
    "a",
    2,
  ]);
  queue.drop("a");
  expect([queue.size, queue.fail("a")]).toEqual([1, 0]);
});
