import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type Answer, type TestServer } from "../../test/api-server.ts";

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

/** What is wrong with a value, by the schema at a place of the document. */
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

  test("takes the times that the service takes: with a time of day, or a date alone", () => {
    const submission = { type: "a", source: "custom", data: {} };
    const range = (from: string) => ({ query: { time_range: { from } } });
    for (const time of ["2026-11-15", "2026-11-15T08:30:00Z", "2026-11-15T08:30:00.5+01:00"]) {
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

  test("takes both values of a parameter that is true or false", () => {
    expect([true, false, "maybe"].map((value) => parameterFaults(value, "/v1/rules", "enabled").length)).toEqual([
      0, 0, 1,
    ]);
  });

  test("refuses, as the service does, what a schema can say", async () => {
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
      ["post", "/v1/events/search", histogram("1 hour"), false],
      ["post", "/v1/events/search", histogram("1h"), true],
      ["post", "/v1/rules", { ...rule, window: "five" }, false],
      ["post", "/v1/rules", { ...rule, dedup: { period: "0s" } }, false],
      ["post", "/v1/rules", rule, true],
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

  function histogram(interval: string) {
    return { query: {}, aggs: { a: { histogram: { field: "timestamp", interval } } } };
  }

  test("names every header that an answer carries for its client", async () => {
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
