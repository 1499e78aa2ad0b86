import type { EventClass, JsonObject, JsonValue, Severity } from "../../../model/event.ts";
import { addressOf, integerOf, listOf, macOf, numberOf, put, textOf } from "../device-values.ts";
import { rateThreat } from "../threat-severity.ts";

// The logs of Zeek. A record in JSON does not say which log it belongs to; one of its fields tells.

/** Fields that only one log has, in the order in which they are looked for. */
const MARKS: readonly (readonly [log: string, fields: readonly string[]])[] = [
  ["conn", ["conn_state", "proto"]],
  ["dns", ["trans_id", "proto"]],
  ["dns", ["qclass_name"]],
  ["dns", ["rcode_name", "query"]],
  ["http", ["trans_depth", "request_body_len"]],
  ["http", ["trans_depth", "method"]],
  ["smtp", ["trans_depth", "helo"]],
  ["ssh", ["auth_attempts"]],
  ["ssh", ["kex_alg"]],
  ["ssl", ["established", "resumed"]],
  ["notice", ["note"]],
  ["intel", ["seen.indicator"]],
  ["weird", ["name", "peer"]],
  ["files", ["fuid", "seen_bytes"]],
  ["files", ["fuid", "is_orig", "source"]],
  ["dhcp", ["msg_types"]],
  ["dhcp", ["mac", "assigned_ip"]],
  ["kerberos", ["request_type"]],
  ["smb_mapping", ["share_type"]],
  ["dce_rpc", ["endpoint", "operation"]],
  ["ntlm", ["domainname"]],
  ["rdp", ["security_protocol"]],
  ["rdp", ["cookie", "result"]],
  ["x509", ["certificate.serial"]],
  ["ftp", ["command", "reply_code"]],
  ["software", ["unparsed_version"]],
  ["tunnel", ["tunnel_type"]],
];

/** The log that a record with these fields belongs to; undefined if it is not known. */
export function logOf(has: (field: string) => boolean, actionOf: () => unknown): string | undefined {
  for (const [log, fields] of MARKS) if (fields.every(has)) return log;
  return has("action") && String(actionOf()).startsWith("SMB::") ? "smb_files" : undefined;
}

export interface ZeekMeaning {
  readonly type: string;
  readonly severity: Severity;
  readonly class: EventClass;
}

const network = (type: string, severity: Severity = "info"): ZeekMeaning => ({ type, severity, class: "network" });
const security = (type: string, severity: Severity = "info"): ZeekMeaning => ({ type, severity, class: "security" });

/** Fields of a record by Zeek's names, such as `id.orig_h`. */
export type ZeekFields = Readonly<Record<string, JsonValue | undefined>>;
type ReadLog = (raw: JsonObject, fields: ZeekFields) => ZeekMeaning;

/** Notices about the sensor itself. */
const OWN_NOTICES = /^(?:CaptureLoss|PacketFilter|Weird|Telemetry|ProtocolDetector|Broker|Cluster)::/;

/** Classes of Zeek's own notices, in the words of Suricata's. */
const NOTICE_CLASSES: readonly (readonly [begins: string, category: string, priority: number])[] = [
  ["Scan::", "attempted-recon", 2],
  ["SSH::Password_Guessing", "attempted-user", 2],
  ["SSH::Login_By_Password_Guesser", "successful-user", 1],
  ["FTP::Bruteforcing", "attempted-user", 2],
  ["HTTP::SQL_Injection_Attacker", "web-application-attack", 2],
  ["HTTP::SQL_Injection_Victim", "web-application-attack", 2],
  ["Heartbleed::SSL_Heartbeat_Attack_Success", "successful-user", 1],
  ["Heartbleed::", "attempted-user", 2],
  ["TeamCymruMalwareHashRegistry::Match", "trojan-activity", 1],
  ["Intel::Notice", "trojan-activity", 2],
  ["Traceroute::", "attempted-recon", 3],
  ["SSL::", "policy-violation", 3],
  ["Software::", "policy-violation", 3],
];

const LOGS: Readonly<Record<string, ReadLog>> = {
  dns: (raw, fields) => {
    put(raw, "query", textOf(fields["query"]));
    put(raw, "query_type", textOf(fields["qtype_name"]));
    put(raw, "answer", textOf(fields["rcode_name"]));
    return network("dns_query");
  },
  http: (raw, fields) => {
    put(raw, "host", textOf(fields["host"]));
    put(raw, "url", textOf(fields["uri"]));
    put(raw, "user_agent", textOf(fields["user_agent"]));
    put(raw, "method", textOf(fields["method"]));
    put(raw, "http_status", integerOf(fields["status_code"]));
    return network("http");
  },
  ssl: (raw, fields) => {
    put(raw, "server_name", textOf(fields["server_name"]));
    return network("tls");
  },
  ssh: (raw, fields) => {
    put(raw, "service", "ssh");
    if (fields["auth_success"] === false) put(raw, "reason", "authentication failed");
    return network("ssh");
  },
  notice: (raw, fields) => {
    const note = textOf(fields["note"]) ?? "";
    putAddress(raw, "src_ip", fields["src"]);
    putAddress(raw, "dst_ip", fields["dst"]);
    put(raw, "dst_port", integerOf(fields["p"]));
    put(raw, "message", textOf(fields["msg"]));
    put(raw, "event_name", note);
    if (OWN_NOTICES.test(note)) return network("sensor_notice");
    const [, category, priority] = NOTICE_CLASSES.find(([begins]) => note.startsWith(begins)) ?? [];
    put(raw, "signature", note);
    put(raw, "category", category);
    const isDropped = listOf(fields["actions"]).includes("Notice::ACTION_DROP") || fields["dropped"] === true;
    put(raw, "action", isDropped ? "block" : "allow");
    return security("ids_alert", rateThreat(raw, priority ?? 3));
  },
  intel: (raw, fields) => {
    const indicator = textOf(fields["seen.indicator"]);
    put(raw, "signature", `${textOf(fields["seen.indicator_type"]) ?? "Intel"} ${indicator ?? ""}`.trimEnd());
    put(raw, "category", "trojan-activity");
    put(raw, "action", "allow");
    return security("ids_alert", rateThreat(raw, 2));
  },
  weird: (raw, fields) => {
    put(raw, "reason", textOf(fields["name"]));
    return security("anomaly", "low");
  },
  files: (raw, fields) => {
    put(raw, "file", textOf(fields["filename"]));
    put(raw, "sha256", textOf(fields["sha256"]));
    put(raw, "bytes", integerOf(fields["total_bytes"]) ?? integerOf(fields["seen_bytes"]));
    // The sender of the file, and its receiver.
    putAddress(raw, "src_ip", listOf(fields["tx_hosts"])[0]);
    putAddress(raw, "dst_ip", listOf(fields["rx_hosts"])[0]);
    return security("fileinfo");
  },
  dhcp: (raw, fields) => {
    const address = fields["assigned_addr"] ?? fields["assigned_ip"] ?? fields["client_addr"];
    const kinds = listOf(fields["msg_types"]);
    put(raw, "src_ip", addressOf(address));
    put(raw, "src_mac", macOf(fields["mac"]));
    put(raw, "host", textOf(fields["host_name"]));
    put(raw, "lease_s", numberOf(fields["lease_time"]));
    if (kinds.includes("NAK")) return network("dhcp_refused", "low");
    if (kinds.includes("DECLINE")) return network("dhcp_declined", "low");
    if (kinds.length === 0 || kinds.includes("ACK")) return network("dhcp_lease");
    return network(
      kinds.includes("OFFER") ? "dhcp_offer" : kinds.includes("REQUEST") ? "dhcp_request" : "dhcp_discover",
    );
  },
  kerberos: (raw, fields) => {
    // `robin/CORP.EXAMPLE`
    put(raw, "user", textOf(fields["client"])?.split("/", 1)[0]);
    put(raw, "service", "kerberos");
    const isRefused = fields["success"] === false;
    if (isRefused) put(raw, "reason", textOf(fields["error_msg"]));
    return isRefused ? security("kerberos", "low") : network("kerberos");
  },
  ntlm: (raw, fields) => {
    put(raw, "user", textOf(fields["username"]));
    put(raw, "src_host", textOf(fields["hostname"]));
    put(raw, "service", "ntlm");
    return fields["success"] === false ? security("ntlm", "low") : network("ntlm");
  },
  rdp: (raw, fields) => {
    put(raw, "user", textOf(fields["cookie"]));
    put(raw, "service", "rdp");
    return network("rdp");
  },
  smb_files: (raw, fields) => {
    put(raw, "file", textOf(fields["name"]));
    return network("smb_files");
  },
  ftp: (raw, fields) => {
    put(raw, "user", textOf(fields["user"]));
    put(raw, "service", "ftp");
    return network("ftp");
  },
};

/** Adds our fields to the record, and returns its meaning. A log without an entry is a type of its own. */
export function readLog(log: string, raw: JsonObject, fields: ZeekFields): ZeekMeaning {
  const read = Object.hasOwn(LOGS, log) ? LOGS[log] : undefined;
  return read === undefined ? network(/^[a-z][a-z0-9_]{0,63}$/.test(log) ? log : "zeek") : read(raw, fields);
}

function putAddress(raw: JsonObject, name: "src_ip" | "dst_ip", value: unknown): void {
  put(raw, name, addressOf(value));
}
