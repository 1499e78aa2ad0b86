import { reachOf } from "../lib/reach.ts";
import { severityOfEve } from "../model/device-severity.ts";
import { SEVERITIES, type JsonObject, type Severity } from "../model/event.ts";
import { listOf, objectOf, put, textOf } from "./fields.ts";

// How bad an intrusion report is. The priority of a signature alone says little: Suricata gives its highest one to every
// breach of a company's policy, a call over Skype included. The class of the signature, what was done about the traffic, which
// way it went and what the signature's author says about it count as well.

/** What a class of signatures tells of. */
type Kind = "noise" | "policy" | "reconnaissance" | "attempt" | "compromise";

const KINDS: Readonly<Record<Kind, readonly string[]>> = {
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

const KIND_OF_CLASS: ReadonlyMap<string, Kind> = new Map(
  Object.entries(KINDS).flatMap(([kind, classes]) => classes.map((name) => [name, kind as Kind] as const)),
);

/** Signatures that stand for nothing but an address on somebody's list. What is found is the name of the list. */
const LISTED = [
  /^ET(?:PRO)? (?:3CORESec|CINS|COMPROMISED|DROP(?: Dshield| Spamhaus)?|TOR)\b/i,
  /\bPoor Reputation IP\b/i,
  /\bBlock ?Listed\b/i,
];

/** The list that a signature stands for, without the number of the group in it; undefined where it stands for an attack. */
function reputationListOf(signature: string): string | undefined {
  for (const pattern of LISTED) {
    const found = pattern.exec(signature);
    if (found !== null) return found[0];
  }
  return undefined;
}

type Direction = "incoming" | "outgoing" | "internal" | undefined;

/** Undefined where neither end is of the site, or one is not known. */
function directionOf(source: string | undefined, destination: string | undefined): Direction {
  if (source === undefined || destination === undefined) return undefined;
  const [isFromSite, isToSite] = [source, destination].map((address) => reachOf(address) === "private");
  if (isFromSite) return isToSite ? "internal" : "outgoing";
  return isToSite ? "incoming" : undefined;
}

/** What the author of a signature says about it: `signature_severity: ["Major"]`. */
const AUTHOR_MOST: Readonly<Record<string, Severity>> = { informational: "low", minor: "medium" };

const RANKS = [...SEVERITIES].reverse();
const rank = (severity: Severity) => RANKS.indexOf(severity);
const atMost = (severity: Severity, most: Severity) => (rank(severity) > rank(most) ? most : severity);
const lowered = (severity: Severity): Severity => RANKS[Math.max(0, rank(severity) - 1)]!;

/**
 * The severity of an intrusion report whose ends, class, signature and action stand in `raw` under our names. Puts the site's own
 * end there, and the list that the signature stands for. `alert` is the part that speaks of the signature.
 */
export function rateThreat(raw: JsonObject, priority: unknown, alert: JsonObject = {}): Severity {
  const [source, destination] = [textOf(raw["src_ip"]), textOf(raw["dst_ip"])];
  const direction = directionOf(source, destination);
  put(raw, "local_ip", direction === "incoming" ? destination : direction === undefined ? undefined : source);
  const list = reputationListOf(textOf(raw["signature"]) ?? "");
  put(raw, "reputation_list", list);
  const isStopped = raw["action"] === "block" || raw["action"] === "reject";
  const told = severityOfEve(priority);
  if (list !== undefined) return rateListed(told, direction, isStopped);
  const kind = KIND_OF_CLASS.get(textOf(raw["category"]) ?? "");
  return rateByAuthor(kind === undefined ? told : rateByKind(told, kind, direction, isStopped), alert);
}

/** Listed addresses knock at every door. One of the site's own hosts that talks to one is another matter. */
function rateListed(told: Severity, direction: Direction, isStopped: boolean): Severity {
  if (direction === "outgoing") return atMost(told, isStopped ? "medium" : "high");
  return atMost(told, isStopped ? "low" : "medium");
}

function rateByKind(told: Severity, kind: Kind, direction: Direction, isStopped: boolean): Severity {
  switch (kind) {
    case "noise":
      return atMost(told, "low");
    case "policy":
      return atMost(told, isStopped ? "low" : "medium");
    case "reconnaissance":
      // A host of the site that scans is one that somebody else uses.
      return atMost(told, direction === "incoming" || direction === undefined ? "medium" : "high");
    case "attempt":
      return isStopped && direction !== "outgoing" && direction !== "internal" ? lowered(told) : told;
    case "compromise":
      // Stopping the traffic does not clean the host.
      return told;
  }
}

function rateByAuthor(severity: Severity, alert: JsonObject): Severity {
  const metadata = objectOf(alert["metadata"]);
  const said = (name: string) => textOf(listOf(metadata?.[name])[0] ?? metadata?.[name])?.toLowerCase() ?? "";
  const most = Object.hasOwn(AUTHOR_MOST, said("signature_severity"))
    ? AUTHOR_MOST[said("signature_severity")]!
    : "critical";
  const bounded = atMost(severity, most);
  return said("confidence") === "low" ? lowered(bounded) : bounded;
}
