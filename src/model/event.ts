// Events. The API, the store and rules use this shape.

export const SEVERITIES = ["critical", "high", "medium", "low", "info"] as const;
export const CLASSES = ["security", "network", "audit"] as const;
/** The part of a source after the platform prefix; `custom` has no prefix. */
export const SOURCE_KINDS = ["network", "protect", "access", "talk", "custom"] as const;

export type Severity = (typeof SEVERITIES)[number];
export type EventClass = (typeof CLASSES)[number];
export type SourceKind = (typeof SOURCE_KINDS)[number];

export const CUSTOM_SOURCE = "custom";

export function sourceNames(platform: string): string[] {
  return SOURCE_KINDS.map((kind) => sourceName(platform, kind));
}

export function sourceName(platform: string, kind: SourceKind): string {
  return kind === CUSTOM_SOURCE ? CUSTOM_SOURCE : `${platform}_${kind}`;
}

/** The kind of a source, regardless of the platform prefix at the time the event was stored. */
export function sourceKind(source: string): SourceKind {
  const kind = source.slice(source.lastIndexOf("_") + 1);
  return (SOURCE_KINDS as readonly string[]).includes(kind) ? (kind as SourceKind) : CUSTOM_SOURCE;
}

export type JsonObject = { [key: string]: JsonValue };
/** Integers beyond 2^53 are bigint, all others number; lib/exact-json.ts reads and writes them. */
export type JsonValue = string | number | bigint | boolean | null | JsonValue[] | JsonObject;

/** An event before it is stored; the store assigns the id. */
export interface EventDraft {
  readonly type: string;
  readonly source: string;
  readonly severity: Severity;
  readonly class: EventClass;
  readonly timestampMs: number;
  readonly raw: JsonObject;
  /** `raw` as compact JSON, if available: serialising it again is half the cost of storing an event. */
  readonly rawText?: string | undefined;
  readonly enrichment: JsonObject;
}

export interface Event {
  readonly id: string;
  readonly type: string;
  readonly source: string;
  readonly class: EventClass;
  readonly severity: Severity;
  readonly timestamp: string;
  readonly raw: JsonObject;
  readonly enrichment: JsonObject;
}

/** Event types that parsers assign, regardless of transport: a doorbell is the same type in a CEF line and in a webhook. */
const TYPES_OF_CLASS: Readonly<Record<EventClass, string>> = {
  security: `
    access_denied admin_login animal anomaly backup_failed burglar_alarm camera_offline camera_online carbon_monoxide_alarm
    detection detection_ended disk_failed door_forced door_held doorbell drop emergency emergency_ended evacuation
    evacuation_ended face fileinfo fingerprint_unknown firewall_blocked glass_break honeypot_triggered ids_alert
    license_plate light_motion lockdown lockdown_ended login_attempt login_failure login_success loitering motion package person
    recording_deleted recording_stopped rogue_access_point rogue_dhcp sensor_alarm sensor_closed sensor_extreme_values
    sensor_motion sensor_opened sip_registered sip_registration_failed sip_scan sip_unregistered siren smoke_alarm sound
    storage_full tamper unknown_badge vehicle video_deleted water_leak`,
  network: `
    battery_low call_ended call_missed call_refused call_started client_connected client_disconnected client_roamed
    device_offline device_online dhcp_declined dhcp_discover dhcp_exhausted dhcp_inform dhcp_lease dhcp_offer dhcp_refused
    dhcp_release dhcp_request dns_query firewall_allowed firewall_logged flow_summary http tls unparsed vpn_connected
    vpn_disconnected wan_failover wan_latency_high wan_link_down wan_link_up wan_packet_loss`,
  audit: `
    access_granted access_incomplete admin_created badge_scanned config_changed device_adopted device_updated door_access
    door_closed door_opened door_status door_unlocked doorbell_ended fingerprint_identified firmware_updated
    recording_mode_changed session_closed session_opened software_updated temporary_unlock_ended
    temporary_unlock_started unlock_schedule_ended unlock_schedule_started visitor_checked_in visitor_checked_out
    visitor_status_changed`,
};
const CLASS_OF_TYPE: ReadonlyMap<string, EventClass> = new Map(
  CLASSES.flatMap((name) => TYPES_OF_CLASS[name].match(/\w+/g)!.map((type) => [type, name] as const)),
);

/** Classes of types outside the table: the first entry with a stem that starts a word of the type decides. */
const CLASS_WORDS: readonly (readonly [EventClass, readonly string[]])[] = [
  // Not a failure, although it starts with "fail".
  ["network", ["failover"]],
  [
    "security",
    [
      "login",
      "ids",
      "ips",
      "intrusion",
      "threat",
      "tamper",
      "denied",
      "forced",
      "held",
      "fail",
      "attack",
      "blocked",
      "honeypot",
      "scan",
      "brute",
      "anomaly",
      "fraud",
      "motion",
      "person",
      "vehicle",
    ],
  ],
  [
    "audit",
    ["config", "admin", "setting", "firmware", "update", "access", "door", "badge", "visitor", "unlock", "audit"],
  ],
  ["network", ["flow", "dns", "link", "dhcp", "client", "device", "wan", "vpn", "http", "tls", "call", "network"]],
];

/** The class of events of this type. `stated`: the class that the device states for a type of its own. */
export function classOfType(type: string, stated?: EventClass): EventClass {
  return CLASS_OF_TYPE.get(type) ?? stated ?? classOfWords(type);
}

function classOfWords(type: string): EventClass {
  // An access point is not access control.
  const words = type
    .toLowerCase()
    .replace(/access_?points?/, "device")
    .split(/[^a-z0-9]+/);
  const has = (stems: readonly string[]) => words.some((word) => stems.some((stem) => word.startsWith(stem)));
  return CLASS_WORDS.find(([, stems]) => has(stems))?.[0] ?? "security";
}

/**
 * Paths of the fields that collectors fill and that people filter and group by.
 * A store may keep them in separate columns for speed; exports give each its own column.
 */
export const WELL_KNOWN_FIELDS = {
  "raw.src_ip": "string",
  "raw.src_port": "number",
  "raw.dst_ip": "string",
  "raw.dst_port": "number",
  "raw.protocol": "string",
  "raw.src_mac": "string",
  "raw.host": "string",
  "raw.device": "string",
  "raw.user": "string",
  "raw.action": "string",
  "raw.signature_id": "number",
  "raw.signature": "string",
  "raw.category": "string",
  "raw.camera": "string",
  "raw.zone": "string",
  "raw.door": "string",
  "raw.from": "string",
  "raw.to": "string",
  "enrichment.geo.country": "string",
  "enrichment.geo.city": "string",
  "enrichment.abuse_ipdb.score": "number",
} as const satisfies Record<string, "string" | "number">;
