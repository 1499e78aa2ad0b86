import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Scalar } from "../../model/condition.ts";
import { WindowMemoryLimit, type WindowLimits } from "./window-memory-limit.ts";
import { RuleTracker } from "./rule-tracker.ts";
import type { Firing, Match, TrackedRule } from "./tracked-match.ts";

const HOUR_MS = 3_600_000;
const rule = (threshold: TrackedRule["threshold"]): TrackedRule => ({
  window: "1h",
  threshold,
  sequence: null,
  sequenceOrder: "in_order",
  groupBy: null,
});

const SEED = { first: 1, second: 2 };

function addAll(tracker: RuleTracker<number>, matches: readonly Match<number>[]): Firing<number>[] {
  const found: Firing<number>[] = [];
  tracker.add(matches, undefined, (firings) => found.push(...firings));
  return found;
}

function open(limits: WindowLimits, count = 3) {
  const memoryLimit = new WindowMemoryLimit(limits);
  const makeTracker = () => new RuleTracker<number>(rule({ count, group_by: "raw.a" }), { seed: SEED, memoryLimit });
  let key = 0;
  const add = (tracker: RuleTracker<number>, group: string | number, atMs = 0) =>
    addAll(tracker, [{ key: key++, timestampMs: atMs, values: [[group]], steps: 0 }]);
  return { memoryLimit, makeTracker, add };
}

test("a flood of new groups takes no more memory, and active groups stay", () => {
  const { memoryLimit, makeTracker, add } = open({ groupsPerRuleMax: 1000 });
  const tracker = makeTracker();
  add(tracker, "attacker");
  add(tracker, "attacker");
  for (let i = 0; i < 100_000; i++) add(tracker, i);
  expect(tracker.groups.live).toBe(1000);
  expect(memoryLimit.totals).toEqual({ groups: 1000, entries: expect.any(Number) });
  expect(memoryLimit.totals.entries).toBeLessThan(2000);
  expect(memoryLimit.evicted.single).toBe(100_000 + 1 - 1000);
  expect(add(tracker, "attacker").map(({ count }) => count)).toEqual([3]);
});

test("all rules share one limit, and the largest loses groups", () => {
  const { memoryLimit, makeTracker, add } = open({ groupsMax: 1000 });
  const [large, small] = [makeTracker(), makeTracker()];
  for (let i = 0; i < 2000; i++) add(large, i);
  for (let i = 0; i < 100; i++) add(small, i);
  expect(memoryLimit.totals.groups).toBe(1000);
  expect(small.groups.live).toBe(100);
  large.close();
  expect(memoryLimit.totals.groups).toBe(100);
});

test("matches of few groups are limited as well", () => {
  const { memoryLimit, makeTracker, add } = open({ entriesMax: 2000 }, 1000);
  const tracker = makeTracker();
  for (let i = 0; i < 20_000; i++) add(tracker, i % 40, i);
  expect(memoryLimit.totals.entries).toBeLessThan(4000);
  expect(memoryLimit.evicted.several).toBeGreaterThan(0);
});

test("idle groups expire", () => {
  const { memoryLimit, makeTracker, add } = open({});
  const tracker = makeTracker();
  for (let i = 0; i < 100; i++) add(tracker, i);
  for (let i = 0; i < 100; i++) add(tracker, "other", 3 * HOUR_MS + i);
  expect(tracker.groups.live).toBe(1);
  expect(memoryLimit.evicted).toEqual({ expired: 100, single: 0, several: 0 });
});

test("expired groups are removed each time, also after the clock was set back", () => {
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

test("a repeated value does not push out the others", () => {
  const { memoryLimit } = open({});
  const tracker = new RuleTracker<number>(rule({ count: 20, distinct: "raw.port" }), { seed: SEED, memoryLimit });
  let fired = 0;
  for (let port = 0; port < 20; port++) {
    for (let i = 0; i < 100; i++) {
      const key = port * 100 + i;
      fired += addAll(tracker, [{ key, timestampMs: key, values: [[port]], steps: 0 }]).length;
    }
  }
  expect(fired).toBe(100);
});

/** The counts of the firings for these values, one per second, with these numbers as keys. */
function countsOf(tracker: RuleTracker<number>, values: readonly (readonly Scalar[])[], everyMs = 1000): number[] {
  return values.flatMap((each, key) =>
    addAll(tracker, [{ key, timestampMs: key * everyMs, values: [each], steps: 0 }]).map(({ count }) => count),
  );
}

test.each([
  ["a few times", 250, [["b"]]],
  ["beyond the capacity of a group", 300, [["b"]]],
  ["continuously", 2000, [["b"]]],
  ["together with others", 2000, [["b", "d", "e"], ["b"], ["d", "b"]]],
])("a value repeated %s counts with each of its events", (_, times, values) => {
  const { memoryLimit } = open({});
  const tracker = new RuleTracker<number>(rule({ count: 5, distinct: "raw.u" }), { seed: SEED, memoryLimit });
  const repeated = Array.from({ length: times }, (_, i) => values[i % values.length]!);
  const others = 5 - new Set(values.flat()).size;
  const last = ["v", "w", "x", "y"].slice(0, others).map((value) => [value]);
  expect(countsOf(tracker, [...repeated, ...last])).toEqual([times + others]);
});

test("each event counts once, regardless of repeated values and of values per event", () => {
  const some = fc.uniqueArray(fc.constantFrom<Scalar>("a", "b", "c", 1, "1"), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(fc.array(some, { minLength: 257, maxLength: 1200, size: "max" }), (repeated) => {
      const count = new Set(repeated.flat()).size + 1;
      const tracker = new RuleTracker<number>(rule({ count, distinct: "raw.u" }), {
        seed: SEED,
        memoryLimit: new WindowMemoryLimit(),
      });
      expect(countsOf(tracker, [...repeated, ["new"], ["a"]])).toEqual([repeated.length + 1, 1]);
    }),
    { numRuns: 30 },
  );
});

test("only events in the window count for a repeated value", () => {
  const { memoryLimit } = open({});
  const tracker = new RuleTracker<number>(rule({ count: 3, distinct: "raw.u" }), { seed: SEED, memoryLimit });
  const days = Array.from({ length: 3 * 24 * 360 }, (_, i) => [i % 2 === 0 ? "b" : "c"]);
  const [counted] = countsOf(tracker, [...days, ["a"]], 10_000);
  // Accurate to 1/64 of the window.
  expect(Math.abs(counted! - 361)).toBeLessThanOrEqual(Math.ceil(361 / 64));
});

describe("a late match", () => {
  const minute = { ...rule({ count: 3, group_by: "raw.a" }), window: "1m" };
  /** The firings of the third of three matches after this number of others at this interval. */
  const lateAfter = (memoryLimit: WindowMemoryLimit, others: number, everyMs: number) => {
    const tracker = new RuleTracker<number>(minute, { seed: SEED, memoryLimit });
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
    expect(lateAfter(new WindowMemoryLimit(), others, everyMs)).toEqual([3]);
  });

  test("does not if the memory limit is too low", () => {
    const memoryLimit = new WindowMemoryLimit({ entriesMax: 1200 });
    expect(lateAfter(memoryLimit, 2000, 100_000)).toEqual([]);
    expect(memoryLimit.totals.entries).toBeLessThanOrEqual(1024);
  });
});

test("the highest possible threshold fits", () => {
  const tracker = new RuleTracker<number>(
    { ...rule({ count: 10_000 }), window: "7d" },
    { seed: SEED, memoryLimit: new WindowMemoryLimit() },
  );
  const matches = Array.from({ length: 40_000 }, (_, key) => ({
    key,
    timestampMs: key * 60_501,
    values: [],
    steps: 0,
  }));
  expect(addAll(tracker, matches)).toEqual([]);
});

test("a repeated step does not push out the others", () => {
  const { memoryLimit } = open({});
  const steps = ["door", "person", "device"].map((name) => ({ name, conditions: [], count: 1 }));
  const tracker = new RuleTracker<number>(
    { window: "1h", threshold: null, sequence: steps, sequenceOrder: "in_order", groupBy: null },
    { seed: SEED, memoryLimit },
  );
  const add = (key: number, step: number) => addAll(tracker, [{ key, timestampMs: key, values: [], steps: 1 << step }]);
  add(0, 0);
  add(1, 1);
  for (let key = 2; key < 5000; key++) expect(add(key, 0)).toEqual([]);
  const [firing] = add(5000, 2);
  expect(firing).toMatchObject({ count: 3, lastMs: 5000 });
  expect(firing!.marks.some(({ id }) => id === 1)).toBe(true);
});

// Creating all of them would take seconds, so the test adjusts the totals.
test.each([
  ["a rule has a million groups", 1_000_000, "live"],
  ["all rules have two million groups", 2_000_000, "groups"],
  ["all rules have four million matches", 4_000_000, "entries"],
] as const)("as it runs, %s and no more", (_, most, what) => {
  const { memoryLimit, makeTracker, add } = open({});
  const tracker = makeTracker();
  const isOfRule = what === "live";
  for (let i = 0; i < 10; i++) add(tracker, i);
  if (isOfRule) tracker.groups.live += most - 12;
  else memoryLimit.totals[what] += most - 12;
  const count = () => (isOfRule ? tracker.groups.live : memoryLimit.totals[what]);
  for (const group of [10, 11]) add(tracker, group);
  expect([count(), memoryLimit.evicted.single]).toEqual([most, 0]);
  add(tracker, 12);
  expect(count()).toBeLessThanOrEqual(most);
  expect(memoryLimit.evicted.single).toBeGreaterThan(0);
});

// Earlier matches of a batch may change the groups that were looked up for later ones.
test("matches fire the same in a batch as one by one, even if groups come and go within it", () => {
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
      expect(together.memoryLimit.evicted).toEqual(apart.memoryLimit.evicted);
    }),
  );
});
