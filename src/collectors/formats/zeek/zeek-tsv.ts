import type { JsonValue } from "../../../model/event.ts";
import { addressOf, FIELDS_MAX, integerOf, ownText } from "../device-values.ts";
import type { LineFormat, LineMessage, MessageReading } from "../line-format.ts";
import type { ReadContext } from "../reading.ts";
import { logOf, type ZeekFields } from "./zeek-kinds.ts";
import { readZeek } from "./zeek-record.ts";

// Zeek's logs as columns. The line `#fields` names them; it is remembered for each sender. A line whose header did not come, as
// after a restart in the middle of a file, is read if its values can only be those of Zeek's standard columns.

const SENDERS_MAX = 1000;
const HEADERS_MAX = 64;
const COLUMNS_MIN = 6;

interface TsvHeader {
  readonly log: string;
  readonly names: readonly string[];
  readonly types: readonly string[] | undefined;
}

interface SenderHeaders {
  /** By log. */
  readonly headers: Map<string, TsvHeader>;
  path: string | undefined;
  /** The header whose types come next. */
  last: TsvHeader | undefined;
}

const senders = new Map<string, SenderHeaders>();

const ENDS = "ts uid id.orig_h id.orig_p id.resp_h id.resp_p";

export const ZEEK_TSV = {
  name: "zeek-tsv",
  about: "logs of Zeek as columns, with or without their header",
  devices: ["Zeek"],
  page: "zeek",
  example:
    "1794736800.000000\tCAbc1d2EfGhIjKlMn3\t10.9.3.20\t51522\t10.9.0.1\t53\tudp\t7\t0.012\twww.example.org\t1\tC_INTERNET\t1\tA\t0\tNOERROR\tF\tF\tT\tT\t0\t192.0.2.80\t300.0\tF",
  read: readMessage,
} as const satisfies LineFormat;

/** Types of columns that are not texts. */
const STANDARD_TYPES: Readonly<Record<string, string>> = {
  ts: "time",
  "id.orig_h": "addr",
  "id.orig_p": "port",
  "id.resp_h": "addr",
  "id.resp_p": "port",
  duration: "interval",
  orig_bytes: "count",
  resp_bytes: "count",
  local_orig: "bool",
  local_resp: "bool",
  missed_bytes: "count",
  orig_pkts: "count",
  orig_ip_bytes: "count",
  resp_pkts: "count",
  resp_ip_bytes: "count",
  tunnel_parents: "set[string]",
  ip_proto: "count",
  trans_id: "count",
  rtt: "interval",
  qclass: "count",
  qtype: "count",
  rcode: "count",
  AA: "bool",
  TC: "bool",
  RD: "bool",
  RA: "bool",
  Z: "count",
  answers: "vector[string]",
  TTLs: "vector[interval]",
  rejected: "bool",
  trans_depth: "count",
  request_body_len: "count",
  response_body_len: "count",
  status_code: "count",
  info_code: "count",
};

/** Standard columns of the logs with the most lines, over Zeek's versions. */
const STANDARD: readonly TsvHeader[] = [
  standard(
    "conn",
    `${ENDS} proto service duration orig_bytes resp_bytes conn_state local_orig local_resp missed_bytes history orig_pkts orig_ip_bytes resp_pkts resp_ip_bytes tunnel_parents`,
  ),
  standard(
    "conn",
    `${ENDS} proto service duration orig_bytes resp_bytes conn_state local_orig local_resp missed_bytes history orig_pkts orig_ip_bytes resp_pkts resp_ip_bytes tunnel_parents ip_proto`,
  ),
  standard(
    "dns",
    `${ENDS} proto trans_id rtt query qclass qclass_name qtype qtype_name rcode rcode_name AA TC RD RA Z answers TTLs rejected`,
  ),
  standard(
    "http",
    `${ENDS} trans_depth method host uri referrer version user_agent origin request_body_len response_body_len status_code status_msg info_code info_msg tags username password proxied orig_fuids orig_filenames orig_mime_types resp_fuids resp_filenames resp_mime_types`,
  ),
];

function standard(log: string, names: string): TsvHeader {
  const list = names.split(" ");
  return { log, names: list, types: list.map((name) => STANDARD_TYPES[name] ?? "string") };
}

const HEADER_LINE = /^#(separator|set_separator|empty_field|unset_field|path|open|close|fields|types)[ \t]/;
const FIRST = /^\d{9,11}\.\d{1,9}\t/;
const PROGRAM = /^(?:zeek|bro)/i;

function readMessage({ program, message }: LineMessage, context: ReadContext): MessageReading | undefined {
  if (program !== null && !PROGRAM.test(program)) return undefined;
  if (message.startsWith("#")) return readHeaderLine(message, context.sender) ? { kind: "nothing" } : undefined;
  if (!FIRST.test(message)) return undefined;
  const cells = message.split("\t", FIELDS_MAX + 1);
  if (cells.length < COLUMNS_MIN) return undefined;
  const header = headerFor(cells, context.sender);
  return header && readZeek(header.log, fieldsOf(header, cells), context);
}

function readHeaderLine(line: string, sender: string): boolean {
  const kind = HEADER_LINE.exec(line)?.[1];
  if (kind === undefined) return false;
  const values = line.split("\t", FIELDS_MAX + 1).slice(1);
  const known = senders.get(sender) ?? { headers: new Map<string, TsvHeader>(), path: undefined, last: undefined };
  if (!senders.has(sender)) {
    // The sender that came first is evicted: it has most likely gone.
    if (senders.size >= SENDERS_MAX) senders.delete(senders.keys().next().value!);
    senders.set(sender, known);
  }
  if (kind === "path") known.path = values[0];
  if (kind === "fields") {
    const log =
      logOf(
        (field) => values.includes(field),
        () => "SMB::",
      ) ?? known.path;
    // Assigning `__proto__` would change the prototype.
    const names = values.map((name) => ownText(name === "__proto__" ? "_proto_" : name));
    known.last = log === undefined ? undefined : { log, names, types: undefined };
    remember(known);
  }
  if (kind === "types" && known.last?.names.length === values.length) {
    known.last = { ...known.last, types: values };
    remember(known);
  }
  return true;
}

function remember({ headers, last }: SenderHeaders): void {
  if (last !== undefined && (headers.has(last.log) || headers.size < HEADERS_MAX)) headers.set(last.log, last);
}

/** The only header that the values fit. */
function headerFor(cells: readonly string[], sender: string): TsvHeader | undefined {
  const known = senders.get(sender)?.headers;
  let found: TsvHeader | undefined;
  for (const header of known?.values() ?? []) {
    if (!fits(header, cells)) continue;
    if (found !== undefined) return undefined;
    found = header;
  }
  return found ?? STANDARD.find((header) => fits(header, cells) && isUnmistakable(header.log, cells));
}

function fits({ names, types }: TsvHeader, cells: readonly string[]): boolean {
  if (names.length !== cells.length) return false;
  if (types === undefined) return true;
  for (let index = 0; index < types.length; index++) if (!isOfType(types[index]!, cells[index]!)) return false;
  return true;
}

const UNSET = "-";
const NUMBER = /^-?\d{1,15}(?:\.\d{1,12})?$/;

function isOfType(type: string, cell: string): boolean {
  if (cell === UNSET) return true;
  switch (type) {
    case "addr":
      return addressOf(cell) !== undefined;
    case "port":
    case "count":
      return integerOf(cell) !== undefined;
    case "bool":
      return cell === "T" || cell === "F";
    case "time":
    case "interval":
    case "double":
      return NUMBER.test(cell);
    default:
      return true;
  }
}

const UID = /^C[A-Za-z0-9]{8,24}$/;
const TRANSPORTS: ReadonlySet<string> = new Set(["tcp", "udp", "icmp", "unknown_transport"]);
const STATES: ReadonlySet<string> = new Set("S0 S1 SF REJ S2 S3 RSTO RSTR RSTOS0 RSTRH SH SHR OTH".split(" "));
const METHOD = /^[A-Z]{3,16}$/;

/** A line without a header must have an id, addresses and ports, and the words that only this log has. */
function isUnmistakable(log: string, cells: readonly string[]): boolean {
  const [, uid = "", source, , destination, , seventh = "", eighth = ""] = cells;
  if (!UID.test(uid) || addressOf(source) === undefined || addressOf(destination) === undefined) return false;
  if (log === "conn") return TRANSPORTS.has(seventh) && STATES.has(cells[11]!);
  if (log === "dns") return TRANSPORTS.has(seventh) && integerOf(eighth) !== undefined;
  return integerOf(seventh) !== undefined && (eighth === UNSET || METHOD.test(eighth));
}

function fieldsOf({ names, types }: TsvHeader, cells: readonly string[]): ZeekFields {
  const fields: Record<string, JsonValue> = {};
  for (let index = 0; index < names.length; index++) {
    const cell = cells[index]!;
    if (cell === UNSET || cell === "(empty)") continue;
    fields[names[index]!] = valueOf(cell, types?.[index]);
  }
  return fields;
}

function valueOf(cell: string, type = ""): JsonValue {
  if (type === "bool") return cell === "T";
  if (type === "count" || type === "port" || type === "int") return integerOf(cell) ?? cell;
  if (type.startsWith("set[") || type.startsWith("vector[")) return cell.split(",", FIELDS_MAX).map(unescape);
  return unescape(cell);
}

/** Zeek writes a character that could be taken for a separator as `\x09`. */
function unescape(text: string): string {
  if (!text.includes("\\x")) return text;
  return text.replaceAll(/(?:\\x[0-9a-f]{2})+/g, (codes) =>
    Buffer.from(codes.replaceAll("\\x", ""), "hex").toString("utf8"),
  );
}
