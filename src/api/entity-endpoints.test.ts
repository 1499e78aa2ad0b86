import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type Answer, type TestServer } from "../../test/api-server.ts";
import { DAY_MS } from "../lib/time.ts";
import type { JsonObject } from "../model/event.ts";

const NOW = Date.UTC(2026, 5, 15, 12, 30);
const MINUTE = 60_000;

let server: TestServer;

const event = (raw: JsonObject, timestampMs = NOW - 10 * MINUTE) => ({
  draft: {
    type: "test",
    source: "custom",
    severity: "info",
    class: "security",
    timestampMs,
    raw,
    enrichment: {},
  } as const,
});

beforeAll(async () => {
  server = await openTestServer({ now: () => NOW });
  await server.store.events.append([
    event({ user: "ada.morin", door: "Loading dock", src_ip: "10.20.3.240" }, NOW - 5 * MINUTE),
    event({ user: "ada.morin", src_ip: "2001:DB8::1" }, NOW - 2 * DAY_MS),
    event({ host: "laptop-ada", src_mac: "02:00:5e:66:06:66", from: "101" }),
    event({ camera: "Loading dock", src_ip: "2001:db8:0::1" }, NOW - 20 * MINUTE),
    event({ user: "long.ago" }, NOW - 60 * DAY_MS),
  ]);
});
afterAll(() => server.close());

const get = (query: string) => server.call("GET", `/v1/entities?${query}`);
const found = async (query: string): Promise<string[]> => {
  const answer = await get(query);
  expect(answer.status, answer.text).toBe(200);
  return answer.body.data.entities.map(({ kind, value }: { kind: string; value: string }) => `${kind} ${value}`);
};
const faults = (answer: Answer) => {
  expect(answer.status, answer.text).toBe(400);
  return answer.body.error.details.map(({ field }: { field: string }) => field);
};

describe("the search for entities", () => {
  test("finds values that contain the text, with their kind, times and number of events", async () => {
    const { body } = await get("search=ADA");
    expect(body.data).toEqual({
      entities: [
        {
          kind: "user",
          value: "ada.morin",
          first_seen: "2026-06-13T12:30:00.000Z",
          last_seen: "2026-06-15T12:25:00.000Z",
          events: 2,
        },
        {
          kind: "device",
          value: "laptop-ada",
          first_seen: "2026-06-15T12:20:00.000Z",
          last_seen: "2026-06-15T12:20:00.000Z",
          events: 1,
        },
      ],
      total: 2,
      from: "2026-05-16T00:00:00.000Z",
      to: "2026-06-16T00:00:00.000Z",
      complete: true,
    });
    expect(body.meta.request_id).toMatch(/^req_/);
  });

  test("covers every kind, and can be limited to some", async () => {
    expect(await found("search=loading%20dock")).toEqual(["door Loading dock", "camera Loading dock"]);
    expect(await found("search=loading&kind=camera")).toEqual(["camera Loading dock"]);
    expect(await found("search=02:00&kind=device,phone")).toEqual(["device 02:00:5e:66:06:66"]);
    expect(await found("search=101")).toEqual(["phone 101"]);
    expect(await found("search=10.20.")).toEqual(["address 10.20.3.240"]);
    expect(await found("search=nobody")).toEqual([]);
  });

  test("takes an address in any spelling", async () => {
    for (const spelling of ["2001:db8::1", "2001:0DB8:0:0:0:0:0:1", "2001:db8"])
      expect(await found(`search=${spelling}`)).toEqual(["address 2001:db8::1"]);
    expect((await get("search=2001:db8::1")).body.data.entities[0].events).toBe(2);
  });

  test("covers 30 days or a range, in whole days, up to a limit", async () => {
    expect(await found("search=long.ago")).toEqual([]);
    expect(await found("search=long.ago&from=2026-04-16T13:00:00Z")).toEqual(["user long.ago"]);
    expect(await found("search=long.ago&to=2026-04-17")).toEqual(["user long.ago"]);
    expect(await found("search=ada&from=2026-06-15T00:00:00Z&to=2026-06-15T12:22:00Z")).toHaveLength(2);
    expect(await found("search=ada&limit=1")).toEqual(["user ada.morin"]);
    expect((await get("search=ada&limit=1")).body.data.total).toBe(2);
  });

  test.each([
    ["", "search"],
    ["search=", "search"],
    ["search=%20", "search"],
    [`search=${"x".repeat(257)}`, "search"],
    ["search=a&kind=person", "kind"],
    ["search=a&kind=user,", "kind"],
    ["search=a&limit=0", "limit"],
    ["search=a&limit=101", "limit"],
    ["search=a&from=yesterday", "from"],
    ["search=a&from=2026-06-15&to=2026-06-14", "from"],
    ["search=a&q=1", "q"],
  ])("refuses %s and names %s", async (query, field) => {
    expect(faults(await get(query))).toEqual([field]);
  });

  test("needs a key with events:read", async () => {
    const { secret } = await server.addKey({ scopes: ["events:write", "alerts:read"] });
    expect((await server.call("GET", "/v1/entities?search=a", { key: secret })).status).toBe(403);
    expect((await server.call("GET", "/v1/entities?search=a", { key: null })).status).toBe(401);
  });
});
