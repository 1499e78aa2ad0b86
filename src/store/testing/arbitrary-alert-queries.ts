import * as fc from "fast-check";
import { ALERT_FIELDS, ALERT_QUERY_FIELDS } from "../../model/alert-field.ts";
import { RESOLUTIONS, STATUSES } from "../../model/alert-state.ts";
import type { Aggregation } from "../../model/aggregation.ts";
import {
  OPERATOR_NAMES,
  OPERATORS,
  type Condition,
  type FieldTest,
  type Operator,
  type ValueKind,
} from "../../model/condition.ts";
import { SEVERITIES } from "../../model/event.ts";
import { isTime } from "../../model/query-fields.ts";
import type { SortKey } from "../../model/query.ts";

// Random searches over the alerts of contract-alert-search.ts.

export const FIELDS = [
  ...ALERT_FIELDS,
  "enrichment.geo.country",
  "enrichment.score",
  "enrichment.mixed",
  "enrichment.geo",
  "enrichment.nothing",
];
/** Every id is different, so that it is neither grouped nor compared. */
const VALUE_FIELDS = FIELDS.filter((field) => field !== "id");
const TIME_FIELDS = FIELDS.filter((field) => isTime(ALERT_QUERY_FIELDS, field));
const NUMBER_FIELDS = ["event_count", "ai_analysis.threat_score", "enrichment.score"];

export const WORDS = [
  "Door forced",
  "door",
  "Camera dark",
  "Anna@example.com",
  "anna@example.com",
  "Tür 東京 😀",
  "\uffee",
];
export const NAMES = ["search.one", "search.two", "search.three"];
export const ADDRESSES = ["192.0.2.1", "192.0.2.77", "10.0.0.9", "2001:db8::1"];

const texts = fc.constantFrom<string>(
  ...WORDS,
  ...NAMES,
  ...ADDRESSES,
  ...SEVERITIES,
  ...STATUSES,
  ...RESOLUTIONS,
  "user",
  "AT",
  "a",
);
const times = fc.integer({ min: 0, max: 50 }).map((ms) => new Date(ms * 1000).toISOString());
const numbers = fc.integer({ min: -1, max: 12 });
const several = (item: fc.Arbitrary<string>) => fc.oneof(item, fc.array(item, { minLength: 1, maxLength: 3 }));
const scalars: fc.Arbitrary<string | number | boolean> = fc.oneof(texts, numbers, fc.boolean(), times);

const VALUES: Record<ValueKind, fc.Arbitrary<FieldTest["value"]>> = {
  scalar: scalars,
  scalars: fc.array(scalars, { minLength: 1, maxLength: 4 }),
  texts: several(fc.oneof(texts, fc.constantFrom("o", "1", "example", "東"))),
  globs: several(fc.constantFrom("*o*", "192.0.2.?", "*", "d*r", "1970-*")),
  patterns: several(fc.constantFrom("o+r", "^192\\.", "[0-9]$", "^$", "京")),
  networks: several(fc.constantFrom("192.0.2.0/24", "10.0.0.0/8", "2001:db8::/32")),
  bound: numbers,
  hours: fc.constantFrom("00:00-00:01", "thu", "sat-sun"),
  timeParts: several(fc.constantFrom("minute 0", "hour 0-3", "year 1971-")),
  otherField: fc.constantFrom(...VALUE_FIELDS),
  flag: fc.boolean(),
};

const tests: fc.Arbitrary<FieldTest> = fc
  .tuple(fc.constantFrom(...VALUE_FIELDS), fc.constantFrom(...OPERATOR_NAMES), fc.boolean())
  .chain(([anyField, name, ignoresCase]) => {
    const operator: Operator = OPERATORS[name];
    const field = fc.constantFrom(...(operator.value === "hours" ? TIME_FIELDS : [anyField]));
    return field.chain((path) => {
      const values = operator.value === "bound" && isTime(ALERT_QUERY_FIELDS, path) ? times : VALUES[operator.value];
      return values.map((value): FieldTest => ({
        kind: "test",
        field: path,
        operator: name,
        value,
        ignoreCase: ignoresCase && operator.ignoresCase === true,
      }));
    });
  });

export function alertConditions(ids: readonly string[]): fc.Arbitrary<Condition> {
  const idTests = fc
    .tuple(fc.constantFrom("in" as const, "not_in" as const), fc.subarray([...ids, "alt_0"], { minLength: 1 }))
    .map(([operator, value]): FieldTest => ({ kind: "test", field: "id", operator, value, ignoreCase: false }));
  return fc.letrec<{ condition: Condition }>((tie) => ({
    condition: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      { weight: 6, arbitrary: tests },
      idTests,
      fc.array(tie("condition"), { maxLength: 3 }).map((of): Condition => ({ kind: "all", of })),
      fc.array(tie("condition"), { maxLength: 3 }).map((of): Condition => ({ kind: "any", of })),
      tie("condition").map((of): Condition => ({ kind: "not", of })),
    ),
  })).condition;
}

export const alertSorts: fc.Arbitrary<SortKey[]> = fc.array(
  fc.record({ field: fc.constantFrom(...FIELDS), descending: fc.boolean() }),
  { maxLength: 3 },
);

const flat: fc.Arbitrary<Aggregation> = fc.oneof(
  fc.record({
    kind: fc.constant("terms" as const),
    field: fc.constantFrom(...VALUE_FIELDS),
    size: fc.constantFrom(1, 3, 1000),
    aggs: fc.constant([]),
  }),
  fc.record({ kind: fc.constant("count" as const), field: fc.option(fc.constantFrom(...FIELDS), { nil: undefined }) }),
  fc.record({ kind: fc.constant("cardinality" as const), field: fc.constantFrom(...FIELDS) }),
  fc.record({
    kind: fc.constant("stats" as const),
    field: fc.constantFrom(...NUMBER_FIELDS, ...TIME_FIELDS),
  }),
  fc.record({
    kind: fc.constant("histogram" as const),
    field: fc.constantFrom(...NUMBER_FIELDS),
    interval: fc.constantFrom(1, 3, 0.5, 0.1),
    aggs: fc.constant([]),
  }),
  fc.record({
    kind: fc.constant("histogram" as const),
    field: fc.constantFrom(...TIME_FIELDS),
    interval: fc.constantFrom(1000, 7000),
    aggs: fc.constant([]),
  }),
);

/** Aggregations with up to two inner ones. */
export const alertAggregations: fc.Arbitrary<Aggregation> = fc
  .tuple(flat, fc.array(flat, { maxLength: 2 }))
  .map(([outer, inner]) =>
    "aggs" in outer ? { ...outer, aggs: inner.map((aggregation, i) => ({ name: `inner${i}`, aggregation })) } : outer,
  );
