import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileCondition } from "../../model/condition.ts";
import type { Event, JsonValue } from "../../model/event.ts";
import { toConditions, type ConditionInput } from "../../model/rule.ts";
import { conditions, drafts } from "../../store/testing/arbitrary-events.ts";
import { START_MS, eventsOf } from "../testing/arbitrary-rules.ts";
import { contradictionOf } from "./contradiction.ts";

const A = "raw.a";
const isSystem = { field: "raw.Channel", equals: "System", ignore_case: true };

/** Conditions that no event can match, and a part of the reason. */
const IMPOSSIBLE: readonly (readonly [items: readonly ConditionInput[], reason: RegExp])[] = [
  [[isSystem, { not: isSystem }], /^raw\.Channel equals "System" contradicts not raw\.Channel equals "System"$/],
  [[isSystem, { not: { field: "raw.Channel", in: ["security", "SYSTEM"], ignore_case: true } }], /raw\.Channel in/],
  [
    [
      { field: A, equals: "x" },
      { field: A, not_equals: "x" },
    ],
    /raw\.a/,
  ],
  [
    [
      { field: A, equals: "x" },
      { field: A, not_in: ["y", "x"] },
    ],
    /raw\.a/,
  ],
  [[{ field: A, in: ["x", "y"] }, { not: { field: A, equals: "x" } }, { not: { field: A, contains: "y" } }], /raw\.a/],
  [[{ field: A, equals: "xyz" }, { not: { field: A, regex: "^x.z$" } }], /regex/],
  [[{ field: A, equals: 7 }, { not: { field: A, gt: 3 } }], /gt 3/],
  [[{ field: A, equals: "10.0.0.7" }, { not: { field: A, cidr: "10.0.0.0/8" } }], /cidr/],
  [[{ field: A, contains: "abc" }, { not: { field: A, contains: "B", ignore_case: true } }], /contains "B"/],
  [[{ field: A, starts_with: ["ab", "ac"] }, { not: { field: A, starts_with: "a" } }], /starts_with "a"/],
  [[{ field: A, ends_with: "abc" }, { not: { field: A, contains: "bc" } }], /contains "bc"/],
  [[{ field: A, regex: "x+" }, { not: { field: A, regex: ["y", "x+"] } }], /regex/],
  [
    [
      { field: A, exists: true },
      { field: A, exists: false },
    ],
    /exists/,
  ],
  [
    [
      { field: A, gt: 3 },
      { field: A, exists: false },
    ],
    /exists/,
  ],
  [[{ field: A, equals_field: "raw.b" }, { not: { field: A, equals_field: "raw.b" } }], /equals_field/],
  [[{ field: A, contains: "abc" }, { not: { field: "raw.*", contains: "abc" } }], /raw\.\*/],
  [[{ field: A, contains: "abc" }, { not: { keyword: "ABC", ignore_case: true } }], /\* contains/],
  [
    [
      { field: "type", equals: "x" },
      { field: "type", equals: "y" },
    ],
    /type/,
  ],
  [
    [
      { field: "type", in: ["x", "y"] },
      { field: "type", starts_with: "z" },
    ],
    /type/,
  ],
  [[{ field: "raw.Channel", equals: "Security" }, isSystem], /raw\.Channel/],
  [
    [
      { field: "raw.EventID", in: [1, "1"] },
      { field: "raw.EventID", in: [2, "2"] },
    ],
    /raw\.EventID/,
  ],
  // Every alternative is ruled out, or the last one rules out something else.
  [[isSystem, { any: [{ not: isSystem }, { field: "raw.Channel", equals: "Security" }] }], /raw\.Channel/],
  [
    [
      { field: A, equals: 1 },
      {
        any: [
          { field: A, exists: false },
          { field: "type", equals: "x" },
        ],
      },
      { field: "type", equals: "y" },
    ],
    /raw\.a/,
  ],
  [
    [
      {
        not: {
          any: [
            { field: A, exists: true },
            { field: "raw.b", exists: true },
          ],
        },
      },
      { field: "raw.b", equals: 1 },
    ],
    /raw\.b/,
  ],
];

/** Similar conditions that can match. */
const POSSIBLE: readonly (readonly ConditionInput[])[] = [
  // A field may hold a list.
  [
    { field: A, equals: "x" },
    { field: A, equals: "y" },
  ],
  [{ field: A, starts_with: "x" }, { not: { field: A, equals: "x" } }],
  [{ field: A, contains: "b" }, { not: { field: A, contains: "abc" } }],
  [{ field: A, starts_with: "ab" }, { not: { field: A, ends_with: "ab" } }],
  // "SYSTEM" passes one and not the other.
  [isSystem, { not: { field: "raw.Channel", equals: "System" } }],
  [{ field: "raw.Channel", contains: "sys", ignore_case: true }, { not: { field: "raw.Channel", contains: "sys" } }],
  [{ field: A, equals: "AbC", ignore_case: true }, { not: { field: A, regex: "^AbC$" } }],
  [{ field: A, in: ["x", "y"] }, { not: { field: A, equals: "x" } }],
  [{ field: A, equals: "1" }, { not: { field: A, equals: 1 } }],
  [{ field: A, exists: true }, { not: { field: A, equals: "x" } }],
  [{ field: "raw.b", contains: "abc" }, { not: { field: A, contains: "abc" } }],
  [{ field: "raw.*", contains: "abc" }, { not: { field: A, contains: "abc" } }],
  [{ keyword: "abc", ignore_case: true }, { not: { field: "raw.*", contains: "abc" } }],
  [
    {
      any: [
        { field: "type", equals: "x" },
        { field: "type", equals: "y" },
      ],
    },
    { field: "type", equals: "y" },
  ],
  [
    { field: "type", equals: "X", ignore_case: true },
    { field: "type", equals: "x" },
  ],
];

describe("a condition that no event can match", () => {
  test.each(IMPOSSIBLE)("%j", (items, reason) => {
    expect(contradictionOf(toConditions(items))).toMatch(reason);
    expect(contradictionOf(toConditions(items.toReversed()))).toBeDefined();
  });

  test.each(POSSIBLE.map((items) => [items]))("%j can be matched", (items) => {
    expect(contradictionOf(toConditions(items))).toBeUndefined();
  });

  test("a proof that would take too long is abandoned", () => {
    const many = (field: string) => Array.from({ length: 250 }, (_, i) => ({ field, equals: `${i}` }));
    const items = Array.from({ length: 250 }, (_, i) => ({ any: many(`raw.f${i}`) }));
    expect(contradictionOf(toConditions([...items, { field: A, equals: 1 }]))).toBeUndefined();
  });
});

const item = fc.constantFrom("a", "A", "ab", "B", "1");
const small: fc.Arbitrary<ConditionInput> = fc.oneof(
  fc.record({ field: fc.constantFrom(A, "type", "raw.*"), equals: item, ignore_case: fc.boolean() }),
  fc.record({
    field: fc.constantFrom(A, "type"),
    not_in: fc.array(item, { minLength: 1, maxLength: 2 }),
    ignore_case: fc.boolean(),
  }),
  fc.record({ field: fc.constantFrom(A, "type", "raw.*", "*"), contains: item, ignore_case: fc.boolean() }),
  fc.record({ field: fc.constantFrom(A, "type"), starts_with: item, ignore_case: fc.boolean() }),
  fc.record({ field: fc.constantFrom(A, "type"), regex: fc.constantFrom("^a", "(?i)b", "1") }),
  fc.record({ field: fc.constant(A), exists: fc.boolean() }),
);
const { tree } = fc.letrec<{ tree: ConditionInput }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    small,
    fc.record({ not: tie("tree") }),
    fc.record({ any: fc.array(tie("tree"), { minLength: 1, maxLength: 3 }) }),
    fc.record({ all: fc.array(tie("tree"), { minLength: 1, maxLength: 4 }) }),
  ),
}));

const VALUES: readonly (JsonValue | undefined)[] = [
  undefined,
  null,
  ..."a A b B 1 ab aB AB".split(" "),
  1,
  true,
  {},
  [],
  ["a", "b"],
  ["A", 1],
];
const EVENTS: readonly Event[] = VALUES.flatMap((value) =>
  ["a", "A", "ab", "1", "B"].map((type) => ({
    id: "evt_1",
    type,
    source: "custom",
    class: "security",
    severity: "info",
    timestamp: "2026-11-15T10:00:00.000Z",
    raw: value === undefined ? { b: "x" } : { a: value },
    enrichment: { c: "a" },
  })),
);

test("a condition reported as impossible matches no event", () => {
  let found = 0;
  fc.assert(
    fc.property(fc.array(tree, { minLength: 1, maxLength: 5 }), (items) => {
      const condition = toConditions(items);
      if (contradictionOf(condition) === undefined) return;
      found++;
      expect(EVENTS.filter(compileCondition(condition))).toEqual([]);
    }),
    { numRuns: 3000 },
  );
  expect(found).toBeGreaterThan(100);
});

test("no random condition that a random event matches is reported as impossible", () => {
  fc.assert(
    fc.property(conditions(), eventsOf(drafts(START_MS, START_MS + 60_000), 20), (condition, events) => {
      if (events.some(compileCondition(condition))) expect(contradictionOf(condition)).toBeUndefined();
    }),
    { numRuns: 500 },
  );
});
