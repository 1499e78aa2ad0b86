import * as fc from "fast-check";
import { expect, test } from "vitest";
import { anEvent, event, someEvents, START_MS } from "./axis.fixture.ts";
import { laneOf, LANES_PER_GROUP_MAX, lanesOf } from "./lanes.ts";
import { marksOf } from "./marks.ts";

function counted(lanes: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const lane of lanes) counts.set(lane, (counts.get(lane) ?? 0) + 1);
  return counts;
}

test("the lanes hold every mark once", () => {
  fc.assert(
    fc.property(someEvents, (events) => {
      const marks = marksOf(events);
      const { groups, laneUnder } = lanesOf(counted(marks.map(({ lane }) => lane)));
      const lanes = groups.flatMap((group) => group.lanes);
      expect(new Set(lanes.map(({ id }) => id)).size).toBe(lanes.length);
      for (const { id, count } of lanes) {
        expect(marks.filter((mark) => laneUnder.get(mark.lane) === id).length).toBe(count);
      }
      expect(lanes.reduce((sum, { count }) => sum + count, 0)).toBe(marks.length);
    }),
  );
});

test("many doors share a last lane, and none is lost", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 120 }), (doors) => {
      const ids = Array.from({ length: doors }, (_, door) => `access/Door ${door}`);
      const { groups, laneUnder } = lanesOf(counted([...ids, "access/Other"]));
      expect(groups[0]!.lanes.length).toBe(Math.min(doors + 1, LANES_PER_GROUP_MAX));
      expect(groups[0]!.lanes.reduce((sum, { count }) => sum + count, 0)).toBe(doors + 1);
      expect(groups[0]!.lanes.at(-1)!.name).toBe("Other");
      for (const id of ids) expect(groups[0]!.lanes.some((lane) => lane.id === laneUnder.get(id))).toBe(true);
    }),
  );
});

test("doors and cameras have lanes of their own, calls and the network lanes by what happens", () => {
  const lane = (type: string, source: string, raw = {}) => laneOf(event(type, START_MS, raw, source));
  expect(lane("door_held", "platform_access", { door: "East" })).toBe("access/East");
  expect(lane("visitor_checked_in", "platform_access")).toBe("access/Other");
  expect(lane("motion", "unifi_protect", { camera: "Roof" })).toBe("protect/Roof");
  expect(lane("call_missed", "platform_talk")).toBe("talk/Calls");
  expect(lane("sip_scan", "platform_talk")).toBe("talk/Sign-ins");
  expect(lane("dhcp_lease", "platform_network")).toBe("network/Devices joining");
  expect(lane("wan_link_down", "platform_network")).toBe("network/Equipment");
  expect(lane("oven_on_fire", "platform_network")).toBe("network/Other");
  expect(lane("backup_failed", "custom")).toBe("custom/Site systems");
});

test("a door leads to its page; what is no door does not", () => {
  const { groups } = lanesOf(counted(["access/East", "access/Other", "network/Logins"]));
  expect(groups.map(({ lanes }) => lanes.map(({ entity }) => entity))).toEqual([
    [{ kind: "door", value: "East" }, undefined],
    [undefined],
  ]);
});

test("any event has a lane", () => {
  fc.assert(fc.property(anEvent, (one) => /^(access|protect|talk|network|custom)\/./.test(laneOf(one))));
});
