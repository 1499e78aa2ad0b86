// What happened. The shape here is the shape in the API, in the store and in rules.

export const SEVERITIES = ["critical", "high", "medium", "low", "info"] as const;
export const CLASSES = ["security", "network", "audit"] as const;
/** What stands behind the platform word in a source, and `custom` alone. */
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

/** The kind of a source, whatever the platform word was when the event was stored. */
export function sourceKind(source: string): SourceKind {
  const kind = source.slice(source.lastIndexOf("_") + 1);
  return (SOURCE_KINDS as readonly string[]).includes(kind) ? (kind as SourceKind) : CUSTOM_SOURCE;
}

export type JsonObject = { [key: string]: JsonValue };
export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;

/** An event before it is stored: the store gives it its id. */
export interface EventDraft {
  readonly type: string;
  readonly source: string;
  readonly severity: Severity;
  readonly class: EventClass;
  readonly timestampMs: number;
  readonly raw: JsonObject;
  /** `raw` as compact JSON, where it is at hand: a batch has it anyway, and making it again is half the work of storing. */
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

// The first entry whose words occur in a type decides; a word counts at a word's beginning.
const CLASS_WORDS: readonly (readonly [EventClass, readonly string[]])[] = [
  // An uplink that takes over has failed in nothing.
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

/** The class of an event of this type, where nothing else says it. */
export function classOfType(type: string): EventClass {
  const words = type.toLowerCase().split(/[^a-z0-9]+/);
  const has = (stems: readonly string[]) => words.some((word) => stems.some((stem) => word.startsWith(stem)));
  return CLASS_WORDS.find(([, stems]) => has(stems))?.[0] ?? "security";
}

/**
 * The names under which collectors and built-in rules keep the fields that people filter and group by.
 * A store may keep these apart so that they answer faster; exports give each a column of its own.
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
