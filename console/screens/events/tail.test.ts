import { expect, test } from "vitest";
import type { Event } from "../../data/client.ts";
import { arrived, EMPTY_TAIL, letIn, SHOWN_MAX, WAITING_MAX } from "./tail.ts";

const events = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => ({ id: `evt_${from + index}` })) as Event[];
const ids = (list: readonly Event[]) => list.map(({ id }) => id);

test("the newest comes first, and only once", () => {
  const tail = arrived(arrived(EMPTY_TAIL, events(0, 2), false), events(1, 3), false);
  expect(ids(tail.shown)).toEqual(["evt_2", "evt_1", "evt_0"]);
});

test("while somebody reads, events wait", () => {
  const tail = arrived(arrived(EMPTY_TAIL, events(0, 1), false), events(1, 3), true);
  expect(ids(tail.shown)).toEqual(["evt_0"]);
  expect(ids(tail.waiting)).toEqual(["evt_2", "evt_1"]);
  expect(ids(letIn(tail).shown)).toEqual(["evt_2", "evt_1", "evt_0"]);
  expect(letIn(tail).waiting).toEqual([]);
});

test("past the limit the oldest of those that wait are skipped, and counted", () => {
  const tail = arrived(arrived(EMPTY_TAIL, events(0, WAITING_MAX), true), events(1000, 1007), true);
  expect(tail.waiting).toHaveLength(WAITING_MAX);
  expect(tail.waiting[0]!.id).toBe("evt_1006");
  expect(tail.skipped).toBe(7);
});

test("what no longer fits into the list is counted as well", () => {
  const tail = arrived(arrived(EMPTY_TAIL, events(0, SHOWN_MAX), false), events(1000, 1003), false);
  expect(tail.shown).toHaveLength(SHOWN_MAX);
  expect(tail.skipped).toBe(3);
});
