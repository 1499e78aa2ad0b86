import * as fc from "fast-check";
import { expect, test } from "vitest";
import { event, HOUR_MS, someEvents, START_MS } from "./axis.fixture.ts";
import { marksOf } from "./marks.ts";

test("every event is in exactly one mark, as what began it or as what ended it", () => {
  fc.assert(
    fc.property(someEvents, (events) => {
      const held = marksOf(events).flatMap((mark) => [mark.event.id, ...(mark.end === undefined ? [] : [mark.end.id])]);
      expect(held.toSorted()).toEqual(events.map(({ id }) => id).toSorted());
    }),
  );
});

test("no mark ends before it begins", () => {
  fc.assert(
    fc.property(someEvents, (events) => {
      for (const { fromMs, toMs } of marksOf(events, START_MS + HOUR_MS)) expect(toMs).toBeGreaterThanOrEqual(fromMs);
    }),
  );
});

test("a door that was held open is told at the end of that time, motion at its start", () => {
  const held = event("door_held", START_MS, { door: "East", duration_s: 41 }, "platform_access");
  const motion = event("motion", START_MS, { camera: "Roof", duration_s: 41 }, "platform_protect");
  expect(marksOf([held, motion]).map(({ fromMs, toMs }) => [fromMs - START_MS, toMs - START_MS])).toEqual([
    [-41_000, 0],
    [0, 41_000],
  ]);
});

test("a call and a dark camera last until the event that ends them", () => {
  const call = event("call_started", START_MS, { call: "c1" }, "platform_talk");
  const other = event("call_ended", START_MS + 5000, { call: "c2", duration_s: 10 }, "platform_talk");
  const end = event("call_ended", START_MS + 60_000, { call: "c1" }, "platform_talk");
  expect(
    marksOf([end, other, call]).map(({ event: { id }, fromMs, toMs }) => [id, fromMs - START_MS, toMs - START_MS]),
  ).toEqual([
    [call.id, 0, 60_000],
    [other.id, -5000, 5000],
  ]);
  const dark = event("camera_offline", START_MS, { camera: "Roof" }, "platform_protect");
  const again = event("camera_offline", START_MS + 120_000, { camera: "Roof" }, "platform_protect");
  const back = event("camera_online", START_MS + 90_000, { camera: "Roof" }, "platform_protect");
  const until = START_MS + 600_000;
  expect(marksOf([dark, back, again], until).map(({ toMs }) => toMs - START_MS)).toEqual([90_000, 600_000]);
});
