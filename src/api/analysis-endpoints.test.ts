import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";

let server: TestServer;
let id: string;
beforeAll(async () => {
  server = await openTestServer();
  const rule = {
    name: "analysed.any",
    description: "Any event of the test",
    severity: "critical",
    conditions: [{ field: "type", equals: "analysed" }],
    actions: [{ alert: { channels: [] } }],
  };
  expect((await server.call("POST", "/v1/rules", { body: rule })).status).toBe(201);
  await server.call("POST", "/v1/events", {
    body: { type: "analysed", source: "custom", data: { src_ip: "192.0.2.1" } },
  });
  id = await vi.waitFor(
    async () => {
      const { body } = await server.call("GET", "/v1/alerts?rule_name=analysed.any");
      expect(body.data).toHaveLength(1);
      return body.data[0].id as string;
    },
    { timeout: 100_000 },
  );
});
afterAll(() => server.close());

test("an alert is analysed on request and returned like the single alert", async () => {
  const before = (await server.call("GET", `/v1/alerts/${id}`)).body.data;
  expect(before.ai_analysis).toBeNull();
  const { status, body } = await server.call("POST", `/v1/alerts/${id}/analyze`);
  expect(status).toBe(200);
  const { ai_analysis, timeline, ...rest } = body.data;
  expect(ai_analysis).toEqual({
    summary: expect.stringContaining("Threat score 60 of 100."),
    threat_score: 60,
    provider: "builtin",
    reasoning: expect.arrayContaining(["+50: severity critical (up to 50)"]),
    suggested_actions: [expect.any(String)],
    analysed_at: expect.any(String),
  });
  expect(timeline.at(-1)).toMatchObject({ kind: "analysed", provider: "builtin", actor: "test" });
  const { ai_analysis: none, timeline: earlier, ...same } = before;
  expect([none, earlier.length, rest]).toEqual([null, timeline.length - 1, same]);
  const [listed] = (await server.call("GET", "/v1/alerts?rule_name=analysed.any")).body.data;
  expect(listed.ai_analysis).toEqual(ai_analysis);
});

test("a call without a body refuses one; an empty body counts as none", async () => {
  const path = `/v1/alerts/${id}/analyze`;
  const unknown = await server.call("POST", path, { body: { x: 1 } });
  expect(unknown).toMatchObject({ status: 400, body: { error: { code: "validation_error" } } });
  expect(unknown.body.error.details).toMatchObject([{ field: "x" }]);
  const malformed = await server.call("POST", path, { body: "{bad" });
  expect(malformed).toMatchObject({ status: 400, body: { error: { code: "malformed_json" } } });
  expect((await server.call("POST", path, { body: [] })).status).toBe(400);
  const resend = await server.call("POST", "/v1/notifications/ntf_0/resend", { body: { x: 1 } });
  expect(resend).toMatchObject({ status: 400, body: { error: { details: [{ field: "x" }] } } });
  const chunked = { "transfer-encoding": "chunked" };
  for (const options of [{}, { body: "" }, { body: {} }, { headers: chunked }])
    expect((await server.call("POST", path, options)).status).toBe(200);
  // An optional body can still be omitted.
  expect((await server.call("POST", `/v1/alerts/${id}/acknowledge`)).status).toBe(200);
});

test("the analysis requires a write scope, no body and an existing alert", async () => {
  const reader = await server.addKey({ scopes: ["alerts:read"] });
  expect((await server.call("POST", `/v1/alerts/${id}/analyze`, { key: reader.secret })).status).toBe(403);
  expect((await server.call("POST", "/v1/alerts/alt_0/analyze")).status).toBe(404);
  expect((await server.call("GET", `/v1/alerts/${id}/analyze`)).status).toBe(405);
});
