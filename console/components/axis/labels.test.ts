import * as fc from "fast-check";
import { expect, test } from "vitest";
import { event, HOUR_MS, measure, someEvents, START_MS } from "./axis.fixture.ts";
import { placeLabels } from "./labels.ts";
import { marksOf } from "./marks.ts";
import { scaleOf } from "./view.ts";

const WIDTH = 800;
const scale = scaleOf({ fromMs: START_MS, toMs: START_MS + HOUR_MS }, 0, WIDTH);
const EDGES = [200, 600];

test("labels of a lane never overlap, stay in the picture, and lie across no edge of the view", () => {
  fc.assert(
    fc.property(someEvents, fc.nat(10), fc.nat(10), (events, threadLength, echoLength) => {
      const marks = marksOf(events);
      const labels = placeLabels(marks, {
        scale,
        width: WIDTH,
        edges: EDGES,
        thread: new Set(events.slice(0, threadLength).map(({ id }) => id)),
        echoes: new Set(events.slice(threadLength, threadLength + echoLength).map(({ id }) => id)),
        laneUnder: new Map(),
        measure,
      });
      for (const [, lane] of Map.groupBy(labels, (label) => label.lane)) {
        const inOrder = lane.toSorted((a, b) => a.x - b.x);
        for (const [index, { x, width }] of inOrder.entries()) {
          expect(x + width).toBeLessThanOrEqual(inOrder[index + 1]?.x ?? WIDTH);
          expect(x).toBeGreaterThanOrEqual(0);
          for (const edge of EDGES) expect(x < edge && x + width > edge).toBe(false);
        }
      }
    }),
  );
});

test("what belongs to the thread is labelled before what does not", () => {
  const noise = event("access_granted", START_MS + 601_000, { door: "East", user: "ada.morin" }, "platform_access");
  const chosen = event(
    "access_granted",
    START_MS + 600_000,
    { door: "East", user: "viktor.horvat" },
    "platform_access",
  );
  const labels = placeLabels(marksOf([noise, chosen]), {
    scale,
    width: WIDTH,
    edges: [],
    thread: new Set([chosen.id]),
    echoes: new Set(),
    laneUnder: new Map(),
    measure,
  });
  expect(labels.map(({ text }) => text)).toEqual(["viktor.horvat"]);
});
