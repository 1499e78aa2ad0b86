import * as fc from "fast-check";
import { expect, test } from "vitest";
import { indexAt, stack, valueTicks } from "./stack.ts";

test("layers lie on each other without gap or overlap, and the top is the sum", () => {
  const values = fc.array(fc.array(fc.nat(1000), { minLength: 5, maxLength: 5 }), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(values, (rows) => {
      const layers = stack(
        rows.map((row, index) => ({ name: String(index), values: row })),
        5,
      );
      layers.forEach((layer, index) =>
        expect(layer.bottom).toEqual(index === 0 ? [0, 0, 0, 0, 0] : layers[index - 1]!.top),
      );
      const sums = [0, 1, 2, 3, 4].map((point) => rows.reduce((sum, row) => sum + row[point]!, 0));
      expect(layers.at(-1)!.top).toEqual(sums);
    }),
  );
});

test("ticks start at zero, do not pass the maximum, and are few", () => {
  fc.assert(
    fc.property(fc.double({ min: 1e-3, max: 1e15, noNaN: true }), (max) => {
      const ticks = valueTicks(max, 4);
      expect(ticks[0]).toBe(0);
      expect(ticks.at(-1)!).toBeLessThanOrEqual(max * 1.001);
      expect(ticks.length).toBeLessThanOrEqual(6);
    }),
  );
});

test("a moment is in the point that starts at or before it", () => {
  expect([5, 10, 14, 15, 99].map((atMs) => indexAt([10, 15, 20], atMs))).toEqual([0, 0, 0, 1, 2]);
});
