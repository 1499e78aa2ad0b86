import type { JsonObject, Severity } from "../../model/event.ts";
import { addressOf, macOf, put } from "../fields.ts";
import type { ReadEvent } from "../reading.ts";

// Addresses that are given out: dnsmasq and dhcpd on gateways, and what switches say about servers that nobody knows.

const MESSAGE_CHARACTERS_MAX = 1024;
/** Who gives addresses out. */
export const LEASE_PROGRAMS: readonly string[] = ["dnsmasq-dhcp", "dnsmasq", "dhcpd", "dhcpd3", "kea-dhcp4"];

/** What the words of the protocol become. */
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

/** The event in a message of one of these; undefined where it is about something else than addresses. */
export function readLease(message: string): ReadEvent | undefined {
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

/** Why somebody who asked for an address gets none. The whole of it: the same words may stand in what a client calls itself. */
const EXHAUSTED = /^(?:no free leases|no leases left|no address(?:es)? available|peer holds all free leases)\.?$/;

/** How far into a message the words may reach. */
const STRANGER_CHARACTERS_MAX = 128;
/** Near the beginning, and behind nothing that is quoted: what a stranger has asked for may hold the same words. */
const STRANGER =
  /^[^"'=]{0,64}?(?:rogue[ -]?dhcp|dhcp[ -]?rogue|unknown dhcp server|dhcp snooping.{0,40}(?:untrusted|violation))/i;

/** The event in a message about a server that nobody knows, whoever tells of it. */
export function readStranger(message: string): ReadEvent | undefined {
  // Most lines are about something else, which is found out faster than where the words stand.
  if (!/dhcp/i.test(message.slice(0, STRANGER_CHARACTERS_MAX)) || !STRANGER.test(message)) return undefined;
  return event("rogue_dhcp", "high", readWords(message.slice(0, MESSAGE_CHARACTERS_MAX).trimEnd()));
}

function event(type: string, severity: Severity, raw: JsonObject): ReadEvent {
  return { type, source: "network", severity, timestampMs: null, raw };
}

/** The first address, the first hardware address, the name or reason behind it and the interface, wherever they stand. */
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
      else readRest(words.slice(index + 1), raw);
    }
    if (word === "via") put(raw, "in_interface", words[index + 1]?.replace(/:$/, ""));
  }
  put(raw, "in_interface", inParentheses);
  put(raw, "message", text);
  return raw;
}

/** How dhcpd writes the name of a client. */
const IN_PARENTHESES = /^\(([A-Za-z0-9_][A-Za-z0-9_.-]{0,252})\)$/;
const HOST = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}$/;

/** dnsmasq ends with the name, which is one word, or with a sentence that says why not. */
function readRest(words: readonly string[], raw: JsonObject): void {
  const [word = ""] = words;
  if (words.length > 1 || word === "ignored") put(raw, "reason", words.join(" "));
  else if (HOST.test(word)) put(raw, "host", word);
}
