import { expect, test } from "vitest";
import type { Rule } from "../model/rule.ts";
import { Room } from "./room.ts";
import { Tracker, type Firing } from "./tracker.ts";

const SEED = { first: 1, second: 2 };
const SECOND_MS = 1000;

/** A sequence of so many steps, or of steps that take so many events each, and a way to tell it what it sees. */
function open(counts: readonly number[], sequenceOrder: Rule["sequenceOrder"] = "in_order") {
  const sequence = counts.map((count, i) => ({ name: `${i}`, conditions: [], count }));
  const tracker = new Tracker<number>(
    { window: "1h", threshold: null, sequence, sequenceOrder, groupBy: null },
    { seed: SEED, room: new Room() },
  );
  let key = 0;
  /** An event that is these steps, at this second. */
  const see = (seconds: number, ...steps: number[]): Firing<number>[] => {
    const bits = steps.reduce((all, step) => all | (1 << step), 0);
    const fired: Firing<number>[] = [];
    tracker.add([{ key: key++, timestampMs: seconds * SECOND_MS, values: [], steps: bits }], undefined, (firings) =>
      fired.push(...firings),
    );
    return fired;
  };
  return { see };
}

test.each([
  ["the wider step first", [[0], [0, 1]]],
  ["the narrower step first", [[0, 1], [0]]],
])("of one moment, events count in the order that completes the steps: %s", (_, [one, other]) => {
  const { see } = open([1, 1]);
  expect(see(0, ...one!)).toEqual([]);
  expect(see(0, ...other!)).toMatchObject([{ count: 2 }]);
});
