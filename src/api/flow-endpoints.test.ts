import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startDns } from "../enrichment/dns-server.fixture.ts";
import { openTestServer, type Answer, type TestServer } from "../../test/api-server.ts";
import { flowRowsOf, type FlowRow } from "../model/flow-rows.ts";

const NOW = Date.UTC(2026, 5, 15, 0, 30);
const MINUTE = 60_000;

let server: TestServer;

const row = (more: Partial<FlowRow> = {}): FlowRow => ({
  windowStartMs: NOW - 10 * MINUTE,
  src: "10.0.0.1",
  dst: "192.0.2.80",
  srcPort: 50_000,
  dstPort: 443,
  protocol: 6,
  tcpFlags: 27,
  bytes: 1000n,
  packets: 10n,
  firstSeenMs: NOW - 10 * MINUTE + 5,
  lastSeenMs: NOW - 9 * MINUTE - 5,
  exporter: "192.0.2.1",
  version: 9,
  ...more,
});

const ROWS: FlowRow[] = [
  row({ bytes: 5000n, packets: 50n }),
  row({ windowStartMs: NOW - 2 * MINUTE, src: "10.0.0.2", bytes: 7000n, packets: 5n, srcPort: 53, dstPort: 40_000 }),
  row({
    windowStartMs: NOW - MINUTE,
    src: "2001:db8::1",
    dst: "2001:db8:0:1::9",
    protocol: 58,
    bytes: 90n,
    packets: 1n,
  }),
  // The day before, and more than an hour ago.
  row({ windowStartMs: NOW - 120 * MINUTE, src: "10.0.1.7", protocol: 17, exporter: "192.0.2.2", version: 105 }),
  row({ windowStartMs: NOW - 26 * 60 * MINUTE, src: "10.9.9.9", protocol: 253, version: 5 }),
];

beforeAll(async () => {
  server = await openTestServer({ now: () => NOW });
  await server.store.flows.append(flowRowsOf(ROWS), "fixture");
});
afterAll(() => server.close());

const get = (path: string) => server.call("GET", `/api/v1/flows${path}`);
const listed = async (query: string): Promise<string[]> => {
  const answer = await get(query);
  expect(answer.status, answer.text).toBe(200);
  return answer.body.flows.map((flow: { src_ip: string }) => flow.src_ip);
};
const faults = (answer: Answer) => {
  expect(answer.status, answer.text).toBe(400);
  expect(answer.body.error.code).toBe("validation_error");
  expect(answer.body.meta.request_id).toMatch(/^req_/);
  return answer.body.error.details.map(({ field }: { field: string }) => field);
};

describe("the list of flows", () => {
  test("has no envelope, is newest first, and contains every field of a flow", async () => {
    const answer = await get("");
    expect(answer.status).toBe(200);
    expect(answer.headers["content-type"]).toContain("application/json");
    expect(Object.keys(answer.body)).toEqual(["total", "offset", "limit", "flows"]);
    expect(answer.body).toMatchObject({ total: 5, offset: 0, limit: 50 });
    expect(answer.body.flows[3]).toEqual({
      id: expect.stringMatching(/^flw_[0-9a-z]+$/),
      timestamp: NOW - 119 * MINUTE,
      window_start: NOW - 120 * MINUTE,
      window_end: NOW - 119 * MINUTE,
      src_ip: "10.0.1.7",
      dst_ip: "192.0.2.80",
      src_hostname: null,
      dst_hostname: null,
      src_port: 50_000,
      dst_port: 443,
      protocol: 17,
      protocol_name: "UDP",
      bytes: 1000,
      packets: 10,
      tcp_flags: 27,
      first_seen_ms: NOW - 10 * MINUTE + 5,
      last_seen_ms: NOW - 9 * MINUTE - 5,
      exporter_ip: "192.0.2.2",
      version: 105,
      nat_src_ip: null,
      nat_dst_ip: null,
      nat_src_port: null,
      nat_dst_port: null,
    });
    expect(answer.body.flows[4]).toMatchObject({ protocol: 253, protocol_name: "253" });
    for (const name of ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-request-id"])
      expect(answer.headers[name], name).toBeDefined();
  });

  test("is filtered by the end of the window, from inclusive and to exclusive", async () => {
    const at = NOW - MINUTE;
    expect(await listed(`?from=${at}`)).toEqual(["2001:db8::1", "10.0.0.2"]);
    expect(await listed(`?from=${at + 1}`)).toEqual(["2001:db8::1"]);
    expect(await listed(`?from=${at}&to=${at + 1}`)).toEqual(["10.0.0.2"]);
    expect(await listed(`?from=${at}&to=${at}`)).toEqual([]);
    expect(await listed("?from=-9223372036854775808&to=9223372036854775807")).toHaveLength(5);
  });

  test("is filtered by address in any notation, and by network", async () => {
    expect(await listed("?src_ip=2001:DB8:0:0:0:0:0:1")).toEqual(["2001:db8::1"]);
    expect(await listed("?src_ip=::ffff:10.0.0.1")).toEqual(["10.0.0.1"]);
    expect(await listed("?src_ip=10.0.0.1&dst_ip=192.0.2.80")).toEqual(["10.0.0.1"]);
    expect(await listed("?dst_ip=10.0.0.1")).toEqual([]);
    expect(await listed("?src_ip=10.0.0.0/24")).toEqual(["10.0.0.2", "10.0.0.1"]);
    expect(await listed("?src_ip=10.0.0.0%2F8")).toEqual(["10.0.0.2", "10.0.0.1", "10.0.1.7", "10.9.9.9"]);
    expect(await listed("?dst_ip=2001:db8::/32")).toEqual(["2001:db8::1"]);
    expect(await listed("?exporter=192.0.2.2")).toEqual(["10.0.1.7"]);
  });

  test("is filtered by the address of either endpoint", async () => {
    expect(await listed("?host=192.0.2.80")).toHaveLength(4);
    expect(await listed("?host=10.0.0.1")).toEqual(["10.0.0.1"]);
    expect(await listed("?host=::ffff:10.0.0.1")).toEqual(["10.0.0.1"]);
    expect(await listed("?host=2001:DB8:0:1::/64")).toEqual(["2001:db8::1"]);
    expect(await listed("?host=10.0.0.0/24&dst_ip=192.0.2.80&port=443")).toEqual(["10.0.0.1"]);
    expect(await listed("?host=192.0.2.1")).toEqual([]);
  });

  test("is filtered by either port and by protocol", async () => {
    expect(await listed("?port=53")).toEqual(["10.0.0.2"]);
    expect(await listed("?port=40000")).toEqual(["10.0.0.2"]);
    expect(await listed("?protocol=17")).toEqual(["10.0.1.7"]);
    expect(await listed("?port=443&protocol=58")).toEqual(["2001:db8::1"]);
    expect(await listed("?port=0&protocol=0")).toEqual([]);
  });

  test("contains the endpoints after NAT and is filtered by them", async () => {
    const at = NOW - 40 * 24 * 60 * MINUTE;
    const nat = { natSrc: "203.0.113.1", natSrcPort: 61_000 };
    await server.store.flows.append(
      flowRowsOf([
        row({ windowStartMs: at, src: "10.7.0.1", ...nat }),
        row({ windowStartMs: at, src: "10.7.0.2", ...nat, natSrcPort: 61_001, bytes: 0n, packets: 0n }),
        row({ windowStartMs: at + MINUTE, src: "10.7.0.3", ...nat }),
        row({ windowStartMs: at, src: "198.51.100.1", natDst: "2001:db8::64", natDstPort: 8443 }),
        row({ windowStartMs: at, src: "203.0.113.1", srcPort: 61_000 }),
      ]),
      "translated",
    );
    const then = `from=${at}&to=${at + 2 * MINUTE}`;
    expect(await listed(`?${then}&nat_ip=203.0.113.1&nat_port=61000`)).toEqual(["10.7.0.1"]);
    expect((await listed(`?${then}&nat_ip=203.0.113.0/24`)).sort()).toEqual(["10.7.0.1", "10.7.0.2"]);
    expect(await listed(`?${then}&nat_ip=2001:DB8::64`)).toEqual(["198.51.100.1"]);
    expect(await listed(`?${then}&nat_port=8443`)).toEqual(["198.51.100.1"]);
    expect(await listed(`?${then}&port=61000`)).toEqual(["203.0.113.1"]);
    const talkers = await get(`/top-talkers?${then}&nat_ip=203.0.113.1`);
    expect(talkers.body.map(({ key }: { key: string }) => key)).toEqual(["10.7.0.1", "10.7.0.2"]);
    expect((await get(`?${then}&nat_port=61001`)).body.flows).toMatchObject([
      { src_ip: "10.7.0.2", bytes: 0, nat_src_ip: "203.0.113.1", nat_src_port: 61_001, nat_dst_ip: null },
    ]);
    expect((await get(`?${then}&nat_port=8443`)).body.flows).toMatchObject([
      { nat_src_ip: null, nat_src_port: null, nat_dst_ip: "2001:db8::64", nat_dst_port: 8443 },
    ]);
    expect(faults(await get("?nat_ip=gateway&nat_port=65536"))).toEqual(["nat_ip", "nat_port"]);
    await server.store.flows.removeBefore(at + 24 * 60 * MINUTE);
  });

  test("is sorted by bytes, packets or time, in both orders", async () => {
    expect((await listed("?sort=bytes")).slice(0, 2)).toEqual(["10.0.0.2", "10.0.0.1"]);
    expect((await listed("?sort=bytes&order=asc"))[0]).toBe("2001:db8::1");
    expect((await listed("?sort=packets"))[0]).toBe("10.0.0.1");
    expect((await listed("?sort=timestamp&order=asc"))[0]).toBe("10.9.9.9");
    expect(await listed("?order=asc")).toEqual((await listed("?order=desc")).reverse());
    expect(await listed("?sort=bytes&order=asc")).toEqual((await listed("?sort=bytes")).reverse());
  });

  test("is paged by offset and limit, with the correct total even past the end", async () => {
    const page = async (query: string) => (await get(query)).body;
    const all = (await page("")).flows;
    expect(await page("?offset=1&limit=2")).toEqual({ total: 5, offset: 1, limit: 2, flows: all.slice(1, 3) });
    expect(await page("?offset=4&limit=1000")).toEqual({ total: 5, offset: 4, limit: 1000, flows: all.slice(4) });
    for (const sort of ["bytes", "timestamp"])
      expect(await page(`?offset=5&sort=${sort}`)).toEqual({ total: 5, offset: 5, limit: 50, flows: [] });
    const offset = Number.MAX_SAFE_INTEGER;
    expect(await page(`?offset=${offset}`)).toEqual({ total: 5, offset, limit: 50, flows: [] });
  });

  test("64-bit counters keep every digit", async () => {
    const most = (1n << 64n) - 1n;
    const windowStartMs = NOW - 200 * 60 * MINUTE;
    const rows = [row({ windowStartMs, bytes: most, packets: (1n << 53n) + 1n }), row({ windowStartMs, bytes: most })];
    await server.store.flows.append(flowRowsOf(rows), "large");
    const span = `from=${windowStartMs}&to=${windowStartMs + 2 * MINUTE}`;
    const answer = await get(`?${span}&sort=packets&limit=1`);
    expect(answer.text).toContain('"bytes":18446744073709551615,"packets":9007199254740993,');
    expect((await get(`/top-talkers?${span}`)).text).toContain('"bytes":36893488147419103230,');
    await server.store.flows.removeBefore(NOW - 100 * 60 * MINUTE);
  });
});

describe("top talkers", () => {
  test("are by default the sources of the last hour by bytes", async () => {
    const answer = await get("/top-talkers");
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual([
      { key: "10.0.0.2", bytes: 7000, packets: 5, flow_count: 1 },
      { key: "10.0.0.1", bytes: 5000, packets: 50, flow_count: 1 },
      { key: "2001:db8::1", bytes: 90, packets: 1, flow_count: 1 },
    ]);
    expect(answer.headers["x-ratelimit-remaining"]).toBeDefined();
  });

  test("are ranked by packets, by destination or pair, up to the limit", async () => {
    const keys = async (query: string) => (await get(`/top-talkers${query}`)).body.map(({ key }: any) => key);
    expect(await keys("?by=packets&limit=1")).toEqual(["10.0.0.1"]);
    expect(await keys("?dim=dst")).toEqual(["192.0.2.80", "2001:db8:0:1::9"]);
    expect(await keys("?dim=pair&limit=1")).toEqual(["10.0.0.2 → 192.0.2.80"]);
    expect(await keys("?window_secs=60")).toEqual(["10.0.0.2", "2001:db8::1"]);
    expect(await keys("?window_secs=7200&limit=1000")).toContain("10.0.1.7");
    const everything = await keys("?window_secs=3153600000&limit=1000");
    expect(everything).toContain("10.0.1.7");
    for (const seconds of ["3153600001", "9223372036854775807"]) {
      expect(await keys(`?window_secs=${seconds}&limit=1000`)).toEqual(everything);
    }
  });

  test("support a range, an end to look back from, and the filters of the list", async () => {
    const keys = async (query: string) => (await get(`/top-talkers?${query}`)).body.map(({ key }: any) => key);
    expect(await keys(`from=${NOW - 120 * MINUTE}&to=${NOW - 60 * MINUTE}`)).toEqual(["10.0.1.7"]);
    expect(await keys(`to=${NOW - 60 * MINUTE}`)).toEqual(["10.0.1.7"]);
    expect(await keys(`to=${NOW - 60 * MINUTE}&window_secs=60`)).toEqual([]);
    expect(await keys("src_ip=10.0.0.0/8&dst_ip=192.0.2.80&port=443&protocol=6&exporter=192.0.2.1")).toEqual([
      "10.0.0.1",
    ]);
  });
});

describe("the filter by host", () => {
  test("works on every aggregation", async () => {
    const keys = async (query: string) => (await get(query)).body.map(({ key }: any) => key);
    expect(await keys("/top-talkers?host=10.0.0.1")).toEqual(["10.0.0.1"]);
    expect(await keys("/top-talkers?host=192.0.2.80")).toEqual(["10.0.0.2", "10.0.0.1"]);
    const protocols = (await get("/protocols?host=2001:db8::/32")).body;
    expect(protocols.map(({ protocol }: any) => protocol)).toEqual(["IPv6-ICMP"]);
    const [all] = (await get("/timeseries?host=10.0.0.2&interval=1d")).body.series;
    expect(all.bytes.reduce((sum: number, bytes: number) => sum + bytes, 0)).toBe(7000);
  });
});

describe("service ports", () => {
  test("are a dimension of top talkers and a split of the time series", async () => {
    expect((await get("/top-talkers?dim=port")).body).toEqual([
      { key: "53", bytes: 7000, packets: 5, flow_count: 1 },
      { key: "443", bytes: 5000, packets: 50, flow_count: 1 },
      { key: "none", bytes: 90, packets: 1, flow_count: 1 },
    ]);
    const { body } = await get("/timeseries?interval=1d&split=port&limit=2");
    expect(body.split).toBe("port");
    expect(body.series.map(({ key }: any) => key)).toEqual(["53", "443", "other"]);
  });
});

describe("protocols", () => {
  test("of the last hour are listed by name, most bytes first", async () => {
    const answer = await get("/protocols");
    expect(answer.body).toEqual([
      { protocol: "TCP", bytes: 12_000, packets: 55, flow_count: 2 },
      { protocol: "IPv6-ICMP", bytes: 90, packets: 1, flow_count: 1 },
    ]);
    const all = (await get("/protocols?window_secs=1000000")).body.map(({ protocol }: any) => protocol);
    expect(all.sort()).toEqual(["253", "IPv6-ICMP", "TCP", "UDP"]);
  });
});

describe("traffic over time", () => {
  test("is by default one series of minutes for the last hour", async () => {
    const { body } = await get("/timeseries");
    expect(body).toMatchObject({ interval_secs: 60, split: null, by: "bytes", from: NOW - 60 * MINUTE });
    expect(body.timestamps[0]).toBe(NOW - 60 * MINUTE);
    expect(body.timestamps.at(-1)).toBe(NOW);
    expect(body.series).toHaveLength(1);
    const [all] = body.series;
    expect(all.key).toBe("all");
    expect(all.bytes[body.timestamps.indexOf(NOW - MINUTE)]).toBe(7000);
    expect(all.flow_count.reduce((sum: number, count: number) => sum + count, 0)).toBe(3);
    expect(all.bytes).toHaveLength(body.timestamps.length);
  });

  test("is split into the top series and the remaining ones", async () => {
    const split = async (query: string) => (await get(`/timeseries?interval=1h&${query}`)).body.series;
    expect((await split("split=src&limit=1")).map(({ key }: any) => key)).toEqual(["10.0.0.2", "other"]);
    expect((await split("split=src&limit=1&by=packets")).map(({ key }: any) => key)).toEqual(["10.0.0.1", "other"]);
    expect((await split("split=protocol")).map(({ key }: any) => key)).toEqual(["TCP", "IPv6-ICMP"]);
    expect((await split("split=exporter&window_secs=10000")).map(({ key }: any) => key)).toEqual([
      "192.0.2.1",
      "192.0.2.2",
    ]);
    expect((await split("split=dst&limit=1")).at(-1)).toMatchObject({ key: "other", bytes: [0, 90] });
  });

  test("has the period before on the same timestamps, only on request", async () => {
    const range = `from=${NOW - 60 * MINUTE}&to=${NOW + MINUTE}&interval=5m`;
    expect((await get(`/timeseries?${range}`)).body).not.toHaveProperty("previous");
    const { body } = await get(`/timeseries?${range}&compare=previous&split=src`);
    expect(Object.keys(body.previous)).toEqual(["from", "to", "bytes", "packets", "flow_count"]);
    expect(body.previous).toMatchObject({ from: NOW - 121 * MINUTE, to: NOW - 60 * MINUTE });
    // 119 minutes ago, 61 minutes earlier than the point 58 minutes ago.
    const point = body.timestamps.indexOf(NOW - 60 * MINUTE);
    const expected = body.timestamps.map((_: number, nth: number) => (nth === point ? 1 : 0));
    expect(body.previous.flow_count).toEqual(expected);
    expect(body.previous.bytes[point]).toBe(1000);
    const filtered = (await get(`/timeseries?${range}&compare=previous&host=10.0.0.1`)).body.previous;
    expect(filtered.bytes.every((bytes: number) => bytes === 0)).toBe(true);
  });

  test("has a default interval that suits the range", async () => {
    const interval = async (seconds: number) => (await get(`/timeseries?window_secs=${seconds}`)).body.interval_secs;
    expect(await interval(3600)).toBe(60);
    expect(await interval(86_400)).toBe(900);
    expect(await interval(30 * 86_400)).toBe(21_600);
    expect(await interval(36_500 * 86_400)).toBeGreaterThan(86_400);
  });
});

describe("an invalid request", () => {
  const AGGREGATIONS = ["/top-talkers", "/protocols", "/timeseries"];

  test.each([
    ["port=65536", "port"],
    ["port=-1", "port"],
    ["port=http", "port"],
    ["protocol=256", "protocol"],
    ["protocol=tcp", "protocol"],
    ["offset=-1", "offset"],
    ["offset=1.5", "offset"],
    ["limit=0", "limit"],
    ["limit=1001", "limit"],
    ["limit=-1", "limit"],
    ["limit=", "limit"],
    ["sort=foo", "sort"],
    ["order=up", "order"],
    ["from=yesterday", "from"],
    ["from=9223372036854775808", "from"],
    ["to=1e3", "to"],
    ["from=2&to=1", "from"],
    ["src_ip=10.0.0", "src_ip"],
    ["src_ip=10.0.0.256", "src_ip"],
    ["src_ip=010.0.0.1", "src_ip"],
    ["src_ip=", "src_ip"],
    ["dst_ip=2001:db8::/129", "dst_ip"],
    ["dst_ip=10.0.0.0/33", "dst_ip"],
    ["dst_ip=example.org", "dst_ip"],
    ["host=gateway", "host"],
    ["host=10.0.0.1,10.0.0.2", "host"],
    ["exporter=gateway", "exporter"],
    ["exporter=10.0.0.0/8", "exporter"],
    ["scr_ip=10.0.0.1", "scr_ip"],
    ["window_secs=60", "window_secs"],
    ["port=1&port=2", "port"],
  ])("the list refuses %s and names %s", async (query, field) => {
    expect(faults(await get(`?${query}`))).toEqual([field]);
  });

  test.each([
    ["dim=foo", "dim"],
    ["by=flows", "by"],
    ["limit=0", "limit"],
    ["limit=1001", "limit"],
    ["sort=bytes", "sort"],
    ["offset=1", "offset"],
  ])("top talkers refuse %s and name %s", async (query, field) => {
    expect(faults(await get(`/top-talkers?${query}`))).toEqual([field]);
  });

  test.each([
    ["window_secs=0", "window_secs"],
    ["window_secs=-60", "window_secs"],
    ["window_secs=9223372036854775808", "window_secs"],
    ["window_secs=1h", "window_secs"],
    ["from=2&to=1", "from"],
    ["from=1&window_secs=60", "window_secs"],
    ["src_ip=nobody", "src_ip"],
    ["host=nobody", "host"],
    ["foo=1", "foo"],
  ])("every aggregation refuses %s and names %s", async (query, field) => {
    for (const path of AGGREGATIONS) expect(faults(await get(`${path}?${query}`)), path).toEqual([field]);
  });

  test.each([
    ["interval=90s", "interval"],
    ["interval=0m", "interval"],
    ["interval=60", "interval"],
    ["interval=1m&window_secs=100000", "interval"],
    ["split=ports", "split"],
    ["compare=next", "compare"],
    ["limit=51", "limit"],
  ])("the time series refuses %s and names %s", async (query, field) => {
    expect(faults(await get(`/timeseries?${query}`))).toEqual([field]);
  });

  test("reports all faults at once", async () => {
    expect(faults(await get("?port=65536&protocol=256&sort=foo&limit=0&nope=1")).sort()).toEqual([
      "limit",
      "nope",
      "port",
      "protocol",
      "sort",
    ]);
  });

  test("a key with events:read is required", async () => {
    for (const path of ["", ...AGGREGATIONS]) {
      expect((await server.call("GET", `/api/v1/flows${path}`, { key: null })).status).toBe(401);
      const { secret } = await server.addKey({ scopes: ["events:write", "alerts:read"] });
      const refused = await server.call("GET", `/api/v1/flows${path}`, { key: secret });
      expect(refused.status).toBe(403);
      expect(refused.body.error.message).toContain("events:read");
    }
    expect((await server.call("POST", "/api/v1/flows")).status).toBe(405);
    expect((await server.call("GET", "/api/v1/flows/other")).status).toBe(404);
  });
});

test("the OpenAPI document lists every call, with responses without an envelope", async () => {
  const { body } = await server.call("GET", "/openapi.json");
  for (const path of ["", "/top-talkers", "/protocols", "/timeseries"]) {
    const { get: operation } = body.paths[`/api/v1/flows${path}`];
    expect(operation.responses["200"].headers["X-RateLimit-Limit"]).toBeDefined();
    expect(operation.responses["200"].content["application/json"].example).toBeDefined();
  }
  const { bytes } = body.components.schemas.Flow.properties;
  expect(bytes).toMatchObject({ type: "integer", format: "int64" });
});

test("host names are null at first, and present in later responses", async () => {
  const dns = await startDns();
  dns.names.set("80.2.0.192.in-addr.arpa", "www.example.org");
  const hostnames = { enabled: true, resolver: dns.address, perSecondMax: 1000 };
  const named = await openTestServer({ now: () => NOW, settings: { hostnames } });
  try {
    await named.store.flows.append(flowRowsOf([row()]), "one");
    const first = (await named.call("GET", "/api/v1/flows")).body.flows[0];
    expect(first).toMatchObject({ src_hostname: null, dst_hostname: null });
    let flow = first;
    while (flow.dst_hostname === null) flow = (await named.call("GET", "/api/v1/flows")).body.flows[0];
    expect(flow).toEqual({ ...first, dst_hostname: "www.example.org" });
  } finally {
    await named.close();
    dns.close();
  }
});
