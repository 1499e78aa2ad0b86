import { expect, test } from "vitest";
import { alertLike } from "../alert.fixture.ts";
import { NONE_WAITING, WAITING_MAX, withArrival, type Seen } from "./waiting.ts";

const SEEN: Seen = {
  filters: { status: ["open"] },
  sort: "created_at",
  readAtMs: Date.parse("2026-11-15T09:00:00Z"),
  lastRow: undefined,
};
const LATER = "2026-11-15T09:00:01.000Z";
const ids = ({ alerts }: typeof NONE_WAITING) => alerts.map(({ id }) => id);

test("alerts that are raised after the list was read wait, the latest first", () => {
  const one = withArrival(NONE_WAITING, alertLike({ id: "1", created_at: LATER }), SEEN);
  expect(ids(withArrival(one, alertLike({ id: "2", created_at: LATER }), SEEN))).toEqual(["2", "1"]);
});

test("an alert that waits and is closed by somebody else waits no longer", () => {
  const one = withArrival(NONE_WAITING, alertLike({ created_at: LATER }), SEEN);
  expect(ids(withArrival(one, alertLike({ created_at: LATER, status: "resolved" }), SEEN))).toEqual([]);
});

test("a change of an older alert is not new: it is in a part of the list that is not in memory", () => {
  expect(withArrival(NONE_WAITING, alertLike(), SEEN)).toBe(NONE_WAITING);
});

test("an older alert that is opened again is new where the whole list is known", () => {
  const lastRow = alertLike({ id: "0", created_at: "2026-11-15T07:00:00.000Z" });
  expect(ids(withArrival(NONE_WAITING, alertLike({ id: "1" }), { ...SEEN, lastRow }))).toEqual(["1"]);
  const newerRow = alertLike({ id: "0", created_at: LATER });
  expect(ids(withArrival(NONE_WAITING, alertLike({ id: "1" }), { ...SEEN, lastRow: newerRow }))).toEqual([]);
});

test("at most five hundred wait", () => {
  let waiting = NONE_WAITING;
  for (let n = 0; n <= WAITING_MAX; n++)
    waiting = withArrival(waiting, alertLike({ id: `${n}`, created_at: LATER }), SEEN);
  expect([waiting.alerts.length, waiting.isOverfull]).toEqual([WAITING_MAX, true]);
});
