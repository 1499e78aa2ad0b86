import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { Scalar } from "../../model/condition.ts";
import { plainRule } from "../../model/rule.fixture.ts";
import { projectedValues, type ProjectedEvents } from "../../store/ports/projection.ts";
import { ThresholdPrefilter } from "./threshold-prefilter.ts";
import { WindowMemoryLimit } from "./window-memory-limit.ts";
import { RuleTracker } from "./rule-tracker.ts";
import type { Match } from "./tracked-match.ts";

const FIELDS = ["raw.from", "raw.to", "raw.what"];

interface Row {
  readonly timestampMs: number;
  readonly values: readonly (readonly Scalar[])[];
}

/** Dictionary numbers restart with each part, and equal values have several. */
function toPart(rows: readonly Row[], firstSeq: number): ProjectedEvents {
  return {
    length: rows.length,
    seqs: Float64Array.from(rows, (_, i) => firstSeq + i),
    timesMs: Float64Array.from(rows, ({ timestampMs }) => timestampMs),
    passed: new Int32Array(rows.length),
    columns: FIELDS.map((_, field) => ({
      numbers: Int32Array.from(rows, (row, i) => (row.values[field]!.length === 0 ? 0 : i + 1)),
      values: [[], ...rows.map((row) => row.values[field]!)],
    })),
  };
}

const matchesOf = (part: ProjectedEvents, places: readonly number[]): Match<number>[] =>
  places.map((at) => ({
    key: part.seqs[at]!,
    timestampMs: part.timesMs[at]!,
    values: projectedValues(part, at),
    steps: 0,
  }));

test("dropped events would not have counted, regardless of the boundaries of parts", () => {
  const WINDOW_MS = 60_000;
  const value = fc.constantFrom<Scalar[]>(["a"], ["b"], [], [1], ["1"], ["c"]);
  const mixed = fc.oneof({ weight: 40, arbitrary: value }, { weight: 1, arbitrary: fc.constant<Scalar[]>(["a", "b"]) });
  // Bursts, sometimes exactly one window apart.
  const gap = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 0, max: 4000 }) },
    { weight: 2, arbitrary: fc.constantFrom(0, WINDOW_MS, WINDOW_MS / 2, WINDOW_MS + 1) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 10 * WINDOW_MS }) },
  );
  const row = fc.record({ gap, values: fc.tuple(mixed, value, mixed) as fc.Arbitrary<Row["values"]> });
  const question = fc.record({
    rows: fc.array(row, { maxLength: 200, size: "max" }),
    partRows: fc.integer({ min: 1, max: 200 }),
    count: fc.integer({ min: 1, max: 12 }),
    group_by: fc.constantFrom(undefined, "raw.from", ["raw.from", "raw.to"]),
    distinct: fc.constantFrom(undefined, undefined, "raw.what"),
  });
  // The third is one window after two simultaneous events, one of which is in the previous part.
  const gaps = [0, 0, 0, 0, WINDOW_MS, 4 * WINDOW_MS];
  const rowsOfGaps = gaps.map((ms, i) => ({ gap: ms, values: [i < 2 ? ["b"] : ["a"], [], []] as Row["values"] }));
  const apart = { rows: rowsOfGaps, partRows: 3, count: 3, group_by: "raw.from", distinct: undefined };
  let [fired, leftOut] = [0, 0];
  fc.assert(
    fc.property(question, ({ rows, partRows, ...threshold }) => {
      const rule = plainRule({ window: "1m", threshold });
      const seed = { first: 1, second: 2 };
      const trackers = [0, 1].map(
        () => new RuleTracker<number>(rule, { seed, memoryLimit: new WindowMemoryLimit(), inOrder: true }),
      );
      const crowds = new ThresholdPrefilter(rule, FIELDS);
      let timestampMs = 1_800_000_000_000;
      const timed = rows.map(({ gap: ms, values }): Row => ({ timestampMs: (timestampMs += ms), values }));
      const firings: unknown[][] = [[], []];
      for (let from = 0; from < timed.length; from += partRows) {
        const part = toPart(timed.slice(from, from + partRows), from);
        const every = Array.from({ length: part.length }, (_, i) => i);
        const picked = [...(crowds.pick(part) ?? every)];
        leftOut += part.length - picked.length;
        for (const [i, places] of [every, picked].entries()) {
          const paths = trackers[i]!.paths.map((path) => FIELDS.indexOf(path));
          const matches = matchesOf(part, places).map((match) => ({
            ...match,
            values: paths.map((place) => match.values[place]!),
          }));
          trackers[i]!.add(matches, undefined, (found, { key }) => firings[i]!.push([key, found]));
        }
      }
      fired += firings[0]!.length;
      expect(firings[1]).toEqual(firings[0]);
    }),
    { numRuns: 400, seed: 11, examples: [[apart]] },
  );
  // The test must not pass vacuously.
  expect(fired).toBeGreaterThan(1000);
  expect(leftOut).toBeGreaterThan(1000);
});
