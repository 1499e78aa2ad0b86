import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Rule } from "../../model/rule.ts";
import { WindowGroups } from "./window-groups.ts";
import { WindowMemoryLimit } from "./window-memory-limit.ts";
import { SequenceWindow } from "./sequence-window.ts";
import { SequenceSteps } from "./sequence-steps.ts";
import { entriesToEvict } from "./sequence-eviction.ts";
import { RuleTracker } from "./rule-tracker.ts";
import type { Firing } from "./tracked-match.ts";

const SEED = { first: 1, second: 2 };
const SECOND_MS = 1000;

/** A sequence with this number of steps or these counts per step, and a function that adds events. */
function open(counts: readonly number[], sequenceOrder: Rule["sequenceOrder"] = "in_order") {
  const sequence = counts.map((count, i) => ({ name: `${i}`, conditions: [], count }));
  const tracker = new RuleTracker<number>(
    { window: "1h", threshold: null, sequence, sequenceOrder, groupBy: null },
    { seed: SEED, memoryLimit: new WindowMemoryLimit() },
  );
  let key = 0;
  /** Adds an event with these steps at this second. */
  const see = (seconds: number, ...steps: number[]): Firing<number>[] => {
    const bits = steps.reduce((all, step) => all | (1 << step), 0);
    const fired: Firing<number>[] = [];
    tracker.add([{ key: key++, timestampMs: seconds * SECOND_MS, values: [], steps: bits }], undefined, (firings) =>
      fired.push(...firings),
    );
    return fired;
  };
  return { see, tracker };
}

describe("repeated steps do not push out the others", () => {
  test.each([250, 258, 262, 1500])("two of four alternating, %i times", (times) => {
    const { see } = open([1, 1, 1, 1]);
    see(0, 0);
    for (let i = 0; i < times; i++) expect(see(1 + i, i % 2 === 0 ? 3 : 2)).toEqual([]);
    expect(see(1600, 1)).toEqual([]);
    expect(see(1601, 2)).toEqual([]);
    expect(see(1602, 3)).toMatchObject([{ count: 4, firstMs: 0, lastMs: 1602 * SECOND_MS }]);
  });

  test("in any order", () => {
    const { see } = open([1, 1, 1, 1], "any");
    see(0, 0);
    for (let i = 0; i < 300; i++) expect(see(1 + i, i % 2 === 0 ? 3 : 2)).toEqual([]);
    expect(see(301, 1)).toMatchObject([{ count: 4, firstMs: 0, lastMs: 301 * SECOND_MS }]);
  });

  test("in the same second", () => {
    const { see } = open([1, 1, 1, 1]);
    for (let i = 0; i < 1000; i++) expect(see(0, i % 2 === 0 ? 3 : 2)).toEqual([]);
    expect(see(0, 0)).toEqual([]);
    expect(see(0, 1)).toMatchObject([{ count: 4 }]);
  });

  test("for a late event", () => {
    const { see } = open([1, 1, 1, 1]);
    see(10, 1);
    for (let i = 0; i < 1000; i++) expect(see(20 + i, i % 2 === 0 ? 3 : 2)).toEqual([]);
    expect(see(0, 0)).toMatchObject([{ count: 4, firstMs: 0 }]);
  });

  test("while late events continue in order", () => {
    const { see } = open([1, 1, 1, 1]);
    const dayBefore = -86_400;
    for (let i = 0; i < 100; i++) see(i, i % 4);
    see(dayBefore, 0);
    for (let i = 0; i < 1000; i++) see(dayBefore + 1 + i, i % 2 === 0 ? 3 : 2);
    expect(see(dayBefore + 1600, 1)).toEqual([]);
    expect(see(dayBefore + 1601, 2)).toEqual([]);
    expect(see(dayBefore + 1602, 3)).toMatchObject([{ count: 4, firstMs: dayBefore * SECOND_MS }]);
  });

  test("and the kept entries can still complete further sequences", () => {
    const { see } = open([1, 1]);
    for (let i = 0; i < 1000; i++) see(i, 0);
    let fired = 0;
    for (let i = 0; i < 300; i++) fired += see(1000 + i, 1).length;
    expect(fired).toBeGreaterThan(190);
  });
});

test("entries of a complete sequence stay taken even if an earlier event arrives late", () => {
  const byArrival = open([1, 1]);
  byArrival.see(10, 0);
  expect(byArrival.see(30, 1)).toMatchObject([{ count: 2 }]);
  expect([...byArrival.see(20, 1), ...byArrival.see(25, 0)]).toEqual([]);
  const byTime = open([1, 1]);
  byTime.see(10, 0);
  expect(byTime.see(20, 1)).toMatchObject([{ count: 2 }]);
  byTime.see(25, 0);
  expect(byTime.see(30, 1)).toMatchObject([{ count: 2 }]);
});

/** A one-minute window over one group with this number of spare entries. */
function windowOf(counts: readonly number[], inOrder: boolean, spareEntries: number) {
  const groups = new WindowGroups(1, { groups: 0, entries: 0 });
  const group = groups.insert(0, 0);
  const window = new SequenceWindow(groups, { windowMs: 60_000, lateMs: 600_000, counts, inOrder, spareEntries });
  const see = (timestampMs: number, steps: number, key: number) =>
    window.add(group, timestampMs, Uint32Array.of(0, key, 0, 0), [], steps);
  return { see, length: () => groups.length(group) };
}

/** Few enough that short streams overflow, but enough for sequences of five events. */
const SPARE = 32;
const EVENTS = 5;
const STEPS_MAX = 4;
const oneStep = fc.nat(STEPS_MAX - 1).map((step) => 1 << step);
const kind = fc.oneof(oneStep, fc.integer({ min: 1, max: 2 ** STEPS_MAX - 1 }));
/** Floods of one or two kinds, alternating with the others. */
const stream = fc
  .record({
    kinds: fc.array(kind, { minLength: 1, maxLength: 2 }),
    gapMax: fc.constantFrom(0, 1, 2, 10),
    weight: fc.constantFrom(3, 10, 30),
  })
  .chain(({ kinds, gapMax, weight }) => {
    const gapMs = fc.nat(gapMax).map((tenths) => tenths * 100);
    const steps = fc.oneof({ weight, arbitrary: fc.constantFrom(...kinds) }, { weight: 1, arbitrary: oneStep });
    return fc.array(fc.record({ gapMs, steps }), { minLength: 100, maxLength: 300, size: "max" });
  });
const stepCounts = fc
  .array(fc.integer({ min: 1, max: 3 }), { minLength: 2, maxLength: STEPS_MAX })
  .filter((counts) => counts.reduce((sum, count) => sum + count, 0) <= EVENTS);

test("a sequence completes with the same event as without eviction", () => {
  let fired = 0;
  fc.assert(
    fc.property(stepCounts, fc.boolean(), stream, (counts, inOrder, events) => {
      const [bounded, boundless] = [windowOf(counts, inOrder, SPARE), windowOf(counts, inOrder, 10_000)];
      let nowMs = 0;
      let hasForgotten = false;
      for (const [key, { gapMs, steps }] of events.entries()) {
        nowMs += gapMs;
        const found = bounded.see(nowMs, steps, key);
        const wanted = boundless.see(nowMs, steps, key);
        expect({ key, count: found?.count }).toEqual({ key, count: wanted?.count });
        // The choice among several entries, and with it the remainder, may differ.
        if (wanted) {
          if (hasForgotten) fired++;
          break;
        }
        hasForgotten ||= bounded.length() < boundless.length();
        expect(bounded.length()).toBeLessThanOrEqual(EVENTS + SPARE);
      }
    }),
    { numRuns: 300 },
  );
  // The test must not pass vacuously.
  expect(fired).toBeGreaterThan(20);
});

test.each([
  // The second starts later than the first, which is longer; the others follow nothing.
  ["in order", true, [0, 1, 0, 3, 3, 3], [3, 4, 5]],
  // One of each suffices, and the newest of each lasts longest.
  ["in any order", false, [0, 1, 0, 3, 3, 3], [0, 3, 4]],
])("eviction keeps the entries that could start another sequence: %s", (_, inOrder, list, dropped) => {
  const entries = { time: (place: number) => place, steps: (place: number) => 1 << list[place]! };
  const steps = new SequenceSteps([1, 1, 1, 1], inOrder);
  const crowd = { entries, length: list.length, steps, windowMs: 100, timestampMs: 10 };
  expect(entriesToEvict(crowd, dropped.length)).toEqual(dropped);
});
