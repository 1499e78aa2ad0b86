import * as fc from "fast-check";
import type { ConditionInput, Part, Rule } from "../../model/rule.ts";

// Random correlations over correlations, and thresholds whose inputs have their own paths.

export interface ChainMakers {
  readonly window: fc.Arbitrary<string>;
  /** Conditions of event kinds 0 to 3; an event may be several kinds. */
  ofKind(kind: number): fc.Arbitrary<ConditionInput[]>;
  /** Two paths to group by, and one with numbers. */
  readonly group: string;
  readonly other: string;
  readonly value: string;
}

/** Inputs with the group or the measured value under other paths; one event is often several inputs. */
export function inputsOver(
  thresholds: fc.Arbitrary<NonNullable<Rule["threshold"]>>,
  { ofKind, group, other, value }: ChainMakers,
): fc.Arbitrary<NonNullable<Rule["threshold"]>> {
  return fc
    .record({
      threshold: thresholds,
      group: fc.constantFrom(undefined, other, group),
      value: fc.constantFrom(undefined, other, value),
      first: ofKind(0),
      second: ofKind(1),
    })
    .map(({ threshold, group: own, value: measured, first, second }) => {
      const { distinct, sum, avg, percentile } = threshold;
      const isMeasured = (distinct ?? sum ?? avg ?? percentile) !== undefined;
      const paths = {
        ...(typeof threshold.group_by === "string" && own !== undefined && { group_by: own }),
        ...(isMeasured && !Array.isArray(distinct) && measured !== undefined && { value: measured }),
      };
      return { ...threshold, inputs: [{ conditions: first }, { conditions: second, ...paths }] };
    });
}

/** Parts of every kind, grouped by both paths, so that their users can group by either. */
function partOf({ window, ofKind, group, other, value }: ChainMakers): fc.Arbitrary<Omit<Part, "name">> {
  const paths = [group, other];
  return fc.oneof(
    fc.record({
      conditions: fc.oneof(ofKind(0), ofKind(1), ofKind(2)),
      window,
      threshold: fc
        .record({
          count: fc.integer({ min: 1, max: 3 }),
          measure: fc.constantFrom({}, {}, { distinct: value }, { sum: value, gte: 3 }),
        })
        .map(({ count, measure }) => ({ count, ...measure, group_by: paths })),
      sequence_order: fc.constant("in_order" as const),
    }),
    fc.record({
      conditions: fc.constant([]),
      window,
      sequence: fc.tuple(fc.integer({ min: 1, max: 2 }), ofKind(0), ofKind(1)).map(([count, first, second]) => [
        { name: "0", conditions: first, count },
        { name: "1", conditions: second, count: 1 },
      ]),
      sequence_order: fc.constantFrom("in_order" as const, "any" as const),
      group_by: fc.constant(paths),
    }),
  );
}

/** Correlations over correlations, with or without plain events, up to three levels deep. */
export function chainsOver(makers: ChainMakers): fc.Arbitrary<Partial<Rule>> {
  const { window, ofKind, group, other } = makers;
  const part = partOf(makers);
  const sequence = fc
    .record({
      first: part,
      second: part,
      event: ofKind(2),
      order: fc.constantFrom("in_order" as const, "any" as const),
      absent: fc.constantFrom(undefined, "part", "event"),
      groupBy: fc.constantFrom(null, group),
      window,
    })
    .map(({ first, second, event, order, absent, ...rest }) => ({
      ...rest,
      conditions: [],
      parts: [
        { ...first, name: "first" },
        { ...second, name: "second" },
      ],
      sequence: [
        { name: "part", part: "first", count: 1 },
        { name: "other", part: "second", count: 1 },
        { name: "event", conditions: event, count: 1 },
      ].map((step) => ({ ...step, ...(absent === step.name && { absent: true }) })),
      sequenceOrder: absent === undefined ? order : ("in_order" as const),
    }));
  const threshold = fc
    .record({
      first: part,
      second: part,
      between: fc.option(ofKind(2), { nil: undefined }),
      event: ofKind(3),
      measure: fc.oneof(
        fc.record({ count: fc.integer({ min: 1, max: 3 }) }),
        fc.constant({ count: 1, lte: 2 }),
        fc.record({ count: fc.integer({ min: 1, max: 3 }), distinct: fc.constant(other) }),
      ),
      groupBy: fc.constantFrom(undefined, group),
      window,
    })
    .map(({ first, second, between, event, measure, groupBy, window: own }) => {
      const middle = between && {
        name: "between",
        conditions: [],
        window: own,
        sequence: [
          { name: "part", part: "first", count: 1 },
          { name: "event", conditions: between, count: 1 },
        ],
        sequence_order: "in_order" as const,
        group_by: [group, other],
      };
      const inputs = [
        { part: middle ? "between" : "first" },
        { part: "second", ...(groupBy !== undefined && { group_by: other }) },
        ...("distinct" in measure ? [] : [{ conditions: event }]),
      ];
      return {
        window: own,
        conditions: [],
        threshold: { ...measure, group_by: groupBy, inputs },
        parts: [{ ...first, name: "first" }, ...(middle ? [middle] : []), { ...second, name: "second" }],
      };
    });
  return fc.oneof(sequence, threshold);
}
