import { addressScope } from "../../lib/address-scope.ts";
import { unreachable } from "../../lib/unreachable.ts";
import { severityOfEve } from "../../model/device-severity.ts";
import { SEVERITIES, type JsonObject, type Severity } from "../../model/event.ts";
import { listOf, objectOf, put, textOf } from "./device-values.ts";

// Severity of intrusion reports. The priority of a signature alone says little: Suricata gives its highest one to every
// policy violation, a Skype call included. The signature's class, the action taken, the direction of the traffic and the
// author's own rating count as well.

/** Meaning of a signature class. */
type ThreatKind = "noise" | "policy" | "reconnaissance" | "attempt" | "compromise";

const KIND_CLASSES: Readonly<Record<ThreatKind, readonly string[]>> = {
  noise: [
    "icmp-event",
    "misc-activity",
    "non-standard-protocol",
    "not-suspicious",
    "protocol-command-decode",
    "tcp-connection",
    "unknown",
  ],
  policy: [
    "external-ip-check",
    "inappropriate-content",
    "policy-violation",
    "pup-activity",
    "unusual-client-port-connection",
  ],
  reconnaissance: [
    "attempted-recon",
    "network-scan",
    "rpc-portmap-decode",
    "successful-recon-limited",
    "successful-recon-largescale",
  ],
  attempt: [
    "attempted-admin",
    "attempted-dos",
    "attempted-user",
    "default-login-attempt",
    "denial-of-service",
    "shellcode-detect",
    "social-engineering",
    "unsuccessful-user",
    "web-application-activity",
    "web-application-attack",
  ],
  compromise: [
    "coin-mining",
    "command-and-control",
    "credential-theft",
    "domain-c2",
    "exploit-kit",
    "successful-admin",
    "successful-dos",
    "successful-user",
    "targeted-activity",
    "trojan-activity",
  ],
};

const KIND_OF_CLASS: ReadonlyMap<string, ThreatKind> = new Map(
  Object.entries(KIND_CLASSES).flatMap(([kind, classes]) => classes.map((name) => [name, kind as ThreatKind] as const)),
);

/** Signatures that only match addresses of a reputation list. The match is the name of the list. */
const LISTED = [
  /^ET(?:PRO)? (?:3CORESec|CINS|COMPROMISED|DROP(?: Dshield| Spamhaus)?|TOR)\b/i,
  /\bPoor Reputation IP\b/i,
  /\bBlock ?Listed\b/i,
];

/** Reputation list of a signature, without its group number; undefined for the signature of an attack. */
function reputationListOf(signature: string): string | undefined {
  for (const pattern of LISTED) {
    const match = pattern.exec(signature);
    if (match !== null) return match[0];
  }
  return undefined;
}

type Direction = "incoming" | "outgoing" | "internal" | undefined;

/** Undefined if neither end belongs to the site, or one is unknown. */
function directionOf(source: string | undefined, destination: string | undefined): Direction {
  if (source === undefined || destination === undefined) return undefined;
  const [isFromSite, isToSite] = [source, destination].map((address) => addressScope(address) === "private");
  if (isFromSite) return isToSite ? "internal" : "outgoing";
  return isToSite ? "incoming" : undefined;
}

/** Upper limit by the author's rating: `signature_severity: ["Major"]`. */
const AUTHOR_LIMITS: Readonly<Record<string, Severity>> = { informational: "low", minor: "medium" };

const RANKS = [...SEVERITIES].reverse();
const rank = (severity: Severity) => RANKS.indexOf(severity);
const atMost = (severity: Severity, limit: Severity) => (rank(severity) > rank(limit) ? limit : severity);
const lowered = (severity: Severity): Severity => RANKS[Math.max(0, rank(severity) - 1)]!;

/** Adds the site's own address to an intrusion report whose ends are in `raw`. */
export function putLocalAddress(raw: JsonObject): Direction {
  const [source, destination] = [textOf(raw["src_ip"]), textOf(raw["dst_ip"])];
  const direction = directionOf(source, destination);
  put(raw, "local_ip", direction === "incoming" ? destination : direction === undefined ? undefined : source);
  return direction;
}

/**
 * Rates an intrusion report whose ends, class, signature and action are in `raw` under well-known names. Adds the site's own
 * address and the reputation list to `raw`. `alert` is the part of the report that describes the signature.
 */
export function rateThreat(raw: JsonObject, priority: unknown, alert: JsonObject = {}): Severity {
  const direction = putLocalAddress(raw);
  const list = reputationListOf(textOf(raw["signature"]) ?? "");
  put(raw, "reputation_list", list);
  const isStopped = raw["action"] === "block" || raw["action"] === "reject";
  const base = severityOfEve(priority);
  if (list !== undefined) return rateListed(base, direction, isStopped);
  const kind = KIND_OF_CLASS.get(textOf(raw["category"]) ?? "");
  return rateByAuthor(kind === undefined ? base : rateByKind(base, kind, direction, isStopped), alert);
}

/** Listed addresses scan every network. A host of the site that contacts one is worse. */
function rateListed(base: Severity, direction: Direction, isStopped: boolean): Severity {
  if (direction === "outgoing") return atMost(base, isStopped ? "medium" : "high");
  return atMost(base, isStopped ? "low" : "medium");
}

function rateByKind(base: Severity, kind: ThreatKind, direction: Direction, isStopped: boolean): Severity {
  switch (kind) {
    case "noise":
      return atMost(base, "low");
    case "policy":
      return atMost(base, isStopped ? "low" : "medium");
    case "reconnaissance":
      // A host of the site that scans is probably compromised.
      return atMost(base, direction === "incoming" || direction === undefined ? "medium" : "high");
    case "attempt":
      return isStopped && direction !== "outgoing" && direction !== "internal" ? lowered(base) : base;
    case "compromise":
      // Blocking the traffic does not clean the host.
      return base;
    default:
      return unreachable(kind);
  }
}

function rateByAuthor(severity: Severity, alert: JsonObject): Severity {
  const metadata = objectOf(alert["metadata"]);
  const metadataText = (name: string) => textOf(listOf(metadata?.[name])[0] ?? metadata?.[name])?.toLowerCase() ?? "";
  const limit = Object.hasOwn(AUTHOR_LIMITS, metadataText("signature_severity"))
    ? AUTHOR_LIMITS[metadataText("signature_severity")]!
    : "critical";
  const bounded = atMost(severity, limit);
  return metadataText("confidence") === "low" ? lowered(bounded) : bounded;
}
