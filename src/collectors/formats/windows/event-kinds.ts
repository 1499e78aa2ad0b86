import type { EventClass, JsonObject, Severity, SourceKind } from "../../../model/event.ts";

// Meaning of Windows events, by channel and number. Types that are Sigma's categories have its names, so that imported rules
// find their events.

export interface WindowsMeaning {
  readonly type: string;
  readonly severity: Severity;
  readonly class?: EventClass;
  readonly source?: SourceKind;
}

type Decide = WindowsMeaning | ((raw: JsonObject) => WindowsMeaning);

const security = (type: string, severity: Severity = "info"): WindowsMeaning => ({ type, severity, class: "security" });
const audit = (type: string, severity: Severity = "info"): WindowsMeaning => ({ type, severity, class: "audit" });
const network = (type: string, severity: Severity = "info"): WindowsMeaning => ({ type, severity, class: "network" });

/** Logons of services, batches and the system itself, and unlocked screens: nobody logged in. */
const INTERNAL_LOGONS: ReadonlySet<string> = new Set(["0", "4", "5", "7"]);
const SUCCESS: ReadonlySet<string> = new Set(["0x0", "0x00000000", "0"]);

const kerberos = (raw: JsonObject): WindowsMeaning =>
  SUCCESS.has(String(raw["Status"])) ? audit("kerberos_ticket") : security("login_failure", "medium");

const memberAdded = (raw: JsonObject): WindowsMeaning =>
  audit("user_role_changed", raw["role"] === "administrator" ? "medium" : "low");

const SECURITY: Readonly<Record<string, Decide>> = {
  1102: security("log_cleared", "high"),
  4624: (raw) =>
    INTERNAL_LOGONS.has(String(raw["LogonType"])) ? audit("session_opened") : security("login_success", "info"),
  4625: security("login_failure", "medium"),
  4634: audit("session_closed"),
  4647: audit("session_closed"),
  4648: audit("explicit_credentials"),
  4672: audit("special_privileges"),
  4688: audit("process_creation"),
  4689: audit("process_termination"),
  4697: security("service_installed", "medium"),
  4698: security("scheduled_task_created", "low"),
  4699: audit("scheduled_task_deleted"),
  4702: audit("scheduled_task_changed", "low"),
  4719: security("audit_policy_changed", "medium"),
  4720: audit("user_created", "low"),
  4722: audit("user_enabled", "low"),
  4723: audit("password_changed", "low"),
  4724: audit("password_changed", "low"),
  4725: audit("user_disabled", "low"),
  4726: audit("user_deleted", "low"),
  4728: memberAdded,
  4732: memberAdded,
  4756: memberAdded,
  4729: audit("user_role_removed", "low"),
  4733: audit("user_role_removed", "low"),
  4757: audit("user_role_removed", "low"),
  4738: audit("user_changed", "info"),
  4740: security("account_locked", "medium"),
  4767: audit("account_unlocked", "low"),
  4768: kerberos,
  4769: audit("kerberos_ticket"),
  4771: security("login_failure", "medium"),
  // The machine that was logged in to reports the failure as 4625, too.
  4776: (raw) =>
    SUCCESS.has(String(raw["Status"])) ? audit("credentials_validated") : security("login_attempt", "low"),
  4778: audit("session_opened"),
  4779: audit("session_closed"),
  5140: audit("share_accessed"),
  5145: audit("share_accessed"),
  5152: security("firewall_blocked", "low"),
  5156: network("firewall_allowed"),
  5157: security("firewall_blocked", "low"),
};

const SYSMON: Readonly<Record<string, Decide>> = {
  1: audit("process_creation"),
  2: audit("file_change"),
  3: network("network_connection"),
  4: audit("sysmon_status", "low"),
  5: audit("process_termination"),
  6: audit("driver_load"),
  7: audit("image_load"),
  8: security("create_remote_thread", "low"),
  9: security("raw_access_thread", "low"),
  10: audit("process_access"),
  11: audit("file_event"),
  12: (raw) => audit(String(raw["EventType"]).startsWith("Delete") ? "registry_delete" : "registry_add"),
  13: audit("registry_set"),
  14: audit("registry_rename"),
  15: audit("create_stream_hash"),
  16: audit("sysmon_status", "low"),
  17: audit("pipe_created"),
  18: audit("pipe_created"),
  19: security("wmi_event", "low"),
  20: security("wmi_event", "low"),
  21: security("wmi_event", "low"),
  22: network("dns_query"),
  23: audit("file_delete"),
  24: audit("clipboard_capture"),
  25: security("process_tampering", "medium"),
  26: audit("file_delete"),
  27: security("file_block_executable", "medium"),
  28: security("file_block_shredding", "medium"),
  29: audit("file_executable_detected"),
  255: audit("sysmon_error", "low"),
};

const POWERSHELL: Readonly<Record<string, Decide>> = {
  4103: audit("ps_module"),
  4104: audit("ps_script"),
};

const SYSTEM: Readonly<Record<string, Decide>> = {
  104: security("log_cleared", "high"),
  7045: security("service_installed", "medium"),
};

const malware = (type: string, severity: Severity): WindowsMeaning => ({
  type,
  severity,
  class: "security",
  source: "custom",
});

const DEFENDER: Readonly<Record<string, Decide>> = {
  1006: malware("malware_found", "high"),
  1015: malware("malware_found", "high"),
  1116: malware("malware_found", "high"),
  1117: malware("malware_removed", "medium"),
  1119: malware("malware_found", "high"),
  5001: security("antivirus_disabled", "high"),
  5010: security("antivirus_disabled", "medium"),
  5012: security("antivirus_disabled", "medium"),
};

/** By channel, in lower case. */
const CHANNELS: ReadonlyMap<string, Readonly<Record<string, Decide>>> = new Map([
  ["security", SECURITY],
  ["system", SYSTEM],
  ["microsoft-windows-sysmon/operational", SYSMON],
  ["linux-sysmon/operational", SYSMON],
  ["microsoft-windows-powershell/operational", POWERSHELL],
  ["powershellcore/operational", POWERSHELL],
  ["windows powershell", { 400: audit("ps_classic_start"), 600: audit("ps_classic_provider_start") }],
  ["microsoft-windows-windows defender/operational", DEFENDER],
]);

const LEVELS: Readonly<Record<string, Severity>> = { 1: "high", 2: "medium", 3: "low" };

/** An event without an entry has Sigma's name of the product as its type, and a severity by its level. */
export function meaningOf(
  channel: string,
  eventId: number,
  level: number | undefined,
  raw: JsonObject,
): WindowsMeaning {
  const kinds = CHANNELS.get(channel.toLowerCase());
  const decide = kinds !== undefined && Object.hasOwn(kinds, eventId) ? kinds[eventId] : undefined;
  if (decide !== undefined) return typeof decide === "function" ? decide(raw) : decide;
  return audit("windows", LEVELS[String(level)] ?? "info");
}
