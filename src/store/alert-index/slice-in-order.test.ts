import * as fc from "fast-check";
import { expect, test } from "vitest";
import { sliceInOrder } from "./slice-in-order.ts";

test("a slice equals that of the sorted items", () => {
  const keys = fc.array(fc.nat({ max: 20 }), { maxLength: 200 });
  fc.assert(
    fc.property(keys, fc.nat({ max: 220 }), fc.nat({ max: 60 }), (list, start, size) => {
      const isBefore = (a: number, b: number) => list[a]! < list[b]! || (list[a] === list[b] && a < b);
      const sorted = list.map((_, i) => i).sort((a, b) => (isBefore(a, b) ? -1 : isBefore(b, a) ? 1 : 0));
      const items = Uint32Array.from(list.keys()).reverse();
      expect(sliceInOrder(items, start, start + size, isBefore)).toEqual(sorted.slice(start, start + size));
    }),
    { numRuns: 1000 },
  );
});
