import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OPERATOR_NAMES } from "../model/condition.ts";
import { openTestServer, type Answer, type TestServer } from "../../test/api-server.ts";

// Any input is accepted or refused with a reason, and never causes an internal error.

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer({ settings: { rateLimits: false } });
  const items = Array.from({ length: 50 }, (_, n) => ({
    type: ["login_failure", "ids_alert", "motion"][n % 3],
    source: "custom",
    severity: ["info", "high"][n % 2],
    data: { src_ip: `192.0.2.${n}`, n, user: "alice", tags: ["a", n], deep: { er: [{ x: n }, null] }, "a.b": true },
  }));
  await server.call("POST", "/v1/events/batch", { body: items });
});
afterAll(() => server.close());

const RUNS = { numRuns: 200 };

function expectAnswered(answer: Answer, allowed: readonly number[], sent: unknown): void {
  const { status, body, text } = answer;
  expect(allowed, `${JSON.stringify(sent)} → ${status} ${text.slice(0, 300)}`).toContain(status);
  if (status < 400) return;
  expect(body.error).toMatchObject({ code: expect.any(String), message: expect.any(String) });
  if (body.error.code === "validation_error") expect(body.error.details.length).toBeGreaterThan(0);
  for (const { field, message } of body.error.details) {
    expect(field).not.toBe("");
    expect(message).not.toBe("");
  }
}

const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: "binary-ascii" }),
);
const time = fc.oneof(
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  fc.constantFrom("2026-11-15", "2026-11-15T25:00:00Z", "0000-01-01", "9999-12-31T23:59:59.999+23:59", "now"),
);

const parameters: Record<string, fc.Arbitrary<string>> = {
  page: fc.oneof(fc.integer().map(String), fc.constantFrom("1", "1000000000", "01", "+1", "٣")),
  per_page: fc.oneof(fc.integer({ min: -1, max: 102 }).map(String), anyText),
  limit: fc.oneof(fc.integer({ min: -1, max: 102 }).map(String), anyText),
  after: fc.oneof(fc.constantFrom("evt_", `evt_${"0".repeat(32)}`, "evt_zzz"), anyText),
  source: fc.oneof(fc.constantFrom("custom", "platform_network"), anyText),
  severity: fc.oneof(fc.constantFrom("info", "high"), anyText),
  class: fc.oneof(fc.constantFrom("security", "audit"), anyText),
  type: fc.oneof(fc.constantFrom("login_failure", "x"), anyText),
  from: fc.oneof(time, anyText),
  to: fc.oneof(time, anyText),
  search: fc.oneof(
    anyText,
    fc
      .array(
        fc.constantFrom(
          '"',
          "'",
          "*",
          "(",
          ")",
          "AND",
          "NOT",
          "NEAR",
          "-",
          ":",
          "^",
          "a",
          "192.0.2.1",
          "\0",
          "%",
          "\\",
          "ali",
          "::1",
          "aa:bb:cc:dd:ee:ff",
          "😀",
          "\u0301",
        ),
        { maxLength: 12 },
      )
      .map((parts) => parts.join(" ")),
    fc.array(fc.constantFrom('"', "*", "(", "+", "x", " ", ".", "_"), { maxLength: 12 }).map((parts) => parts.join("")),
  ),
  other: anyText,
};

const queryText = fc.oneof(
  fc
    .array(
      fc.constantFrom(...Object.keys(parameters)).chain((name) => fc.tuple(fc.constant(name), parameters[name]!)),
      { maxLength: 5 },
    )
    .map((pairs) => pairs.map(([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`).join("&")),
  // Anything that an HTTP client can send.
  fc.string({ unit: fc.constantFrom(..."abpage=&%?;[]+.0fF{}|~\\\"'/:@") }),
);

const field = fc.oneof(
  fc.constantFrom(
    "type",
    "source",
    "severity",
    "class",
    "timestamp",
    "id",
    "raw.src_ip",
    "raw.n",
    "raw.tags",
    "raw.deep.er.x",
    "raw.a.b",
    "raw.none",
    "enrichment.geo.country",
    "raw",
    "raw.",
    "raw.__proto__.x",
    "raw.'; drop table events; --",
    'raw."',
    "raw.$.x",
    "raw.[0]",
    "raw.\0",
    "raw.*",
  ),
  anyText.map((text) => `raw.${text}`),
  anyText,
);
const value = fc.oneof(
  anyText,
  fc.double(),
  fc.integer(),
  fc.boolean(),
  fc.constantFrom(
    "(?i)a+",
    "((((a*)*)*)*)*b",
    "[",
    "10.0.0.0/8",
    "::/0",
    "192.0.2.7",
    "info",
    "custom",
    "2026-11-15",
    1e308,
    -0,
    null,
  ),
  fc.array(fc.oneof(anyText, fc.double(), fc.boolean()), { maxLength: 4 }),
  fc.jsonValue({ maxDepth: 2 }),
);
const filter = fc.letrec<{ filter: unknown; bool: unknown }>((tie) => ({
  filter: fc.oneof(
    { depthSize: "small" },
    fc
      .tuple(field, fc.constantFrom(...OPERATOR_NAMES, "nope"), value, fc.option(fc.boolean(), { nil: undefined }))
      .map(([field, operator, value, ignore_case]) =>
        JSON.parse(JSON.stringify({ field, [operator]: value, ignore_case })),
      ),
    fc.record({ bool: tie("bool") }),
  ),
  bool: fc.record(
    {
      must: fc.array(tie("filter"), { maxLength: 3 }),
      must_not: fc.array(tie("filter"), { maxLength: 2 }),
      should: fc.array(tie("filter"), { maxLength: 2 }),
    },
    { requiredKeys: [] },
  ),
}));
const interval = fc.oneof(fc.constantFrom("1h", "1s", "7d", "0h", "x", 1, 0.001, 1e-300, 1e300, 0, -1), fc.double());
const aggregation = fc.oneof(
  fc.record({ terms: fc.record({ field, size: fc.integer({ min: -1, max: 1002 }) }, { requiredKeys: ["field"] }) }),
  fc.record({ histogram: fc.record({ field, interval }) }),
  fc.record({ stats: fc.record({ field }) }),
  fc.record({ cardinality: fc.record({ field }) }),
  fc.record({ count: fc.record({ field }, { requiredKeys: [] }) }),
  fc.record({
    terms: fc.record({ field }),
    aggs: fc.dictionary(anyText, fc.record({ stats: fc.record({ field }) }), { maxKeys: 2 }),
  }),
  fc.record({
    histogram: fc.record({ field, interval }),
    aggs: fc.dictionary(anyText, fc.record({ terms: fc.record({ field }) }), { maxKeys: 2 }),
  }),
);
const search = fc.record(
  {
    query: fc.record(
      { bool: filter.bool, time_range: fc.record({ from: time, to: time }, { requiredKeys: [] }) },
      { requiredKeys: [] },
    ),
    aggs: fc.dictionary(anyText, aggregation, { maxKeys: 3 }),
    sort: fc.dictionary(field, fc.constantFrom("asc", "desc", "up"), { maxKeys: 3 }),
    limit: fc.integer({ min: -1, max: 1001 }),
  },
  { requiredKeys: ["query"] },
);

const submission = fc.record(
  {
    type: fc.oneof({ weight: 4, arbitrary: fc.constantFrom("x", "login_failure") }, anyText),
    source: fc.oneof({ weight: 8, arbitrary: fc.constant("custom") }, anyText),
    severity: fc.constantFrom("info", "high", "none"),
    timestamp: time,
    data: fc.oneof({ weight: 8, arbitrary: fc.dictionary(anyText, fc.jsonValue({ maxDepth: 5 })) }, fc.jsonValue()),
  },
  { requiredKeys: ["type", "source", "data"] },
);

describe("any input", () => {
  test("in the query of the list", async () => {
    await fc.assert(
      fc.asyncProperty(queryText, async (query) => {
        expectAnswered(await server.call("GET", `/v1/events?${query}`), [200, 400], query);
      }),
      RUNS,
    );
  });

  test("as a full-text search that is a valid parameter", async () => {
    await fc.assert(
      fc.asyncProperty(parameters["search"]!, async (text) => {
        const path = `/v1/events?search=${encodeURIComponent(text.toWellFormed())}`;
        expectAnswered(await server.call("GET", path), text.trim() === "" ? [400] : [200, 400], text);
      }),
      RUNS,
    );
  });

  test("in the path", async () => {
    const path = fc.string({ unit: fc.constantFrom(..."v1eventskyabc/%20%ffexp_:.*-~"), maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom("GET", "DELETE", "POST", "PUT"), path, async (method, rest) => {
        expectAnswered(await server.call(method, `/v1/events/${rest}`), [200, 400, 404, 405, 415], [method, rest]);
      }),
      RUNS,
    );
  });

  test("as a search", async () => {
    await fc.assert(
      fc.asyncProperty(search, async (body) => {
        expectAnswered(await server.call("POST", "/v1/events/search", { body }), [200, 400], body);
      }),
      RUNS,
    );
  });

  test("as a submission, which is then stored unchanged", async () => {
    await fc.assert(
      fc.asyncProperty(submission, async (body) => {
        const answer = await server.call("POST", "/v1/events", { body });
        expectAnswered(answer, [201, 400], body);
        if (answer.status !== 201) return;
        const sent = JSON.parse(JSON.stringify(body.data)) as unknown;
        expect(answer.body.data.raw).toEqual(sent);
        const again = await server.call("GET", `/v1/events/${answer.body.data.id}`);
        expect(again.body.data).toEqual(answer.body.data);
      }),
      RUNS,
    );
  });

  test("as bytes, to any call with a body", async () => {
    const paths = fc.constantFrom(
      "/v1/events",
      "/v1/events/batch",
      "/v1/events/search",
      "/v1/events/export",
      "/v1/keys",
    );
    const type = fc.constantFrom("application/json", "application/x-ndjson", "text/plain");
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.json(),
      fc.array(fc.json(), { maxLength: 5 }).map((lines) => lines.join("\n")),
    );
    await fc.assert(
      fc.asyncProperty(paths, type, bytes, fc.boolean(), async (path, type, body, gzip) => {
        const headers = { "content-type": type, ...(gzip && { "content-encoding": "gzip" }) };
        expectAnswered(await server.call("POST", path, { body, headers }), [200, 400, 415], [path, type, body]);
      }),
      RUNS,
    );
  });

  test("as an authorization header", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: fc.constantFrom(..."Bearer tsn_key0 _-.,:\t") }), async (authorization) => {
        expectAnswered(
          await server.call("GET", "/v1/events", { key: null, headers: { authorization } }),
          [401],
          authorization,
        );
      }),
      RUNS,
    );
  });
});
