import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { AGGREGATION_KINDS, AGGREGATIONS } from "../model/aggregation.ts";
import {
  ANY_FIELD_OPERATORS,
  OPERATOR_NAMES,
  OPERATORS,
  type OperatorName,
  type ValueKind,
} from "../model/condition.ts";
import { KIND_SAMPLES } from "../store/testing/arbitrary-events.ts";
import { sampleAggregations } from "../store/testing/reference-queries.ts";
import { aggregationRequest } from "./aggregation-request.fixture.ts";

// Searches that pass the checks of the HTTP layer reach the store, which must answer them all.

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer({ settings: { rateLimits: false } });
  const items = Array.from({ length: 50 }, (_, n) => ({
    type: ["login_failure", "ids_alert", "motion"][n % 3],
    source: "custom",
    data: { src_ip: `192.0.2.${n}`, n, user: "alice", tags: ["a", n], deep: { er: [{ x: n }, null] }, "a.b": true },
  }));
  await server.call("POST", "/v1/events/batch", { body: items });
});
afterAll(() => server.close());

const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: "binary-ascii" }),
);
const goodField = fc.oneof(
  fc.constantFrom("raw.src_ip", "raw.n", "raw.tags", "raw.deep.er.x", "raw.a.b", "raw.none", "raw.user", "raw.deep"),
  fc.constantFrom(
    "enrichment.geo.country",
    "raw.dst_port",
    "raw.__proto__",
    "raw.constructor.name",
    "raw.'--",
    'raw."',
    "raw.$",
    "raw.*",
  ),
  fc.constant("type"),
  anyText.filter((text) => text !== "" && !text.includes(".")).map((text) => `raw.${text.toWellFormed()}`),
);
const goodText = anyText.map((text) => text.toWellFormed()).filter((text) => text !== "");
const scalar = fc.oneof(goodText, fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean());
function oneOrSeveral<T>(item: fc.Arbitrary<T>): fc.Arbitrary<T | T[]> {
  return fc.oneof(item, fc.array(item, { minLength: 1, maxLength: 3 }));
}
/** Values as wild as a kind allows; of the other kinds, those that the store is tried with. */
const wildValues: { readonly [Kind in ValueKind]?: fc.Arbitrary<unknown> } = {
  scalar,
  scalars: fc.array(scalar, { minLength: 1, maxLength: 4 }),
  texts: oneOrSeveral(goodText),
  globs: oneOrSeveral(fc.oneof(goodText, fc.constantFrom("*", "a*e", "?l*", "\\*", "*.0.*", "(*", "[a*]"))),
  patterns: fc.constantFrom(
    "a",
    "^a.*e$",
    "(?i)ALICE",
    "\\d+\\.",
    "[^a]",
    "((a*)*)*b",
    "\\x00",
    "\\p{L}+",
    "a|b|",
    "(?s).",
    "'",
  ),
  bound: fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer()),
  otherField: goodField,
};
function goodValues(name: OperatorName): fc.Arbitrary<unknown> {
  const kind = OPERATORS[name].value;
  return wildValues[kind] ?? KIND_SAMPLES[kind].values;
}
const goodTest = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(
      goodField,
      fc.constantFrom(...OPERATOR_NAMES.filter((name) => OPERATORS[name].value !== "hours")),
    ),
  },
  { weight: 1, arbitrary: fc.tuple(fc.constant("*"), fc.constantFrom(...ANY_FIELD_OPERATORS)) },
  { weight: 1, arbitrary: fc.constant(["timestamp", "during"] as [string, OperatorName]) },
);
const goodFilter = fc.letrec<{ filter: unknown; bool: unknown }>((tie) => ({
  filter: fc.oneof(
    { depthSize: "small" },
    goodTest.chain(([field, operator]) => goodValues(operator).map((value) => ({ field, [operator]: value }))),
    fc.record({ keyword: oneOrSeveral(goodText) }),
    fc.record({ bool: tie("bool") }),
  ),
  bool: fc.record(
    {
      must: fc.array(tie("filter"), { maxLength: 2 }),
      must_not: fc.array(tie("filter"), { maxLength: 2 }),
      should: fc.array(tie("filter"), { maxLength: 2 }),
    },
    { requiredKeys: [] },
  ),
}));
const goodLeaf = fc
  .tuple(sampleAggregations, fc.option(goodField, { nil: undefined }))
  .map(([aggregation, field]) =>
    aggregationRequest(
      field === undefined || !("field" in aggregation) || aggregation.field === "timestamp"
        ? aggregation
        : { ...aggregation, field },
    ),
  );
const goodName = goodText.filter((text) => text.length <= 64 && text !== "__proto__");
const goodAggregation = fc
  .tuple(goodLeaf, fc.dictionary(goodName, goodLeaf, { maxKeys: 2 }))
  .map(([leaf, aggs]) =>
    AGGREGATION_KINDS.some((kind) => kind in leaf && AGGREGATIONS[kind].hasBuckets) ? { ...leaf, aggs } : leaf,
  );
const goodSearch = fc.record(
  {
    query: fc.record({ bool: goodFilter.bool }),
    aggs: fc.dictionary(goodName, goodAggregation, { maxKeys: 3 }),
    sort: fc.dictionary(goodField, fc.constantFrom("asc", "desc"), { maxKeys: 3 }),
    limit: fc.integer({ min: 0, max: 1000 }),
  },
  { requiredKeys: ["query"] },
);

test("a valid search is answered or refused with a reason", async () => {
  const seen = { 200: 0, 400: 0 };
  await fc.assert(
    fc.asyncProperty(goodSearch, async (body) => {
      const answer = await server.call("POST", "/v1/events/search", { body });
      expect([200, 400], `${JSON.stringify(body)} → ${answer.status} ${answer.text.slice(0, 300)}`).toContain(
        answer.status,
      );
      seen[answer.status as 200 | 400]++;
      if (answer.status === 400) return;
      expect(answer.body.data.results.length).toBe(Math.min(answer.body.data.total, body.limit ?? 50));
      expect(Object.keys(answer.body.data.aggregations).sort()).toEqual(Object.keys(body.aggs ?? {}).sort());
    }),
    { numRuns: 150 },
  );
  // Otherwise the test would prove nothing.
  expect(seen[200]).toBeGreaterThan(seen[400]);
});
