import * as fc from "fast-check";
import { expect, test } from "vitest";
import { event, HOUR_MS, measure, someAlerts, someEvents, START_MS } from "./axis.fixture.ts";
import { echoesOf, ECHOES_MAX } from "./echoes.ts";
import { FULL_SIZES } from "./layout.ts";
import { nightsOf } from "./nights.ts";
import { pictureOf, type AxisContent } from "./picture.ts";
import { overlaps } from "./view.ts";

const view = { fromMs: START_MS + HOUR_MS / 4, toMs: START_MS + HOUR_MS / 2 };
const frame = { view, width: 800, sizes: FULL_SIZES, isMini: false, margin: 0.5, measure };
const nothing: AxisContent = {
  events: [],
  alerts: [],
  thread: [],
  threadSeverity: "critical",
  echoes: new Set(),
  band: undefined,
  chosen: undefined,
  heat: undefined,
  only: undefined,
  hasTraffic: false,
  untilMs: START_MS + HOUR_MS,
};

test("only lanes with something in view are there, and everything in view is on one of them", () => {
  fc.assert(
    fc.property(someEvents, someAlerts, (events, alerts) => {
      const { marks, layout } = pictureOf({ ...nothing, events, alerts }, frame);
      const inView = marks.filter(({ fromMs, toMs }) => overlaps(view, fromMs, toMs));
      for (const { lane } of marks) expect(layout.laneY(lane)).toBeDefined();
      for (const { id } of layout.lanes) expect(inView.some(({ lane }) => lane === id)).toBe(true);
    }),
  );
});

test("lanes stand under each other, without touching", () => {
  fc.assert(
    fc.property(someEvents, someAlerts, (events, alerts) => {
      const { layout } = pictureOf({ ...nothing, events, alerts, hasTraffic: true }, frame);
      const rows = layout.lanes.map(({ y }) => y);
      for (const [index, y] of rows.entries()) {
        if (index > 0) expect(y - rows[index - 1]!).toBeGreaterThanOrEqual(FULL_SIZES.lane);
      }
      expect(rows[0] ?? Infinity).toBeGreaterThan(layout.alertTop + layout.alertHeight);
      expect(layout.height).toBeGreaterThan(layout.trafficTop + FULL_SIZES.traffic);
    }),
  );
});

test("the thread is drawn over counts too, and its lanes stay while it is out of sight", () => {
  const thread = [
    event("door_held", START_MS, { door: "East" }, "platform_access"),
    event("person", view.fromMs + 1000, { camera: "Roof" }, "platform_protect"),
  ];
  const heat = { stepMs: 60_000, lanes: new Map([["access/East", [{ atMs: view.fromMs, count: 2 }]]]) };
  const { stops, layout } = pictureOf({ ...nothing, thread, heat }, { ...frame, margin: 2 });
  expect(stops.map(({ text }) => text)).toEqual(["1", "2"]);
  expect(layout.lanes.map(({ id }) => id)).toEqual(["access/East", "protect/Roof"]);
});

test("what the same door, address or device did besides echoes the thread, the nearest first", () => {
  const thread = [event("door_held", START_MS, { door: "East" }, "platform_access")];
  const same = Array.from({ length: 400 }, (_, index) =>
    event("access_granted", START_MS + index * 1000, { door: "East" }),
  );
  const other = event("access_granted", START_MS, { door: "West" });
  const echoes = echoesOf(thread, [...same.toReversed(), other, ...thread]);
  expect([...echoes]).toEqual(same.slice(0, ECHOES_MAX).map(({ id }) => id));
  expect(echoesOf([], same).size).toBe(0);
});

test("nights go by the clocks of the zone", () => {
  const dayMs = 24 * HOUR_MS;
  const midnight = Date.UTC(2026, 10, 14);
  const inHours = nightsOf({ fromMs: midnight, toMs: midnight + dayMs }, () => HOUR_MS).map(({ fromMs, toMs }) => [
    (fromMs - midnight) / HOUR_MS,
    (toMs - midnight) / HOUR_MS,
  ]);
  expect(inHours).toEqual([
    [0, 5],
    [19, 24],
  ]);
  expect(nightsOf({ fromMs: midnight, toMs: midnight + 20 * dayMs }, () => 0)).toEqual([]);
});
