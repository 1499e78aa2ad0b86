import { FIELD_NAMES, type FieldNameKey } from "../../../model/field-names.ts";
import {
  actionOf,
  addressOf,
  integerOf,
  macOf,
  numberOf,
  portOf,
  protocolOf,
  secondsOf,
  textOf,
} from "../device-values.ts";
import { makeFieldSlot, type FieldList, type LineFieldSlot } from "../field-list.ts";
import { peerOf, sipUserOf } from "./peer-values.ts";
import type { FieldKind } from "./template.ts";

// Puts a device's value under one of our field names, in the type of that name.

/** Names that stand for two: an address is stored under the first, any other text under the second. */
const ENDS: Readonly<Record<string, readonly [FieldNameKey, FieldNameKey]>> = {
  src: ["src_ip", "src_host"],
  dst: ["dst_ip", "dst_host"],
};

/** Names for an address with an optional port: `192.0.2.1:5060`, `[2001:db8::1]:5060`, `2001:db8::1`. */
const PEERS: Readonly<Record<string, readonly [FieldNameKey, FieldNameKey, FieldNameKey]>> = {
  src_peer: ["src_ip", "src_host", "src_port"],
  dst_peer: ["dst_ip", "dst_host", "dst_port"],
};

/** Names for the user of a SIP address: `"Ann" <sip:101@pbx.example>` is `101`. */
const SIP_USERS: Readonly<Record<string, FieldNameKey>> = { sip_user: "user", sip_from: "from", sip_to: "to" };

/** Undefined if the value does not fit the field. */
type Convert = (value: string) => string | number | boolean | string[] | undefined;

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
  setting: settingOf,
};

/** In lower case with `_`; the points of a path stay. */
function settingOf(value: string): string | undefined {
  return textOf(
    value
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}.]+/gu, "_")
      .replaceAll(/^_|_$/g, ""),
  );
}

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

interface ConvertedField {
  readonly slot: LineFieldSlot;
  readonly convert: Convert;
}

/** Where a value is put, and how. */
export interface TargetField extends ConvertedField {
  /** For a name that stands for two: for a value that does not fit the first. */
  readonly other?: ConvertedField;
  /** For what may follow in the same value. */
  readonly port?: ConvertedField;
  /** True if a line with a value that does not fit is still of this kind. */
  readonly isOptional?: boolean;
}

/** A name is the same slot for all descriptions; the names that devices choose are not kept here. */
const SLOTS = new Map<string, LineFieldSlot>();

function slotOf(name: string): LineFieldSlot {
  let slot = SLOTS.get(name);
  if (slot === undefined) SLOTS.set(name, (slot = makeFieldSlot(name)));
  return slot;
}

const asItIs: Convert = (value) => (value === "" ? undefined : value);

/** `words`: our words for words of the device. */
export function targetField(name: string, words?: Readonly<Record<string, string>>): TargetField {
  const target = plainTarget(name);
  if (words === undefined) return target;
  const known = new Map(Object.entries(words));
  return { ...target, convert: (value) => target.convert(known.get(value) ?? value) };
}

const ownEntry = <Entry>(table: Readonly<Record<string, Entry>>, name: string): Entry | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

function plainTarget(name: string): TargetField {
  const ends = ownEntry(ENDS, name);
  if (ends !== undefined) {
    return { slot: slotOf(ends[0]), convert: addressOf, other: { slot: slotOf(ends[1]), convert: asItIs } };
  }
  const peer = ownEntry(PEERS, name);
  if (peer !== undefined) {
    const [ip, host, port] = peer;
    return {
      slot: slotOf(ip),
      convert: (value) => peerOf(value).ip,
      other: { slot: slotOf(host), convert: (value) => peerOf(value).host },
      port: { slot: slotOf(port), convert: (value) => peerOf(value).port },
    };
  }
  const sipUser = ownEntry(SIP_USERS, name);
  if (sipUser !== undefined) return { slot: slotOf(sipUser), convert: sipUserOf, isOptional: true };
  return { slot: slotOf(name), convert: isFieldName(name) ? converterOf(name) : asItIs };
}

/** The field of a name that the device chose. */
export const ownField = (name: string): TargetField => ({
  slot: SLOTS.get(name) ?? makeFieldSlot(name),
  convert: asItIs,
});

/** Puts a value in place of one that is there, unless it does not fit the type of its name. */
export function setValue(fields: FieldList, { slot, convert, other, port }: TargetField, value: string): void {
  const converted = convert(value);
  if (converted !== undefined) fields.set(slot, converted);
  else if (other !== undefined) setValue(fields, other, value);
  if (port !== undefined) setValue(fields, port, value);
}

/** Puts a value, unless it does not fit the type of its name. A value that is there stays. */
export function putValue(fields: FieldList, target: TargetField, value: string): void {
  const { slot, convert, other, port } = target;
  const converted = convert(value);
  if (converted !== undefined) {
    if (!fields.has(slot)) fields.add(slot, converted);
  } else if (other !== undefined) putValue(fields, other, value);
  if (port !== undefined) putValue(fields, port, value);
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
