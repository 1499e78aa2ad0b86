import type { EventClass, JsonObject, JsonValue, Severity } from "../../../model/event.ts";
import { readAnyTime } from "../device-times.ts";
import { addressOf, integerOf, listOf, objectOf, portOf, protocolOf, put, textOf } from "../device-values.ts";
import type { LineFormat } from "../line-format.ts";
import type { ParsedEvent, ReadContext } from "../reading.ts";
import { alertReaders } from "./alert-records.ts";

// Alerts of Wazuh as JSON, from alerts.json or its syslog output. An alert keeps its own fields; the groups of its rule tell what
// it is about.

export const WAZUH = {
  name: "wazuh",
  about: "alerts of Wazuh as JSON",
  devices: ["Wazuh"],
  page: "wazuh",
  example:
    '{"timestamp":"2026-11-15T10:00:00.000+0000","rule":{"level":5,"description":"sshd: authentication failed.","id":"5760",' +
    '"groups":["syslog","sshd","authentication_failed"]},"agent":{"id":"001"},"manager":{"name":"siem"},"id":"1794736800.812",' +
    '"data":{"srcip":"192.0.2.9","srcport":"51000","dstuser":"root"},"location":"/var/log/auth.log"}',
  ...alertReaders({ product: "Wazuh", contains: ['"rule":', '"agent":'], recognises, readAlert }),
} as const satisfies LineFormat;

function recognises(object: JsonObject): boolean {
  const rule = objectOf(object["rule"]);
  return rule?.["level"] !== undefined && rule["id"] !== undefined && objectOf(object["agent"]) !== undefined;
}

function readAlert(record: JsonObject, context: ReadContext): ParsedEvent {
  // The name means something else here.
  const { rule: own, ...raw } = record;
  const rule = objectOf(own) ?? {};
  const agent = objectOf(raw["agent"]) ?? {};
  const data = objectOf(raw["data"]) ?? {};
  const level = integerOf(rule["level"]) ?? 0;
  const { location, timestamp } = raw;
  raw["wazuh_rule"] = rule;
  putData(raw, data);
  put(raw, "signature_id", integerOf(rule["id"]));
  put(raw, "signature", textOf(rule["description"]));
  put(raw, "device", textOf(agent["name"]));
  put(raw, "host", textOf(agent["name"]));
  put(raw, "device_ip", addressOf(agent["ip"]));
  put(raw, "message", textOf(raw["full_log"]));
  put(raw, "event_id", textOf(raw["id"]));
  if (location !== undefined) put(raw, "file", fileOf(raw));
  const groups = new Set(listOf(rule["groups"]));
  const { type, class: eventClass } = meaningOf(groups);
  if (type === "ids_alert") put(raw, "category", categoryOf(groups));
  return {
    type,
    source: "network",
    severity: severityOf(level, type),
    class: eventClass,
    timestampMs: readAnyTime(timestamp, context),
    raw,
  };
}

function putData(raw: JsonObject, data: JsonObject): void {
  put(raw, "src_ip", addressOf(data["srcip"]) ?? addressOf(data["src_ip"]));
  put(raw, "src_port", portOf(data["srcport"]) ?? portOf(data["src_port"]));
  put(raw, "dst_ip", addressOf(data["dstip"]) ?? addressOf(data["dest_ip"]));
  put(raw, "dst_port", portOf(data["dstport"]) ?? portOf(data["dest_port"]));
  put(raw, "user", textOf(data["dstuser"]) ?? textOf(data["srcuser"]));
  put(raw, "url", textOf(data["url"]));
  const protocol = textOf(data["protocol"]);
  if (protocol !== undefined && /^[A-Za-z0-9-]{2,12}$/.test(protocol)) put(raw, "protocol", protocolOf(protocol));
  const login = objectOf(objectOf(data["win"])?.["eventdata"]);
  if (login === undefined) return;
  if (raw["src_ip"] === undefined) put(raw, "src_ip", addressOf(login["ipAddress"]));
  if (raw["user"] === undefined) put(raw, "user", textOf(login["targetUserName"]));
}

/** File that the integrity check reports. */
function fileOf(raw: JsonObject): string | undefined {
  return textOf(objectOf(raw["syscheck"])?.["path"]);
}

/** By the groups of the rule; the first entry counts. */
const MEANINGS: readonly (readonly [groups: readonly string[], type: string, eventClass: EventClass])[] = [
  [
    ["authentication_failures", "attack", "attacks", "exploit_attempt", "ids", "web_scan", "recon", "sql_injection"],
    "ids_alert",
    "security",
  ],
  [["win_authentication_failed", "authentication_failed", "invalid_login"], "login_failure", "security"],
  [["authentication_success"], "login_success", "security"],
  [["virus", "rootcheck"], "malware_suspected", "security"],
  [["syscheck"], "file_changed", "audit"],
  [["account_changed", "adduser", "usermod"], "user_changed", "audit"],
];

function meaningOf(groups: ReadonlySet<JsonValue>): { readonly type: string; readonly class: EventClass } {
  const found = MEANINGS.find(([names]) => names.some((name) => groups.has(name)));
  return found === undefined ? { type: "wazuh_alert", class: "security" } : { type: found[1], class: found[2] };
}

function categoryOf(groups: ReadonlySet<JsonValue>): string | undefined {
  if (groups.has("authentication_failures")) return "attempted-user";
  if (groups.has("web_scan") || groups.has("recon")) return "attempted-recon";
  return groups.has("sql_injection") || groups.has("web") ? "web-application-attack" : undefined;
}

/** Wazuh's levels go from 0 to 16; from 12 on they mean a successful attack. */
function severityOf(level: number, type: string): Severity {
  if (level >= 15) return "critical";
  if (level >= 12) return "high";
  if (level >= 7 || type === "login_failure") return "medium";
  return level >= 4 && type !== "login_success" ? "low" : "info";
}
