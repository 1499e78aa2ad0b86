import * as fc from "fast-check";
import { expect, test } from "vitest";
import { ringsOf, threadPath, threadStops, threadWay } from "./thread.ts";

const RADIUS = 8.5;
const points = fc
  .array(fc.record({ x: fc.integer({ min: 0, max: 400 }), y: fc.constantFrom(10, 35, 60) }), { maxLength: 30 })
  .map((places) => places.map((place, index) => ({ ...place, number: index + 1 })));

test("the numbers of a thread never cover each other, and each is there once", () => {
  fc.assert(
    fc.property(points, (thread) => {
      const stops = threadStops(thread, RADIUS);
      for (const [, lane] of Map.groupBy(stops, ({ y }) => y)) {
        const inOrder = lane.toSorted((a, b) => a.x - b.x);
        for (const [index, { x, half }] of inOrder.entries()) {
          const next = inOrder[index + 1];
          if (next !== undefined) expect(x + half).toBeLessThanOrEqual(next.x - next.half);
        }
      }
      expect(stops.flatMap(({ numbers }) => numbers).toSorted((a, b) => a - b)).toEqual(
        thread.map(({ number }) => number),
      );
    }),
  );
});

test("rings never cross, and each mark is in one", () => {
  fc.assert(
    fc.property(points, (marks) => {
      const rings = ringsOf(marks, RADIUS);
      for (const { x, y } of marks) {
        expect(rings.filter((ring) => ring.y === y && ring.from <= x - RADIUS && ring.to >= x + RADIUS).length).toBe(1);
      }
      for (const [, lane] of Map.groupBy(rings, ({ y }) => y)) {
        for (const [index, { to }] of lane.entries()) expect(to).toBeLessThanOrEqual(lane[index + 1]?.from ?? Infinity);
      }
    }),
  );
});

test("the curve goes through the stops in the order of the events", () => {
  const stops = threadStops(
    [
      { x: 0, y: 10, number: 1 },
      { x: 100, y: 35, number: 2 },
      { x: 4, y: 10, number: 3 },
    ],
    RADIUS,
  );
  expect(stops.map(({ text }) => text)).toEqual(["1, 3", "2"]);
  expect(threadWay(stops).map(({ text }) => text)).toEqual(["1, 3", "2", "1, 3"]);
  expect(
    threadPath([
      { x: 0, y: 10 },
      { x: 100, y: 35 },
    ]),
  ).toBe("M0 10C0 22.5 100 22.5 100 35");
  expect(threadPath([{ x: 0, y: 10 }])).toBe("");
});
