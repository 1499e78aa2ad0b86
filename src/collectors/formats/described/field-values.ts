import type { JsonObject, JsonValue } from "../../../model/event.ts";
import { FIELD_NAMES, type FieldNameKey } from "../../../model/field-names.ts";
import {
  actionOf,
  addressOf,
  integerOf,
  macOf,
  numberOf,
  portOf,
  protocolOf,
  putForeign,
  secondsOf,
  textOf,
} from "../device-values.ts";
import type { FieldKind } from "./template.ts";

// Puts a device's value under one of our field names, in the type of that name.

/** Names that stand for two: an address is stored under the first, any other text under the second. */
const ENDS: Readonly<Record<string, readonly [FieldNameKey, FieldNameKey]>> = {
  src: ["src_ip", "src_host"],
  dst: ["dst_ip", "dst_host"],
};

/** Names for an address with an optional port: `192.0.2.1:5060`, `[2001:db8::1]:5060`, `2001:db8::1`. */
const PEERS: Readonly<Record<string, readonly [FieldNameKey, FieldNameKey, FieldNameKey]>> = {
  src_peer: ["src_ip", "src_port", "src_host"],
  dst_peer: ["dst_ip", "dst_port", "dst_host"],
};

/** Names for the user of a SIP address: `"Ann" <sip:101@pbx.example>` is `101`. */
const SIP_USERS: Readonly<Record<string, FieldNameKey>> = { sip_user: "user", sip_from: "from", sip_to: "to" };

type Convert = (value: string) => JsonValue | undefined;

const CONVERTED: Partial<Record<FieldNameKey, Convert>> = {
  src_ip: addressOf,
  dst_ip: addressOf,
  device_ip: addressOf,
  local_ip: addressOf,
  src_port: portOf,
  dst_port: portOf,
  src_mac: macOf,
  dst_mac: macOf,
  device_mac: macOf,
  protocol: protocolOf,
  action: actionOf,
  duration_s: clockSecondsOf,
  lease_s: clockSecondsOf,
  score: numberOf,
};

/** A duration in any notation, also `1h:23m:45s` and `1:23:45`. */
function clockSecondsOf(value: string): number | undefined {
  const clock = /^(?:(\d{1,5})d[: ]?)?(\d{1,5})h?:(\d{1,2})m?:(\d{1,2})s?$/.exec(value);
  if (clock === null) return secondsOf(value);
  const [, days = "0", hours, minutes, seconds] = clock;
  return Number(days) * 86_400 + Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
}

const YES = new Set(["true", "yes", "1", "on"]);
const NO = new Set(["false", "no", "0", "off"]);

function yesOrNo(value: string): boolean | undefined {
  const word = value.toLowerCase();
  return YES.has(word) ? true : NO.has(word) ? false : undefined;
}

function converterOf(name: FieldNameKey): Convert {
  const converted = CONVERTED[name];
  if (converted !== undefined) return converted;
  switch (FIELD_NAMES[name].type) {
    case "number":
      return integerOf;
    case "yes or no":
      return yesOrNo;
    case "list":
      return (value) => value.split(/, */).filter((item) => item !== "");
    default:
      return textOf;
  }
}

/** Puts a value; false if it does not fit the type of the name. A value that is there stays. */
export type PutField = (raw: JsonObject, value: string) => boolean;

const ownEntry = <Entry>(table: Readonly<Record<string, Entry>>, name: string): Entry | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

export function fieldPutter(name: string): PutField {
  const ends = ownEntry(ENDS, name);
  if (ends !== undefined) {
    const [ip, host] = ends;
    return (raw, value) => {
      const address = addressOf(value);
      putFirst(raw, address === undefined ? host : ip, address ?? textOf(value));
      return true;
    };
  }
  const peer = ownEntry(PEERS, name);
  if (peer !== undefined) return (raw, value) => putPeer(raw, peer, value);
  const sipUser = ownEntry(SIP_USERS, name);
  if (sipUser !== undefined) {
    return (raw, value) => {
      putFirst(raw, sipUser, sipUserOf(value));
      return true;
    };
  }
  if (!isFieldName(name)) {
    return (raw, value) => {
      if (value !== "" && !Object.hasOwn(raw, name)) putForeign(raw, name, value);
      return true;
    };
  }
  const convert = converterOf(name);
  return (raw, value) => {
    const converted = convert(value);
    if (converted === undefined) return value === "";
    putFirst(raw, name, converted);
    return true;
  };
}

const PORT_BEHIND = /^(.{1,64}):(\d{1,5})$/;
const HOST_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}$/;

/** False if the value is neither an address nor a host name, with or without a port. */
function putPeer(
  raw: JsonObject,
  [ip, port, host]: readonly [FieldNameKey, FieldNameKey, FieldNameKey],
  value: string,
): boolean {
  let [where, behind]: [string, string | undefined] = [value, undefined];
  let address = addressOf(value.replace(/^\[([^\]]*)\]$/, "$1"));
  if (address === undefined) {
    const match = PORT_BEHIND.exec(value);
    if (match !== null) [where, behind] = [match[1]!.replace(/^\[([^\]]*)\]$/, "$1"), match[2]];
    address = addressOf(where);
  }
  if (address === undefined && !HOST_NAME.test(where)) return false;
  putFirst(raw, address === undefined ? host : ip, address ?? where);
  if (behind !== undefined) putFirst(raw, port, portOf(behind));
  return true;
}

/** The part in front of the `@` of the last SIP address; a text without an address is the user. */
function sipUserOf(value: string): string {
  const scheme = Math.max(value.lastIndexOf("sip:"), value.lastIndexOf("sips:"), value.lastIndexOf("tel:"));
  const start = scheme < 0 ? 0 : value.indexOf(":", scheme) + 1;
  const at = value.indexOf("@", start);
  const end = at >= 0 ? at : scheme < 0 ? value.length : endOfUri(value, start);
  return value.slice(start, end);
}

function endOfUri(value: string, start: number): number {
  const end = value.slice(start).search(/[>;]/);
  return end < 0 ? value.length : start + end;
}

function putFirst(raw: JsonObject, name: FieldNameKey, value: JsonValue | undefined): void {
  if (value !== undefined && value !== "" && !Object.hasOwn(raw, name)) raw[name] = value;
}

export function isFieldName(name: string): name is FieldNameKey {
  return Object.hasOwn(FIELD_NAMES, name);
}

const TARGET_NAMES: ReadonlySet<string> = new Set([FIELD_NAMES, ENDS, PEERS, SIP_USERS].flatMap(Object.keys));

/** Names that a description may give to a value: ours, and those whose values become ours. */
export const isTargetName = (name: string) => TARGET_NAMES.has(name);

/** How far a field of a template reaches if it does not say. */
export function kindOfName(name: string): FieldKind {
  if (!isFieldName(name)) return "word";
  if (CONVERTED[name] === addressOf) return "address";
  return converterOf(name) === integerOf || CONVERTED[name] === portOf ? "integer" : "word";
}
