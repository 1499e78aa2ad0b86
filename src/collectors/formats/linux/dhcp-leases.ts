import type { JsonObject, Severity } from "../../../model/event.ts";
import { addressOf, macOf, put } from "../device-values.ts";
import { oneEvent, type LineFormat } from "../line-format.ts";
import type { ParsedEvent } from "../reading.ts";

// DHCP leases of dnsmasq, dhcpd and Kea, and reports of switches about rogue DHCP servers.

const MESSAGE_CHARACTERS_MAX = 1024;

export const DHCP_LEASES = {
  name: "dhcp-leases",
  about: "leases of dnsmasq, dhcpd and Kea",
  devices: ["dnsmasq", "ISC dhcpd", "Kea"],
  example: "dhcpd: DHCPACK on 10.9.5.44 to 02:00:00:77:88:99 (tablet-4) via br0",
  programs: ["dnsmasq-dhcp", "dnsmasq", "dhcpd", "dhcpd3", "kea-dhcp4"],
  ownsPrograms: true,
  read: ({ message }) => oneEvent(readLease(message)),
} as const satisfies LineFormat;

export const ROGUE_DHCP = {
  name: "rogue-dhcp",
  about: "a switch reports an unknown DHCP server, in any wording that names it near the start",
  devices: ["switches that report unknown DHCP servers"],
  example: "Rogue DHCP server detected on port 7: 10.9.5.66 02:00:00:aa:bb:cc",
  read: ({ message }) => oneEvent(readRogueServer(message)),
} as const satisfies LineFormat;

/** Events of the message types of the protocol. */
const KINDS: Readonly<Record<string, readonly [type: string, severity: Severity]>> = {
  DHCPACK: ["dhcp_lease", "info"],
  DHCPOFFER: ["dhcp_offer", "info"],
  DHCPDISCOVER: ["dhcp_discover", "info"],
  DHCPREQUEST: ["dhcp_request", "info"],
  DHCPINFORM: ["dhcp_inform", "info"],
  DHCPRELEASE: ["dhcp_release", "info"],
  DHCPDECLINE: ["dhcp_declined", "low"],
  DHCPNAK: ["dhcp_refused", "low"],
};

/** Undefined if the message is not about leases. */
function readLease(message: string): ParsedEvent | undefined {
  const text = message.slice(0, MESSAGE_CHARACTERS_MAX).trimEnd();
  const word = /^(?:\d+ )?(DHCP[A-Z]+)/.exec(text)?.[1];
  if (word !== undefined && Object.hasOwn(KINDS, word)) {
    const raw = readWords(text);
    const colon = text.lastIndexOf(": ");
    if (colon > 0) put(raw, "reason", text.slice(colon + 2));
    if (EXHAUSTED.test(String(raw["reason"]))) return event("dhcp_exhausted", "medium", raw);
    const [type, severity] = KINDS[word]!;
    return event(type, severity, raw);
  }
  if (/no (?:free leases|address(?:es| range)? available)|\bALLOC_ENGINE_V4_ALLOC_FAIL/.test(text))
    return event("dhcp_exhausted", "medium", readWords(text));
  return undefined;
}

/** Reasons of an exhausted pool. Matched as a whole, since a client's name may contain the same words. */
const EXHAUSTED = /^(?:no free leases|no leases left|no address(?:es)? available|peer holds all free leases)\.?$/;

/** Characters searched for the words. */
const ROGUE_CHARACTERS_MAX = 128;
/** Matches near the start and not after a quotation: text that a stranger typed may contain the same words. */
const ROGUE_SERVER =
  /^[^"'=]{0,64}?(?:rogue[ -]?dhcp|dhcp[ -]?rogue|unknown dhcp server|dhcp snooping.{0,40}(?:untrusted|violation))/i;

/** Reads a report about an unknown DHCP server, from any program. */
function readRogueServer(message: string): ParsedEvent | undefined {
  // A fast test that rejects most lines.
  if (!/dhcp/i.test(message.slice(0, ROGUE_CHARACTERS_MAX)) || !ROGUE_SERVER.test(message)) return undefined;
  return event("rogue_dhcp", "high", readWords(message.slice(0, MESSAGE_CHARACTERS_MAX).trimEnd()));
}

function event(type: string, severity: Severity, raw: JsonObject): ParsedEvent {
  return { type, source: "network", severity, timestampMs: null, raw };
}

/** Reads the first IP address, the first hardware address, the name or reason after it, and the interface. */
function readWords(text: string): JsonObject {
  const raw: JsonObject = {};
  const words = text.split(" ");
  const inParentheses = /^(?:\d+ )?DHCP[A-Z]+\(([^)]{1,32})\)/.exec(text)?.[1];
  for (const [index, word] of words.entries()) {
    const bare = word.replace(/^[(<[]|[,;:.)>\]]+$/g, "");
    if (raw["src_ip"] === undefined) put(raw, "src_ip", addressOf(bare));
    if (raw["src_mac"] === undefined && macOf(bare) !== undefined) {
      put(raw, "src_mac", macOf(bare));
      if (inParentheses === undefined) put(raw, "host", IN_PARENTHESES.exec(words[index + 1] ?? "")?.[1]);
      else readNameOrReason(words.slice(index + 1), raw);
    }
    if (word === "via") put(raw, "in_interface", words[index + 1]?.replace(/:$/, ""));
  }
  put(raw, "in_interface", inParentheses);
  put(raw, "message", text);
  return raw;
}

/** Client name in dhcpd's notation. */
const IN_PARENTHESES = /^\(([A-Za-z0-9_][A-Za-z0-9_.-]{0,252})\)$/;
const HOST = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}$/;

/** Reads the end of a dnsmasq line: the client's name in one word, or the reason of a refusal. */
function readNameOrReason(words: readonly string[], raw: JsonObject): void {
  const [word = ""] = words;
  if (words.length > 1 || word === "ignored") put(raw, "reason", words.join(" "));
  else if (HOST.test(word)) put(raw, "host", word);
}
