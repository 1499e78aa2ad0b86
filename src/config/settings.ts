import { z } from "zod";
import { shownHost } from "../lib/redact.ts";
import { parseCidr } from "../lib/ip.ts";
import { parsePostgresUrl, POSTGRES_HOSTS_MAX, POSTGRES_TLS_MODES, shownPostgresUrl } from "../lib/postgres-url.ts";
import { LOG_LEVELS } from "../lib/log-level.ts";
import { SEVERITIES } from "../model/event.ts";
import { isLocalHours, isZone } from "../model/hours.ts";
import { channelSettingShape, urlChannels } from "../notify/channels.ts";
import { openSearchSettings } from "./opensearch-settings.ts";
import {
  addresses,
  choice,
  credentialOrOff,
  fileOr,
  integer,
  isResolver,
  list,
  networks,
  onOff,
  perDay,
  perMinute,
  portOrOff,
  RATE_MAX,
  readText,
  setting,
  signingSecretOrOff,
  textOrOff,
  urlOr,
  word,
} from "../lib/setting-types.ts";

// The schema of all settings. Each entry is a key in the file, a TOCSIN_ variable, a flag of `tocsin serve` and a row
// of docs/configuration.md; the names derive from its position here. The channels in src/notify/channels define their own.

const DAYS_MAX = 36_500;
const BODY_BYTES_MIN = 1024;
const SUBMIT_BYTES_MAX = 64 * 1024 * 1024;
const BATCH_BYTES_MAX = 512 * 1024 * 1024;
const PROXIES_MAX = 100;
const PROXY_WORDS = ["loopback", "linklocal", "uniquelocal"];
const LOOKUPS_PER_SECOND_MAX = 1000;
const LISTS_MAX = 50;
const LIST_ITEM = /^[a-z][a-z0-9_-]{0,63}=\S.*$/;

/** A name and a file or URL. A malformed URL is refused: it would be treated as a file and displayed unredacted. */
function isListItem(item: string): boolean {
  if (!LIST_ITEM.test(item)) return false;
  const from = item.slice(item.indexOf("=") + 1);
  return !/^[a-z][a-z0-9+.-]*:\/\//i.test(from) || /^https?:$/.test(URL.parse(from)?.protocol ?? "");
}

export const settingsSchema = z.strictObject({
  host: word(
    "address to listen on; 0.0.0.0 or :: for every interface",
    "127.0.0.1",
    /^[A-Za-z0-9_.:%-]{1,255}$/,
    "an address or a host name",
  ),
  port: integer("port to listen on; 0 takes any free one", 8080, 0, 65_535),
  dataDir: word(
    "folder for all data of the service; created if missing; relative to the working folder",
    "./data",
    /^[^\0]+$/,
    "a path",
  ),
  platform: word(
    "prefix of the sources: <platform>_network, <platform>_protect, <platform>_access, <platform>_talk; fixed once the data folder has events",
    "platform",
    /^[a-z][a-z0-9_-]{0,31}$/,
    "1 to 32 lower-case letters, digits, _ or -, beginning with a letter",
  ),
  indexPrefix: word(
    "prefix of the names of the daily storage units",
    "tocsin",
    /^[a-z][a-z0-9_-]{0,31}$/,
    "1 to 32 lower-case letters, digits, _ or -, beginning with a letter",
  ),
  store: z.strictObject({
    cases: choice(
      "where alerts, rules, keys and all else that needs transactions are kept: in the data folder, or in PostgreSQL",
      "embedded",
      ["embedded", "postgres"],
    ),
    data: choice("engine of events and flows: embedded, in the data folder, or OpenSearch", "embedded", [
      "embedded",
      "opensearch",
    ]),
  }),
  opensearch: openSearchSettings,
  postgres: z.strictObject({
    url: setting(
      z.union([
        z.union([z.literal("off"), z.null()]).transform(() => null),
        z.string().refine((text) => parsePostgresUrl(text) !== undefined),
      ]),
      {
        about:
          "database of PostgreSQL for store.cases; several hosts: of a primary with its standbys, the one that accepts writes is used",
        allowed: `postgres://user:password@host:port/database with at most ${POSTGRES_HOSTS_MAX} hosts, separated by commas, and without parameters, or off`,
        fallback: "off",
        read: readText,
        shownAs: (text) => (text === "off" ? text : shownPostgresUrl(text)),
      },
    ),
    passwordFile: fileOr("off", "file with the password, instead of one in the URL"),
    tls: choice(
      "encryption of the connections: off, require (to any server), verify (to the server that its certificate names)",
      "off",
      POSTGRES_TLS_MODES,
    ),
    tlsCa: fileOr("off", "certificate authorities of the server, in PEM, instead of the usual public ones"),
    tlsCertificate: fileOr("off", "certificate with which the service identifies itself, in PEM"),
    tlsKey: fileOr("off", "private key of that certificate, in PEM"),
    poolMax: integer("connections of this process, besides one that waits for notices", 10, 2, 1000),
    connectSeconds: integer("how long a call waits for a connection", 5, 1, 300),
    statementSeconds: integer("how long a statement may take", 30, 1, 3600),
  }),
  siteName: word(
    "name of the site, which the console shows",
    "this site",
    /^(?! )[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]{1,100}(?<! )$/u,
    "1 to 100 characters, without control or format characters, and without a space at either end",
  ),
  timezone: setting(z.string().refine(isZone), {
    about: "time zone of the site, for night and office hours in built-in rules and for device times without a zone",
    allowed: "the name of a time zone, such as UTC or Europe/Berlin",
    fallback: "UTC",
    read: readText,
  }),
  siteHours: setting(z.string().refine(isLocalHours), {
    about: "hours in which people work at the site, in its time zone; the console offers them as ranges of time",
    allowed: "days, hours or both, such as mon-fri 08:00-18:00; hours may run past midnight",
    fallback: "mon-fri 08:00-18:00",
    read: readText,
  }),
  retention: z.strictObject({
    eventsDays: integer("retention of events in days; whole UTC days are removed", 365, 1, DAYS_MAX),
    flowsDays: integer("retention of network flows in days; whole UTC days are removed", 30, 1, DAYS_MAX),
    alertsDays: integer("retention of resolved alerts in days; unresolved ones stay", 730, 1, DAYS_MAX),
    shareMax: integer(
      "percentage of events, flows or alerts that retention removes at once without `tocsin storage confirm-removal` after its limit jumped, by a changed setting or a long stop",
      25,
      1,
      100,
    ),
  }),
  exports: z.strictObject({
    folder: fileOr(
      "off",
      "folder of the files of exports instead of the data folder; nodes that share a store need one that all of them reach",
    ),
  }),
  plans: z.strictObject({
    starter: z.strictObject({
      perMinute: perMinute("requests a minute for a key of the plan starter", 60),
      perDay: perDay("requests a UTC day for a key of the plan starter", 10_000),
    }),
    pro: z.strictObject({
      perMinute: perMinute("requests a minute for a key of the plan pro", 300),
      perDay: perDay("requests a UTC day for a key of the plan pro", 100_000),
    }),
    enterprise: z.strictObject({
      perMinute: perMinute("requests a minute for a key of the plan enterprise", 1000),
      perDay: perDay("requests a UTC day for a key of the plan enterprise", "unlimited"),
    }),
  }),
  rateLimits: onOff("enforce request limits", "on"),
  anonymousPerMinute: perMinute("requests a minute for a client address without a valid key", 60),
  bodyLimits: z.strictObject({
    submitBytes: integer(
      "largest request body where batch_bytes does not apply, and largest item where it does: an event of a batch, a collected item",
      1_048_576,
      BODY_BYTES_MIN,
      SUBMIT_BYTES_MAX,
    ),
    batchBytes: integer(
      "largest body of a batch of events, of an import of rules or of a list, and of a post to /v1/collect",
      33_554_432,
      BODY_BYTES_MIN,
      BATCH_BYTES_MAX,
    ),
  }),
  connections: z.strictObject({
    max: integer(
      "open HTTP connections, or half the process's limit of open files if that is less; at the limit, an idle connection is closed for a new one",
      10_000,
      10,
      1_000_000,
    ),
    perAddressMax: integer(
      "open HTTP connections per address (IPv6: per /64); a trusted proxy may use all of them, loopback half",
      256,
      1,
      1_000_000,
    ),
  }),
  trustedProxies: list((item) => PROXY_WORDS.includes(item) || parseCidr(item) !== undefined, {
    about: "proxies whose X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host are trusted",
    items: `addresses, networks, ${PROXY_WORDS.join(", ")}`,
    fallback: [],
    max: PROXIES_MAX,
  }),
  hostnames: z.strictObject({
    enabled: onOff("look up host names for addresses of flows in DNS", "on"),
    resolver: setting(z.union([z.literal("system").transform(() => null), z.string().refine(isResolver)]), {
      about: "DNS server; private addresses are looked up only if one is set here, never at the system's",
      allowed: "system, or an address with or without a port: 192.0.2.53, 192.0.2.53:5353, [2001:db8::53]:5353",
      fallback: "system",
      read: readText,
    }),
    perSecondMax: integer("lookups per second", 20, 1, LOOKUPS_PER_SECOND_MAX),
  }),
  netflowPort: portOrOff("UDP port for NetFlow v5, v9 and IPFIX; 0 takes any free one, off closes it", 2055),
  ipfixPort: portOrOff("UDP and TCP port for IPFIX", 4739),
  sflowPort: portOrOff("UDP port for sFlow v5", 6343),
  flows: z.strictObject({
    addresses: addresses("addresses that the flow collectors listen on"),
    allowedExporters: networks("addresses that may send flows; empty: all"),
    receiveBufferBytes: integer(
      "socket receive buffer for datagrams; the system grants at most net.core.rmem_max",
      8_388_608,
      65_536,
      1_073_741_824,
    ),
    ringBytes: integer("buffer for received datagrams that are not decoded yet", 16_777_216, 1_048_576, 1_073_741_824),
    graceSeconds: integer("how long a window waits for late records after its end", 15, 0, 600),
    lateSeconds: integer(
      "maximum age of a flow record; older ones are dropped, younger ones count in rows and summaries",
      3600,
      60,
      604_800,
    ),
    clockSkewSeconds: integer(
      "tolerated clock skew of an exporter; beyond it, its times are corrected by the time of arrival",
      60,
      1,
      86_400,
    ),
    journalSeconds: integer("interval of the flow journal; a crash loses at most the records of this time", 5, 1, 60),
    tuplesMax: integer(
      "rows in memory that are not stored yet; when open windows hold half of them, the largest is stored early, and at the limit further records are added to rows without addresses; summaries hold as many hosts, peers and ports",
      1_000_000,
      10_000,
      50_000_000,
    ),
    summaries: onOff("create flow_summary events for busy hosts, so that rules see flows", "on"),
    summaryPeers: integer("different peers within 60 seconds that make a host busy", 30, 1, RATE_MAX),
    summaryPorts: integer("different ports within 60 seconds that make a host busy", 30, 1, RATE_MAX),
    summaryBytes: integer("bytes sent within a minute that make a host busy", 100_000_000, 1, Number.MAX_SAFE_INTEGER),
  }),
  syslogPort: portOrOff("UDP and TCP port for syslog", 5514),
  syslogTlsPort: portOrOff(
    "TCP port for syslog over TLS; needs collectors.tls_certificate and collectors.tls_key",
    "off",
  ),
  evePort: portOrOff("TCP port for Suricata EVE, one JSON object a line", "off"),
  eveFile: fileOr("off", "EVE file that is followed, through rotation and restarts"),
  eveSocket: fileOr("off", "Unix socket that EVE is read from; made at the start"),
  collectors: z.strictObject({
    addresses: addresses("addresses that syslog and EVE listen on"),
    allowedSenders: networks("addresses that may send syslog and EVE; empty: all"),
    tlsCertificate: fileOr("off", "certificate for syslog over TLS, with its chain, in PEM"),
    tlsKey: fileOr("off", "private key of that certificate, in PEM"),
    tlsClientCa: fileOr("off", "certificate authorities of the senders, in PEM; with it, a sender needs a certificate"),
    linesPerSecondMax: integer(
      "lines per second of one sender (IPv6: of one /64); beyond it, TCP is throttled and UDP lines are dropped and counted",
      50_000,
      1,
      RATE_MAX,
    ),
    lineBytesMax: integer("longest line or message; longer ones are refused and counted", 65_536, 1024, 1_048_576),
    connectionsMax: integer(
      "open connections of all senders; at the limit, a silent one is closed for a new one",
      1000,
      1,
      100_000,
    ),
    connectionsPerSenderMax: integer("open connections of one sender (IPv6: of one /64)", 50, 1, 100_000),
    unparsed: onOff("store a line that no parser recognises as an event of the type unparsed", "on"),
    formatsDir: fileOr(
      "off",
      "folder of YAML files that teach formats of lines (docs/devices/own-formats.md); reloaded when they change",
    ),
    accessSecret: signingSecretOrOff(
      "signing secret of the access controller's webhooks; with it, each must be signed",
    ),
  }),
  enrichment: z.strictObject({
    geo: onOff("add the country (and city, if the file has it) of public addresses to events", "on"),
    geoFile: fileOr("builtin", "MMDB file with countries or cities; reloaded when it changes"),
    lists: list(isListItem, {
      about: "lists of addresses, networks and domains; an event that matches a list gets its name",
      items: "<name>=<file or https:// address>",
      fallback: [],
      max: LISTS_MAX,
      shownAs: shownHost,
    }),
    listsEveryMinutes: integer("minutes between reloads of the lists", 60, 1, 10_080),
    abuseipdbKey: credentialOrOff("API key of AbuseIPDB; with it, public addresses are looked up there"),
    abuseipdbPerDay: integer("lookups at AbuseIPDB per UTC day", 1000, 1, RATE_MAX),
    abuseipdbUrl: word(
      "base URL of AbuseIPDB",
      "https://api.abuseipdb.com/api/v2",
      /^https?:\/\/\S+$/,
      "a URL that starts with http:// or https://",
    ),
  }),
  notifications: z.strictObject({
    consoleUrl: urlOr("automatic", "URL at which people reach this service, for links in messages"),
    onResolve: onOff("notify when an alert is resolved", "off"),
    builtinFrom: choice(
      "lowest severity at which alerts of built-in rules notify every configured channel; other rules name their channels",
      "high",
      [...SEVERITIES, "off"],
    ),
    perMinuteMax: integer(
      "messages per minute and channel; further notifications are combined into one message",
      10,
      1,
      1000,
    ),
    retryHours: integer("how long an undelivered message is retried", 24, 1, 168),
    privateAddresses: onOff(`allow URLs of ${urlChannels().join(", ")} at private or link-local addresses`, "off"),
    ...channelSettingShape(),
  }),
  analysis: z.strictObject({
    automaticFrom: choice("lowest severity at which alerts are analysed automatically", "high", [...SEVERITIES, "off"]),
    url: urlOr(
      "off",
      "base URL of an OpenAI-compatible service, such as https://api.openai.com/v1; off: only the built-in scorer is used",
    ),
    model: textOrOff("model to use", "a name"),
    key: credentialOrOff("API key of the service"),
    timeoutSeconds: integer("timeout of a request to the model", 30, 1, 600),
    monthlyTokensMax: integer(
      "cap on the tokens used per UTC month; beyond it, the built-in scorer is used",
      1_000_000,
      0,
      1_000_000_000_000,
    ),
  }),
  logLevel: choice("lowest level of log lines that are written", "info", LOG_LEVELS),
});

export type Settings = z.output<typeof settingsSchema>;

/** The settings of OpenSearch if events and flows are kept there. */
export function openSearchOf({ store, opensearch }: Settings) {
  return store.data === "opensearch" ? opensearch : undefined;
}

/** The settings of PostgreSQL if cases are kept there. */
export function postgresOf({ store, postgres }: Settings) {
  const { url } = postgres;
  return store.cases === "postgres" && url !== null ? { ...postgres, url } : undefined;
}
