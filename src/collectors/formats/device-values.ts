import { isIPv4 } from "node:net";
import { canonicalNumber } from "../../lib/exact-json.ts";
import { canonicalAddress } from "../../lib/ip.ts";
import type { JsonObject, JsonValue } from "../../model/event.ts";
import type { FieldNameKey } from "../../model/field-names.ts";
import { protocolName } from "../../model/protocol.ts";

// Converts values of devices to the types of FIELD_NAMES. A value that does not fit its type converts to undefined.

/** Fields read from one line; `raw.line` has the rest. */
export const FIELDS_MAX = 256;
const PORT_MAX = 65_535;
const PROTOCOL_MAX = 255;
const LETTER_I = 0x69;

/** Sets a well-known field, unless the value is empty. Replaces a device's own value under that name. */
export function put(raw: JsonObject, name: FieldNameKey, value: JsonValue | undefined): void {
  if (value !== undefined && value !== null && value !== "") raw[name] = value;
}

/** Sets a field whose name came from outside. `__proto__` becomes an ordinary field. */
export function putForeign(raw: JsonObject, name: string, value: JsonValue): void {
  if (name === "__proto__") Object.defineProperty(raw, name, { value, enumerable: true, configurable: true });
  else raw[name] = value;
}

/** Canonical form of an IP address. */
export function addressOf(value: unknown): string | undefined {
  if (typeof value !== "string" || value.length > 64) return undefined;
  return isIPv4(value) ? value : canonicalAddress(value);
}

export function portOf(value: unknown): number | undefined {
  const port = integerOf(value);
  return port !== undefined && port <= PORT_MAX ? port : undefined;
}

/** A hardware address in any notation, as `02:00:00:aa:bb:cc`. */
export function macOf(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  if (value.length === 17 && /^[0-9a-f]{2}:[0-9a-f]{2}:[0-9a-f]{2}:[0-9a-f]{2}:[0-9a-f]{2}:[0-9a-f]{2}$/.test(value)) {
    return value;
  }
  if (value.length === 12 && /^[0-9a-fA-F]{12}$/.test(value)) return value.toLowerCase().match(/../g)!.join(":");
  if (value.length === 14 && /^[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}$/.test(value)) {
    return macOf(value.replaceAll(".", ""));
  }
  if (value.length !== 17 || !/^[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}$/.test(value)) return undefined;
  return value.toLowerCase().replaceAll("-", ":");
}

const DIGITS_MAX = 15;
const GROUPED = /^\d{1,3}(?:[.,' \u00a0\u202f\u2019\u066c]\d{3})+$/;

/** A non-negative integer, also in local notation: `1,234`, `1.234`, `1 234`, `١٢٣٤`. */
export function integerOf(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isSafeInteger(value) && value >= 0 ? value : undefined;
  if (typeof value !== "string" || value.length > 32) return undefined;
  const digits = digitsOf(value);
  if (digits !== undefined) return digits;
  const plain = westernDigits(value);
  if (plain !== value && digitsOf(plain) !== undefined) return digitsOf(plain);
  if (!GROUPED.test(plain)) return undefined;
  const whole = Number(plain.replaceAll(/[^\d]/g, ""));
  return Number.isSafeInteger(whole) ? whole : undefined;
}

/** Fast path for plain digits, which most numbers are. */
function digitsOf(text: string): number | undefined {
  if (text.length === 0 || text.length > DIGITS_MAX) return undefined;
  let number = 0;
  for (let at = 0; at < text.length; at++) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    number = number * 10 + digit;
  }
  return number;
}

const LARGE = /^-?[1-9]\d{15,63}$/;

/** An exact integer with more digits than integerOf accepts. */
export function largeOf(text: string): number | bigint | undefined {
  return LARGE.test(text) ? canonicalNumber(BigInt(text)) : undefined;
}

/** A number with an optional fraction: `62.5`, `62,5`, `1,234.5`, `1.234,5`. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? value : undefined;
  if (typeof value !== "string" || value.length > 32) return undefined;
  const digits = digitsOf(value);
  if (digits !== undefined) return digits;
  const plain = westernDigits(value);
  if (/^-?\d{1,15}(?:\.\d{1,9})?$/.test(plain)) return Number(plain);
  if (/^-?\d{1,15},\d{1,9}$/.test(plain) && !/,\d{3}$/.test(plain)) return Number(plain.replace(",", "."));
  const match = /^(-?)(\d{1,3}(?:[.,' \u00a0\u202f\u2019\u066c]\d{3})+)(?:[.,\u066b](\d{1,9}))?$/.exec(plain);
  if (!match) return undefined;
  return Number(`${match[1]}${match[2]!.replaceAll(/[^\d]/g, "")}.${match[3] ?? "0"}`);
}

/** Replaces Arabic and Persian digits, which some consoles write in their user's language. */
function westernDigits(text: string): string {
  if (!/[\u0660-\u0669\u06f0-\u06f9]/.test(text)) return text;
  return text.replaceAll(/[\u0660-\u0669\u06f0-\u06f9]/g, (letter) => String(letter.charCodeAt(0) & 0xf));
}

const DURATION_PARTS = /(\d{1,9}(?:\.\d{1,3})?) ?(ms|s|sec|m|min|h|d)(?![a-z])/g;
const DURATION = /^(?:\d{1,9}(?:\.\d{1,3})? ?(?:ms|s|sec|m|min|h|d)(?![a-z]) ?){1,5}$/;
const UNIT_SECONDS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, sec: 1, m: 60, min: 60, h: 3600, d: 86_400 };

/** A duration in seconds: `42s`, `18m 4s`, or a plain number. */
export function secondsOf(value: unknown): number | undefined {
  const number = numberOf(value);
  if (number !== undefined) return number;
  if (typeof value !== "string" || value.length > 40 || !DURATION.test(value)) return undefined;
  let seconds = 0;
  for (const [, count, unit] of value.matchAll(DURATION_PARTS)) seconds += Number(count) * UNIT_SECONDS[unit!]!;
  return Math.round(seconds * 1000) / 1000;
}

/** A text that is not empty and not `null`, which some devices write for a missing value. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  return typeof value === "string" && value !== "" && value !== "null" ? value : undefined;
}

export function objectOf(value: unknown): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

export function listOf(value: unknown): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}

const ACTION_CHARACTERS_MAX = 64;

/** Verbs of devices for their action on traffic. */
const ACTION_VERBS = {
  allow: ["accept", "alert", "allow", "detect", "forward", "log", "monitor", "notify", "pass", "permit", "trust"],
  block: ["block", "deny", "discard", "drop", "filter", "prevent", "quarantine", "shun", "sinkhole"],
  reject: ["refuse", "reject", "reset"],
} as const;

const ACTIONS: ReadonlyMap<string, string> = new Map(
  Object.entries(ACTION_VERBS).flatMap(([action, verbs]) =>
    verbs.flatMap((verb) => formsOf(verb).map((form) => [form, action] as const)),
  ),
);

function formsOf(verb: string): string[] {
  const stem = verb.endsWith("e") ? verb.slice(0, -1) : verb;
  const doubled = `${verb}${verb.at(-1)}ed`;
  return [verb, `${stem}ed`, `${verb.replace(/y$/, "i")}ed`, doubled];
}

/** Separates the verb from other words: `reset-both`, `Drop Packet`. */
const WORD_BREAK = /[^a-z]+/;

/** The action: `allow`, `block` or `reject`; undefined for an unknown word. */
export function actionOf(value: unknown): string | undefined {
  const text = textOf(value);
  if (text === undefined || text.length > ACTION_CHARACTERS_MAX) return undefined;
  const known = ACTIONS.get(text);
  if (known !== undefined) return known;
  const words = text.toLowerCase().split(WORD_BREAK);
  // `not allowed` means the opposite of its verb.
  if (words.includes("not")) return undefined;
  const actions = words.map((word) => ACTIONS.get(word)).filter((action) => action !== undefined);
  // `log and drop` is a drop.
  return actions.find((action) => action !== "allow") ?? actions[0];
}

/** Synonyms of protocol names. */
const PROTOCOLS: ReadonlyMap<string, string> = new Map([
  ["ipv6-icmp", "icmpv6"],
  ["icmp6", "icmpv6"],
]);

/** Protocol name in lower case, also from a protocol number. */
export function protocolOf(text: string): string {
  const first = text.charCodeAt(0);
  const number = first >= 0x30 && first <= 0x39 && text.length <= 3 ? digitsOf(text) : undefined;
  const name = (number !== undefined && number <= PROTOCOL_MAX ? protocolName(number) : text).toLowerCase();
  return name.charCodeAt(0) === LETTER_I ? (PROTOCOLS.get(name) ?? name) : name;
}

const ACCESS_METHODS: Readonly<Record<string, string>> = {
  NFC: "badge",
  CARD: "badge",
  PIN_CODE: "code",
  PIN: "code",
  MOBILE: "phone",
  BLE: "phone",
  MOBILE_TAP: "phone",
  FACE: "face",
  LICENSEPLATE: "plate",
  REMOTE: "remote",
  QR_CODE: "code",
  TOUCH_PASS: "phone",
};

/** Credential used at a door; an unknown word is kept in lower case. */
export function accessMethodOf(value: unknown): string | undefined {
  const text = textOf(value);
  if (text === undefined) return undefined;
  const word = text.toUpperCase();
  return Object.hasOwn(ACCESS_METHODS, word) ? ACCESS_METHODS[word] : text.toLowerCase();
}

/** Copies a text for a cache: a substring would keep the whole line in memory. */
export function ownText(text: string): string {
  return Buffer.from(text).toString();
}

const TYPE_CHARACTERS_MAX = 100;
/** Words with inner capitals that do not start a new word. */
const MIXED_WORDS = /(?<![A-Za-z])(?:Wi-?Fi|UniFi|UPnP|PoE|VoIP)(?![a-z])/g;

/** Turns a device's name for something into an event type: `AP Channel Change` becomes `ap_channel_change`. */
export function typeOf(name: string, fallback: string): string {
  const type = name
    .slice(0, TYPE_CHARACTERS_MAX)
    .toWellFormed()
    .replaceAll(MIXED_WORDS, (word) => word.replace("-", "").toLowerCase())
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, "_")
    .replaceAll(/^_|_$/g, "");
  return type === "" ? fallback : type;
}
