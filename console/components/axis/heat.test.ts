import * as fc from "fast-check";
import { expect, test } from "vitest";
import { heatCounts, heatOf, heatStepMs, intervalText } from "./heat.ts";

const cell = (atMs: number, count: number) => ({ atMs, count });

test("places have their own cells; the rest of their domain stands under Other", () => {
  const { lanes } = heatOf({
    stepMs: 10,
    doors: [{ key: "East", cells: [cell(0, 3), cell(10, 2)] }],
    cameras: [],
    types: [
      { key: "access_granted", source: "platform_access", cells: [cell(0, 3), cell(10, 2)] },
      { key: "visitor_checked_in", source: "platform_access", cells: [cell(10, 1)] },
      { key: "dns_query", source: "platform_network", cells: [cell(0, 9)] },
      { key: "dns_answer", source: "platform_network", cells: [cell(0, 1)] },
    ],
  });
  expect(Object.fromEntries(lanes)).toEqual({
    "access/East": [cell(0, 3), cell(10, 2)],
    "access/Other": [cell(10, 1)],
    "network/Names asked for": [cell(0, 10)],
  });
});

test("no event is counted twice, and none is left out", () => {
  const cells = fc
    .array(fc.integer({ min: 1, max: 9 }), { maxLength: 5 })
    .map((counts) => counts.map((count, index) => cell(index * 10, count)));
  fc.assert(
    fc.property(fc.array(cells, { maxLength: 4 }), fc.array(cells, { maxLength: 4 }), (doors, others) => {
      const heat = heatOf({
        stepMs: 10,
        doors: doors.map((own, index) => ({ key: `Door ${index}`, cells: own })),
        cameras: [],
        types: [
          ...doors.map((own, index) => ({ key: `t${index}`, source: "platform_access", cells: own })),
          ...others.map((own, index) => ({ key: `o${index}`, source: "platform_network", cells: own })),
        ],
      });
      const sum = [...doors, ...others].flat().reduce((total, { count }) => total + count, 0);
      expect([...heatCounts(heat, 0, 1000).values()].reduce((total, count) => total + count, 0)).toBe(sum);
    }),
  );
});

test("a view has at most two hundred cells a lane, of lengths that the service can write", () => {
  fc.assert(
    fc.property(fc.integer({ min: 60_000, max: 366 * 86_400_000 }), (length) => {
      expect(length / heatStepMs(length)).toBeLessThanOrEqual(200);
      expect(intervalText(heatStepMs(length))).toMatch(/^\d+[smhd]$/);
    }),
  );
});
