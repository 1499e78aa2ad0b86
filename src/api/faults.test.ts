import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type Answer, type TestServer } from "../../test/api-server.ts";

// Refused requests report every fault at once, with helpful messages.

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer({ settings: { rateLimits: false } });
});
afterAll(() => server.close());

const detailsOf = (answer: Answer): Record<string, string> => {
  expect(answer.status, answer.text).toBe(400);
  const details: { field: string; message: string }[] = answer.body.error.details;
  const byField = Object.fromEntries(details.map(({ field, message }) => [field, message]));
  // One item for each fault: no path is named twice.
  expect(Object.keys(byField)).toHaveLength(details.length);
  return byField;
};
const fieldsOf = (answer: Answer): string[] => Object.keys(detailsOf(answer)).sort();
const post = (path: string, body: unknown, headers = {}) => server.call("POST", path, { body, headers });
const search = (body: unknown) => post("/v1/events/search", body);
const range = { from: "2026-11-01", to: "2026-11-02" };

describe("all faults of a request at once", () => {
  test("syntax faults of a body and faults of its values", async () => {
    const text = '{"type":"x","source":"custom","severity":"bad","data":{"n":1,"n":2}}';
    expect(fieldsOf(await post("/v1/events", text))).toEqual(["data.n", "severity"]);
    const odd = '{"query":{"boole":{}},"limit":1e400,"agg":"\\ud800"}';
    expect(fieldsOf(await search(odd))).toEqual(["agg", "limit", "query.boole"]);
    const deep = `{"query":{"bool":{"must":${"[".repeat(40)}${"]".repeat(40)}}},"limit":-1}`;
    const deepest = `query.bool.must${"[0]".repeat(29)}`;
    expect(Object.keys(detailsOf(await search(deep)))).toEqual(expect.arrayContaining([deepest, "limit"]));
    const proto = '{"query":{"__proto__":1,"boole":{}}}';
    expect(fieldsOf(await search(proto))).toEqual(["query.__proto__", "query.boole"]);
  });

  test("those of the items of a batch likewise", async () => {
    const bad = '{"type":"x","source":"custom","severity":"bad","data":{"n":1,"n":2}}';
    const good = '{"type":"x","source":"custom","data":{}}';
    for (const [body, type] of [
      [`[${good},${bad}]`, "application/json"],
      [`${good}\n${bad}`, "application/x-ndjson"],
    ]) {
      const { body: answer } = await post("/v1/events/batch", body, { "content-type": type });
      expect(answer.data).toMatchObject({ accepted: 1, rejected: [{ index: 1 }] });
      const fields = answer.data.rejected[0].details.map(({ field }: { field: string }) => field);
      expect(fields.sort()).toEqual(["data.n", "severity"]);
    }
  });

  test("those of the query, of a header and of the body", async () => {
    const answer = await post("/v1/events?x=1&type=y", {}, { "idempotency-key": "a b" });
    const fields = answer.body.error.details.map(({ field }: { field: string }) => field);
    expect(fields).toEqual(["x", "type", "Idempotency-Key", "type", "source", "data"]);
    expect(fieldsOf(await server.call("POST", "/v1/events?x=1"))).toEqual(["body", "x"]);
    expect(fieldsOf(await server.call("POST", "/v1/events/search?x=1"))).toEqual(["body", "x"]);
    expect(fieldsOf(await server.call("POST", "/v1/events/batch?x=1"))).toEqual(["body", "x"]);
    expect(fieldsOf(await post("/v1/events/batch?x=1", [{}]))).toEqual(["x"]);
    expect(fieldsOf(await post("/v1/rules/import?x=1", { content: 1 }))).toEqual(["content", "format", "x"]);
  });

  test.each(["/v1/events", "/v1/alerts"])("an invalid search beside a reversed range, at %s", async (path) => {
    const answer = await server.call("GET", `${path}?from=2026-11-16&to=2026-11-15&search=*`);
    expect(detailsOf(answer)).toEqual({ from: "is after to", search: "has no word to search for" });
  });

  test("filters, aggregations and ranges of a search, including nested ones", async () => {
    const source = { field: "source", equals: "q" };
    const pattern = { field: "raw.a", regex: "(" };
    const answer = await search({
      query: {
        bool: { must: [pattern, source, { bool: { should: [pattern, source, 1, { field: 1 }] } }], must_not: "x" },
        time_range: { from: "2026-11-02", to: "2026-11-01", until: 1 },
      },
      aggs: {
        a: { terms: { field: "id" } },
        b: { stats: { field: "type" } },
        c: { histogram: { field: "severity", interval: 1 }, aggs: { d: { terms: { field: "id" }, count: {} } } },
      },
    });
    expect(fieldsOf(answer)).toEqual(
      [
        "query.bool.must[0].regex",
        "query.bool.must[1].equals",
        "query.bool.must[2].bool.should[0].regex",
        "query.bool.must[2].bool.should[1].equals",
        "query.bool.must[2].bool.should[2]",
        "query.bool.must[2].bool.should[3].field",
        "query.bool.must[2].bool.should[3]",
        "query.bool.must_not",
        "query.time_range.from",
        "query.time_range.until",
        "aggs.a.terms.field",
        "aggs.b.stats.field",
        "aggs.c.histogram.field",
        "aggs.c.aggs.d.terms.field",
        "aggs.c.aggs.d",
      ].sort(),
    );
  });

  test("those of list values, each with its path, for every kind of value", async () => {
    const tests = [
      { field: "raw.x", contains: ["a", 5, ""] },
      { field: "raw.x", starts_with: [null, "a", []] },
      { field: "raw.x", ends_with: [true] },
      { field: "raw.x", glob: ["a*", {}] },
      { field: "raw.x", regex: ["(", 5, "a", ""] },
      { field: "raw.x", cidr: ["10.0.0.0/99", 10, "10.0.0.0/8"] },
      { field: "raw.x", in: [null, null] },
      { field: "severity", not_in: [null, "none", "low"] },
      { field: "source", in: [null, "custom"] },
      { keyword: ["a", 5, ""] },
    ];
    const places = [
      ["contains[1]", "contains[2]"],
      ["starts_with[0]", "starts_with[2]"],
      ["ends_with[0]"],
      ["glob[1]"],
      ["regex[0]", "regex[1]", "regex[3]"],
      ["cidr[0]", "cidr[1]"],
      ["in[0]", "in[1]"],
      ["not_in[0]", "not_in[1]"],
      ["in[0]"],
      ["keyword[1]", "keyword[2]"],
    ];
    const under = (list: string) => places.flatMap((each, i) => each.map((place) => `${list}[${i}].${place}`)).sort();
    const rule = { name: "test.x", description: "x", severity: "low", actions: [{ alert: { channels: [] } }] };
    expect(fieldsOf(await post("/v1/rules", { ...rule, conditions: tests }))).toEqual(under("conditions"));
    expect(fieldsOf(await search({ query: { bool: { must: tests } } }))).toEqual(under("query.bool.must"));
    expect(fieldsOf(await post("/v1/rules", { ...rule, conditions: [{ any: [{ not: tests[0] }] }] }))).toEqual([
      "conditions[0].any[0].not.contains[1]",
      "conditions[0].any[0].not.contains[2]",
    ]);
  });

  test("an array in place of a filter or a condition", async () => {
    expect(fieldsOf(await search({ query: { bool: { must: [[]] } }, limit: -1 }))).toEqual([
      "limit",
      "query.bool.must[0]",
    ]);
    const rule = { name: "test.x", description: "x", severity: "bad", conditions: [[]], actions: [] };
    expect(fieldsOf(await post("/v1/rules", rule))).toEqual(expect.arrayContaining(["conditions[0]", "severity"]));
  });

  test("the format of an export and the sources in its query", async () => {
    const query = { bool: { must: [{ field: "source", equals: "q" }] } };
    const answer = await post("/v1/events/export", { format: "x", time_range: range, query });
    expect(fieldsOf(answer)).toEqual(["format", "query.bool.must[0].equals"]);
  });

  test("the scopes and the expiry of a key", async () => {
    const answer = await post("/v1/keys", { name: "x", scopes: ["events:all"], expires_at: "2020-01-01" });
    expect(fieldsOf(answer)).toEqual(["expires_at", "scopes[0]"]);
  });
});

describe("very many faults", () => {
  const many = (count: number, item: (i: number) => string) => Array.from({ length: count }, (_, i) => item(i)).join();
  const firstOnes = (answer: Answer): string[] => {
    expect(answer.body.error.message).toBe("the request has more than 100 faults; details lists the first ones");
    const details: { field: string }[] = answer.body.error.details;
    expect(details).toHaveLength(100);
    return details.map(({ field }) => field);
  };

  test("are reported up to a hundred, with a note that there are more, for every source of faults", async () => {
    const unknown = await search(`{"query":{},${many(80_000, (i) => `"k${i}":1`)}}`);
    expect(firstOnes(unknown).slice(0, 2)).toEqual(["k0", "k1"]);
    const proto = `{${many(41_000, (i) => `"k${i}":{"__proto__":1}`)}}`;
    expect(firstOnes(await post("/v1/alerts/bulk", proto))[0]).toBe("k0.__proto__");
    const twice = `[${many(20_000, () => '{"a":1,"a":2,"a":3}')}]`;
    expect(firstOnes(await search(twice))[0]).toBe("[0].a");
    const event = `{"x":1,"x":2,${many(60_000, (i) => `"k${i}":1`)}}`;
    expect(firstOnes(await post("/v1/events", event))[0]).toBe("x");
    const hundred = await search(`{"query":{},${many(100, (i) => `"k${i}":1`)}}`);
    expect(hundred.body.error).toMatchObject({
      message: "the request has 100 faults; see details",
      details: { length: 100 },
    });
  });

  test("of the submissions of a batch are reported up to twenty for each", async () => {
    const bad = `{"type":"x","source":"custom","data":{},${many(500, (i) => `"k${i}":1`)}}`;
    const { body } = await post("/v1/events/batch", `[${bad},${bad}]`);
    const counts = body.data.rejected.map(({ details }: { details: unknown[] }) => details.length);
    expect(counts).toEqual([20, 20]);
  });

  test("are not searched for in a request past its size limits", async () => {
    const bad = (count: number) => many(count, (i) => `"k${i}":{"a":1}`);
    expect(detailsOf(await search(`{"query":{},"sort":{${bad(30_000)}}}`))).toEqual({ sort: "at most 5 fields" });
    expect(detailsOf(await search(`{"query":{},"aggs":{${bad(30_000)}}}`))).toEqual({
      aggs: "at most 20 aggregations",
    });
    const inner = `{"query":{},"aggs":{"a":{"terms":{"field":"type"},"aggs":{${bad(30_000)}}}}}`;
    expect(detailsOf(await search(inner))).toEqual({ "aggs.a.aggs": "at most 20 aggregations" });
    const nested = many(250, () => `{"bool":{"should":[${many(250, () => '{"field":"a"}')}]}}`);
    expect(detailsOf(await search(`{"query":{"bool":{"must":[${nested}]}}}`))).toEqual({
      "query.bool": "at most 256 filters in all",
    });
    const rule = { name: "test.x", description: "x", severity: "low", conditions: [{ field: "type", equals: "x" }] };
    const channels = `{"actions":[{"alert":{"channels":[${many(330_000, () => "{}")}]}}],${JSON.stringify(rule).slice(1)}`;
    expect(detailsOf(await post("/v1/rules", channels))).toEqual({
      "actions[0].alert.channels": "must be at most 10 items",
    });
    const any = many(250, () => `{"any":[${many(250, () => '{"field":"a"}')}]}`);
    const actions = [{ alert: { channels: [] } }];
    const tests = `{"conditions":[${any}],${JSON.stringify({ ...rule, conditions: undefined, actions }).slice(1)}`;
    expect(detailsOf(await post("/v1/rules", tests))).toEqual({ conditions: "at most 1000 tests in all" });
  });

  test("of list values are one fault of the list", async () => {
    const wrong = (operator: string) => `{"field":"raw.a","${operator}":[${many(900, () => "{}")}]}`;
    const answer = await search(`{"query":{"bool":{"must":[${wrong("in")},${wrong("contains")}]}}}`);
    expect(detailsOf(answer)).toEqual({
      "query.bool.must[0].in": "each must be a string, a number or a boolean",
      "query.bool.must[1].contains": "a text, or a list of 1 to 1000 texts",
    });
  });
});

describe("fault messages", () => {
  const submit = async (more: object) =>
    detailsOf(await post("/v1/events", { type: "x", source: "custom", data: {}, ...more }));

  test("state what a value must be", async () => {
    expect(await submit({ data: [] })).toEqual({ data: "must be an object" });
    expect(await submit({ type: 1 })).toEqual({ type: "must be a string" });
    expect(await submit({ type: [] })).toEqual({ type: "must be a string" });
    const answer = await search({ query: [], limit: 1.5, aggs: { a: { terms: { field: "type", size: "2" } } } });
    expect(detailsOf(answer)).toEqual({
      query: "must be an object",
      limit: "must be a whole number",
      "aggs.a.terms.size": "must be a number",
    });
    expect(await submit({ source: "platform_network" })).toEqual({
      source: expect.stringMatching(/^must be custom: /),
    });
  });

  test("state that a missing value is required, and what is allowed", async () => {
    const { source } = await submit({ source: undefined });
    expect(source).toMatch(/^is required: must be custom/);
    const { format } = detailsOf(await post("/v1/events/export", { time_range: range }));
    expect(format).toBe("is required: must be one of csv, json, ndjson, parquet");
    const histogram = detailsOf(await search({ query: {}, aggs: { h: { histogram: { field: "timestamp" } } } }));
    expect(histogram).toEqual({ "aggs.h.histogram.interval": "is required" });
    const wrong = await search({ query: {}, aggs: { h: { histogram: { field: "timestamp", interval: [] } } } });
    expect(detailsOf(wrong)["aggs.h.histogram.interval"]).toMatch(/^a duration such as 5m/);
  });

  test("state the characters of a type, once if it has none", async () => {
    expect(await submit({ type: "" })).toEqual({ type: "must not be empty" });
    for (const type of [" x", "x ", "x!", " "]) expect((await submit({ type })).type).toContain("spaces and _ . : / -");
    expect((await post("/v1/events", { type: "a type", source: "custom", data: {} })).status).toBe(201);
  });

  test("state the maximum depth, counted from data", async () => {
    const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
    const item = `{"type":"x","source":"custom","data":${deep(33)}}`;
    const message = "is nested deeper than 32 levels";
    expect(Object.values(detailsOf(await post("/v1/events", item)))).toEqual([message]);
    for (const [body, type] of [
      [`[${item}]`, "application/json"],
      [item, "application/x-ndjson"],
    ]) {
      const { body: answer } = await post("/v1/events/batch", body, { "content-type": type });
      expect(answer.data.rejected[0].details).toMatchObject([{ message }]);
    }
  });
});

test("a byte order mark before JSON is skipped", async () => {
  const item = JSON.stringify({ type: "marked", source: "custom", data: {} });
  expect((await post("/v1/events", `\ufeff${item}`)).status).toBe(201);
  expect((await search('\ufeff{"query":{}}')).status).toBe(200);
  for (const [body, type] of [
    [`\ufeff[${item}]`, "application/json"],
    [`\ufeff${item}\n${item}`, "application/x-ndjson"],
  ]) {
    const { body: answer } = await post("/v1/events/batch", body, { "content-type": type });
    expect(answer.data, type).toMatchObject({ rejected: [] });
  }
});

test("statistics of the timestamp are times, and their sum is null", async () => {
  for (const [timestamp, kind] of [
    ["2026-11-15T10:00:00Z", "a"],
    ["2026-11-15T12:00:00.001Z", "b"],
  ]) {
    await post("/v1/events", { type: "timed", source: "custom", timestamp, data: { kind } });
  }
  const answer = async (type: string) =>
    (
      await search({
        query: { bool: { must: [{ field: "type", equals: type }] } },
        aggs: {
          times: { stats: { field: "timestamp" } },
          kinds: { terms: { field: "raw.kind" }, aggs: { times: { stats: { field: "timestamp" } } } },
        },
        limit: 0,
      })
    ).body.data.aggregations;
  const at = (min: string | null, max = min, avg = min) => ({ min, max, avg, sum: null });
  const { times, kinds } = await answer("timed");
  expect(times).toEqual(at("2026-11-15T10:00:00.000Z", "2026-11-15T12:00:00.001Z", "2026-11-15T11:00:00.000Z"));
  expect(kinds.buckets[0]).toEqual({ key: "a", count: 1, times: at("2026-11-15T10:00:00.000Z") });
  expect((await answer("never")).times).toEqual(at(null));
});

test("an unknown name is reported with the nearest known one, at every level", async () => {
  const near = (name: string) => `is unknown; did you mean ${name}?`;
  const get = async (path: string) => detailsOf(await server.call("GET", path));
  expect(await get("/v1/events?severty=high&colour=red")).toEqual({
    severty: near("severity"),
    colour: "is unknown",
  });
  expect(await get("/v1/alerts?asignee=anna")).toEqual({ asignee: near("assignee") });
  expect(detailsOf(await post("/v1/events", { tpye: "a", type: "a", source: "custom", data: {} }))).toEqual({
    tpye: near("type"),
  });
  const filters = { must: [{ field: "type", equls: "a" }, { bool: { shoud: [] } }] };
  const body = { query: { boole: {}, bool: filters }, aggs: { a: { terms: { feild: "type", field: "type" } } } };
  expect(detailsOf(await search(body))).toMatchObject({
    "query.boole": near("bool"),
    "query.bool.must[0].equls": near("equals"),
    "query.bool.must[1].bool.shoud": near("should"),
    "aggs.a.terms.feild": near("field"),
  });
  const many = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`fiel${n}`, n]));
  const told = detailsOf(await search({ query: {}, ...many, ["quer".repeat(100_000)]: 1 }));
  expect(new Set(Object.values(told))).toEqual(new Set(["is unknown"]));
});
