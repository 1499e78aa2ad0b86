import { expect, test } from "vitest";
import { HISTORY_MINUTES, MinuteCounts } from "./minute-counts.ts";

const MINUTE_MS = 60_000;
const start = Date.UTC(2026, 10, 15, 12);

const filled = (...minutes: readonly (readonly [minute: number, count: number])[]) => {
  const counts = new MinuteCounts();
  for (const [minute, count] of minutes) for (let i = 0; i < count; i++) counts.add(start + minute * MINUTE_MS);
  return counts;
};

test("the history has one count per minute, oldest first, and ends with the current minute", () => {
  const { history } = filled([0, 3], [2, 5]).status(start + 2 * MINUTE_MS);
  expect(history).toHaveLength(HISTORY_MINUTES);
  expect(history.slice(-4)).toEqual([0, 3, 0, 5]);
});

test("minutes that are older than the history are forgotten, and their places are counted anew", () => {
  const counts = filled([0, 3], [1, 4]);
  expect(counts.status(start + HISTORY_MINUTES * MINUTE_MS).history[0]).toBe(4);
  counts.add(start + (HISTORY_MINUTES + 1) * MINUTE_MS);
  const { history } = counts.status(start + (HISTORY_MINUTES + 1) * MINUTE_MS);
  expect(history.reduce((sum, count) => sum + count)).toBe(1);
  expect(counts.status(start + 500 * MINUTE_MS).history.every((count) => count === 0)).toBe(true);
});

test("the rate covers 60 seconds: the minute before counts in proportion", () => {
  const counts = filled([0, 100], [1, 10]);
  expect(counts.status(start + MINUTE_MS).perMinute).toBe(110);
  expect(counts.status(start + 1.5 * MINUTE_MS).perMinute).toBe(60);
  expect(counts.status(start + 2 * MINUTE_MS).perMinute).toBe(10);
  expect(counts.status(start + 3 * MINUTE_MS).perMinute).toBe(0);
});

test("a clock that is set back counts into the newest minute", () => {
  const counts = filled([5, 1], [3, 2]);
  expect(counts.status(start + 5 * MINUTE_MS).history.at(-1)).toBe(3);
});
