import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { openTestServer, type Answer, type TestServer } from "../../test/api-server.ts";
import { AGGREGATION_KINDS } from "../model/aggregation.ts";
import { sampleAggregations } from "../store/testing/reference-queries.ts";
import { aggregationRequest } from "./aggregation-request.fixture.ts";

let server: TestServer;
let document: any;
let ajv: Ajv2020;
beforeAll(async () => {
  server = await openTestServer({ settings: { rateLimits: false } });
  document = (await server.call("GET", "/openapi.json", { key: null })).body;
  ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema({ $id: "document", ...document });
});
afterAll(() => server.close());

/** Faults of a value by the schema at a path of the document. */
function faultsOf(value: unknown, ...place: string[]): unknown[] {
  const steps = place.map((step) => encodeURIComponent(step.replaceAll("~", "~0").replaceAll("/", "~1")));
  const validate = ajv.compile({ $ref: `document#/${steps.join("/")}` });
  return validate(value) ? [] : validate.errors!.map(({ instancePath, message }) => `${instancePath} ${message}`);
}

const bodyFaults = (value: unknown, path: string, method = "post") =>
  faultsOf(value, "paths", path, method, "requestBody", "content", "application/json", "schema");

function parameterFaults(value: unknown, path: string, name: string): unknown[] {
  const { parameters } = document.paths[path].get ?? document.paths[path].post;
  const index = parameters.findIndex((parameter: { name: string }) => parameter.name === name);
  const method = document.paths[path].get ? "get" : "post";
  return faultsOf(value, "paths", path, method, "parameters", String(index), "schema");
}

describe("the OpenAPI document", () => {
  test("has no example that its own schema refuses", () => {
    let examples = 0;
    for (const [path, operations] of Object.entries<any>(document.paths)) {
      for (const [method, { requestBody, responses }] of Object.entries<any>(operations)) {
        const asked = requestBody?.content["application/json"]?.example;
        if (asked !== undefined) {
          examples++;
          expect(bodyFaults(asked, path, method), `${method} ${path}`).toEqual([]);
        }
        for (const [status, { content }] of Object.entries<any>(responses)) {
          const told = content?.["application/json"]?.example;
          if (told === undefined) continue;
          examples++;
          const place = ["paths", path, method, "responses", status, "content", "application/json", "schema"];
          expect(faultsOf(told, ...place), `${method} ${path} ${status}`).toEqual([]);
        }
      }
    }
    expect(examples).toBeGreaterThan(50);
  });

  test("has examples that match the responses of the service", async () => {
    const at = Date.UTC(2026, 10, 15, 8, 30);
    const service = await openTestServer({ now: () => at });
    onTestFinished(() => service.close());
    const exampleOf = (path: string, status = 200, method = "post") => {
      const { requestBody, responses } = document.paths[path][method];
      const asked = requestBody?.content["application/json"].example;
      return { asked, told: responses[status].content["application/json"].example.data };
    };
    const post = async (path: string, id: string, status = 200, more = {}) => {
      const { asked, told } = exampleOf(path, status);
      const answer = await service.call("POST", path.replace("{id}", id), { body: { ...asked, ...more } });
      expect(answer.status, path).toBe(status);
      return { given: answer.body.data, told };
    };
    const like = (told: object, ...names: string[]) =>
      Object.fromEntries(Object.entries(told).filter(([name]) => !names.includes(name)));

    await post("/v1/rules", "", 201, { threshold: null, window: null, group_by: null });
    const { given: event, told: shown } = await post("/v1/events", "", 201);
    expect(event).toEqual({ ...shown, id: event.id });
    const search = await post("/v1/events/search", "");
    expect(search.given).toEqual({ ...search.told, results: [event] });
    const simulated = await post("/v1/rules/simulate", "");
    expect(simulated.given).toEqual(simulated.told);
    const drafted = await post("/v1/rules/test", "");
    expect(drafted.given).toEqual(drafted.told);
    const call = exampleOf("/v1/collect/{name}");
    const { data: posted } = (await service.call("POST", "/v1/collect/talk", { body: call.asked })).body;
    expect({ ...posted, ids: posted.ids.length }).toEqual({ ...call.told, ids: call.told.ids.length });

    const id = await vi.waitFor(async () => {
      const { data } = (await service.call("GET", "/v1/alerts?rule_name=site.repeated_login_failure")).body;
      expect(data).toHaveLength(1);
      return data[0].id as string;
    }, 100_000);
    const own = [
      "id",
      "event_count",
      "related_events_total",
      "related_events",
      "rule",
      "group",
      "entities",
      "timeline",
      "match",
    ];
    const times = ["created_at", "first_event_at", "last_event_at", "acknowledged_at", "resolved_at", "title"];
    const entries = (timeline: { kind: string; comment?: { body: string } }[]) =>
      timeline.map(({ kind, comment }) => comment?.body ?? kind);
    for (const move of ["acknowledge", "comments", "resolve", "reopen"]) {
      const { given, told } = await post(`/v1/alerts/{id}/${move}`, id, move === "comments" ? 201 : 200);
      if (move === "comments") continue;
      expect(like(given, ...own, ...times), move).toEqual(like(told, ...own, ...times));
      expect(entries(given.timeline), move).toEqual(entries(told.timeline));
      for (const time of times) expect(given[time] === null, `${move} ${time}`).toBe(told[time] === null);
    }
    const [flow] = document.paths["/api/v1/flows"].get.responses["200"].content["application/json"].example.flows;
    expect(Number.parseInt(flow.id.slice(4, 16), 16)).toBe(flow.timestamp);
  });

  test("accepts syslog lines as strings, as the service does", async () => {
    const line = "<13>Nov 15 08:30:00 gateway test: a line";
    for (const body of [line, [line], [line, line]]) {
      expect(bodyFaults(body, "/v1/collect/{name}")).toEqual([]);
      const { data } = (await server.call("POST", "/v1/collect/syslog", { body: JSON.stringify(body) })).body;
      expect(data).toMatchObject({ accepted: [body].flat().length, refused: [] });
    }
    for (const body of [5, [5], null]) expect(bodyFaults(body, "/v1/collect/{name}")).not.toEqual([]);
  });

  test("has a schema for every aggregation result", async () => {
    const event = { type: "aggregated", source: "custom", data: { size: 3, user: "ann" } };
    expect((await server.call("POST", "/v1/events", { body: event })).status).toBe(201);
    const leaves = {
      all: { count: {} },
      stats: { stats: { field: "raw.size" } },
      times: { stats: { field: "timestamp" } },
      users: { cardinality: { field: "raw.user" } },
      none: { stats: { field: "raw.none" } },
    };
    const samples = fc.sample(sampleAggregations, { numRuns: 100, seed: 5 });
    const ofEveryKind = AGGREGATION_KINDS.map(
      (kind) => [kind, samples.find((sample) => sample.kind === kind)!] as const,
    );
    const aggs = {
      ...leaves,
      ...Object.fromEntries(ofEveryKind.map(([kind, sample]) => [`sample_${kind}`, aggregationRequest(sample)])),
      by_size: { histogram: { field: "raw.size", interval: 2 }, aggs: leaves },
      by_type: { terms: { field: "type" }, aggs: { ...leaves, by_user: { terms: { field: "raw.user" } } } },
    };
    const { body } = await server.call("POST", "/v1/events/search", { body: { query: {}, aggs, limit: 0 } });
    const place = ["paths", "/v1/events/search", "post", "responses", "200", "content", "application/json", "schema"];
    expect(faultsOf(body, ...place)).toEqual([]);
    const wrong = structuredClone(body);
    wrong.data.aggregations.by_type.buckets[0].stats = "3";
    expect(faultsOf(wrong, ...place)).not.toEqual([]);
  });

  test("describes every request header", () => {
    const headers = Object.values<any>(document.paths).flatMap((operations) =>
      Object.values<any>(operations).flatMap(({ parameters = [] }) =>
        parameters.filter((parameter: { in: string }) => parameter.in === "header"),
      ),
    );
    const names = new Set(headers.map(({ name }) => name));
    expect([...names].sort()).toEqual(["Idempotency-Key", "If-Match", "Last-Event-ID", "Signature"]);
    for (const { name, description } of headers) expect(description, name).toMatch(/\w+ \w+/);
  });

  test("has one type for times that every client supports; the service also accepts a date alone", async () => {
    const submission = { type: "a", source: "custom", data: {} };
    const range = (from: string) => ({ query: { time_range: { from } } });
    expect((await server.call("GET", "/v1/events?from=2026-11-15")).status).toBe(200);
    for (const time of ["2026-11-15T08:30:00Z", "2026-11-15T08:30:00.5+01:00"]) {
      expect(bodyFaults({ ...submission, timestamp: time }, "/v1/events")).toEqual([]);
      expect(bodyFaults([{ ...submission, timestamp: time }], "/v1/events/batch")).toEqual([]);
      expect(bodyFaults(range(time), "/v1/events/search")).toEqual([]);
      expect(bodyFaults({ name: "a", scopes: ["events:read"], expires_at: time }, "/v1/keys")).toEqual([]);
      for (const path of ["/v1/events", "/v1/alerts", "/v1/alerts/stats"]) {
        expect(parameterFaults(time, path, "from")).toEqual([]);
        expect(parameterFaults(time, path, "to")).toEqual([]);
      }
    }
    expect(bodyFaults(range("yesterday"), "/v1/events/search")).not.toEqual([]);
    expect(parameterFaults("15.11.2026", "/v1/events", "from")).not.toEqual([]);
  });

  test("lists the schemas by name, so that it does not depend on what the process has loaded before", () => {
    const names = Object.keys(document.components.schemas);
    expect(names).toEqual(names.toSorted());
  });

  describe("for client generators", () => {
    type Node = Record<string, any>;
    const listed = (node: any): Node[] =>
      typeof node !== "object" || node === null
        ? []
        : [...(Array.isArray(node) ? [] : [node]), ...Object.values(node).flatMap(listed)];
    const shapes = (): Record<string, Node> => document.components.schemas;
    const nodes = () => [...listed(shapes()), ...listed(document.paths)];
    /** Everything inside a component; the generator names the component's own schema. */
    const parts = () => Object.values(shapes()).flatMap((shape) => listed(shape).slice(1));
    const types = ({ type }: Node): string[] => [type ?? []].flat();

    test("writes a union of types as anyOf, and a type or null as one schema", () => {
      const several = nodes().filter((node) => types(node).filter((type) => type !== "null").length > 1);
      expect(several).toEqual([]);
      const nullable = nodes().filter(({ anyOf = [] }) => anyOf.length === 2 && anyOf.some(isNull));
      expect(nullable.length).toBeGreaterThan(5);
      const inline = nullable.filter(({ anyOf }) => anyOf.some((one: Node) => !isNull(one) && !one["$ref"]));
      expect(inline).toEqual([]);
    });
    const isNull = (node: Node) => node["type"] === "null";

    test("makes a component of every nested object, union and enum", () => {
      const { Condition, Filter, AlertFilter, SeverityLevel } = shapes();
      expect([Condition, Filter, AlertFilter].flatMap((shape) => shape!["anyOf"]).filter(({ $ref }) => !$ref)).toEqual(
        [],
      );
      const severities = nodes().filter(({ enum: words }) => Array.isArray(words) && words[0] === "critical");
      expect(severities).toEqual([SeverityLevel]);
      const objects = parts().filter(({ type, properties }) => type === "object" && Object.keys(properties ?? {})[0]);
      const choices = parts().filter(({ anyOf = [] }) => anyOf.filter((one: Node) => !isNull(one)).length > 1);
      const words = parts().filter((node) => Array.isArray(node["enum"]) && node["type"] === "string");
      expect({ objects, choices, words }).toEqual({ objects: [], choices: [], words: [] });
    });

    test("has one name for the common parts of rules in all requests", () => {
      for (const name of ["NewRule", "RuleReplacement", "SimulatedRule"]) {
        const { threshold, sequence, dedup, group_by: groupBy, source } = shapes()[name]!["properties"];
        const refersTo = [threshold.anyOf[0], sequence.items, dedup, groupBy.anyOf[0], source.allOf[0]].map(
          ({ $ref }: Node) => $ref.split("/").at(-1),
        );
        expect(refersTo).toEqual(["NewThreshold", "NewSequenceStep", "NewDedup", "FieldPathOrPaths", "RuleSource"]);
      }
    });

    test("has no enum value whose constant would collide with a type name", () => {
      const plain = (name: string) => name.replaceAll(/[^a-z0-9]/gi, "").toLowerCase();
      const names = new Set(Object.keys(shapes()).map(plain));
      const words = nodes().flatMap(({ enum: words }) => (Array.isArray(words) ? words.map(String) : []));
      expect(words.length).toBeGreaterThan(100);
      expect(words.filter((word) => names.has(plain(word)))).toEqual([]);
      expect(Object.keys(shapes())).not.toContain("Error");
      expect(Object.keys(shapes())).not.toContain("Bool");
    });

    test("has no component with the name that generators give to an inline object of another", () => {
      const inline = Object.entries(shapes()).flatMap(([owner, { properties = {} }]) =>
        Object.entries(properties as Record<string, Node>)
          .filter(([, { type, additionalProperties }]) => type === "object" && additionalProperties)
          .map(([name]) => `${owner}${name.charAt(0).toUpperCase()}${name.slice(1)}`),
      );
      expect(inline).toContain("AlertAggregationAggs");
      expect(inline.filter((name) => name in shapes())).toEqual([]);
    });

    test("states the width of every number above 32 bits", () => {
      const numbers = nodes().filter((node) => types(node).includes("number"));
      expect(numbers.filter(({ format }) => format !== "double")).toEqual([]);
      const integers = nodes().filter((node) => types(node).includes("integer"));
      expect(integers.length).toBeGreaterThan(20);
      expect(integers.filter(({ format, maximum }) => format !== "int64" && !(maximum < 2 ** 31))).toEqual([]);
    });

    test("keeps rules about combinations of properties apart from types", () => {
      const { FieldTest, Aggregation } = shapes();
      for (const shape of [FieldTest!, Aggregation!]) expect(shape["if"].oneOf.length).toBeGreaterThan(4);
      expect(nodes().filter(({ oneOf, properties }) => oneOf && properties)).toEqual([]);
    });

    test("gives an object no default besides those of its properties", () => {
      const defaults = nodes().flatMap(({ default: value }) => (typeof value === "object" ? [value] : []));
      expect(defaults.filter((value) => !Array.isArray(value))).toEqual([]);
    });

    test("lists one NDJSON media type, of which the service accepts all", async () => {
      const { content } = document.paths["/v1/events/batch"].post.requestBody;
      expect(Object.keys(content)).toEqual(["application/json", "application/x-ndjson"]);
      const body = JSON.stringify({ type: "a", source: "custom", data: {} });
      const others = content["application/x-ndjson"].schema.description.match(/application\/[a-z-]+/g);
      expect(others).toHaveLength(4);
      for (const type of others) {
        const headers = { "content-type": type };
        expect((await server.call("POST", "/v1/events/batch", { body, headers })).status, type).toBe(200);
      }
    });

    test("marks times", () => {
      for (const [shape, name] of [
        ["Event", "timestamp"],
        ["Alert", "created_at"],
        ["AlertDetail", "resolved_at"],
        ["Rule", "updated_at"],
        ["Export", "expires_at"],
        ["Key", "last_used_at"],
      ] as const) {
        expect(shapes()[shape]!["properties"][name].format, `${shape}.${name}`).toBe("date-time");
      }
    });
  });

  test("accepts both values of a boolean parameter", () => {
    expect([true, false, "maybe"].map((value) => parameterFaults(value, "/v1/rules", "enabled").length)).toEqual([
      0, 0, 1,
    ]);
  });

  test("refuses the same as the service, as far as a schema can express it", async () => {
    const search = (more: object) => ({ query: {}, ...more });
    const filter = (item: object) => search({ query: { bool: { must: [item] } } });
    const rule = { ...document.paths["/v1/rules"].post.requestBody.content["application/json"].example, name: "a.b" };
    const cases: [method: string, path: string, body: object, isTaken: boolean][] = [
      ["patch", "/v1/rules/{id}", {}, false],
      ["patch", "/v1/rules/{id}", { enabled: true }, true],
      ["post", "/v1/alerts/bulk", { alert_ids: ["alt_1", "alt_1"], action: "reopen" }, false],
      ["post", "/v1/alerts/bulk", { alert_ids: ["alt_1", "alt_2"], action: "reopen" }, true],
      ["post", "/v1/events/search", search({ aggs: { a: {} } }), false],
      ["post", "/v1/events/search", search({ aggs: { a: { count: {}, terms: { field: "type" } } } }), false],
      ["post", "/v1/events/search", search({ aggs: { a: { terms: { field: "type" }, aggs: { b: {} } } } }), false],
      ["post", "/v1/events/search", search({ aggs: { a: { count: {} } } }), true],
      ["post", "/v1/events/search", filter({ field: "type" }), false],
      ["post", "/v1/events/search", filter({ field: "type", equals: "a", prefix: "a" }), false],
      ["post", "/v1/events/search", filter({ field: "type", equals: "a", ignore_case: true }), true],
      ["post", "/v1/events/search", filter({ field: "type", exists: false }), true],
      ["post", "/v1/events/search", filter({ keyword: "a" }), true],
      ["post", "/v1/alerts/search", filter({ field: "status", equals: "open" }), true],
      ["post", "/v1/alerts/search", filter({ bool: { must: [{ field: "tags", contains: "a" }] } }), true],
      ["post", "/v1/alerts/search", filter({ field: "status" }), false],
      ["post", "/v1/alerts/search", filter({ keyword: "a" }), false],
      ["post", "/v1/events/search", histogram("1 hour"), false],
      ["post", "/v1/events/search", histogram("1h"), true],
      ["post", "/v1/rules", { ...rule, window: "five" }, false],
      ["post", "/v1/rules", { ...rule, dedup: { period: "0s" } }, false],
      ["post", "/v1/rules", rule, true],
      ["post", "/v1/events/search", search({ sort: { type: "asc" } }), true],
      ["post", "/v1/events/search", search({ sort: many(6, (n) => [`raw.f${n}`, "asc"]) }), false],
      ["post", "/v1/events/search", search({ aggs: many(21, (n) => [`a${n}`, { count: {} }]) }), false],
    ];
    const { id } = (await server.call("GET", "/v1/rules?per_page=1")).body.data[0];
    for (const [method, path, body, isTaken] of cases) {
      const answer = await server.call(method.toUpperCase(), path.replace("{id}", id), { body });
      const says = { document: bodyFaults(body, path, method).length === 0, service: answer.status < 400 };
      expect(says, `${path} ${JSON.stringify(body)}`).toEqual({ document: isTaken, service: isTaken });
    }
    const headerFaults = (value: string) =>
      faultsOf(value, "paths", "/v1/events", "post", "parameters", "0", "schema").length;
    expect(["one-key", "two keys", "", "k".repeat(256)].map(headerFaults)).toEqual([0, 1, 2, 1]);
  });

  test("refuses the same empty lists and duplicates as the service, and no others", async () => {
    const rule = { ...document.paths["/v1/rules"].post.requestBody.content["application/json"].example, name: "a.c" };
    const grouped = (paths: string[]) => ({ ...rule, window: "5m", threshold: { count: 2, group_by: paths } });
    const withChannels = (channels: string[]) => ({ ...rule, actions: [{ alert: { channels } }] });
    const step = { name: "one", conditions: [{ field: "type", equals: "a" }] };
    const stepping = (...sequence: object[]) => ({ ...rule, conditions: [], threshold: null, window: "5m", sequence });
    const cases: [path: string, body: object, isTaken: boolean][] = [
      ...["in", "not_in", "contains", "starts_with", "prefix", "ends_with", "glob", "regex", "cidr"].map(
        (name): [string, object, boolean] => [
          "/v1/rules",
          { ...rule, conditions: [{ field: "raw.a", [name]: [] }] },
          false,
        ],
      ),
      ["/v1/rules", { ...rule, conditions: [{ keyword: [] }] }, false],
      ["/v1/rules", { ...rule, conditions: [{ any: [] }] }, false],
      ["/v1/rules", { ...rule, conditions: [{ not: { all: [] } }] }, false],
      ["/v1/rules", { ...rule, conditions: [{ any: Array(257).fill(step.conditions[0]) }] }, false],
      ["/v1/rules", { ...rule, exceptions: [{ reason: "x", conditions: [] }] }, false],
      ["/v1/rules", { ...rule, actions: [] }, false],
      ["/v1/rules", { ...rule, dedup: { by: [] } }, false],
      ["/v1/rules", grouped([]), false],
      ["/v1/rules", grouped(["raw.a", "raw.a"]), false],
      ["/v1/rules", withChannels(["slack", "slack"]), false],
      ["/v1/rules", stepping(), false],
      ["/v1/rules", stepping(step), false],
      ["/v1/rules", stepping(step, { name: "two", conditions: [] }), false],
      ["/v1/alerts/bulk", { alert_ids: [], action: "reopen" }, false],
      ["/v1/events/batch", [], false],
      ["/v1/events/export", { format: "csv", time_range: { from: "2026-11-01", to: "2026-11-02" }, fields: [] }, false],
      ["/v1/keys", { name: "x", scopes: [] }, false],
      ["/v1/collect/eve", [], false],
      ["/v1/events/search", { query: { bool: { must: [], must_not: [], should: [] } } }, true],
      ["/v1/rules", { ...withChannels([]), tags: [], references: [], exceptions: [] }, true],
      ["/v1/rules", { ...stepping(step, { ...step, name: "two" }), name: "a.d" }, true],
      ["/v1/rules", { ...rule, conditions: [{ any: [{ all: step.conditions }] }], name: "a.e" }, true],
      ["/v1/rules", { ...grouped(["raw.a", "raw.b"]), name: "a.f" }, true],
    ];
    for (const [path, body, isTaken] of cases) {
      const answer = await server.call("POST", path, { body });
      const template = path.replace(/^\/v1\/collect\/.*/, "/v1/collect/{name}");
      const says = { document: bodyFaults(body, template).length === 0, service: answer.status < 400 };
      expect
        .soft(says, `${path} ${JSON.stringify(body).slice(0, 400)} ${answer.text}`)
        .toEqual({ document: isTaken, service: isTaken });
    }
  });

  function many(count: number, entry: (n: number) => [string, unknown]) {
    return Object.fromEntries(Array.from({ length: count }, (_, n) => entry(n)));
  }

  function histogram(interval: string) {
    return { query: {}, aggs: { a: { histogram: { field: "timestamp", interval } } } };
  }

  test("names every response header for clients", async () => {
    const names = Object.keys(document.components.headers);
    const sent: Answer[] = [];
    const call = async (method: string, path: string, template: string, options = {}) => {
      const answer = await server.call(method, path, options);
      const told = document.paths[template][method.toLowerCase()].responses[answer.status].headers;
      const carried = names.filter((name) => answer.headers[name.toLowerCase()] !== undefined);
      expect(Object.keys(told), `${method} ${template} ${answer.status}`).toEqual(expect.arrayContaining(carried));
      sent.push(answer);
      return answer.body?.data;
    };
    const headers = { "idempotency-key": "headers" };
    const event = { type: "a", source: "custom", data: {} };
    await call("POST", "/v1/events", "/v1/events", { body: event, headers });
    await call("POST", "/v1/events", "/v1/events", { body: event, headers });
    await call("GET", "/v1/events", "/v1/events", { key: null });
    const example = document.paths["/v1/rules"].post.requestBody.content["application/json"].example;
    const body = { ...example, name: "headers.rule", enabled: true };
    const { id } = await call("POST", "/v1/rules", "/v1/rules", { body });
    await call("GET", `/v1/rules/${id}`, "/v1/rules/{id}");
    await call("PUT", `/v1/rules/${id}`, "/v1/rules/{id}", { body });
    await call("PATCH", `/v1/rules/${id}`, "/v1/rules/{id}", { body: { enabled: false } });
    const range = { format: "csv", time_range: { from: "2026-01-01", to: "2100-01-01" } };
    const { id: job, download_url: url } = await call("POST", "/v1/events/export", "/v1/events/export", {
      body: range,
    });
    const download = "/v1/events/exports/{id}/download";
    await call("GET", url, download);
    while ((await server.call("GET", `/v1/events/exports/${job}`)).body.data.status !== "completed");
    await call("GET", url, download);
    const all = new Set(sent.flatMap((answer) => Object.keys(answer.headers)));
    for (const name of ["location", "etag", "idempotency-replayed", "www-authenticate", "content-disposition"]) {
      expect(all).toContain(name);
    }
    expect(Object.keys(document.paths[download].get.responses["404"].headers)).toContain("Retry-After");
  });
});
