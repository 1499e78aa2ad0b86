import type { JsonValue } from "../model/event.ts";
import { FIELD_NAMES, type FieldNameKey, type FieldType } from "../model/field-names.ts";
import { makeSlot, type FieldList, type Slot } from "./field-list.ts";
import {
  actionOf,
  addressOf,
  integerOf,
  largeOf,
  macOf,
  numberOf,
  objectOf,
  ownText,
  portOf,
  protocolOf,
  secondsOf,
} from "./fields.ts";

// The words that consoles have for what they tell, in CEF lines and in webhooks, and what each of them means.

type Take =
  | "text"
  | "lower"
  | "protocol"
  | "address"
  | "source"
  | "destination"
  | "port"
  | "integer"
  | "number"
  | "mac"
  | "action"
  | "seconds"
  | "own"
  | "own number"
  | "never";

/** One of the words that a console has for what it tells. */
export interface Parameter {
  readonly key: string;
  readonly slot: Slot;
  readonly take: Take;
  /** Where the value is kept as it is, when it cannot be taken as what it should be, or when that is there already. */
  readonly ownSlot: Slot;
  /** The list that has a value of it already. */
  seenIn: number;
}

const parameter = (name: FieldNameKey, take: Take = "text") => ({ name, take });

/** Names of ours that say more about their value than its type: which texts and numbers can be it, and how it is spelt. */
const STRICT: ReadonlyMap<string, Take> = new Map(
  Object.entries({
    src_ip: "source",
    dst_ip: "destination",
    device_ip: "address",
    src_port: "port",
    dst_port: "port",
    src_mac: "mac",
    dst_mac: "mac",
    device_mac: "mac",
    action: "action",
    protocol: "protocol",
  } satisfies Partial<Record<FieldNameKey, Take>>),
);

/** What is meant by each parameter. One that is not here is kept under its own name. */
const MEANINGS: ReadonlyMap<string, { readonly name: FieldNameKey; readonly take: Take }> = new Map([
  ...ownNames(),
  ...Object.entries({
    src: parameter("src_ip", "source"),
    dst: parameter("dst_ip", "destination"),
    spt: parameter("src_port", "port"),
    dpt: parameter("dst_port", "port"),
    smac: parameter("src_mac", "mac"),
    dmac: parameter("dst_mac", "mac"),
    shost: parameter("src_host"),
    dhost: parameter("dst_host"),
    proto: parameter("protocol", "protocol"),
    app: parameter("app_protocol", "lower"),
    act: parameter("action", "action"),
    suser: parameter("user"),
    dvchost: parameter("device"),
    dvc: parameter("device_ip", "address"),
    request: parameter("url"),
    requestClientApplication: parameter("user_agent"),
    fname: parameter("file"),
    reason: parameter("reason"),
    cat: parameter("category"),
    msg: parameter("message"),
    deviceInboundInterface: parameter("in_interface"),
    deviceOutboundInterface: parameter("out_interface"),
    eventId: parameter("event_id"),
    UNIFIcategory: parameter("category"),
    UNIFIdeviceName: parameter("device"),
    UNIFIdeviceIp: parameter("device_ip", "address"),
    UNIFIdeviceMac: parameter("device_mac", "mac"),
    UNIFIdeviceModel: parameter("model"),
    UNIFIsrcClientMac: parameter("src_mac", "mac"),
    UNIFIdstClientMac: parameter("dst_mac", "mac"),
    UNIFIclientMac: parameter("src_mac", "mac"),
    UNIFIclientIp: parameter("src_ip", "source"),
    UNIFIadmin: parameter("user"),
    UNIFIipsSignature: parameter("signature"),
    UNIFIipsSignatureId: parameter("signature_id", "integer"),
    UNIFIpolicyName: parameter("rule"),
    UNIFIrisk: parameter("risk", "lower"),
    UNIFIdirection: parameter("direction", "lower"),
    UNIFIwifiName: parameter("network"),
    UNIFIwanId: parameter("link"),
    UNIFIsiteName: parameter("site"),
    UNIFIduration: parameter("duration_s", "seconds"),
    UNIFIreportedDuration: parameter("duration_s", "seconds"),
    UNIFItotalBytes: parameter("bytes", "integer"),
    UNIFItotalPackets: parameter("packets", "integer"),
    UNIFIdoorName: parameter("door"),
    UNIFIcameraName: parameter("camera"),
  }),
]);

/** A device that uses one of our names means what we mean, if it is of that type. */
function ownNames(): [string, { name: FieldNameKey; take: Take }][] {
  const plain = { text: "text", number: "number", "yes or no": "never", list: "never", object: "never" } as const;
  return (Object.keys(FIELD_NAMES) as FieldNameKey[]).map((name) => [
    name,
    parameter(name, STRICT.get(name) ?? plain[FIELD_NAMES[name].type]),
  ]);
}

/** Parameters that are kept under their own names as numbers. */
const NUMBERS: ReadonlySet<string> = new Set([
  "UNIFIpacketsReceived",
  "UNIFIpacketsSent",
  "UNIFIbytesReceived",
  "UNIFIbytesSent",
  "UNIFIflowCount",
  "UNIFIwanLatency",
  "UNIFIWiFiRssi",
  "UNIFIwifiRssi",
  "UNIFIwifiChannel",
  "UNIFIcurrentChannel",
  "UNIFIpriorChannel",
  "UNIFInetworkVlan",
  "in",
  "out",
  "cnt",
]);

/** What is asked for by name has a slot for good. */
const FIXED = new Map<string, Slot>();

export function fixedSlot(name: string): Slot {
  let slot = FIXED.get(name);
  if (slot === undefined) FIXED.set(name, (slot = makeSlot(name)));
  return slot;
}

/** Words that are remembered; with more of them, which only somebody who makes them up has, it begins anew. */
const PARAMETERS_MAX = 2000;
/** A longer word is read, but not remembered. */
const KEY_CHARACTERS_MAX = 64;
const parameters = new Map<string, Parameter>();
const slots = new Map<string, Slot>();

export function parameterOf(key: string): Parameter {
  const known = parameters.get(key);
  if (known !== undefined) return known;
  if (key.length > KEY_CHARACTERS_MAX) return makeParameter(key, makeSlot);
  if (parameters.size >= PARAMETERS_MAX) {
    parameters.clear();
    slots.clear();
  }
  const made = makeParameter(ownText(key), slotOf);
  parameters.set(made.key, made);
  return made;
}

function makeParameter(key: string, slotFor: (name: string) => Slot): Parameter {
  const meaning = MEANINGS.get(key);
  const slot = slotFor(meaning?.name ?? key);
  const ownSlot = meaning === undefined ? slot : slotFor(meaning.name === key ? `${key}_told` : key);
  return { key, slot, ownSlot, take: meaning?.take ?? (NUMBERS.has(key) ? "own number" : "own"), seenIn: 0 };
}

function slotOf(name: string): Slot {
  let slot = FIXED.get(name) ?? slots.get(name);
  if (slot === undefined) slots.set(name, (slot = makeSlot(name)));
  return slot;
}

/**
 * Takes one parameter, the first time that it has a value: what stands behind may be out of somebody's name. Of two that
 * say the same thing, the first that does so in a way that can be used.
 */
export function addParameter(fields: FieldList, parameter: Parameter, value: string): void {
  if (value === "" || value === "null" || parameter.seenIn === fields.number) return;
  parameter.seenIn = fields.number;
  const { slot, ownSlot, take } = parameter;
  const taken = fields.has(slot) ? undefined : takeAs(take, value);
  if (taken !== undefined) fields.add(slot, taken);
  else if (!fields.has(ownSlot)) fields.add(ownSlot, value);
}

/**
 * What a value is kept as under one of our names, however it came: an address in its one spelling, a port as a number.
 * Undefined where it cannot be that.
 */
export function ownValue(name: FieldNameKey, value: JsonValue): JsonValue | undefined {
  const take = STRICT.get(name);
  if (take === undefined) return isOfType(value, FIELD_NAMES[name].type) ? value : undefined;
  return typeof value === "object" || typeof value === "boolean" ? undefined : takeAs(take, String(value));
}

function isOfType(value: JsonValue, type: FieldType): boolean {
  if (type === "list") return Array.isArray(value);
  if (type === "object") return objectOf(value) !== undefined;
  if (type === "number") return typeof value === "number" || typeof value === "bigint";
  return typeof value === (type === "text" ? "string" : "boolean");
}

function takeAs(take: Take, value: string): string | number | bigint | undefined {
  switch (take) {
    case "own":
    case "text":
      return value;
    case "own number":
    case "number":
      return numberOf(value) ?? largeOf(value);
    case "lower":
      return value.toLowerCase();
    case "protocol":
      return protocolOf(value);
    case "address":
    case "source":
    case "destination":
      return addressOf(value);
    case "port":
      return portOf(value);
    case "integer":
      return integerOf(value) ?? largeOf(value);
    case "mac":
      return macOf(value);
    case "action":
      return actionOf(value);
    case "seconds":
      return secondsOf(value);
    case "never":
      return undefined;
  }
}
