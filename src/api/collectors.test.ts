import { afterEach, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { noDrops, type CollectorsStatus } from "../collectors/status.ts";
import { NOTHING_COLLECTED } from "./collectors.ts";

let server: TestServer;
afterEach(() => server.close());

const AT = Date.UTC(2026, 5, 15);
const status: CollectorsStatus = {
  ...NOTHING_COLLECTED,
  listeners: [
    {
      name: "ipfix",
      transport: "tcp",
      address: "::",
      port: 4739,
      packets: 7,
      bytes: 700,
      receiveBufferBytes: null,
      connections: 1,
    },
  ],
  exporters: [
    {
      address: "192.0.2.1",
      versions: [9, 10],
      state: "no_template",
      summary: "data comes, but not the template 260 that says what is in it",
      packets: 7,
      records: 0,
      optionRecords: 1,
      firstSeenMs: AT,
      lastSeenMs: null,
      lastRecordMs: AT + 1000,
      templates: 0,
      missingTemplates: [260],
      waitingSets: 3,
      gaps: 1,
      lost: 2,
      samplingRate: 100,
      clockOffsetMs: -5,
      clockCorrected: false,
      drops: { ...noDrops(), truncated: 4 },
      lastError: { message: "a set is longer than its packet", atMs: AT },
    },
  ],
  refused: [{ address: "203.0.113.9", packets: 3, lastSeenMs: AT }],
};

test("collectors tell of each exporter what a person needs to find the fault", async () => {
  server = await openTestServer({ statusOfCollectors: () => status });
  const { status: code, body } = await server.call("GET", "/v1/collectors");
  expect(code).toBe(200);
  expect(body.meta.request_id).toMatch(/^req_/);
  expect(body.data.exporters).toEqual([
    {
      address: "192.0.2.1",
      versions: [9, 10],
      state: "no_template",
      summary: "data comes, but not the template 260 that says what is in it",
      packets: 7,
      records: 0,
      option_records: 1,
      first_seen: "2026-06-15T00:00:00.000Z",
      last_seen: null,
      last_record: "2026-06-15T00:00:01.000Z",
      templates: 0,
      missing_templates: [260],
      waiting_sets: 3,
      gaps: 1,
      lost: 2,
      sampling_rate: 100,
      clock_offset_ms: -5,
      clock_corrected: false,
      drops: { ...noDrops(), truncated: 4 },
      last_error: { message: "a set is longer than its packet", at: "2026-06-15T00:00:00.000Z" },
    },
  ]);
  expect(body.data.refused).toEqual([{ address: "203.0.113.9", packets: 3, last_seen: "2026-06-15T00:00:00.000Z" }]);
  expect(body.data.listeners[0]).toMatchObject({ port: 4739, receive_buffer_bytes: null, connections: 1 });
  expect(body.data.windows.open_tuples).toBe(0);
});

test("they are for keys that may read events, and take no parameter", async () => {
  server = await openTestServer();
  expect((await server.call("GET", "/v1/collectors", { key: null })).status).toBe(401);
  const { secret } = server.addKey({ scopes: ["rules:read"] });
  expect((await server.call("GET", "/v1/collectors", { key: secret })).status).toBe(403);
  expect((await server.call("GET", "/v1/collectors?x=1")).status).toBe(400);
  expect((await server.call("GET", "/v1/collectors")).body.data.exporters).toEqual([]);
});
