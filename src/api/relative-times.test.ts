import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { parseAt, readRelativeTime } from "../model/time-bound.ts";

const NOW = Date.UTC(2026, 10, 15, 12);
const HOUR_MS = 3_600_000;
let server: TestServer;
/** Every reading is later than the one before, as on a slow machine. */
let clock = NOW;
beforeAll(async () => {
  server = await openTestServer({ settings: { rateLimits: false }, now: () => clock++ });
  for (const [type, ageMs] of [
    ["fresh", 10_000],
    ["old", 30 * HOUR_MS],
  ] as const) {
    const body = { type, source: "custom", timestamp: new Date(NOW - ageMs).toISOString(), data: {} };
    expect((await server.call("POST", "/v1/events", { body })).status).toBe(201);
  }
});
afterAll(() => server.close());

const typesOf = (events: { type: string }[]) => events.map(({ type }) => type).sort();

test.each([
  ["from=now-24h", ["fresh"]],
  ["from=now-24h&to=now", ["fresh"]],
  ["from=now-2d", ["fresh", "old"]],
  ["from=now-1w&to=now-86400s", ["old"]],
  ["from=2026-11-14T07:00:00Z&to=now-60m", []],
])("the list of events accepts %s", async (query, types) => {
  const { body } = await server.call("GET", `/v1/events?${query}`);
  expect(typesOf(body.data)).toEqual(types);
});

test("searches and exports accept relative times in their ranges", async () => {
  const time_range = { from: "now-24h", to: "now" };
  const { body } = await server.call("POST", "/v1/events/search", { body: { query: { time_range } } });
  expect(typesOf(body.data.results)).toEqual(["fresh"]);
  const created = await server.call("POST", "/v1/events/export", {
    body: { format: "ndjson", time_range: { from: "now-2d", to: "now" }, query: { time_range } },
  });
  expect(created.status, created.text).toBe(201);
});

test("both ends of a range are resolved at the same time", async () => {
  const rule = {
    name: "site.relative",
    description: "Old events",
    severity: "low",
    conditions: [{ field: "type", equals: "old" }],
    actions: [{ alert: { channels: [] } }],
  };
  const simulate = (from: string) =>
    server.call("POST", "/v1/rules/simulate", { body: { rule, time_range: { from, to: "now" } } });
  // The longest range allowed: a second reading of the clock would make it too long.
  expect((await simulate("now-7d")).body.data).toMatchObject({ matches: 1 });
  expect((await simulate("now-169h")).status).toBe(400);
  expect((await server.call("GET", "/v1/events?from=now&to=now")).status).toBe(200);
});

test.each([
  "/v1/alerts?from=now-7d&to=now",
  "/v1/alerts/stats?from=now-7d&to=now",
  "/api/v1/flows?from=now-1h&to=now",
  "/api/v1/flows/top-talkers?from=now-1h&to=now",
  "/api/v1/flows/protocols?from=now-1h",
  "/api/v1/flows/timeseries?from=now-1h&to=now",
])("%s is accepted", async (path) => {
  const answer = await server.call("GET", path);
  expect(answer.status, answer.text).toBe(200);
});

test.each(["/v1/events?from=now-1y", "/v1/alerts?from=tomorrow", "/api/v1/flows?from=now-"])(
  "%s is refused with both forms of a time",
  async (path) => {
    const { status, body } = await server.call("GET", path);
    expect(status).toBe(400);
    expect(body.error.details).toEqual([{ field: "from", message: expect.stringContaining("now-24h") }]);
  },
);

test("a time that is stored is absolute", async () => {
  const { status, body } = await server.call("POST", "/v1/keys", {
    body: { name: "k", scopes: ["events:read"], expires_at: "now" },
  });
  expect(status).toBe(400);
  expect(body.error.details).toMatchObject([{ field: "expires_at" }]);
});

test("outside of a request there is no relative time", () => {
  expect(readRelativeTime("now")).toBeUndefined();
  expect(parseAt(NOW, () => parseAt(NOW + 1, () => readRelativeTime("now")))).toBe(NOW + 1);
  expect(() =>
    parseAt(NOW, () => {
      throw new Error("broken");
    }),
  ).toThrow("broken");
  expect(readRelativeTime("now")).toBeUndefined();
});
