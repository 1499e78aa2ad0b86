import * as fc from "fast-check";
import { expect, test } from "vitest";
import { dragged, gripAt, overviewRange } from "./overview.ts";

const DAY_MS = 86_400_000;
const NOW_MS = Date.UTC(2026, 10, 17, 19);

test("the overview holds the view", () => {
  const view = fc.record({
    agoMs: fc.integer({ min: 0, max: 300 * DAY_MS }),
    length: fc.integer({ min: 10_000, max: 366 * DAY_MS }),
  });
  fc.assert(
    fc.property(view, ({ agoMs, length }) => {
      const toMs = NOW_MS - agoMs;
      const range = overviewRange({ fromMs: toMs - length, toMs }, NOW_MS);
      expect(range.fromMs).toBeLessThanOrEqual(toMs - length + DAY_MS);
      expect(range.toMs).toBeGreaterThanOrEqual(Math.min(NOW_MS, toMs));
      expect(range.toMs).toBeLessThanOrEqual(NOW_MS);
    }),
  );
});

test("the last seven days are the rule, and stay while the view moves in them", () => {
  const hourAgo = { fromMs: NOW_MS - 3_600_000, toMs: NOW_MS };
  const daysAgo = { fromMs: NOW_MS - 6 * DAY_MS, toMs: NOW_MS - 5 * DAY_MS };
  expect(overviewRange(hourAgo, NOW_MS)).toEqual(overviewRange(daysAgo, NOW_MS));
  expect(overviewRange(hourAgo, NOW_MS).days).toBe(7);
  expect(overviewRange({ fromMs: NOW_MS - 20 * DAY_MS, toMs: NOW_MS }, NOW_MS).days).toBe(30);
});

test("a wide window is held at its ends or moved, a narrow one only moved", () => {
  expect([gripAt(100, 100, 200), gripAt(198, 100, 200), gripAt(150, 100, 200), gripAt(100, 100, 106)]).toEqual([
    "start",
    "end",
    "window",
    "window",
  ]);
  const view = { fromMs: 1_000_000, toMs: 2_000_000 };
  expect(dragged("window", view, 500)).toEqual({ fromMs: 1_000_500, toMs: 2_000_500 });
  expect(dragged("start", view, 5_000_000)).toEqual({ fromMs: 1_940_000, toMs: 2_000_000 });
  expect(dragged("end", view, -5_000_000)).toEqual({ fromMs: 1_000_000, toMs: 1_060_000 });
});
