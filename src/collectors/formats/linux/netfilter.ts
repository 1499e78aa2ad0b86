import type { JsonObject } from "../../../model/event.ts";
import { addressOf, FIELDS_MAX, integerOf, portOf, protocolOf, put } from "../device-values.ts";
import { oneEvent, type LineFormat, type LineMessage } from "../line-format.ts";
import { isPlain } from "../message-prefix.ts";
import type { ParsedEvent } from "../reading.ts";

// The packet filter of Linux gateways: `[WAN_LOCAL-D-2147483647] DESCR="..." IN=eth8 OUT= MAC=... SRC=... DST=...`.

/** Characters in front of the first field, such as the name of the rule. */
const PREFIX_CHARACTERS_MAX = 512;
const OPENING_BRACKET = 0x5b;
const FLAGS = new Set(["SYN", "ACK", "FIN", "RST", "PSH", "URG", "ECE", "CWR"]);

/** Programs that write the name of a rule in front of the fields. */
const FILTER_PROGRAMS: ReadonlySet<string> = new Set(["kernel", "ulogd"]);

export const NETFILTER = {
  name: "netfilter",
  about: "the packet filter of Linux gateways, UniFi's included",
  devices: ["UniFi gateways", "Linux packet filter (iptables, nftables)"],
  example: "[WAN_LOCAL-D-4001] IN=eth8 OUT= SRC=192.0.2.80 DST=198.51.100.4 LEN=60 PROTO=TCP SPT=40112 DPT=23 SYN",
  programs: ["kernel"],
  read: (message) => oneEvent(readFirewall(message)),
} as const satisfies LineFormat;

function readFirewall({ program, message }: LineMessage): ParsedEvent | undefined {
  const start = message.indexOf("IN=");
  if (start < 0 || start > PREFIX_CHARACTERS_MAX || !message.includes("SRC=", start)) return undefined;
  const prefix = message.slice(0, start);
  if (start > 0 && !(program === null ? isRuleName(prefix) : FILTER_PROGRAMS.has(program))) return undefined;
  const raw: JsonObject = {};
  const verdict = readPrefix(prefix, raw);
  readPairs(message, start, raw);
  put(raw, "action", verdict);
  const type =
    verdict === undefined ? "firewall_logged" : verdict === "allow" ? "firewall_allowed" : "firewall_blocked";
  const severity = type === "firewall_blocked" ? "low" : "info";
  return { type, source: "network", severity, timestampMs: null, raw };
}

/** Description of the rule. A relay may have escaped the quotes. */
const DESCRIPTION = /DESCR=\\?"(?:([^]*)")?/;

/** True for plain words, followed by a description that may contain anything. */
function isRuleName(prefix: string): boolean {
  return isPlain(prefix.slice(0, DESCRIPTION.exec(prefix)?.index));
}

/** `[ 8812.123456]`: seconds since boot, in front of every kernel message. */
const KERNEL_CLOCK = /^\[ *\d{1,12}\.\d{1,9}\] */;

/** Reads the rule name in brackets and its description; returns the verdict on the packet. */
function readPrefix(whole: string, raw: JsonObject): string | undefined {
  const prefix = whole.charCodeAt(0) === OPENING_BRACKET ? whole.replace(KERNEL_CLOCK, "") : whole;
  const described = DESCRIPTION.exec(prefix);
  const description = (described?.[1] ?? "").replace(/\\$/, "");
  const before = prefix.slice(0, described?.index);
  const close = before.lastIndexOf("]");
  const open = before.lastIndexOf("[", close);
  const name = open >= 0 && close > open ? before.slice(open + 1, close).trim() : before.trim().replace(/:$/, "");
  put(raw, "rule", description === "" ? name : description);
  if (description !== "" && name !== "") raw["rule_name"] = name;
  const chain = /^([A-Za-z0-9_]+)-/.exec(name)?.[1];
  if (chain !== undefined) raw["chain"] = chain;
  return verdictOf(name);
}

const LETTERS: Readonly<Record<string, string>> = { A: "allow", D: "block", B: "block", R: "reject" };

/** The verdict by the last letter, else by the first single letter, else by a word. */
function verdictOf(name: string): string | undefined {
  const parts = name.split("-");
  const letter = [parts.at(-1)!, ...parts].find((part) => Object.hasOwn(LETTERS, part));
  if (letter !== undefined) return LETTERS[letter];
  if (/(?<![a-z])(?:block|drop|deny|denied)/i.test(name)) return "block";
  if (/(?<![a-z])reject/i.test(name)) return "reject";
  return /(?<![a-z])(?:accept|allow|permit|pass)/i.test(name) ? "allow" : undefined;
}

function readPairs(message: string, start: number, raw: JsonObject): void {
  const flags: string[] = [];
  let leftOut = 0;
  let count = 0;
  let at = start;
  while (at < message.length) {
    const space = message.indexOf(" ", at);
    const end = space < 0 ? message.length : space;
    if (message.charCodeAt(at) === OPENING_BRACKET) {
      // An ICMP error quotes another packet, with its own ports.
      const close = message.indexOf("]", at);
      if (close < 0) break;
      at = close + 1;
      continue;
    }
    if (end > at) {
      if (count++ >= FIELDS_MAX) leftOut++;
      else readPair(message.slice(at, end), raw, flags);
    }
    at = end + 1;
  }
  if (flags.length > 0) raw["tcp_flags"] = flags.join(" ");
  if (leftOut > 0) raw["fields_left_out"] = leftOut;
}

/** Reads one field. The first occurrence counts: LEN occurs for the packet and for its payload. */
function readPair(word: string, raw: JsonObject, flags: string[]): void {
  const equals = word.indexOf("=");
  if (equals < 0) {
    if (FLAGS.has(word) && !flags.includes(word)) flags.push(word);
    return;
  }
  const value = word.slice(equals + 1);
  switch (word.slice(0, equals)) {
    case "IN":
      return putFirst(raw, "in_interface", value);
    case "OUT":
      return putFirst(raw, "out_interface", value);
    case "MAC":
      return readMac(value, raw);
    case "SRC":
      return putFirst(raw, "src_ip", addressOf(value));
    case "DST":
      return putFirst(raw, "dst_ip", addressOf(value));
    case "PROTO":
      return putFirst(raw, "protocol", protocolOf(value));
    case "SPT":
      return putFirst(raw, "src_port", portOf(value));
    case "DPT":
      return putFirst(raw, "dst_port", portOf(value));
    case "LEN":
      return putFirst(raw, "bytes", integerOf(value));
    case "TTL":
      return putFirst(raw, "ttl", integerOf(value));
    case "TYPE":
      return putFirst(raw, "icmp_type", integerOf(value));
    case "CODE":
      return putFirst(raw, "icmp_code", integerOf(value));
    case "MARK":
      return putFirst(raw, "mark", value);
    default:
      return;
  }
}

function putFirst(raw: JsonObject, name: string, value: string | number | undefined): void {
  if (value !== undefined && value !== "" && raw[name] === undefined) raw[name] = value;
}

/** Reads an Ethernet header: destination, source, type. */
function readMac(value: string, raw: JsonObject): void {
  if (!/^(?:[0-9a-fA-F]{2}:){13}[0-9a-fA-F]{2}$/.test(value)) return;
  putFirst(raw, "dst_mac", value.slice(0, 17).toLowerCase());
  putFirst(raw, "src_mac", value.slice(18, 35).toLowerCase());
}
