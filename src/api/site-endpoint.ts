import { z } from "zod";
import type { Settings } from "../config/settings.ts";
import { ownAddresses, reachableAt } from "../lib/own-addresses.ts";
import { formatTime } from "../lib/time.ts";
import { readVersion } from "../lib/version.ts";
import { DAYS, describeHours, parseHours } from "../model/hours.ts";
import type { RetentionStatus } from "../model/retention-status.ts";
import { sourceNames } from "../model/event.ts";
import type { Store } from "../store/ports/store.ts";
import type { GetCollectorStatuses } from "./collector-endpoints.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { data } from "./response.ts";

// The site: what it is called, where devices send to, how long data is kept and how much room there is.

const bytes = z.int().min(0);
const reachableSchema = z
  .array(z.string())
  .describe("addresses of this machine at which others reach it; empty: only this machine does");

/** Only for keys with the scope `events:read`. */
const installationSchema = z.object({
  public_url: z.string().nullable().describe("where people reach the service; null: not configured"),
  addresses: z
    .array(z.object({ address: z.string(), family: z.enum(["ipv4", "ipv6"]), interface: z.string() }))
    .describe("addresses of this machine, IPv4 first, without loopback and link-local ones"),
  http: z.object({ host: z.string(), port: z.int(), reachable_at: reachableSchema }),
  collectors: z
    .array(
      z.object({
        name: z.string().describe("netflow, ipfix, sflow, syslog, syslog_tls or eve"),
        transport: z.enum(["udp", "tcp", "tls", "unix"]),
        address: z.string().describe("for a Unix socket, its path"),
        port: z.int().nullable().describe("null for a Unix socket"),
        reachable_at: reachableSchema,
      }),
    )
    .describe("open listeners; webhooks are posted to http"),
  retention: z.object({
    events_days: z.int(),
    flows_days: z.int(),
    alerts_days: z.int().describe("resolved alerts; unresolved ones stay"),
    status: z.enum(["running", "paused"]).describe("paused: nothing is removed until an operator confirms it"),
    messages: z.array(z.string()).describe("descriptions of held-back removals"),
  }),
  disk: z
    .object({
      total_bytes: bytes,
      free_bytes: bytes.describe("available to the service"),
      used_bytes: bytes.describe("by the data of the service"),
    })
    .describe("up to half a minute old"),
});

const siteSchema = z
  .object({
    name: z.string(),
    version: z.string(),
    platform: z.string().describe("the prefix of the sources"),
    sources: z.array(z.string()),
    timezone: z.string(),
    time: z.iso.datetime().describe("the clock of the service"),
    hours: z
      .object({
        days: z.array(z.enum(DAYS)),
        from: z.string().describe("such as 08:00"),
        to: z.string().describe("such as 18:00, up to 24:00; before `from`: on the next day"),
      })
      .describe("when people work at the site, in its time zone"),
    ...installationSchema.partial().shape,
  })
  .meta({ id: "Site" });

const EXAMPLE: z.input<typeof siteSchema> = {
  name: "Main Street 4",
  version: "0.1.0",
  platform: "platform",
  sources: sourceNames("platform"),
  timezone: "Europe/Berlin",
  time: "2026-11-15T08:30:00.120Z",
  hours: { days: ["mon", "tue", "wed", "thu", "fri"], from: "08:00", to: "18:00" },
  public_url: "https://tocsin.example",
  addresses: [{ address: "10.0.0.5", family: "ipv4", interface: "eth0" }],
  http: { host: "0.0.0.0", port: 8080, reachable_at: ["10.0.0.5"] },
  collectors: [{ name: "syslog", transport: "udp", address: "0.0.0.0", port: 5514, reachable_at: ["10.0.0.5"] }],
  retention: { events_days: 365, flows_days: 30, alerts_days: 730, status: "running", messages: [] },
  disk: { total_bytes: 500_000_000_000, free_bytes: 320_000_000_000, used_bytes: 12_400_000_000 },
};

export interface SiteEndpointOptions {
  readonly settings: Settings;
  readonly store: Pick<Store, "space">;
  readonly retention: { status(): Promise<RetentionStatus> };
  readonly collectorStatus: GetCollectorStatuses;
  readonly now: () => number;
}

export function siteEndpoint(options: SiteEndpointOptions): Endpoint {
  const { settings, store, retention, collectorStatus, now } = options;
  const parsed = parseHours(settings.siteHours);
  if ("fault" in parsed) throw new Error(`site hours: ${parsed.fault}`);
  const hours = describeHours(parsed);
  return endpoint({
    method: "GET",
    path: "/v1/site",
    operationId: "getSite",
    tag: "Service",
    summary: "Get the site: name, addresses and ports, time zone, retention, disk",
    description:
      "Any valid key may call it, and learns name, version, sources, time zone, hours and clock. A key with the scope `events:read` " +
      "also learns what a person needs to connect a device: the addresses of the machine and the ports of the collectors, and how long " +
      "data is kept and how much room there is. In a container these are the addresses inside it.",
    scopes: [],
    responses: { 200: { description: "the site", data: siteSchema, example: EXAMPLE } },
    handle: async ({ request, key }) => {
      const { host, platform, timezone, siteName: name } = settings;
      const identity = {
        name,
        version: readVersion(),
        platform,
        sources: sourceNames(platform),
        timezone,
        time: formatTime(now()),
        hours,
      };
      if (!key.scopes.includes("events:read")) return data(identity satisfies z.input<typeof siteSchema>);
      const addresses = ownAddresses();
      const [{ flows, lines }, space] = await Promise.all([collectorStatus(), store.space()]);
      const { eventsDays, flowsDays, alertsDays } = settings.retention;
      const { isPaused, messages } = await retention.status();
      // The port may be any free one, so the socket tells it.
      const port = request.raw.socket.localPort ?? settings.port;
      const site: z.input<typeof siteSchema> = {
        ...identity,
        public_url: settings.notifications.consoleUrl,
        addresses,
        http: { host, port, reachable_at: reachableAt(host, addresses) },
        collectors: [...flows.listeners, ...lines.listeners].map((listener) => {
          const { name, transport, address, port } = listener;
          const reachable_at = transport === "unix" ? [] : reachableAt(address, addresses);
          return { name, transport, address, port, reachable_at };
        }),
        retention: {
          events_days: eventsDays,
          flows_days: flowsDays,
          alerts_days: alertsDays,
          status: isPaused ? "paused" : "running",
          messages: [...messages],
        },
        disk: { total_bytes: space.totalBytes, free_bytes: space.freeBytes, used_bytes: space.usedBytes },
      };
      return data(site);
    },
  });
}
