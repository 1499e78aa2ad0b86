import * as fc from "fast-check";
import type { Condition, Scalar } from "../../model/condition.ts";
import type { Event, EventDraft } from "../../model/event.ts";
import type { ConditionInput, Rule } from "../../model/rule.ts";
import { plainRule } from "../../model/rule.fixture.ts";
import { idMaker } from "../../lib/id.ts";
import { formatTime } from "../../lib/time.ts";
import { unreachable } from "../../lib/unreachable.ts";
import { chainsOver, inputsOver, type ChainMakers } from "./arbitrary-chains.ts";

// Random rules that fire often enough, and events in order of arrival with timestamps in any order.

export const START_MS = Date.UTC(2026, 10, 15, 12);

/** A condition as written in a rule. */
function toInput(condition: Condition): ConditionInput {
  switch (condition.kind) {
    case "all":
      return { all: condition.of.map(toInput) };
    case "any":
      return { any: condition.of.map(toInput) };
    case "not":
      return { not: toInput(condition.of) };
    case "test": {
      const { field, operator, value, ignoreCase } = condition;
      return { field, [operator]: value, ignore_case: ignoreCase } as ConditionInput;
    }
    default:
      return unreachable(condition);
  }
}

export function eventsOf(drafts: fc.Arbitrary<EventDraft>, maxLength: number): fc.Arbitrary<Event[]> {
  return fc.array(drafts, { minLength: 1, maxLength }).map((list) => {
    const nextId = idMaker("evt_", () => START_MS);
    return list.map(({ timestampMs, type, source, severity, class: kind, raw, enrichment }) => ({
      id: nextId(),
      type,
      source,
      class: kind,
      severity,
      timestamp: formatTime(timestampMs),
      raw,
      enrichment,
    }));
  });
}

export const PLAIN_RULE = plainRule({
  description: "Somebody was {{raw.user}}\n{{raw.src_ip}} to {{raw.nothing}}",
  tags: ["test"],
});

const groupPath = fc.constantFrom("raw.src_ip", "raw.user", "type", "source", "raw.list", "raw.ports", "raw.a.b");
const groupBy = fc.oneof(groupPath, fc.array(groupPath, { minLength: 1, maxLength: 2 }));
const window = fc.constantFrom("1s", "1m", "10m", "1h");

function seenAt(id: string, at: number, raw: Event["raw"]): Event {
  return {
    id,
    type: "seen",
    source: "custom",
    class: "audit",
    severity: "low",
    timestamp: formatTime(START_MS + at),
    raw,
    enrichment: {},
  };
}

/** Few groups, few values, many equal timestamps or exactly a window apart: the edge cases of windows and sequences. */
export const denseEvents: fc.Arbitrary<Event[]> = fc
  .array(
    fc.record({
      at: fc.oneof(
        { weight: 20, arbitrary: fc.nat(12).map((step) => step * 30_000) },
        { weight: 1, arbitrary: fc.constantFrom(3_600_000, 7_200_000) },
      ),
      group: fc.constantFrom<string | string[]>("a", "a", "a", "b", ["a", "b"]),
      to: fc.constantFrom<string | string[]>("a", "b", ["b", "c"]),
      // Both large integers are the same double.
      value: fc.constantFrom<Scalar | Scalar[]>(1, 2, 3, "1", [1, 2], [2, 4], [], 2n ** 53n, 2n ** 53n + 1n),
      kinds: fc.oneof(
        fc.subarray([0, 1, 2]),
        fc.nat(3).map((kind) => [kind]),
      ),
    }),
    { minLength: 1, maxLength: 30 },
  )
  .map((list) => {
    const nextId = idMaker("evt_", () => START_MS);
    return list.map(({ at, ...raw }) => seenAt(nextId(), at, raw));
  });

/** More events of one group than it keeps, in floods and alone, followed by late ones. */
export const longStream: fc.Arbitrary<Event[]> = fc
  .tuple(
    fc.array(fc.oneof(fc.nat(10_000), fc.constantFrom(0, 60_000, 90_000)), {
      minLength: 280,
      maxLength: 340,
      size: "max",
    }),
    fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 20, maxLength: 40, size: "max" }),
  )
  .map(([gaps, late]) => {
    const nextId = idMaker("evt_", () => START_MS);
    let lastMs = 0;
    const times = gaps.map((gap) => (lastMs += gap));
    return [...times, ...late.map((part) => Math.floor(part * lastMs))].map((at) => seenAt(nextId(), at, {}));
  });

const denseWindow = fc.constantFrom("1s", "1m", "2m", "1h");

/** Upper, lower and two-sided bounds of counts and measures. */
const measuredThreshold = fc
  .record({
    measure: fc.constantFrom(
      {},
      { distinct: "raw.value" },
      { sum: "raw.value" },
      { avg: "raw.value" },
      { percentile: { of: "raw.value", rank: 50 } },
      { percentile: { of: "raw.value", rank: 90 } },
    ),
    count: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
    group_by: fc.constantFrom(undefined, "raw.group"),
    lower: fc.constantFrom({}, { gte: 2 }, { gte: 4 }, { gt: 1 }),
    upper: fc.constantFrom({}, { lte: 3 }, { lt: 3 }),
  })
  .map(({ measure, count, group_by, lower, upper }) => {
    const isMeasure = !("distinct" in measure) && Object.keys(measure).length > 0;
    const bounds = isMeasure ? { ...lower, ...upper } : upper;
    const least = isMeasure && Object.keys(bounds).length === 0 ? { gte: 2 } : {};
    const needsCount = !isMeasure && Object.keys(upper).length === 0;
    return { ...measure, ...bounds, ...least, count: count ?? (needsCount ? 1 : undefined), group_by };
  });

/** Required and absent steps in any arrangement. */
const absentSteps = fc
  .array(fc.record({ count: fc.integer({ min: 1, max: 2 }), absent: fc.boolean() }), { minLength: 2, maxLength: 4 })
  .filter((steps) => steps.some(({ absent }) => absent) && steps.some(({ absent }) => !absent))
  .map((steps) =>
    steps.map(({ count, absent }, i) => ({
      name: `${i}`,
      conditions: [{ field: "raw.kinds", equals: i }],
      count: absent ? 1 : count,
      ...(absent && { absent }),
    })),
  );

const makers: ChainMakers = {
  window: denseWindow,
  ofKind: (kind) => fc.constant([{ field: "raw.kinds", equals: kind }]),
  group: "raw.group",
  other: "raw.to",
  value: "raw.value",
};
/** Correlations over correlations for these events. */
const chained = chainsOver(makers);

/** Rules for these events. */
export const denseRule: fc.Arbitrary<Rule> = fc
  .oneof(
    fc.record({
      threshold: fc.record({
        count: fc.integer({ min: 1, max: 5 }),
        group_by: fc.constantFrom(undefined, "raw.group"),
        distinct: fc.constantFrom(undefined, undefined, "raw.value", ["raw.value", "raw.to"]),
      }),
      window: denseWindow,
    }),
    fc.record({ threshold: measuredThreshold, window: denseWindow }),
    fc.record({
      sequence: fc
        .array(fc.integer({ min: 1, max: 3 }), { minLength: 2, maxLength: 3 })
        .map((counts) =>
          counts.map((count, i) => ({ name: `${i}`, conditions: [{ field: "raw.kinds", equals: i }], count })),
        )
        .chain((steps) =>
          // With different paths per step, an event is in a different group with each of its steps.
          fc.constantFrom(steps, [{ ...steps[0]!, group_by: "raw.to" }, ...steps.slice(1)]),
        ),
      sequenceOrder: fc.constantFrom("in_order" as const, "any" as const),
      groupBy: fc.constantFrom(null, "raw.group"),
      window: denseWindow,
    }),
    fc.record({
      sequence: fc.integer({ min: 2, max: 4 }).map((length) =>
        Array.from({ length }, (_, i) => ({
          name: `${i}`,
          conditions: [{ field: "raw.kinds", equals: i }],
          count: 1,
        })),
      ),
      sequenceOrder: fc.constant("any" as const),
      sequenceMin: fc.integer({ min: 1, max: 2 }),
      groupBy: fc.constantFrom(null, "raw.group"),
      window: denseWindow,
    }),
    fc.record({
      sequence: absentSteps,
      groupBy: fc.constantFrom(null, "raw.group"),
      window: denseWindow,
    }),
    fc.record({ threshold: inputsOver(measuredThreshold, makers), window: denseWindow }),
    chained,
    chained,
  )
  .chain((memory) =>
    fc
      .record({ period: fc.constantFrom("1s", "10m"), by: fc.constantFrom(null, "type", "raw.value") })
      .map((dedup) => ({
        ...PLAIN_RULE,
        id: "rule_dense",
        name: "test.dense",
        dedup,
        ...memory,
      })),
  );

/** The start of a sequence, more events of one or two steps than a group keeps, and a possible end of the sequence. */
export const floodedSequence: fc.Arbitrary<{ rule: Rule; events: Event[] }> = fc
  .record({
    begun: fc.integer({ min: 1, max: 2 }),
    repeated: fc.subarray([0, 1, 2], { minLength: 1, maxLength: 2 }),
    length: fc.integer({ min: 260, max: 300 }),
    after: fc.array(fc.nat(3), { maxLength: 6 }),
    sequenceOrder: fc.constantFrom("in_order" as const, "any" as const),
  })
  .map(({ begun, repeated, length, after, sequenceOrder }) => {
    const steps = [0, 1, 2, 3];
    const others = steps.filter((step) => step !== begun);
    const flood = Array.from({ length }, (_, i) => others[repeated[i % repeated.length]!]!);
    const nextId = idMaker("evt_", () => START_MS);
    const events = [...steps.slice(0, begun), ...flood, ...steps.slice(begun), ...after].map((step, i) => ({
      id: nextId(),
      type: "seen",
      source: "custom",
      class: "audit" as const,
      severity: "low" as const,
      timestamp: formatTime(START_MS + i * 1000),
      raw: { step },
      enrichment: {},
    }));
    const sequence = steps.map((step) => ({
      name: `${step}`,
      conditions: [{ field: "raw.step", equals: step }],
      count: 1,
    }));
    return { rule: { ...PLAIN_RULE, id: "rule_flooded", sequence, sequenceOrder, window: "1h" }, events };
  });

/** Rules of every kind over these conditions. */
export function rulesOf(conditions: fc.Arbitrary<Condition>): fc.Arbitrary<Rule[]> {
  const condition = fc.oneof(
    { weight: 3, arbitrary: conditions.map(toInput) },
    // Most events must match, or nothing is counted.
    {
      weight: 3,
      arbitrary: fc.constantFrom<ConditionInput>(
        { field: "raw", exists: true },
        { not: { field: "type", equals: "dns" } },
        { field: "type", in: ["login_failure", "MOTION"], ignore_case: true },
      ),
    },
  );
  const someConditions = fc.array(condition, { minLength: 1, maxLength: 2 });

  const over: ChainMakers = {
    window,
    ofKind: () => someConditions,
    group: "type",
    other: "raw.user",
    value: "raw.ports",
  };
  const counting = fc.record({
    count: fc.integer({ min: 1, max: 4 }),
    group_by: fc.option(groupBy, { nil: undefined }),
    distinct: fc.option(groupBy, { nil: undefined }),
  });
  const memory: fc.Arbitrary<Partial<Rule>> = fc.oneof(
    fc.constant({}),
    fc.record({ threshold: counting, window }),
    fc.record({ threshold: inputsOver(counting, over), window }),
    chainsOver(over),
    fc
      .tuple(
        fc.constantFrom<NonNullable<Rule["threshold"]>>(
          { sum: "raw.src_port", gte: 500 },
          { avg: "raw.ports", gt: 30, count: 2 },
          { percentile: { of: "raw.ports", rank: 75 }, gte: 40 },
          { count: 2, lte: 4 },
          { distinct: "raw.user", lt: 3 },
          { avg: "raw.ports", gte: 10, lt: 5000 },
        ),
        fc.option(groupBy, { nil: undefined }),
        window,
      )
      .map(([threshold, group_by, window]) => ({ threshold: { ...threshold, group_by }, window })),
    fc
      .record({
        steps: fc.array(fc.tuple(someConditions, fc.integer({ min: 1, max: 2 })), { minLength: 2, maxLength: 3 }),
        paths: fc.option(fc.tuple(groupPath, fc.option(groupPath, { nil: undefined })), { nil: undefined }),
        sequenceOrder: fc.constantFrom("in_order" as const, "any" as const),
        absent: fc.option(fc.nat(2), { nil: undefined }),
        window,
      })
      .map(({ steps, paths, sequenceOrder, absent, window }) => ({
        sequence: steps.map(([list, count], i) => ({
          name: `step ${i}`,
          conditions: list,
          ...(sequenceOrder === "in_order" && i === absent ? { count: 1, absent: true } : { count }),
          ...(i === 1 && paths?.[1] !== undefined && { group_by: paths[1] }),
        })),
        groupBy: paths?.[0] ?? null,
        sequenceOrder,
        window,
      })),
  );

  const exception = fc.record({
    conditions: fc.array(condition, { minLength: 1, maxLength: 1 }),
    expiresAt: fc.constantFrom(null, START_MS - 1, START_MS + 1),
  });

  const rule: fc.Arbitrary<Omit<Rule, "id" | "name">> = fc
    .record({
      conditions: someConditions,
      memory,
      source: fc.constantFrom("any", "any", "custom", "platform_network"),
      by: fc.option(groupBy, { nil: null }),
      period: fc.constantFrom("1s", "1m", "1h"),
      exceptions: fc.array(exception, { maxLength: 1 }),
    })
    .map(({ conditions: list, memory: kept, source, by, period, exceptions }) => ({
      ...PLAIN_RULE,
      conditions: list,
      source,
      dedup: { by, period },
      exceptions: exceptions.map((item) => ({ ...item, id: "exc", reason: "known", author: "test", createdAt: 0 })),
      ...kept,
    }));

  return fc
    .array(rule, { minLength: 1, maxLength: 6 })
    .map((list) => list.map((item, i) => ({ ...item, id: `rule_${i}`, name: `test.rule_${i}` })));
}
