import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { Validator } from "@seriousme/openapi-schema-validator";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { StoreUnavailable } from "../store/ports/store-errors.ts";
import { PROBLEMS } from "./problems.ts";
import { changed, openTestServer, type Answer, type TestServer } from "../../test/api-server.ts";

const MIB = 1024 * 1024;
const submission = { type: "login_failure", source: "custom", data: { user: "alice" } };

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer({ settings: { rateLimits: false } });
});
afterAll(() => server.close());

function expectProblem(answer: Answer, code: keyof typeof PROBLEMS): void {
  expect({ status: answer.status, code: answer.body?.error?.code }).toEqual({ status: PROBLEMS[code].status, code });
  expect(answer.body.error.message).toEqual(expect.any(String));
  expect(answer.body.error.details).toEqual(expect.any(Array));
  expect(answer.body.meta.request_id).toBe(answer.headers["x-request-id"]);
  expect(answer.body.meta.timestamp).toMatch(/Z$/);
  expect(Object.keys(answer.body)).toEqual(["error", "meta"]);
}

/** The metric names in the code spans of a page: `tocsin_a_b_total`, then `_c_total` for one with the same prefix. */
function metricsOf(page: string): string[] {
  return page.split("\n").flatMap((line) => {
    const names = [...line.matchAll(/`(tocsin_\w+|_\w+)/g)].map((match) => match[1]!);
    const whole = names.filter((name) => name.startsWith("tocsin_"));
    const beginnings = whole.flatMap((name) => name.split("_").map((_, i, parts) => parts.slice(0, i).join("_")));
    return names.flatMap((name) => (name.startsWith("_") ? beginnings.map((begun) => begun + name) : [name]));
  });
}

/** Writes bytes to a raw connection and returns everything received until it closes. */
function talk(text: string, { hangUpAfterMs }: { hangUpAfterMs?: number } = {}): Promise<string> {
  return new Promise((resolve) => {
    let heard = "";
    const socket = connect(server.port, "127.0.0.1", () => socket.write(text));
    socket.on("data", (chunk) => (heard += chunk.toString()));
    socket.on("error", () => resolve(heard));
    socket.on("close", () => resolve(heard));
    if (hangUpAfterMs !== undefined) setTimeout(() => socket.destroy(), hangUpAfterMs);
  });
}

/** Waits for an effect that follows a response shortly after. */
function eventually<Value>(look: () => Value | undefined): Promise<Value> {
  return vi.waitFor(() => {
    const value = look();
    if (value === undefined) throw new Error("it never happened");
    return value;
  }, 100_000);
}

describe("every response", () => {
  test("has its request id in the header, in meta and in exactly one log line, with the id of the key and never the key", async () => {
    const answer = await server.call("GET", "/v1/events?per_page=1");
    const id = answer.headers["x-request-id"];
    expect(id).toMatch(/^req_[0-9a-f]{32}$/);
    expect(answer.body.meta.request_id).toBe(id);
    const line = await eventually(() => server.log.find(({ request }) => request === id));
    expect(line).toMatchObject({ method: "GET", route: "/v1/events", status: 200, key: server.key.key.id });
    expect(server.log.filter(({ request }) => request === id)).toHaveLength(1);
    expect(JSON.stringify(server.log)).not.toContain(server.key.secret.slice(-64));
  });

  test.each([
    ["GET", "/v1/events", 200],
    ["GET", "/v1/events?nope=1", 400],
    ["GET", "/v1/events/evt_none", 404],
    ["GET", "/v1/nothing", 404],
    ["GET", "/api/v1/nothing", 404],
    ["GET", "/nothing", 404],
    ["DELETE", "/v1/events", 405],
    ["GET", "/v1/events/%zz", 404],
  ])("%s %s is %i and carries rate limit, caching and security headers", async (method, path, status) => {
    for (const key of [server.key.secret, null]) {
      const answer = await server.call(method, path, { key });
      if (key) expect(answer.status).toBe(status);
      expect(answer.headers).toMatchObject({
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "x-ratelimit-limit": expect.stringMatching(/^\d+$/),
        "x-ratelimit-remaining": expect.stringMatching(/^\d+$/),
        "x-ratelimit-reset": expect.stringMatching(/^\d+$/),
        "x-request-id": expect.stringMatching(/^req_/),
        "content-security-policy": expect.stringContaining("default-src 'none'"),
      });
    }
  });
});

describe("the error body is sent for", () => {
  test("unknown paths, unsupported methods with Allow, and paths that cannot be decoded", async () => {
    expectProblem(await server.call("GET", "/v1/nothing"), "not_found");
    expectProblem(await server.call("GET", "/v1/events/%E0%A4%A"), "not_found");
    const unknown = await server.call("DELETE", "/v1/lists/x/nothing");
    expectProblem(unknown, "not_found");
    expect(unknown.body.error.message).toBe("this path does not exist");
    // The parent of exports, not an event with the id `exports`.
    const list = await server.call("DELETE", "/v1/events/exports");
    expectProblem(list, "method_not_allowed");
    expect(list.headers.allow).toBe("GET, HEAD");
    const wrong = await server.call("PUT", "/v1/events", { body: {} });
    expectProblem(wrong, "method_not_allowed");
    expect(wrong.headers.allow).toBe("GET, HEAD, POST");
    expectProblem(await server.call("POST", "/healthz"), "method_not_allowed");
    expectProblem(await server.call("OPTIONS", "/v1/keys"), "method_not_allowed");
    expect((await server.call("DELETE", "/v1/events/evt_1")).headers.allow).toBe("GET, HEAD");
    expectProblem(await server.call("QUERY", "/v1/events"), "method_not_allowed");
  });

  test("a method that a literal path lacks, even if a path with an id in that position has it", async () => {
    for (const [method, path, allow] of [
      ["GET", "/v1/events/search", "POST"],
      ["GET", "/v1/events/export", "POST"],
      ["GET", "/v1/events/batch", "POST"],
      ["GET", "/v1/alerts/bulk", "POST"],
      ["DELETE", "/v1/rules/import", "POST"],
      ["POST", "/v1/alerts/stats", "GET, HEAD"],
    ] as const) {
      const answer = await server.call(method, path);
      expectProblem(answer, "method_not_allowed");
      expect(answer.headers.allow, path).toBe(allow);
    }
  });

  test("bodies that are not JSON", async () => {
    for (const body of ["{", "nope", '{"a":1}}', Buffer.from([0x22, 0xff, 0x22])]) {
      expectProblem(await server.call("POST", "/v1/events", { body }), "malformed_json");
      expectProblem(await server.call("POST", "/v1/events/search", { body }), "malformed_json");
    }
  });

  test("unsupported content types and encodings", async () => {
    const body = JSON.stringify(submission);
    for (const type of [
      "text/plain",
      "application/xml",
      "multipart/form-data",
      "application/json; charset=utf-16",
      "x",
    ]) {
      const answer = await server.call("POST", "/v1/events", { body, headers: { "content-type": type } });
      expectProblem(answer, "unsupported_media_type");
    }
    const raw = `POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.key.secret}\r\nConnection: close\r\n`;
    const sent = `Content-Length: ${body.length}\r\n\r\n${body}`;
    for (const header of ["", "Content-Type:\r\n", "Content-Type:  \r\n"])
      expect(await talk(raw + header + sent)).toMatch(
        /unsupported_media_type.*no content type; send application\/json/,
      );
    expect(await talk(`${raw}Content-Type: x\r\n${sent}`)).toMatch(/unsupported_media_type.*send one such as/);
    for (const encoding of ["br", "deflate", "zstd", "gzip, gzip"]) {
      const answer = await server.call("POST", "/v1/events", { body, headers: { "content-encoding": encoding } });
      expectProblem(answer, "unsupported_media_type");
    }
    const ok = await server.call("POST", "/v1/events", {
      body,
      headers: { "content-type": 'Application/JSON; Charset="UTF-8"' },
    });
    expect(ok.status).toBe(201);
  });

  test("missing bodies, where one is required", async () => {
    expectProblem(await server.call("POST", "/v1/events"), "validation_error");
    expectProblem(await server.call("POST", "/v1/events/batch", { body: "" }), "validation_error");
    expectProblem(await server.call("POST", "/v1/events/search"), "validation_error");
    expectProblem(await server.call("POST", "/v1/keys"), "validation_error");
  });

  test("a body of more than 1 MiB, compressed or not, with or without its length", async () => {
    const frame = JSON.stringify({ ...submission, data: { text: "" } });
    const body = (bytes: number) => frame.replace('""', `"${"x".repeat(bytes - frame.length)}"`);
    expect((await server.call("POST", "/v1/events", { body: body(MIB) })).status).toBe(201);
    expectProblem(await server.call("POST", "/v1/events", { body: body(MIB + 1) }), "payload_too_large");
    const gzip = { "content-encoding": "gzip" };
    const chunked = { "transfer-encoding": "chunked" };
    expect((await server.call("POST", "/v1/events", { body: gzipSync(body(MIB)), headers: gzip })).status).toBe(201);
    for (const [sent, headers] of [
      [gzipSync(body(MIB + 1)), gzip],
      [gzipSync(Buffer.alloc(200 * MIB)), gzip],
      [body(MIB + 1), chunked],
      [body(8 * MIB), chunked],
    ] as const) {
      expectProblem(await server.call("POST", "/v1/events", { body: sent, headers }), "payload_too_large");
    }
  });

  test("invalid gzip", async () => {
    const whole = gzipSync(JSON.stringify(submission));
    for (const body of [Buffer.from("plain"), whole.subarray(0, 20), Buffer.from(whole).fill(0, 12, 20)]) {
      const answer = await server.call("POST", "/v1/events", { body, headers: { "content-encoding": "gzip" } });
      expectProblem(answer, "validation_error");
      expect(answer.body.error.details).toEqual([{ field: "body", message: "is not valid gzip" }]);
    }
  });

  test("a request without Host, or with two; an unknown expectation is ignored", async () => {
    const authorization = `Authorization: Bearer ${server.key.secret}\r\nConnection: close\r\n`;
    const hostless = await talk(`GET /v1/events HTTP/1.1\r\n${authorization}\r\n`);
    expect(hostless).toMatch(/^HTTP\/1.1 400 .*x-ratelimit-limit.*"field":"Host"/is);
    const twice = await talk(`GET /v1/events HTTP/1.1\r\nHost: x\r\nhost: y\r\n${authorization}\r\n`);
    expect(twice).toMatch(/^HTTP\/1.1 400 .*"field":"Host","message":"is given more than once"/is);
    expect(await talk(`GET /v1/events HTTP/1.1\r\nHost: x\r\nExpect: wonders\r\n${authorization}\r\n`)).toMatch(
      /^HTTP\/1.1 200 /,
    );
  });

  test("a request with two Authorization headers, whichever is valid, or with two content types", async () => {
    const ours = `Authorization: Bearer ${server.key.secret}\r\n`;
    const wrong = "authorization: Bearer tsn_wrong\r\n";
    for (const both of [ours + wrong, wrong + ours, ours + ours]) {
      const answer = await talk(`GET /v1/events HTTP/1.1\r\nHost: x\r\n${both}Connection: close\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1.1 400 .*"field":"Authorization","message":"is given more than once"/is);
      // The request is not authenticated, so it counts against the address.
      expect(answer).toMatch(/\r\nx-ratelimit-limit: 60\r\n/i);
    }
    const types = "Content-Type: application/json\r\nContent-Type: application/x-ndjson\r\n";
    const posted = `POST /v1/events/batch HTTP/1.1\r\nHost: x\r\n${ours}${types}Connection: close\r\nContent-Length: 2\r\n\r\n[]`;
    expect(await talk(posted)).toMatch(/^HTTP\/1.1 400 .*"field":"Content-Type","message":"is given more than once"/is);
  });

  test("input that is not HTTP, and endless headers", async () => {
    for (const text of ["HELLO\r\n\r\n", "FOO / HTTP/1.1\r\n\r\n", `GET /?${"x".repeat(20_000)} HTTP/1.1\r\n\r\n`]) {
      const answer = await talk(text);
      expect(answer).toMatch(/^HTTP\/1.1 400 Bad Request\r\n.*"validation_error"/s);
      for (const header of ["X-RateLimit-Limit: 60", "X-RateLimit-Remaining: ", "X-RateLimit-Reset: "])
        expect(answer).toContain(`\r\n${header}`);
      expect(answer).toMatch(
        /\r\nContent-Security-Policy: default-src 'none'.*\r\nX-Content-Type-Options: nosniff\r\n/s,
      );
    }
    expect(await talk(`GET /v1/events HTTP/1.1\r\nHost: x\r\nX-Long: ${"x".repeat(20_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1.1 400 .*the request headers are larger/s,
    );
  });
});

describe("connections", () => {
  let strict: TestServer;
  beforeAll(async () => {
    strict = await openTestServer({ connections: { headersTimeoutMs: 300, checkMs: 50 } });
  });
  afterAll(() => strict.close());

  test("with endless headers get a response and are closed even if the client keeps sending", async () => {
    const socket = connect({ port: strict.port, host: "127.0.0.1", allowHalfOpen: true });
    let heard = "";
    socket.on("data", (chunk) => (heard += chunk.toString()));
    socket.write("GET /v1/events HTTP/1.1\r\nHost: x\r\n");
    // One header each time: nothing in the input is invalid.
    const dripping = setInterval(() => socket.write("X-Drip: 1\r\n"), 50);
    await new Promise<void>((resolve) => socket.on("error", () => undefined).on("close", () => resolve()));
    clearInterval(dripping);
    expect(heard).toMatch(/^HTTP\/1.1 408 .*request_timeout.*the request was not complete in time/s);
  });
});

describe("an internal error", () => {
  test("shows no internals in the response, and all details in the log", async () => {
    const broken = await openTestServer({
      around: (store) => ({
        ...store,
        events: changed(store.events, {
          get: () => Promise.reject(new Error("SELECT * FROM secret at /var/lib")),
          list: () => Promise.reject(new StoreUnavailable("queue_full", "too much to do", 7)),
        }),
        check: () => Promise.reject(new Error("no file /var/lib/x")),
      }),
    });
    const failed = await broken.call("GET", "/v1/events/evt_1");
    expectProblem(failed, "internal_error");
    expect(failed.text).not.toMatch(/SELECT|var|at /);
    expect(broken.log.find(({ err }) => err?.message.includes("SELECT"))).toMatchObject({
      request: failed.headers["x-request-id"],
    });
    const busy = await broken.call("GET", "/v1/events");
    expectProblem(busy, "unavailable");
    expect(busy.headers["retry-after"]).toBe("7");
    const unready = await broken.call("GET", "/readyz", { key: null });
    expectProblem(unready, "unavailable");
    expect(unready.text).not.toContain("/var");
    expect((await broken.call("GET", "/healthz", { key: null })).status).toBe(200);
    await broken.close();
  });

  test("is not logged for a client that disconnects in the middle of its body", async () => {
    const head = `POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.key.secret}\r\nContent-Type: application/json\r\n`;
    const before = server.log.length;
    await talk(`${head}Content-Length: 1000\r\n\r\n{"type":`, { hangUpAfterMs: 50 });
    await talk(`${head}Transfer-Encoding: chunked\r\n\r\n8\r\n{"type":\r\n`, { hangUpAfterMs: 50 });
    const lines = await eventually(() => {
      const aborted = server.log.slice(before).filter((line) => line.aborted);
      return aborted.length === 2 ? aborted : undefined;
    });
    expect(lines.map(({ level }) => level)).toEqual(["info", "info"]);
    expect(server.log.slice(before).filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
    expect((await server.call("POST", "/v1/events", { body: submission })).status).toBe(201);
  });
});

describe("operations", () => {
  test("health, readiness and metrics need no key", async () => {
    expect((await server.call("GET", "/healthz", { key: null })).body.data).toEqual({ status: "alive" });
    expect((await server.call("GET", "/readyz", { key: null })).body.data).toEqual({
      status: "ready",
      detection: { status: "running", lag_seconds: expect.any(Number) },
      storage: { status: "complete", messages: [] },
      retention: { status: "running", messages: [] },
      roles: expect.arrayContaining(["detector", "notifier", "analyst", "retention", "exports"]),
    });
    await server.call("POST", "/v1/events", { body: { ...submission, severity: "bad" } });
    const metrics = await server.call("GET", "/metrics", { key: null });
    expect(metrics.headers["content-type"]).toContain("text/plain");
    expect(metrics.text).toMatch(
      /http_request_duration_seconds_count\{method="POST",route="\/v1\/events",status="400"\} \d+/,
    );
    expect(metrics.text).toMatch(/tocsin_intake_refused_total\{reason="invalid"\} \d+/);
  });

  test("every metric of the service is listed on the operations page", async () => {
    const folder = new URL("../../docs/", import.meta.url);
    const pages = readdirSync(folder).filter((name) => name.endsWith(".md"));
    const told = new Set(pages.flatMap((name) => metricsOf(readFileSync(new URL(name, folder), "utf8"))));
    const { text } = await server.call("GET", "/metrics", { key: null });
    const given = [...text.matchAll(/^# TYPE (tocsin_\w+)/gm)].map((match) => match[1]!);
    expect(given.length).toBeGreaterThan(40);
    expect(given.filter((name) => !told.has(name))).toEqual([]);
  });

  test("the docs page loads everything from this server", async () => {
    const page = await server.call("GET", "/docs", { key: null });
    expect(page.status).toBe(200);
    expect(page.headers["content-security-policy"]).toMatch(/default-src 'none'.*connect-src 'self'/);
    const references = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1]!);
    expect(references.length).toBeGreaterThan(3);
    for (const reference of references) {
      expect(reference).toMatch(/^\/docs\//);
      expect((await server.call("GET", reference, { key: null })).status, reference).toBe(200);
    }
    const start = await server.call("GET", "/docs/static/swagger-initializer.js", { key: null });
    expect(start.text).toContain("validatorUrl: null");
    expect(start.text).not.toMatch(/https?:\/\/(?!stackoverflow)/);
  });

  test("the OpenAPI document is valid and describes the statuses, the key and the error body of every call", async () => {
    const { body, status } = await server.call("GET", "/openapi.json", { key: null });
    expect(status).toBe(200);
    expect(await new Validator().validate(structuredClone(body))).toEqual({ valid: true });
    expect(body.openapi).toBe("3.1.0");
    expect(Object.keys(body.paths)).toEqual(
      expect.arrayContaining([
        "/v1/events",
        "/v1/events/{id}",
        "/v1/events/search",
        "/v1/events/batch",
        "/v1/events/export",
        "/v1/events/exports/{id}",
        "/v1/events/exports/{id}/download",
        "/v1/keys",
        "/v1/keys/{id}",
        "/v1/keys/{id}/rotate",
        "/healthz",
        "/readyz",
        "/metrics",
      ]),
    );
    const names = Object.keys(body.components.schemas);
    expect(names.filter((name) => name.endsWith("Input"))).toEqual([]);
    const text = JSON.stringify(body);
    for (const name of names) expect(text, name).toContain(`"#/components/schemas/${name}"`);
    const perPage = body.paths["/v1/events"].get.parameters.find(({ name }: { name: string }) => name === "per_page");
    expect(perPage.schema).toMatchObject({ type: "integer", minimum: 1, maximum: 100 });
    for (const [path, operations] of Object.entries<Record<string, any>>(body.paths)) {
      if (!path.startsWith("/v1/")) continue;
      for (const [method, operation] of Object.entries(operations)) {
        expect(Object.keys(operation.responses), `${method} ${path}`).toEqual(
          expect.arrayContaining(["400", "401", "403", "429", "500", "503"]),
        );
        expect(operation.responses["429"].content["application/json"].schema.$ref).toMatch(/Error/);
        expect(operation.responses["401"].headers).toHaveProperty("X-RateLimit-Limit");
        // The stream and the site depend on the scopes of the key; a collector accepts one of two scopes; sessions and views
        // need none.
        const isOpen = /^\/v1\/(stream|site|session|views|collect\/)/.test(path);
        expect((operation.security[0]?.key.length ?? 0) > 0, path).toBe(!isOpen);
      }
    }
  });

  test("a body has its own schema for each media type", async () => {
    const { paths } = (await server.call("GET", "/openapi.json", { key: null })).body;
    const contentOf = (path: string) => paths[path].post.requestBody.content;
    const batch = contentOf("/v1/events/batch");
    expect(batch["application/json"].schema).toMatchObject({ type: "array" });
    expect(batch["application/x-ndjson"].schema).toMatchObject({ type: "string" });
    expect(batch["application/x-ndjson"]).not.toHaveProperty("example");
    for (const path of ["/v1/collect/{name}", "/v1/collect/{name}/{token}"]) {
      const posted = contentOf(path);
      const kinds = posted["application/json"].schema.anyOf.map(({ type }: { type: string }) => type);
      expect(kinds).toEqual(["object", "string", "array"]);
      for (const type of ["application/x-ndjson", "text/plain"])
        expect(posted[type].schema, type).toMatchObject({ type: "string" });
    }
  });

  /** An alert that a rule created from an event. */
  const makeAlert = async (): Promise<string> => {
    const rule = {
      name: "test.one",
      description: "An alert",
      severity: "low",
      conditions: [{ field: "raw.alarm", equals: true }],
      actions: [{ alert: { channels: [] } }],
    };
    expect((await server.call("POST", "/v1/rules", { body: rule })).status).toBe(201);
    await server.call("POST", "/v1/events", { body: { ...submission, data: { alarm: true } } });
    for (;;) {
      const { data } = (await server.call("GET", "/v1/alerts?rule_name=test.one")).body;
      if (data.length > 0) return data[0].id;
    }
  };

  test("the service accepts every example body of the OpenAPI document", async () => {
    const { paths } = (await server.call("GET", "/openapi.json", { key: null })).body;
    const examples = Object.entries<any>(paths).flatMap(([path, operations]) =>
      Object.entries<any>(operations).flatMap(([method, { requestBody }]) =>
        requestBody?.content["application/json"]
          ? [{ method, path, body: requestBody.content["application/json"].example }]
          : [],
      ),
    );
    expect(examples.length).toBeGreaterThan(15);
    const { key } = await server.addKey();
    const rule = (
      await server.call("POST", "/v1/rules", {
        body: paths["/v1/rules"].post.requestBody.content["application/json"].example,
      })
    ).body.data;
    const view = (await server.call("POST", "/v1/views", { body: { screen: "alerts", name: "x", search: "" } })).body
      .data;
    const rest = examples.filter(({ path }) => path !== "/v1/rules");
    const alert = await makeAlert();
    const token = (await server.addKey({ scopes: ["collect:talk"] })).secret;
    const assigned = await server.call("POST", "/v1/alerts/bulk", {
      body: { action: "assign", alert_ids: [alert], assignee: "ann@example.net" },
    });
    const { undo_id } = assigned.body.data;
    for (const { method, path, body } of rest) {
      expect(body, path).toBeDefined();
      const ids: Record<string, string> = { rules: rule.id, alerts: alert, keys: key.id, views: view.id };
      const id = ids[path.split("/")[2]!] ?? "";
      const real: Record<string, object> = {
        "/v1/alerts/bulk": { alert_ids: [alert] },
        "/v1/alerts/bulk/undo": { undo_id },
        "/v1/views/order": { ids: [view.id] },
        "/v1/session": { key: server.key.secret },
      };
      const sent = path in real ? { ...body, ...real[path] } : body;
      const target = path
        .replace("{id}", id)
        .replace("{name}", path.startsWith("/v1/lists") ? "contractors" : "talk")
        .replace("{token}", token);
      const answer = await server.call(method.toUpperCase(), target, { body: sent });
      // The body is valid, but this server has no channel.
      const accepted = path === "/v1/notifications/test" ? [409] : [200, 201];
      expect(accepted, `${path} ${answer.text}`).toContain(answer.status);
    }
  });
});
