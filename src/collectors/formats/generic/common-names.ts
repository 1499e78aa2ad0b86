import { severityOfCef } from "../../../model/device-severity.ts";
import type { JsonValue, Severity } from "../../../model/event.ts";
import type { FieldNameKey } from "../../../model/field-names.ts";
import { actionOf, addressOf, integerOf, macOf, numberOf, portOf, protocolOf, textOf } from "../device-values.ts";

// Names that mean the same in the logs of many programs. A name that means different things, such as `remote_ip`, `status` or
// `duration`, is not here: its value is kept under its own name.

const COMMON_NAMES: Partial<Record<FieldNameKey, readonly string[]>> = {
  src_ip: [
    ["srcip", "srcaddr", "srcaddress", "saddr", "ipsrc", "src", "source"],
    ["sourceip", "sourceaddr", "sourceaddress", "sourceipaddress"],
    ["clientip", "clientaddr", "clientaddress", "clientipaddress", "remoteaddr"],
  ].flat(),
  src_port: ["srcport", "sport", "spt", "sourceport", "clientport"],
  src_mac: ["srcmac", "sourcemac", "sourcemacaddress", "smac", "clientmac"],
  dst_ip: [
    ["dstip", "dstaddr", "dstaddress", "daddr", "ipdst", "dst", "dest", "destination"],
    ["destip", "destaddr", "destaddress", "destinationip", "destinationaddr", "destinationaddress"],
    ["destinationipaddress"],
  ].flat(),
  dst_port: ["dstport", "dport", "dpt", "destport", "destinationport"],
  dst_mac: ["dstmac", "destmac", "destinationmac", "destinationmacaddress", "dmac"],
  protocol: ["proto", "protocol", "ipproto", "ipprotocol", "networktransport"],
  action: ["action", "act"],
  in_interface: ["ininterface", "inif", "srcintf", "srcinterface", "ingressinterface", "inputinterface"],
  out_interface: ["outinterface", "outif", "dstintf", "dstinterface", "egressinterface", "outputinterface"],
  bytes: ["bytes"],
  packets: ["packets"],
  user: ["user", "username", "usrname"],
  url: ["url", "urlfull", "requesturl"],
  user_agent: ["useragent", "httpuseragent", "useragentoriginal"],
  method: ["httpmethod", "requestmethod", "httprequestmethod"],
  http_status: ["httpstatus", "httpstatuscode", "httpresponsestatuscode"],
  query: ["dnsquery", "dnsquestionname"],
  server_name: ["sni", "tlssni"],
  file: ["filename", "filepath"],
  sha256: ["sha256", "hashsha256", "filehashsha256"],
  duration_s: ["durations", "durationsec", "durationseconds"],
  reason: ["reason"],
  event_id: ["eventid"],
  event_name: ["eventname"],
  message: ["msg", "message", "shortmessage", "logmessage"],
  process_id: ["pid", "processid", "processpid"],
};

type ConvertValue = (value: string) => JsonValue | undefined;

const TRANSPORTS = new Set(["tcp", "udp", "icmp", "icmpv6", "igmp", "gre", "esp", "ah", "sctp"]);
/** `alert` and `log` are actions of some devices only. */
const FILTER_VERB = /^(?:allow|accept|permit|pass|den[yi]|block|drop|reject)/i;

/** A value that does not fit, or fits and means something else, is undefined. Other fields are text. */
const CONVERT: Partial<Record<FieldNameKey, ConvertValue>> = {
  src_ip: addressOf,
  dst_ip: addressOf,
  src_port: portOf,
  dst_port: portOf,
  src_mac: macOf,
  dst_mac: macOf,
  protocol: (value) => (TRANSPORTS.has(protocolOf(value)) ? protocolOf(value) : undefined),
  action: (value) => (FILTER_VERB.test(value) ? actionOf(value) : undefined),
  bytes: integerOf,
  packets: integerOf,
  process_id: integerOf,
  duration_s: numberOf,
  http_status: (value) => (/^[1-5]\d\d$/.test(value) ? Number(value) : undefined),
};

interface CommonField {
  readonly kind: "field";
  readonly field: FieldNameKey;
  readonly convert: ConvertValue;
}

const FIELDS: ReadonlyMap<string, CommonField> = new Map(
  Object.entries(COMMON_NAMES).flatMap(([name, names]) => {
    const field = name as FieldNameKey;
    const entry: CommonField = { kind: "field", field, convert: CONVERT[field] ?? textOf };
    return names.map((own) => [own, entry] as const);
  }),
);

/** By which the time is known, the surest first. */
const TIME_NAMES = ["timestamp", "ts", "datetime", "eventtime", "logtime", "time"];
/** How severe an event is, in the words of a security product. */
const SEVERITY_NAMES = new Set(["severity", "severityname", "risk", "risklevel", "threatlevel"]);
/** How severe a message is, in the words of a log. */
const LEVEL_NAMES = new Set(["level", "loglevel", "lvl", "severitytext"]);

/** What a name stands for. */
export type CommonName =
  | CommonField
  | { readonly kind: "time"; readonly rank: number }
  | { readonly kind: "date" | "severity" | "level" };

const NAMES_CACHED_MAX = 4096;
const cached = new Map<string, CommonName | null>();

/** Null for a name that is not common. `Source-IP`, `source.ip` and `source_ip` are one. */
export function commonName(own: string): CommonName | null {
  const known = cached.get(own);
  if (known !== undefined) return known;
  const found = find(own.toLowerCase().replaceAll(/[^a-z0-9]/g, ""));
  if (cached.size >= NAMES_CACHED_MAX) cached.clear();
  cached.set(own, found);
  return found;
}

function find(name: string): CommonName | null {
  const field = FIELDS.get(name);
  if (field !== undefined) return field;
  const rank = TIME_NAMES.indexOf(name);
  if (rank >= 0) return { kind: "time", rank };
  if (name === "date") return { kind: "date" };
  if (SEVERITY_NAMES.has(name)) return { kind: "severity" };
  return LEVEL_NAMES.has(name) ? { kind: "level" } : null;
}

/** Levels of logs, on the scale of syslog. */
const LEVELS: Readonly<Record<string, Severity>> = {
  emergency: "critical",
  emerg: "critical",
  panic: "critical",
  fatal: "critical",
  alert: "critical",
  critical: "high",
  crit: "high",
  error: "medium",
  err: "medium",
  warning: "low",
  warn: "low",
  notice: "info",
  informational: "info",
  information: "info",
  info: "info",
  debug: "info",
  trace: "info",
};

/** Undefined for a number, whose scale is not known, and for an unknown word. */
export function severityOfLevel(value: string): Severity | undefined {
  const word = value.toLowerCase();
  return Object.hasOwn(LEVELS, word) ? LEVELS[word] : undefined;
}

/** Undefined for a number, whose scale is not known, and for an unknown word. */
export function severityOfWord(value: string): Severity | undefined {
  return /^[A-Za-z]/.test(value) ? (severityOfCef(value) ?? severityOfLevel(value)) : undefined;
}
