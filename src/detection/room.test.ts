import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Scalar } from "../model/condition.ts";
import { Room, type RoomLimits } from "./room.ts";
import { Tracker, type Firing, type Match, type TrackedRule } from "./tracker.ts";

const HOUR_MS = 3_600_000;
const rule = (threshold: TrackedRule["threshold"]): TrackedRule => ({
  window: "1h",
  threshold,
  sequence: null,
  sequenceOrder: "in_order",
  groupBy: null,
});

const SEED = { first: 1, second: 2 };

function addAll(tracker: Tracker<number>, matches: readonly Match<number>[]): Firing<number>[] {
  const found: Firing<number>[] = [];
  tracker.add(matches, undefined, (firings) => found.push(...firings));
  return found;
}

function open(limits: RoomLimits, count = 3) {
  const room = new Room(limits);
  const makeTracker = () => new Tracker<number>(rule({ count, group_by: "raw.a" }), { seed: SEED, room });
  let key = 0;
  const add = (tracker: Tracker<number>, group: string | number, atMs = 0) =>
    addAll(tracker, [{ key: key++, timestampMs: atMs, values: [[group]], steps: 0 }]);
  return { room, makeTracker, add };
}

test("somebody who makes up groups without end takes no more room, and those that are at it stay known", () => {
  const { room, makeTracker, add } = open({ groupsPerRuleMax: 1000 });
  const tracker = makeTracker();
  add(tracker, "attacker");
  add(tracker, "attacker");
  for (let i = 0; i < 100_000; i++) add(tracker, i);
  expect(tracker.groups.live).toBe(1000);
  expect(room.totals).toEqual({ groups: 1000, entries: expect.any(Number) });
  expect(room.totals.entries).toBeLessThan(2000);
  expect(room.evicted.single).toBe(100_000 + 1 - 1000);
  expect(add(tracker, "attacker").map(({ count }) => count)).toEqual([3]);
});

test("all rules share one limit; the one that has most pays", () => {
  const { room, makeTracker, add } = open({ groupsMax: 1000 });
  const [large, small] = [makeTracker(), makeTracker()];
  for (let i = 0; i < 2000; i++) add(large, i);
  for (let i = 0; i < 100; i++) add(small, i);
  expect(room.totals.groups).toBe(1000);
  expect(small.groups.live).toBe(100);
  large.end();
  expect(room.totals.groups).toBe(100);
});

test("matches of few groups are bounded as well", () => {
  const { room, makeTracker, add } = open({ entriesMax: 2000 }, 1000);
  const tracker = makeTracker();
  for (let i = 0; i < 20_000; i++) add(tracker, i % 40, i);
  expect(room.totals.entries).toBeLessThan(4000);
  expect(room.evicted.several).toBeGreaterThan(0);
});

test("groups that nothing more is heard of go by themselves", () => {
  const { room, makeTracker, add } = open({});
  const tracker = makeTracker();
  for (let i = 0; i < 100; i++) add(tracker, i);
  for (let i = 0; i < 100; i++) add(tracker, "other", 3 * HOUR_MS + i);
  expect(tracker.groups.live).toBe(1);
  expect(room.evicted).toEqual({ expired: 100, single: 0, several: 0 });
});

test("they go each time that some have expired, those of a clock that was set back among them", () => {
  const { makeTracker, add } = open({});
  const tracker = makeTracker();
  for (const hour of [10, 20, 5]) {
    for (let i = 0; i < 100; i++) add(tracker, `${hour} ${i}`, hour * HOUR_MS);
    for (let i = 0; i < 100; i++) add(tracker, "other", (hour + 1) * HOUR_MS);
    const before = tracker.groups.live;
    for (let i = 0; i < 200; i++) add(tracker, "other", (hour + 3) * HOUR_MS + i);
    expect(tracker.groups.live, `${hour}`).toBe(before - 100);
  }
});

test("a value that comes again and again does not push out the different ones", () => {
  const { room } = open({});
  const tracker = new Tracker<number>(rule({ count: 20, distinct: "raw.port" }), { seed: SEED, room });
  let fired = 0;
  for (let port = 0; port < 20; port++) {
    for (let i = 0; i < 100; i++) {
      const key = port * 100 + i;
      fired += addAll(tracker, [{ key, timestampMs: key, values: [[port]], steps: 0 }]).length;
    }
  }
  expect(fired).toBe(100);
});

/** The counts of what fires when these values come, one a second, with these numbers as keys. */
function countsOf(tracker: Tracker<number>, values: readonly (readonly Scalar[])[], everyMs = 1000): number[] {
  return values.flatMap((each, key) =>
    addAll(tracker, [{ key, timestampMs: key * everyMs, values: [each], steps: 0 }]).map(({ count }) => count),
  );
}

test.each([
  ["few times", 250, [["b"]]],
  ["more often than all are remembered", 300, [["b"]]],
  ["all the time", 2000, [["b"]]],
  ["together with others", 2000, [["b", "d", "e"], ["b"], ["d", "b"]]],
])("a value that comes again %s counts with each of its events", (_, times, values) => {
  const { room } = open({});
  const tracker = new Tracker<number>(rule({ count: 5, distinct: "raw.u" }), { seed: SEED, room });
  const repeated = Array.from({ length: times }, (_, i) => values[i % values.length]!);
  const others = 5 - new Set(values.flat()).size;
  const last = ["v", "w", "x", "y"].slice(0, others).map((value) => [value]);
  expect(countsOf(tracker, [...repeated, ...last])).toEqual([times + others]);
});

test("however many values repeat, and however many an event has, each event counts once", () => {
  const some = fc.uniqueArray(fc.constantFrom<Scalar>("a", "b", "c", 1, "1"), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(fc.array(some, { minLength: 257, maxLength: 1200, size: "max" }), (repeated) => {
      const count = new Set(repeated.flat()).size + 1;
      const tracker = new Tracker<number>(rule({ count, distinct: "raw.u" }), { seed: SEED, room: new Room() });
      expect(countsOf(tracker, [...repeated, ["new"], ["a"]])).toEqual([repeated.length + 1, 1]);
    }),
    { numRuns: 30 },
  );
});

test("of a value that comes again and again, only what lies in the window counts", () => {
  const { room } = open({});
  const tracker = new Tracker<number>(rule({ count: 3, distinct: "raw.u" }), { seed: SEED, room });
  const days = Array.from({ length: 3 * 24 * 360 }, (_, i) => [i % 2 === 0 ? "b" : "c"]);
  const [counted] = countsOf(tracker, [...days, ["a"]], 10_000);
  // As exact as a sixty-fourth of the window.
  expect(Math.abs(counted! - 361)).toBeLessThanOrEqual(Math.ceil(361 / 64));
});

describe("a match that comes late", () => {
  const minute = { ...rule({ count: 3, group_by: "raw.a" }), window: "1m" };
  /** What fires when the third of three comes after so many others that are this far apart. */
  const lateAfter = (room: Room, others: number, everyMs: number) => {
    const tracker = new Tracker<number>(minute, { seed: SEED, room });
    const times = [0, 30_000, ...Array.from({ length: others }, (_, i) => HOUR_MS + i * everyMs), 10_000];
    return times
      .map((timestampMs, key) => addAll(tracker, [{ key, timestampMs, values: [["g"]], steps: 0 }]))
      .at(-1)!
      .map(({ count }) => count);
  };

  test.each([
    ["few others", 250, 100_000],
    ["many others", 262, 100_000],
    ["two thousand others", 2000, 100_000],
    ["a flood", 20_000, 100],
  ])("finds its neighbours after %s", (_, others, everyMs) => {
    expect(lateAfter(new Room(), others, everyMs)).toEqual([3]);
  });

  test("does not where there is no room for so many", () => {
    const room = new Room({ entriesMax: 1200 });
    expect(lateAfter(room, 2000, 100_000)).toEqual([]);
    expect(room.totals.entries).toBeLessThanOrEqual(1024);
  });
});

test("a threshold as high as can be has its room", () => {
  const tracker = new Tracker<number>({ ...rule({ count: 10_000 }), window: "7d" }, { seed: SEED, room: new Room() });
  const matches = Array.from({ length: 40_000 }, (_, key) => ({
    key,
    timestampMs: key * 60_501,
    values: [],
    steps: 0,
  }));
  expect(addAll(tracker, matches)).toEqual([]);
});

test("a step that happens again and again does not push out the others", () => {
  const { room } = open({});
  const steps = ["door", "person", "device"].map((name) => ({ name, conditions: [], count: 1 }));
  const tracker = new Tracker<number>(
    { window: "1h", threshold: null, sequence: steps, sequenceOrder: "in_order", groupBy: null },
    { seed: SEED, room },
  );
  const add = (key: number, step: number) => addAll(tracker, [{ key, timestampMs: key, values: [], steps: 1 << step }]);
  add(0, 0);
  add(1, 1);
  for (let key = 2; key < 5000; key++) expect(add(key, 0)).toEqual([]);
  const [firing] = add(5000, 2);
  expect(firing).toMatchObject({ count: 3, lastMs: 5000 });
  expect(firing!.marks.some(({ id }) => id === 1)).toBe(true);
});

// Making them all would take seconds: most are only said to be there.
test.each([
  ["a rule has a million groups", 1_000_000, "live"],
  ["all rules have two million groups", 2_000_000, "groups"],
  ["all rules have four million matches", 4_000_000, "entries"],
] as const)("as it runs, %s and no more", (_, most, what) => {
  const { room, makeTracker, add } = open({});
  const tracker = makeTracker();
  const isOfRule = what === "live";
  for (let i = 0; i < 10; i++) add(tracker, i);
  if (isOfRule) tracker.groups.live += most - 12;
  else room.totals[what] += most - 12;
  const count = () => (isOfRule ? tracker.groups.live : room.totals[what]);
  for (const group of [10, 11]) add(tracker, group);
  expect([count(), room.evicted.single]).toEqual([most, 0]);
  add(tracker, 12);
  expect(count()).toBeLessThanOrEqual(most);
  expect(room.evicted.single).toBeGreaterThan(0);
});

// What is found for a match before those ahead of it are counted may no longer be so when its turn comes.
test("matches that are counted together fire what they would one by one, whatever groups come and go among them", () => {
  const value = fc.integer({ min: 0, max: 40 });
  const match = fc.record({
    later: fc.constantFrom(0, 1, 1000, 2 * HOUR_MS),
    values: fc.array(value, { minLength: 0, maxLength: 3 }),
  });
  fc.assert(
    fc.property(fc.array(match, { maxLength: 800 }), fc.integer({ min: 1, max: 50 }), (made, groupsPerRuleMax) => {
      let nowMs = 0;
      const matches = made.map(({ later, values }, key) => {
        nowMs += later;
        return { key, timestampMs: nowMs, values: [[...new Set(values)]], steps: 0 };
      });
      const [together, apart] = [open({ groupsPerRuleMax }, 2), open({ groupsPerRuleMax }, 2)];
      const [all, single] = [together.makeTracker(), apart.makeTracker()];
      expect(addAll(all, matches)).toEqual(matches.flatMap((one) => addAll(single, [one])));
      expect(together.room.evicted).toEqual(apart.room.evicted);
    }),
  );
});
