import * as fc from "fast-check";
import { expect, test } from "vitest";
import { conditions, drafts } from "../store/testing/arbitrary-events.ts";
import { DAY_MS } from "../lib/time.ts";
import { compileCondition, type Condition } from "./condition.ts";
import type { Event, JsonObject } from "./event.ts";
import {
  compileExplainer,
  MATCHED_FIELDS_MAX,
  MATCHED_VALUE_CHARACTERS_MAX,
  type MatchedField,
} from "./matched-fields.ts";
import { toConditions, type ConditionInput } from "./rule.ts";

const event = (raw: JsonObject): Event => ({
  id: "evt_1",
  type: "login_failure",
  source: "custom",
  class: "security",
  severity: "low",
  timestamp: "2026-11-15T08:30:00.000Z",
  raw,
  enrichment: { geo: { country: "AT" } },
});

function explain(condition: Condition, of: Event): MatchedField[] | undefined {
  const found: MatchedField[] = [];
  return compileExplainer(condition)(of, found) ? found : undefined;
}

const shown = (items: ConditionInput[], raw: JsonObject) =>
  explain(toConditions(items), event(raw))?.map(({ field, operator, value, expected }) => [
    field,
    operator,
    value,
    expected,
  ]);

test.each<[string, ConditionInput[], JsonObject, unknown]>([
  ["a value", [{ field: "raw.a", equals: 1 }], { a: [2, 1] }, [["raw.a", "equals", 1, 1]]],
  ["the item of a list that matched", [{ field: "raw.a", in: ["x", "y"] }], { a: "y" }, [["raw.a", "in", "y", "y"]]],
  [
    "the text that matched, as the event has it",
    [{ field: "raw.a", contains: ["b", "oo"], ignore_case: true }],
    { a: "FOO" },
    [["raw.a", "contains", "FOO", "oo"]],
  ],
  ["a bound", [{ field: "raw.a", gte: 5 }], { a: 9 }, [["raw.a", "gte", 9, 5]]],
  [
    "a field of the event itself",
    [{ field: "type", equals: "login_failure" }],
    {},
    [["type", "equals", "login_failure", "login_failure"]],
  ],
  ["a negation", [{ field: "raw.a", not_in: [1, 2] }], { a: 3 }, [["raw.a", "not_in", 3, null]]],
  ["a missing field", [{ field: "raw.a", exists: false }], {}, [["raw.a", "exists", null, false]]],
  ["an object", [{ field: "raw.a", exists: true }], { a: { b: 1 } }, [["raw.a", "exists", null, true]]],
  [
    "another field",
    [{ field: "raw.a", equals_field: "raw.b" }],
    { a: "x", b: "x" },
    [["raw.a", "equals_field", "x", "raw.b"]],
  ],
  [
    "the field in which a keyword occurs",
    [{ keyword: "mimikatz", ignore_case: true }],
    { process: { line: "run Mimikatz now" } },
    [["raw.process.line", "contains", "run Mimikatz now", "mimikatz"]],
  ],
  [
    "every alternative that holds, and nothing of those that do not",
    [
      {
        any: [
          {
            all: [
              { field: "raw.a", equals: 1 },
              { field: "raw.b", equals: 9 },
            ],
          },
          { field: "raw.b", equals: 2 },
          { field: "raw.a", gt: 0 },
        ],
      },
    ],
    { a: 1, b: 2 },
    [
      ["raw.b", "equals", 2, 2],
      ["raw.a", "gt", 1, 0],
    ],
  ],
  ["nothing for what must not be", [{ not: { field: "raw.a", equals: 1 } }], { a: 2 }, []],
  [
    "no match",
    [
      { field: "raw.a", equals: 1 },
      { field: "raw.b", equals: 1 },
    ],
    { a: 1 },
    undefined,
  ],
])("an explanation has %s", (_what, items, raw, fields) => expect(shown(items, raw)).toEqual(fields));

test("long values are shortened, and the number of fields is limited", () => {
  const [matched] = explain(toConditions([{ field: "raw.a", contains: "x" }]), event({ a: "x".repeat(10_000) }))!;
  expect(matched!.value).toBe(`${"x".repeat(MATCHED_VALUE_CHARACTERS_MAX)}…`);
  const many = Array.from({ length: 80 }, (_, i) => ({ field: `raw.f${i}`, exists: true }));
  const raw = Object.fromEntries(many.map((_, i) => [`f${i}`, i]));
  expect(explain(toConditions(many), event(raw))).toHaveLength(MATCHED_FIELDS_MAX);
});

test("an event is explained exactly if it meets the condition", () => {
  fc.assert(
    fc.property(conditions(), drafts(0, 30 * DAY_MS), (condition, { timestampMs, ...draft }) => {
      const one: Event = { ...draft, id: "evt_1", timestamp: new Date(timestampMs).toISOString() };
      expect(explain(condition, one) !== undefined).toBe(compileCondition(condition)(one));
    }),
    { numRuns: 3000 },
  );
});
