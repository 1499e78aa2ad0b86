import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { loadSettings } from "../src/config/config.ts";
import type { Settings } from "../src/config/settings.ts";
import { KEY, scoreOf, startAbusePeer, type AbusePeer, type Answering } from "./abuse-ipdb.ts";
import { openTestServer, type TestServer } from "./api-server.ts";

// Enrichment through the whole service: the real server, its store, its rules, and a peer that serves reputations.

const WAIT = { timeout: 100_000, interval: 20 };

function enrichmentSettings(more: Partial<Settings["enrichment"]>): Partial<Settings> {
  const loaded = loadSettings({ environment: {}, workingFolder: tmpdir() });
  if ("faults" in loaded) throw new Error(JSON.stringify(loaded.faults));
  return { enrichment: { ...loaded.settings.enrichment, ...more } };
}

const withPeer = (peer: AbusePeer, more: Partial<Settings["enrichment"]> = {}) => ({
  settings: enrichmentSettings({ abuseipdbKey: KEY, abuseipdbUrl: peer.url, ...more }),
});

async function submit(server: TestServer, data: Record<string, unknown>, type = "login_failure"): Promise<any> {
  const answer = await server.call("POST", "/v1/events", { body: { type, source: "custom", data } });
  expect(answer.status).toBe(201);
  return answer.body.data;
}

const eventOf = async (server: TestServer, id: string) => (await server.call("GET", `/v1/events/${id}`)).body.data;
const statusOf = async (server: TestServer) => (await server.call("GET", "/v1/enrichment")).body.data;

async function addRule(server: TestServer, name: string, condition: object): Promise<void> {
  const body = {
    name,
    description: "A rule of a test.",
    source: "custom",
    severity: "high",
    conditions: [condition],
    actions: [{ alert: { channels: [] } }],
  };
  const { status, text } = await server.call("POST", "/v1/rules", { body });
  expect(status, text).toBe(201);
}

/** Matches two events of one user, from any address. */
async function addRuleForTwo(server: TestServer, name: string): Promise<void> {
  const body = {
    name,
    description: "Twice by one user.",
    source: "custom",
    severity: "high",
    conditions: [{ field: "type", equals: "door_opened" }],
    threshold: { count: 2, group_by: "raw.user" },
    window: "1h",
    actions: [{ alert: { channels: [] } }],
  };
  const { status, text } = await server.call("POST", "/v1/rules", { body });
  expect(status, text).toBe(201);
}

const alertsOf = async (server: TestServer, rule: string): Promise<any[]> =>
  (await server.call("GET", `/v1/alerts?rule_name=${rule}`)).body.data;

const search = async (server: TestServer, filter: object, aggs: object = {}) => {
  const body = { query: { bool: { must: [filter] } }, aggs, limit: 100 };
  const { status, text, body: answer } = await server.call("POST", "/v1/events/search", { body });
  expect(status, text).toBe(200);
  return answer.data;
};

describe("an event", () => {
  let folder: string;
  let server: TestServer;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "tocsin-enrichment-"));
    const list = join(folder, "bad.txt");
    writeFileSync(list, "# ours\n198.51.100.0/24\n10.9.8.7\tthe old printer\n0.0.0.0 evil.example\nnot an entry\n");
    server = await openTestServer({
      settings: enrichmentSettings({ lists: [`bad=${list}`, `gone=${join(folder, "gone")}`] }),
    });
  });
  afterAll(async () => {
    await server.close();
    rmSync(folder, { recursive: true });
  });

  test.each([
    ["from a public address", { src_ip: "8.8.8.8", dst_ip: "1.1.1.1" }, { geo: { country: "US" } }],
    ["to a public address", { src_ip: "192.168.1.5", dst_ip: "193.0.6.139" }, { geo: { country: "NL" } }],
    ["over IPv6", { src_ip: "2001:67c:2e8::1" }, { geo: { country: "NL" } }],
    ["from an IPv4-mapped IPv6 address", { src_ip: "::ffff:8.8.8.8" }, { geo: { country: "US" } }],
    ["between private addresses", { src_ip: "192.168.1.5", dst_ip: "10.0.0.1" }, {}],
    ["with documentation addresses", { src_ip: "203.0.113.9", dst_ip: "2001:db8::1" }, {}],
    ["with invalid addresses", { src_ip: "nobody", dst_ip: 5 }, {}],
    ["on a list, by its network", { src_ip: "198.51.100.200" }, { lists: ["bad"] }],
    ["on a list, by its target", { dst_ip: "10.9.8.7" }, { lists: ["bad"] }],
    ["on a list, by the queried name", { src_ip: "10.0.0.4", query: "www.EVIL.example." }, { lists: ["bad"] }],
    [
      "on a list and from a public address",
      { src_ip: "8.8.8.8", host: "evil.example" },
      { geo: { country: "US" }, lists: ["bad"] },
    ],
  ])("%s is enriched at once", async (_, data, enrichment) => {
    expect((await submit(server, data)).enrichment).toEqual(enrichment);
  });

  test("of a batch is enriched as well and can be found by it", async () => {
    const body = ["8.8.4.4", "10.0.0.1", "198.51.100.1"].map((src_ip) => ({
      type: "in_batch",
      source: "custom",
      data: { src_ip },
    }));
    await server.call("POST", "/v1/events/batch", { body });
    const countries = { terms: { field: "enrichment.geo.country" } };
    const found = await search(server, { field: "type", equals: "in_batch" }, { countries });
    expect(found.aggregations.countries.buckets).toEqual([{ key: "US", count: 1 }]);
    expect((await search(server, { field: "enrichment.lists", equals: "bad" })).total).toBeGreaterThan(0);
  });

  test("fires rules by its country and by its list", async () => {
    await addRule(server, "test.by_country", { field: "enrichment.geo.country", equals: "NL" });
    await addRule(server, "test.by_list", { field: "enrichment.lists", equals: "bad" });
    await submit(server, { src_ip: "193.0.6.139" });
    await submit(server, { src_ip: "10.0.0.2", query: "a.evil.example" });
    await vi.waitFor(async () => {
      const [country] = await alertsOf(server, "test.by_country");
      const [list] = await alertsOf(server, "test.by_list");
      expect([country?.enrichment, list?.enrichment]).toEqual([{ geo: { country: "NL" } }, { lists: ["bad"] }]);
    }, WAIT);
  });

  test("is enriched from sources whose state the status shows", async () => {
    const { geo, lists, abuse_ipdb: reputation } = await statusOf(server);
    expect(geo).toMatchObject({ builtin: true, fault: null });
    expect(lists).toMatchObject([
      { name: "bad", addresses: 1, networks: 1, domains: 1, bad_lines: 1, fault: null },
      { name: "gone", addresses: 0, read_at: null, fault: { message: expect.stringContaining("ENOENT") } },
    ]);
    expect(reputation).toBeNull();
    const metrics = (await server.call("GET", "/metrics")).text;
    expect(metrics).toContain('tocsin_enrichment_list_entries{list="bad"} 3');
    expect(metrics).toContain("tocsin_enrichment_geo_loaded 1");
    const { secret } = await server.addKey({ scopes: ["alerts:read"] });
    expect((await server.call("GET", "/v1/enrichment", { key: secret })).status).toBe(403);
  });

  test("is accepted without a location while the location file is corrupt, which the service reports", async () => {
    const geoFile = join(folder, "corrupt.mmdb");
    writeFileSync(geoFile, Buffer.alloc(5000, 7));
    const other = await openTestServer({ settings: enrichmentSettings({ geoFile }) });
    onTestFinished(() => other.close());
    expect((await submit(other, { src_ip: "8.8.8.8" })).enrichment).toEqual({});
    expect((await statusOf(other)).geo).toMatchObject({ builtin: false, kind: null, read_at: null });
    expect((await statusOf(other)).geo.fault.message).toContain("not an MMDB file");
    expect(other.log.some(({ msg }) => String(msg).startsWith("the geolocation file cannot be used"))).toBe(true);
    expect((await other.call("GET", "/metrics")).text).toContain("tocsin_enrichment_geo_loaded 0");
  });
});

describe("a reputation", () => {
  let peer: AbusePeer;
  let server: TestServer;
  beforeAll(async () => {
    peer = await startAbusePeer();
    server = await openTestServer(withPeer(peer));
  });
  afterEach(() => expect(JSON.stringify(server.log)).not.toContain(KEY));
  afterAll(async () => {
    await server.close();
    await peer.close();
  });

  const scored = (address: string) => ({ score: scoreOf(address), address });
  const untilScored = (id: string, address: string) =>
    vi.waitFor(
      async () => expect((await eventOf(server, id)).enrichment.abuse_ipdb).toMatchObject(scored(address)),
      WAIT,
    );

  test("that arrives late is added to the event and its alert without delaying either", async () => {
    await addRule(server, "test.any_login", { field: "type", equals: "login_failure" });
    await addRule(server, "test.by_score", { field: "enrichment.abuse_ipdb.score", equals: scoreOf("9.9.9.9") });
    const release = peer.hold();
    const event = await submit(server, { src_ip: "9.9.9.9", user: "ann" });
    expect(event.enrichment).toEqual({ geo: { country: expect.any(String) } });
    await vi.waitFor(async () => expect(await alertsOf(server, "test.any_login")).toHaveLength(1), WAIT);
    expect((await alertsOf(server, "test.any_login"))[0].enrichment).toEqual(event.enrichment);
    await vi.waitFor(
      async () => expect((await statusOf(server)).abuse_ipdb).toMatchObject({ waiting: 1, used_today: 1 }),
      WAIT,
    );
    release();
    await untilScored(event.id, "9.9.9.9");
    expect((await eventOf(server, event.id)).enrichment.abuse_ipdb).toEqual({
      ...scored("9.9.9.9"),
      total_reports: 12,
      last_reported_at: "2026-06-01T10:00:00.000Z",
      usage_type: "Data Center/Web Hosting/Transit",
      isp: "Example Networks",
      domain: "example.net",
    });
    await vi.waitFor(async () => {
      const [alert] = await alertsOf(server, "test.any_login");
      expect(alert.enrichment).toEqual({ ...event.enrichment, abuse_ipdb: expect.objectContaining(scored("9.9.9.9")) });
      const { related_events: related } = (await server.call("GET", `/v1/alerts/${alert.id}`)).body.data;
      expect(related[0].enrichment.abuse_ipdb).toMatchObject(scored("9.9.9.9"));
    }, WAIT);
    const byScore = { field: "enrichment.abuse_ipdb.score", equals: scoreOf("9.9.9.9") };
    const found = await search(server, byScore, { isps: { terms: { field: "enrichment.abuse_ipdb.isp" } } });
    expect(found.results.map(({ id }: { id: string }) => id)).toEqual([event.id]);
    expect(found.aggregations.isps.buckets).toEqual([{ key: "Example Networks", count: 1 }]);
    // Rules evaluate an event once; the next event has the reputation by then.
    expect(await alertsOf(server, "test.by_score")).toEqual([]);
    const again = await submit(server, { src_ip: "9.9.9.9" });
    expect(again.enrichment.abuse_ipdb).toMatchObject(scored("9.9.9.9"));
    await vi.waitFor(async () => expect(await alertsOf(server, "test.by_score")).toHaveLength(1), WAIT);
    expect(peer.asked).toEqual(["9.9.9.9"]);
  });

  test("that arrives before the alert is created is still added to it", async () => {
    await addRuleForTwo(server, "test.twice");
    const first = await submit(server, { src_ip: "9.9.8.8", user: "ben" }, "door_opened");
    await untilScored(first.id, "9.9.8.8");
    await submit(server, { user: "ben" }, "door_opened");
    await vi.waitFor(async () => {
      const [alert] = await alertsOf(server, "test.twice");
      expect(alert?.enrichment.abuse_ipdb).toMatchObject(scored("9.9.8.8"));
    }, WAIT);
  });

  test("is added to an alert only if it belongs to the address that the alert's location belongs to", async () => {
    await addRuleForTwo(server, "test.twice_elsewhere");
    const known = await submit(server, { src_ip: "9.8.7.1", user: "known" }, "door_opened");
    await untilScored(known.id, "9.8.7.1");
    const release = peer.hold();
    await submit(server, { src_ip: "9.8.7.2", user: "asked" }, "door_opened");
    await submit(server, { src_ip: "193.0.6.139", user: "asked" }, "door_opened");
    await submit(server, { src_ip: "193.0.6.140", user: "known" }, "door_opened");
    await vi.waitFor(async () => expect(await alertsOf(server, "test.twice_elsewhere")).toHaveLength(2), WAIT);
    release();
    await vi.waitFor(async () => {
      const alerts = await alertsOf(server, "test.twice_elsewhere");
      const about = alerts.map(({ enrichment: { geo, abuse_ipdb } }) => [geo, abuse_ipdb?.address]);
      expect(about).toEqual(["193.0.6.140", "193.0.6.139"].map((address) => [{ country: "NL" }, address]));
    }, WAIT);
  });

  test("is looked up once for all waiting events and added to a limited number of them", async () => {
    const release = peer.hold();
    const before = peer.asked.length;
    const body = Array.from({ length: 60 }, () => ({ type: "burst", source: "custom", data: { src_ip: "4.4.4.4" } }));
    const { ids } = (await server.call("POST", "/v1/events/batch", { body })).body.data;
    release();
    await untilScored(ids[0], "4.4.4.4");
    const found = await search(server, { field: "enrichment.abuse_ipdb.address", equals: "4.4.4.4" });
    expect(found.total).toBe(50);
    expect(peer.asked.slice(before)).toEqual(["4.4.4.4"]);
    const metrics = (await server.call("GET", "/metrics")).text;
    expect(metrics).toContain('tocsin_enrichment_reputation_dropped_total{what="event"} 10');
  });

  test("is never looked up for private and reserved addresses", async () => {
    const before = peer.asked.length;
    const inside = [
      "10.1.1.1",
      "192.168.0.1",
      "172.16.0.1",
      "127.0.0.1",
      "169.254.1.1",
      "100.64.0.1",
      "203.0.113.5",
      "224.0.0.1",
      "0.0.0.0",
      "fe80::1",
      "fc00::1",
      "::1",
      "2001:db8::5",
      "64:ff9b::a00:1",
    ];
    for (const src_ip of inside) await submit(server, { src_ip });
    const event = await submit(server, { src_ip: "10.1.1.1", dst_ip: "2a00:1450:4001:80b::200e" });
    await untilScored(event.id, "2a00:1450:4001:80b::200e");
    expect(peer.asked.slice(before)).toEqual(["2a00:1450:4001:80b::200e"]);
  });

  let failures = 0;
  test.each<[string, Answering, RegExp]>([
    ["429 with a retry time", (to) => to.writeHead(429, { "Retry-After": "1" }).end("{}"), /rate limit reached/],
    ["500", (to) => to.writeHead(500).end("sorry"), /status 500/],
    ["invalid JSON", (to) => to.end("<html>sorry</html>"), /not a valid AbuseIPDB report/],
    ["an oversized response", (to) => to.end(`{"data":"${"x".repeat(400_000)}"}`), /not a valid AbuseIPDB report/],
    [
      "a redirect",
      (to, address) => to.writeHead(302, { Location: `/api/v2/check?maxAgeInDays=90&ipAddress=${address}` }).end(),
      /status 302/,
    ],
    ["nothing", (to) => to.destroy(), /hang up/],
  ])("is looked up again later after %s", async (_, answering, fault) => {
    const address = `5.6.7.${++failures}`;
    const before = peer.asked.length;
    peer.next.push(answering);
    const event = await submit(server, { src_ip: address });
    await untilScored(event.id, address);
    expect(peer.asked.slice(before)).toEqual([address, address]);
    expect(server.log.findLast(({ msg }) => msg === "reputation lookup failed")!.reason).toMatch(fault);
    expect((await statusOf(server)).abuse_ipdb).toMatchObject({ fault: null, paused_until: null, waiting: 0 });
  });

  test("of a refused address is not looked up again, and other addresses are", async () => {
    peer.next.push((to) => to.writeHead(422).end('{"errors":[]}'));
    const before = peer.asked.length;
    await submit(server, { src_ip: "7.7.7.1" });
    const event = await submit(server, { src_ip: "7.7.7.2" });
    await untilScored(event.id, "7.7.7.2");
    for (let i = 0; i < 5; i++) await submit(server, { src_ip: "7.7.7.1" });
    const last = await submit(server, { src_ip: "7.7.7.3" });
    await untilScored(last.id, "7.7.7.3");
    expect(peer.asked.slice(before)).toEqual(["7.7.7.1", "7.7.7.2", "7.7.7.3"]);
  });

  test("survives a restart, and the key is shown nowhere", async () => {
    const before = peer.asked.length;
    const used = (await statusOf(server)).abuse_ipdb.used_today;
    expect(used).toBe(before);
    server = await server.restart();
    const event = await submit(server, { src_ip: "9.9.9.9" });
    expect(event.enrichment.abuse_ipdb).toMatchObject(scored("9.9.9.9"));
    expect((await statusOf(server)).abuse_ipdb.used_today).toBe(used);
    expect(peer.asked.length).toBe(before);
    expect([...peer.keys]).toEqual([KEY]);
    const shown = [await server.call("GET", "/v1/enrichment"), await server.call("GET", "/metrics")];
    expect(shown.map(({ text }) => text).join()).not.toContain(KEY);
  });

  test("is not looked up repeatedly while the key is refused", async () => {
    const before = peer.asked.length;
    peer.next.push((to) => to.writeHead(401).end());
    for (const last of [1, 2]) await submit(server, { src_ip: `6.6.6.${last}` });
    await vi.waitFor(async () => {
      const { fault, paused_until: pausedUntil, waiting } = (await statusOf(server)).abuse_ipdb;
      expect([fault?.message, waiting]).toEqual([expect.stringContaining("refused the key"), 2]);
      expect(Date.parse(pausedUntil) - Date.now()).toBeGreaterThan(3_000_000);
    }, WAIT);
    expect(peer.asked.slice(before)).toEqual(["6.6.6.1"]);
  });
});

test("the daily limit of lookups holds across a restart, and a stop does not wait for a lookup", async () => {
  const peer = await startAbusePeer();
  onTestFinished(() => peer.close());
  let server = await openTestServer(withPeer(peer, { abuseipdbPerDay: 3 }));
  for (const last of [1, 2]) await submit(server, { src_ip: `6.6.6.${last}` });
  await vi.waitFor(
    async () => expect((await statusOf(server)).abuse_ipdb).toMatchObject({ used_today: 2, known: 2 }),
    WAIT,
  );
  peer.hold();
  for (const last of [3, 4]) await submit(server, { src_ip: `6.6.6.${last}` });
  await vi.waitFor(() => expect(peer.asked).toHaveLength(3), WAIT);
  server = await server.restart();
  onTestFinished(() => server.close());
  await submit(server, { src_ip: "6.6.6.5" });
  const tomorrow = new Date();
  tomorrow.setUTCHours(24, 0, 0, 0);
  expect((await statusOf(server)).abuse_ipdb).toMatchObject({
    used_today: 3,
    waiting: 1,
    known: 2,
    paused_until: tomorrow.toISOString(),
  });
  expect(peer.asked).toEqual(["6.6.6.1", "6.6.6.2", "6.6.6.3"]);
});
