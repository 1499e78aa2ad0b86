import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestServer, type Answer, type TestServer } from "../../test/api-server.ts";

// POST /v1/events/search.

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer({ settings: { rateLimits: false } });
});
afterAll(() => server.close());

const custom = (data: object, more: object) => ({ type: "login_failure", source: "custom", data, ...more });
const submit = (body: object) => server.call("POST", "/v1/events", { body });
const search = (body: unknown) => server.call("POST", "/v1/events/search", { body });
const fieldsOf = (answer: Answer): string[] => {
  expect(answer.status, answer.text).toBe(400);
  return answer.body.error.details.map(({ field }: { field: string }) => field);
};

test("ignores the case of a word, including a final sigma", async () => {
  const texts = ["ΣΑΣ", "σας", "Σας και"];
  for (const [i, text] of texts.entries()) {
    await submit(custom(i === 1 ? { user: text } : { deep: [{ text }] }, { type: "sigma" }));
  }
  for (const word of ["ΣΑΣ", "σας", "σα", '"Σας"']) {
    const found = await server.call("GET", `/v1/events?type=sigma&search=${encodeURIComponent(word)}`);
    expect(found.body.pagination.total, word).toBe(3);
  }
  const total = async (test: object) => {
    const bool = {
      must: [
        { field: "type", equals: "sigma" },
        { ...test, ignore_case: true },
      ],
    };
    return (await search({ query: { bool } })).body.data.total;
  };
  for (const word of ["ΣΑΣ", "σας"]) {
    expect(await total({ field: "raw.user", equals: word })).toBe(1);
    expect(await total({ field: "raw.deep.text", starts_with: word })).toBe(2);
    expect(await total({ field: "raw.deep.text", glob: `*${word}` })).toBe(1);
    expect(await total({ keyword: word })).toBe(3);
  }
});

test("finds, counts and aggregates", async () => {
  for (const user of ["ann", "ann", "ben"]) await submit(custom({ user, n: 2 }, { type: "searched" }));
  const { body, status } = await search({
    query: {
      bool: { must: [{ field: "type", equals: "searched" }], must_not: [{ field: "raw.user", prefix: "z" }] },
    },
    aggs: { users: { terms: { field: "raw.user" } }, sum: { stats: { field: "raw.n" } } },
    sort: { "raw.user": "desc" },
    limit: 1,
  });
  expect(status).toBe(200);
  expect(body.data.total).toBe(3);
  expect(body.data.results).toMatchObject([{ type: "searched", raw: { user: "ben" } }]);
  expect(body.data.aggregations).toEqual({
    users: {
      buckets: [
        { key: "ann", count: 2 },
        { key: "ben", count: 1 },
      ],
      other_count: 0,
    },
    sum: { min: 2, max: 2, avg: 2, sum: 6 },
  });
});

test.each([
  ["no query", {}, ["query"]],
  ["unknown fields", { query: { boole: {} }, agg: {} }, ["query.boole", "agg"]],
  ["an invalid pattern", { query: { bool: { must: [{ field: "raw.a", regex: "(" }] } } }, ["query.bool.must[0].regex"]],
  [
    "look-around",
    { query: { bool: { should: [{ field: "raw.a", regex: "(?=x)" }] } } },
    ["query.bool.should[0].regex"],
  ],
  [
    "a field named like an inherited property",
    { query: { bool: { must: [{ field: "constructor", equals: 1 }] } } },
    ["query.bool.must[0].field"],
  ],
  ["two operators", { query: { bool: { must: [{ field: "raw.a", equals: 1, gt: 2 }] } } }, ["query.bool.must[0]"]],
  ["no operator", { query: { bool: { must: [{ field: "raw.a" }] } } }, ["query.bool.must[0]"]],
  ["no field", { query: { bool: { must_not: [{ equals: 1 }] } } }, ["query.bool.must_not[0].field"]],
  ["an unknown field", { query: { bool: { must: [{ field: "rawr.a", equals: 1 }] } } }, ["query.bool.must[0].field"]],
  [
    "an unknown source, nested",
    { query: { bool: { must: [{ bool: { must_not: [{ field: "source", in: ["custom", "x"] }] } }] } } },
    ["query.bool.must[0].bool.must_not[0].in[1]"],
  ],
  [
    "an unknown severity",
    { query: { bool: { must: [{ field: "severity", equals: "bad" }] } } },
    ["query.bool.must[0].equals"],
  ],
  [
    "an invalid network",
    { query: { bool: { must: [{ field: "raw.ip", cidr: "10.0.0.0/33" }] } } },
    ["query.bool.must[0].cidr"],
  ],
  ["invalid times", { query: { time_range: { from: "x", to: 1 } } }, ["query.time_range.from", "query.time_range.to"]],
  ["from after to", { query: { time_range: { from: "2026-11-15", to: "2026-11-14" } } }, ["query.time_range.from"]],
  [
    "invalid aggregations",
    { query: {}, aggs: { a: {}, b: { terms: { field: "raw.a", size: 0 } }, c: { sum: {} } } },
    ["aggs.a", "aggs.b.terms.size", "aggs.c.sum", "aggs.c"],
  ],
  [
    "a name in a bucket that is a property of the bucket",
    { query: {}, aggs: { a: { terms: { field: "type" }, aggs: { count: { count: {} }, key: { count: {} } } } } },
    ["aggs.a.aggs.count", "aggs.a.aggs.key"],
  ],
  [
    "a limit that is too large, and an invalid sort",
    { query: {}, limit: 1001, sort: { type: "up", "no.where": "asc" } },
    ["sort.type", "sort.no.where", "limit"],
  ],
  ["a limit below zero", { query: {}, limit: -1 }, ["limit"]],
  ["too many buckets", { query: {}, aggs: { a: { terms: { field: "type", size: 1001 } } } }, ["aggs.a.terms.size"]],
])("with %s is refused with the exact path", async (_name, body, fields) => {
  expect(fieldsOf(await search(body)).sort()).toEqual([...fields].sort());
});

test("accepts only strict JSON of up to 32 levels", async () => {
  expect(fieldsOf(await search('{"query":{},"query":{"bool":{}}}'))).toEqual(["query"]);
  const proto = '{"query":{"__proto__":1},"aggs":{"__proto__":{"count":{}}},"sort":{"__proto__":"asc"}}';
  expect(fieldsOf(await search(proto))).toEqual(["query.__proto__", "aggs.__proto__", "sort.__proto__"]);
  const nested = (levels: number) => ({
    query: JSON.parse(`${'{"bool":{"must":['.repeat(levels)}${"]}}".repeat(levels)}`) as object,
  });
  expect((await search(nested(3))).status).toBe(200);
  expect((await search(nested(40))).status).toBe(400);
});

test("accepts the maximum limit and 1,000 buckets", async () => {
  const aggs = { types: { terms: { field: "type", size: 1000 } } };
  expect((await search({ query: {}, limit: 1000, aggs })).status).toBe(200);
});

test("continues past its limit with a cursor, in any sort, while events arrive", async () => {
  for (let n = 0; n < 5; n++) await submit(custom({ n: n % 3 }, { type: "scrolled" }));
  const query = { bool: { must: [{ field: "type", equals: "scrolled" }] } };
  for (const sort of [undefined, { "raw.n": "asc" }, { timestamp: "asc" }, { severity: "desc", "raw.n": "desc" }]) {
    const whole = (await search({ query, sort })).body.data.results.map(({ id }: { id: string }) => id);
    const walked: string[] = [];
    let after: string | undefined;
    do {
      const { body } = await search({ query, sort, limit: 2, after });
      walked.push(...body.data.results.map(({ id }: { id: string }) => id));
      after = body.data.next_cursor ?? undefined;
      await submit(custom({ n: 1 }, { type: "scrolled", severity: "low" }));
    } while (after !== undefined && walked.length < 50);
    expect(
      walked.filter((id) => whole.includes(id)),
      JSON.stringify(sort),
    ).toEqual(whole);
  }
  for (const after of ["evt_unknown", "", 5]) expect(fieldsOf(await search({ query, after }))).toEqual(["after"]);
});

test("with limit 0 returns only aggregations", async () => {
  const { body } = await search({ query: {}, limit: 0, aggs: { all: { count: {} } } });
  expect(body.data.results).toEqual([]);
  expect(body.data.aggregations.all.value).toBe(body.data.total);
});
