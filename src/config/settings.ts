import { z } from "zod";
import { shownHost } from "../lib/hiding.ts";
import { parseCidr } from "../lib/ip.ts";
import { LOG_LEVELS } from "../lib/log-level.ts";
import { SEVERITIES } from "../model/event.ts";
import { isZone } from "../model/hours.ts";
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
  secretUrlOrOff,
  setting,
  signingSecretOrOff,
  textOrOff,
  urlOr,
  word,
} from "./kinds.ts";

// Every setting there is. One line in the schema makes it a key of the file, a TOCSIN_ variable, a flag of
// `tocsin serve` and a row of docs/configuration.md; all their names derive from its place here.

const DAYS_MAX = 36_500;
const BODY_BYTES_MIN = 1024;
const SUBMIT_BYTES_MAX = 64 * 1024 * 1024;
const BATCH_BYTES_MAX = 512 * 1024 * 1024;
const PROXIES_MAX = 100;
const PROXY_WORDS = ["loopback", "linklocal", "uniquelocal"];
const LOOKUPS_PER_SECOND_MAX = 1000;
const LISTS_MAX = 50;
const LIST_ITEM = /^[a-z][a-z0-9_-]{0,63}=\S.*$/;
const RECIPIENTS_MAX = 50;
/** Strict enough that nothing but an address can get into a header. */
const EMAIL = /^[^\s@<>,;:"()[\]\\]{1,64}@[A-Za-z0-9.-]{1,255}$/;

/** A name and where the list is. What is meant as an address and is none would be taken for a file, and shown as one. */
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
    "folder that holds everything the service keeps; made when missing; relative to the working folder",
    "./data",
    /^[^\0]+$/,
    "a path",
  ),
  platform: word(
    "word in front of the sources: <platform>_network, <platform>_protect, <platform>_access, <platform>_talk; a data folder keeps it",
    "platform",
    /^[a-z][a-z0-9_-]{0,31}$/,
    "1 to 32 lower-case letters, digits, _ or -, beginning with a letter",
  ),
  indexPrefix: word(
    "beginning of the names of the units that data is kept in, day by day",
    "tocsin",
    /^[a-z][a-z0-9_-]{0,31}$/,
    "1 to 32 lower-case letters, digits, _ or -, beginning with a letter",
  ),
  timezone: setting(z.string().refine(isZone), {
    about:
      "the site's time zone: what night and office hours mean in built-in rules, and how times of devices are read that name no zone",
    allowed: "the name of a time zone, such as UTC or Europe/Berlin",
    fallback: "UTC",
    read: readText,
  }),
  retention: z.strictObject({
    eventsDays: integer("days that events are kept; whole UTC days are removed", 365, 1, DAYS_MAX),
    flowsDays: integer("days that network flows are kept; whole UTC days are removed", 30, 1, DAYS_MAX),
    alertsDays: integer("days that alerts are kept after they were resolved; others stay", 730, 1, DAYS_MAX),
    shareMax: integer(
      "percent of all events, flows or alerts that may go at once when the limit has leapt, by a changed setting or a long stop, without `tocsin storage confirm-removal`",
      25,
      1,
      100,
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
  rateLimits: onOff("whether requests are limited at all", "on"),
  anonymousPerMinute: perMinute("requests a minute for a client address without a valid key", 60),
  bodyLimits: z.strictObject({
    submitBytes: integer(
      "largest body of a request, where batch_bytes does not say it, and largest item in what it does: an event of a batch, a thing that is collected",
      1_048_576,
      BODY_BYTES_MIN,
      SUBMIT_BYTES_MAX,
    ),
    batchBytes: integer(
      "largest body of a batch of events, of an import of rules and of what is posted to /v1/collect",
      33_554_432,
      BODY_BYTES_MIN,
      BATCH_BYTES_MAX,
    ),
  }),
  connections: z.strictObject({
    max: integer(
      "open HTTP connections, or half as many as the process may open files where that is less; when all are taken, one without a request in flight makes room",
      10_000,
      10,
      1_000_000,
    ),
    perAddressMax: integer(
      "open HTTP connections of one address (over IPv6 of one /64); a trusted proxy may have all of them, loopback half",
      256,
      1,
      1_000_000,
    ),
  }),
  trustedProxies: list((item) => PROXY_WORDS.includes(item) || parseCidr(item) !== undefined, {
    about: "proxies whose X-Forwarded-For is believed",
    items: `addresses, networks, ${PROXY_WORDS.join(", ")}`,
    fallback: [],
    max: PROXIES_MAX,
  }),
  hostnames: z.strictObject({
    enabled: onOff("whether names for the addresses of flows are looked up in DNS", "on"),
    resolver: setting(z.union([z.literal("system").transform(() => null), z.string().refine(isResolver)]), {
      about: "DNS server to ask; private addresses are asked of a server that is named here, never of the system's",
      allowed: "system, or an address with or without a port: 192.0.2.53, 192.0.2.53:5353, [2001:db8::53]:5353",
      fallback: "system",
      read: readText,
    }),
    perSecondMax: integer("names looked up in a second at most", 20, 1, LOOKUPS_PER_SECOND_MAX),
  }),
  netflowPort: portOrOff("UDP port for NetFlow v5, v9 and IPFIX; 0 takes any free one, off closes it", 2055),
  ipfixPort: portOrOff("UDP and TCP port for IPFIX", 4739),
  sflowPort: portOrOff("UDP port for sFlow v5", 6343),
  flows: z.strictObject({
    addresses: addresses("addresses that the flow collectors listen on"),
    allowedExporters: networks("who may send flows; empty: everyone"),
    receiveBufferBytes: integer(
      "what the system is asked to hold of datagrams that are not read yet; it gives at most net.core.rmem_max",
      8_388_608,
      65_536,
      1_073_741_824,
    ),
    ringBytes: integer(
      "room for datagrams that are received and not decoded yet",
      16_777_216,
      1_048_576,
      1_073_741_824,
    ),
    graceSeconds: integer("how long after its end a window waits for records", 15, 0, 600),
    lateSeconds: integer(
      "records of flows that ended longer ago are dropped; those within it count in rows and in summaries",
      3600,
      60,
      604_800,
    ),
    clockSkewSeconds: integer(
      "an exporter whose clock is further off is read as if it were right when it sends",
      60,
      1,
      86_400,
    ),
    journalSeconds: integer("a crash loses at most the records of so many seconds", 5, 1, 60),
    tuplesMax: integer(
      "rows in memory, stored ones not counted; with half of them in open windows the largest is stored early, with all of them the rest is added to rows without addresses; summaries hold as many hosts, peers and ports",
      1_000_000,
      10_000,
      50_000_000,
    ),
    summaries: onOff(
      "whether busy hosts are told of in events of the type flow_summary, so that rules see flows",
      "on",
    ),
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
    addresses: addresses("addresses that syslog and EVE are listened for on"),
    allowedSenders: networks("who may send syslog and EVE; empty: everyone"),
    tlsCertificate: fileOr("off", "certificate for syslog over TLS, with its chain, in PEM"),
    tlsKey: fileOr("off", "private key of that certificate, in PEM"),
    tlsClientCa: fileOr("off", "certificates, in PEM, one of which must have signed a sender's own"),
    linesPerSecondMax: integer(
      "lines a second from one sender (over IPv6 from one /64); above it TCP is read more slowly, and over UDP the rest is dropped and counted",
      50_000,
      1,
      RATE_MAX,
    ),
    lineBytesMax: integer("longest line or message; what is longer is refused and counted", 65_536, 1024, 1_048_576),
    connectionsMax: integer(
      "open connections of all senders; when all are taken, a silent one makes room",
      1000,
      1,
      100_000,
    ),
    connectionsPerSenderMax: integer("open connections of one sender (over IPv6 of one /64)", 50, 1, 100_000),
    unparsed: onOff("whether a line that no reader understands is kept as an event of the type unparsed", "on"),
    accessSecret: signingSecretOrOff(
      "secret of the access controller's webhooks; with it, each of them must be signed",
    ),
  }),
  enrichment: z.strictObject({
    geo: onOff("whether the country (and city, where the file has it) of outside addresses is added to events", "on"),
    geoFile: fileOr("builtin", "MMDB file with countries or cities; read again when it changes"),
    lists: list(isListItem, {
      about: "own lists of addresses, networks and domains; the names of those that an event is on are added to it",
      items: "<name>=<file or https:// address>",
      fallback: [],
      max: LISTS_MAX,
      shownAs: shownHost,
    }),
    listsEveryMinutes: integer("how often lists are read again", 60, 1, 10_080),
    abuseipdbKey: credentialOrOff("key for AbuseIPDB; with it, outside addresses are looked up there"),
    abuseipdbPerDay: integer("addresses looked up there in a UTC day at most", 1000, 1, RATE_MAX),
    abuseipdbUrl: word(
      "where AbuseIPDB answers",
      "https://api.abuseipdb.com/api/v2",
      /^https?:\/\/\S+$/,
      "an address beginning with http:// or https://",
    ),
  }),
  notifications: z.strictObject({
    consoleUrl: urlOr("automatic", "address at which people reach this service, for links in messages"),
    onResolve: onOff("whether the channels hear of an alert that was resolved", "off"),
    builtinFrom: choice(
      "least severity of built-in rules of whose alerts every configured channel is told; other rules name their channels",
      "high",
      [...SEVERITIES, "off"],
    ),
    perMinuteMax: integer("messages a minute to one channel; what comes faster is gathered into one", 10, 1, 1000),
    retryHours: integer("how long a message that cannot be delivered is tried again", 24, 1, 168),
    privateAddresses: onOff("whether slack and webhook may be at private or link-local addresses", "off"),
    slackUrl: secretUrlOrOff("incoming webhook of Slack, or of something that takes the same"),
    emailHost: textOrOff(
      "mail server that mails are handed to",
      "a host name or an address",
      /^[A-Za-z0-9_.:%-]{1,255}$/,
    ),
    emailPort: integer("port of the mail server", 587, 1, 65_535),
    emailSecurity: choice("how the connection to it is protected", "starttls", ["starttls", "tls", "none"]),
    emailUser: textOrOff("name to log in with there", "a name"),
    emailPassword: credentialOrOff("password to log in with there"),
    emailFrom: textOrOff("address that mails are from", "an e-mail address", EMAIL),
    emailTo: list((item) => EMAIL.test(item), {
      about: "addresses that mails go to",
      items: "e-mail addresses",
      fallback: [],
      max: RECIPIENTS_MAX,
    }),
    webhookUrl: secretUrlOrOff("address that alerts are posted to as JSON"),
    webhookSecret: signingSecretOrOff("secret that each post is signed with"),
  }),
  analysis: z.strictObject({
    automaticFrom: choice("least severity of alerts that are analysed by themselves", "high", [...SEVERITIES, "off"]),
    url: urlOr(
      "off",
      "base address of an OpenAI-compatible service, such as https://api.openai.com/v1; off: only the built-in scorer answers",
    ),
    model: textOrOff("model that is asked there", "its name"),
    key: credentialOrOff("key for it"),
    timeoutSeconds: integer("how long its answer is waited for", 30, 1, 600),
    monthlyTokensMax: integer(
      "tokens that may be used in a UTC month; then the built-in scorer answers",
      1_000_000,
      0,
      1_000_000_000_000,
    ),
  }),
  logLevel: choice("least severe log line that is written", "info", LOG_LEVELS),
});
