import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type Answer, type TestServer } from "../../test/api-server.ts";
import { DAY_MS } from "../lib/time.ts";
import { flowRowsOf } from "../model/flow-rows.ts";
import type { JsonObject, Severity } from "../model/event.ts";
import { newAlert } from "../store/testing/new-alert.ts";

const NOW = Date.UTC(2026, 5, 15, 12, 30);
const MINUTE = 60_000;

let server: TestServer;

const event = (raw: JsonObject, timestampMs = NOW - 10 * MINUTE, severity: Severity = "info", type = "test") => ({
  draft: {
    type,
    source: "custom",
    severity,
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

describe("an entity", () => {
  const HOUR = 60 * MINUTE;
  const page = async (path: string, key?: string) => {
    const answer = await server.call("GET", `/v1/entities/${path}`, key === undefined ? {} : { key });
    expect(answer.status, answer.text).toBe(200);
    return answer.body.data;
  };

  beforeAll(async () => {
    await server.store.events.append([
      event(
        { user: "eve", src_ip: "203.0.113.7", src_mac: "02:00:5e:00:00:07" },
        NOW - 3 * HOUR,
        "high",
        "login_failure",
      ),
      event({ user: "eve", src_ip: "203.0.113.7", door: "Back door" }, NOW - 2 * HOUR, "high", "login_failure"),
      event({ dst_ip: "::ffff:203.0.113.7", local_ip: "10.20.0.9" }, NOW - HOUR, "low", "dns_query"),
      event({ user: "eve/adams?" }, NOW - HOUR),
      event({ device_ip: "203.0.113.7" }, NOW - 20 * DAY_MS),
      event({ user: "unknown" }, NOW - HOUR),
    ]);
    const at = NOW - 2 * HOUR;
    const times = { createdAt: at, firstEventAt: at, lastEventAt: at };
    const alert = { title: "Sign-ins from 203.0.113.7", ...times, severity: "high" } as const;
    await server.store.alerts.commit({
      alerts: [
        newAlert({ ...alert, entities: [{ kind: "address", value: "203.0.113.7", count: 1 }] }),
        newAlert({ ...alert, entities: [{ kind: "address", value: "203.0.113.70", count: 1 }] }),
      ],
      timeline: [],
    });
    const row = {
      windowStartMs: NOW - HOUR,
      src: "203.0.113.7",
      dst: "10.20.0.9",
      srcPort: 50_000,
      dstPort: 443,
      protocol: 6,
      tcpFlags: 0,
      bytes: 100n,
      packets: 1n,
      firstSeenMs: NOW - HOUR,
      lastSeenMs: NOW - HOUR,
      exporter: "10.20.0.1",
      version: 9,
    };
    const back = { ...row, src: row.dst, dst: row.src, srcPort: 443, dstPort: 50_000, bytes: 5000n, packets: 9n };
    await server.store.flows.append(flowRowsOf([row, back, { ...row, src: "10.20.0.8" }]), "entities");
  });

  test("has its events, related entities, alerts and traffic", async () => {
    const entity = await page("address/203.0.113.7");
    expect(entity).toMatchObject({
      kind: "address",
      value: "203.0.113.7",
      from: "2026-06-08T12:30:00.000Z",
      to: "2026-06-15T12:30:00.000Z",
      interval_secs: 3600,
      seen: {
        first_seen: "2026-05-26T12:30:00.000Z",
        last_seen: "2026-06-15T11:30:00.000Z",
        events: 4,
        complete: true,
      },
      unavailable: [],
      hostname: null,
    });
    expect(entity.events).toMatchObject({
      total: 3,
      by_severity: { critical: 0, high: 2, medium: 0, low: 1, info: 0 },
      by_type: [
        { type: "login_failure", events: 2 },
        { type: "dns_query", events: 1 },
      ],
      other_types: 0,
    });
    expect(entity.events.over_time).toHaveLength(entity.timestamps.length);
    expect(entity.timestamps.filter((_: string, nth: number) => entity.events.over_time[nth] > 0)).toEqual([
      "2026-06-15T09:00:00.000Z",
      "2026-06-15T10:00:00.000Z",
      "2026-06-15T11:00:00.000Z",
    ]);
    expect(entity.related).toEqual({
      entities: [
        ["address", "10.20.0.9", 1, 1, 1],
        ["user", "eve", 3, 2, 2],
        ["door", "Back door", 2, 2, 1],
        ["device", "02:00:5e:00:00:07", 3, 3, 1],
      ].map(([kind, value, first, last, events]) => ({
        kind,
        value,
        first_seen: new Date(NOW - Number(first) * HOUR).toISOString(),
        last_seen: new Date(NOW - Number(last) * HOUR).toISOString(),
        events,
      })),
      events_read: 3,
      complete: true,
    });
    expect(entity.alerts).toMatchObject({
      total: 1,
      by_status: { open: 1, acknowledged: 0, resolved: 0 },
      by_severity: { critical: 0, high: 1, medium: 0, low: 0, info: 0 },
      newest: [{ title: "Sign-ins from 203.0.113.7", severity: "high" }],
    });
    const { traffic } = entity;
    const at = entity.timestamps.indexOf("2026-06-15T11:00:00.000Z");
    expect([traffic.in.bytes[at], traffic.out.bytes[at], traffic.in.packets[at]]).toEqual([5000, 100, 9]);
    expect(traffic.peers_in).toEqual([
      { address: "10.20.0.9", hostname: null, bytes: 5000, packets: 9, flow_count: 1 },
    ]);
    expect(traffic.peers_out).toMatchObject([{ address: "10.20.0.9", bytes: 100 }]);
    expect(traffic.ports).toEqual([{ port: "443", bytes: 5100, packets: 10, flow_count: 2 }]);
  });

  test("has the place of a public address", async () => {
    expect((await page("address/8.8.8.8")).enrichment).toMatchObject({ geo: { country: "US" } });
  });

  test("of another kind has no traffic, and its value may need encoding", async () => {
    const entity = await page(`user/${encodeURIComponent("eve/adams?")}`);
    expect(entity).toMatchObject({ kind: "user", value: "eve/adams?", traffic: null, enrichment: {}, unavailable: [] });
    expect(entity.seen.events).toBe(1);
    expect((await page("user/eve")).related.entities.map(({ value }: any) => value)).toEqual([
      "203.0.113.7",
      "Back door",
      "02:00:5e:00:00:07",
    ]);
  });

  test("is the same in every spelling of an address", async () => {
    const entity = await page(`address/${encodeURIComponent("::FFFF:203.0.113.7")}`);
    expect(entity.value).toBe("203.0.113.7");
    expect(entity.events.total).toBe(3);
  });

  test("that no event names has empty parts", async () => {
    const entity = await page("address/198.51.100.99");
    expect(entity.seen).toEqual({ first_seen: null, last_seen: null, events: 0, complete: true });
    expect(entity.events.total).toBe(0);
    expect(entity.related).toEqual({ entities: [], events_read: 0, complete: true });
    expect(entity.alerts.total).toBe(0);
    expect(entity.traffic.peers_in).toEqual([]);
    expect(entity.unavailable).toEqual([]);
  });

  test("has the chosen range and interval", async () => {
    const range = "from=2026-06-15T10:00:00Z&to=2026-06-15T11:00:00Z";
    const entity = await page(`user/eve?${range}&interval=15m`);
    expect(entity).toMatchObject({ interval_secs: 900, events: { total: 1, over_time: [0, 0, 1, 0] } });
    expect(entity.seen.events).toBe(2);
  });

  test("has no alerts for a key without alerts:read, and says so", async () => {
    const { secret } = await server.addKey({ scopes: ["events:read"] });
    const entity = await page("address/203.0.113.7", secret);
    expect(entity.alerts).toBeNull();
    expect(entity.unavailable).toEqual([
      { part: "alerts", reason: "missing_scope", message: "the key lacks the scope alerts:read" },
    ]);
    expect(entity.events.total).toBe(3);
  });

  test.each([
    ["person/eve", "kind"],
    ["user/unknown", "value"],
    ["user/%20", "value"],
    [`user/${"x".repeat(257)}`, "value"],
    ["user/eve?from=yesterday", "from"],
    ["user/eve?from=2026-06-15&to=2026-06-14", "from"],
    ["user/eve?interval=90s", "interval"],
    ["user/eve?interval=1m", "interval"],
    ["user/eve?limit=1", "limit"],
  ])("refuses %s and names %s", async (path, field) => {
    expect(faults(await server.call("GET", `/v1/entities/${path}`))).toEqual([field]);
  });

  test("needs a key with events:read", async () => {
    const { secret } = await server.addKey({ scopes: ["alerts:read"] });
    expect((await server.call("GET", "/v1/entities/user/eve", { key: secret })).status).toBe(403);
  });
});
