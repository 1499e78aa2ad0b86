import { networkInterfaces } from "node:os";
import { afterEach, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { loadSettings } from "../config/config.ts";

let server: TestServer;
afterEach(() => server.close());

const site = async () => (await server.call("GET", "/v1/site")).body.data;

test("the site has its name, version, zone, retention and disk", async () => {
  server = await openTestServer({ settings: { siteName: "Main Street 4", timezone: "Europe/Berlin" } });
  const found = await site();
  expect(found).toMatchObject({
    name: "Main Street 4",
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    platform: "platform",
    timezone: "Europe/Berlin",
    public_url: null,
    http: { host: "127.0.0.1", port: server.port, reachable_at: [] },
    collectors: [],
    retention: { events_days: 365, flows_days: 30, alerts_days: 730, status: "running", messages: [] },
  });
  expect(found.sources).toContain("platform_protect");
  expect(found.disk.used_bytes).toBeGreaterThan(10_000);
  expect(found.disk.free_bytes).toBeGreaterThan(0);
  expect(found.disk.total_bytes).toBeGreaterThan(found.disk.free_bytes);
});

test("the site lists the open collectors with the addresses at which devices reach them", async () => {
  const loaded = loadSettings({
    environment: { TOCSIN_NOTIFICATIONS_CONSOLE_URL: "https://t.example" },
    workingFolder: "/",
  });
  if ("faults" in loaded) throw new Error("the settings have faults");
  const { flows, collectors, notifications } = loaded.settings;
  server = await openTestServer({
    settings: {
      netflowPort: 0,
      syslogPort: 0,
      flows: { ...flows, addresses: ["0.0.0.0"] },
      collectors: { ...collectors, addresses: ["127.0.0.1"] },
      notifications,
    },
  });
  const found = await site();
  const own = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, family, address }) => !internal && family === "IPv4" && !address.startsWith("169.254."));
  expect(found.addresses.filter(({ family }: any) => family === "ipv4")).toHaveLength(own.length);
  const [netflow, syslog] = ["netflow", "syslog"].map((name) => found.collectors.find((one: any) => one.name === name));
  expect(netflow).toMatchObject({ transport: "udp", address: "0.0.0.0", port: expect.any(Number) });
  expect(netflow.reachable_at).toEqual(own.map(({ address }) => address));
  expect(syslog).toMatchObject({ address: "127.0.0.1", reachable_at: [] });
  expect(found.public_url).toBe("https://t.example");
});

test("a key without events:read learns name, version, zone, hours and sources, and nothing of the machine", async () => {
  server = await openTestServer({ settings: { siteName: "Main Street 4", siteHours: "sun-thu 22:00-06:30" } });
  expect((await server.call("GET", "/v1/site", { key: null })).status).toBe(401);
  const { secret } = await server.addKey({ scopes: ["alerts:read"] });
  const { status, body } = await server.call("GET", "/v1/site", { key: secret });
  expect(status).toBe(200);
  expect(Object.keys(body.data)).toEqual(["name", "version", "platform", "sources", "timezone", "time", "hours"]);
  expect(body.data).toMatchObject({
    name: "Main Street 4",
    hours: { days: ["mon", "tue", "wed", "thu", "sun"], from: "22:00", to: "06:30" },
  });
  expect((await server.call("GET", "/v1/site?x=1")).status).toBe(400);
});

test("hours without a time of day are whole days", async () => {
  server = await openTestServer({ settings: { siteHours: "sat" } });
  expect((await site()).hours).toEqual({ days: ["sat"], from: "00:00", to: "24:00" });
});
