import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  fetchWindow,
  lengthOf,
  panned,
  scaleOf,
  stretched,
  viewAround,
  VIEW_MS_MAX,
  VIEW_MS_MIN,
  zoomed,
} from "./view.ts";

const views = fc
  .record({
    fromMs: fc.integer({ min: 1.7e12, max: 1.9e12 }),
    length: fc.integer({ min: VIEW_MS_MIN, max: VIEW_MS_MAX }),
  })
  .map(({ fromMs, length }) => ({ fromMs, toMs: fromMs + length }));

test("zooming keeps the moment under the pointer where it is, within the shortest and the longest view", () => {
  fc.assert(
    fc.property(
      views,
      fc.double({ min: 0.01, max: 100, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (view, factor, share) => {
        const aroundMs = view.fromMs + lengthOf(view) * share;
        const next = zoomed(view, factor, aroundMs);
        expect(lengthOf(next)).toBeGreaterThanOrEqual(VIEW_MS_MIN - 1);
        expect(lengthOf(next)).toBeLessThanOrEqual(VIEW_MS_MAX + 1);
        expect((aroundMs - next.fromMs) / lengthOf(next)).toBeCloseTo(share, 3);
      },
    ),
  );
});

test("what is asked for holds the view with room on both sides, and stays the same for a small move", () => {
  fc.assert(
    fc.property(views, (view) => {
      const window = fetchWindow(view);
      expect(window.fromMs).toBeLessThanOrEqual(view.fromMs);
      expect(window.toMs).toBeGreaterThanOrEqual(view.toMs);
      expect(lengthOf(window)).toBeLessThan(lengthOf(view) * 2.6);
    }),
  );
  const view = { fromMs: 1_800_000_000_000, toMs: 1_800_003_600_000 };
  expect(new Set([0, 0.001, 0.002].map((share) => JSON.stringify(fetchWindow(panned(view, share))))).size).toBe(1);
});

test("pixels and moments turn into each other", () => {
  fc.assert(
    fc.property(views, fc.integer({ min: -500, max: 2500 }), (view, px) => {
      const { x, at } = scaleOf(view, 172, 900);
      expect(x(at(px))).toBeCloseTo(px, 1);
      expect(x(view.fromMs)).toBe(172);
    }),
  );
});

test("an alert is shown with what was around it, a stretch in either direction", () => {
  const alert = { first_event_at: "2026-11-14T18:52:42Z", last_event_at: "2026-11-14T19:01:00Z" };
  const view = viewAround(alert);
  expect(lengthOf(view)).toBe(4 * 498_000);
  expect(view.toMs + view.fromMs).toBe(Date.parse(alert.first_event_at) + Date.parse(alert.last_event_at));
  expect(stretched(60_000, 20_000)).toEqual({ fromMs: 20_000, toMs: 60_000 });
  expect(lengthOf(stretched(5, 5))).toBe(VIEW_MS_MIN);
});
