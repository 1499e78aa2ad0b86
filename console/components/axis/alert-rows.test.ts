import * as fc from "fast-check";
import { expect, test } from "vitest";
import { HOUR_MS, measure, someAlerts, START_MS } from "./axis.fixture.ts";
import { cut, packAlerts, packTicks, type PackOptions } from "./alert-rows.ts";
import { overlaps, scaleOf } from "./view.ts";

const view = { fromMs: START_MS, toMs: START_MS + HOUR_MS };
const WIDTH = 800;
const LEFT = 400;

const options = (titles: boolean, chosen?: string): PackOptions => ({
  view,
  scale: scaleOf(view, LEFT, WIDTH),
  left: LEFT,
  right: LEFT + WIDTH,
  rowsMax: 4,
  barMin: 8,
  titles,
  chosen,
  measure,
});

const right = (placed: { x: number; width: number; label: string; labelX: number }) =>
  Math.max(
    placed.x + placed.width,
    placed.label === "" ? Number.NEGATIVE_INFINITY : placed.labelX + measure(placed.label),
  );

test("no alert covers another one of its row, with its title", () => {
  fc.assert(
    fc.property(someAlerts, fc.boolean(), (alerts, titles) => {
      const { placed } = packAlerts(alerts, options(titles));
      for (const [, row] of Map.groupBy(placed, (one) => one.row)) {
        const inOrder = row.toSorted((a, b) => a.x - b.x);
        for (const [index, one] of inOrder.entries()) {
          const next = inOrder[index + 1];
          if (next !== undefined) expect(right(one)).toBeLessThanOrEqual(next.x);
        }
      }
    }),
  );
});

test("every alert in view has a place, goes on beyond both edges, or is counted as hidden", () => {
  fc.assert(
    fc.property(someAlerts, fc.boolean(), (alerts, isTicks) => {
      const { placed, ongoing, hidden, rows } = isTicks
        ? packTicks(alerts, options(false), 3)
        : packAlerts(alerts, options(true));
      const told = [...placed.map(({ alert }) => alert), ...ongoing, ...hidden];
      expect(new Set(told).size).toBe(told.length);
      for (const alert of alerts) {
        if (!overlaps(view, Date.parse(alert.first_event_at), Date.parse(alert.last_event_at))) continue;
        expect(told).toContain(alert);
      }
      for (const { row } of placed) expect(row).toBeLessThan(rows);
      expect(rows).toBeLessThanOrEqual(isTicks ? 7 : 4);
    }),
  );
});

test("the chosen alert has the first row, however mild and long it is", () => {
  fc.assert(
    fc.property(someAlerts, (alerts) => {
      const chosen = { id: "chosen", title: "Chosen", severity: "info" as const };
      const times = {
        first_event_at: new Date(START_MS - 1).toISOString(),
        last_event_at: new Date(view.toMs + 1).toISOString(),
      };
      const { placed } = packAlerts([...alerts, { ...chosen, ...times }], options(true, "chosen"));
      expect(placed.find(({ alert }) => alert.id === "chosen")?.row).toBe(0);
    }),
  );
});

test("a cut text fits its room", () => {
  fc.assert(
    fc.property(fc.string(), fc.integer({ min: 0, max: 300 }), (text, room) => {
      const short = cut(text, room, measure);
      if (short !== "") expect(measure(short)).toBeLessThanOrEqual(room);
      if (measure(text) <= room) expect(short).toBe(text);
    }),
  );
});
