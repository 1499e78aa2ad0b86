import { unreachable } from "../../../lib/unreachable.ts";
import type { JsonValue } from "../../../model/event.ts";
import { FIELD_NAMES, type FieldNameKey, type FieldType } from "../../../model/field-names.ts";
import { makeFieldSlot, type FieldList, type LineFieldSlot } from "../field-list.ts";
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
} from "../device-values.ts";

// Parameters of alarms, in CEF lines and in webhooks, and the fields that they become.

type ValueType =
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

/** A parameter and the field that it becomes. */
export interface AlarmParameter {
  readonly key: string;
  readonly slot: LineFieldSlot;
  readonly valueType: ValueType;
  /** Keeps the original value if it has the wrong type, or if the field is already set. */
  readonly ownSlot: LineFieldSlot;
  /** Number of the list that last contained this parameter. */
  lastListNumber: number;
}

const parameter = (name: FieldNameKey, valueType: ValueType = "text") => ({ name, valueType });

/** Well-known fields with stricter values than their type: addresses, ports, actions and protocols. */
const STRICT: ReadonlyMap<string, ValueType> = new Map(
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
  } satisfies Partial<Record<FieldNameKey, ValueType>>),
);

/** Fields of the parameters. A parameter that is not listed keeps its own name. */
const MEANINGS: ReadonlyMap<string, { readonly name: FieldNameKey; readonly valueType: ValueType }> = new Map([
  ...wellKnownNames(),
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

/** A device's parameter with a well-known name is that field, if the value has its type. */
function wellKnownNames(): [string, { name: FieldNameKey; valueType: ValueType }][] {
  const plain = { text: "text", number: "number", "yes or no": "never", list: "never", object: "never" } as const;
  return (Object.keys(FIELD_NAMES) as FieldNameKey[]).map((name) => [
    name,
    parameter(name, STRICT.get(name) ?? plain[FIELD_NAMES[name].type]),
  ]);
}

/** Parameters that keep their own name and become numbers. */
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

/** Slots of fields that the code accesses by name; never evicted. */
const FIXED = new Map<string, LineFieldSlot>();

export function fixedSlot(name: string): LineFieldSlot {
  let slot = FIXED.get(name);
  if (slot === undefined) FIXED.set(name, (slot = makeFieldSlot(name)));
  return slot;
}

/** Cached parameters. The cache is cleared when full, which only made-up keys can cause. */
const PARAMETERS_MAX = 2000;
/** Longer keys are read, but not cached. */
const KEY_CHARACTERS_MAX = 64;
const parameters = new Map<string, AlarmParameter>();
const slots = new Map<string, LineFieldSlot>();

export function parameterOf(key: string): AlarmParameter {
  const cached = parameters.get(key);
  if (cached !== undefined) return cached;
  if (key.length > KEY_CHARACTERS_MAX) return makeParameter(key, makeFieldSlot);
  if (parameters.size >= PARAMETERS_MAX) {
    parameters.clear();
    slots.clear();
  }
  const made = makeParameter(ownText(key), slotOf);
  parameters.set(made.key, made);
  return made;
}

function makeParameter(key: string, slotFor: (name: string) => LineFieldSlot): AlarmParameter {
  const meaning = MEANINGS.get(key);
  const slot = slotFor(meaning?.name ?? key);
  const ownSlot = meaning === undefined ? slot : slotFor(meaning.name === key ? `${key}_told` : key);
  return {
    key,
    slot,
    ownSlot,
    valueType: meaning?.valueType ?? (NUMBERS.has(key) ? "own number" : "own"),
    lastListNumber: 0,
  };
}

function slotOf(name: string): LineFieldSlot {
  let slot = FIXED.get(name) ?? slots.get(name);
  if (slot === undefined) slots.set(name, (slot = makeFieldSlot(name)));
  return slot;
}

/**
 * Adds a parameter to the fields. Only its first value counts, since later ones may be part of a user-chosen name. Of two
 * parameters for one field, the first with a valid value counts.
 */
export function addParameter(fields: FieldList, parameter: AlarmParameter, value: string): void {
  if (value === "" || value === "null" || parameter.lastListNumber === fields.number) return;
  parameter.lastListNumber = fields.number;
  const { slot, ownSlot, valueType } = parameter;
  const converted = fields.has(slot) ? undefined : convert(valueType, value);
  if (converted !== undefined) fields.add(slot, converted);
  else if (!fields.has(ownSlot)) fields.add(ownSlot, value);
}

/** The value of a well-known field in its canonical form, such as an address or a port; undefined if it is invalid. */
export function wellKnownValue(name: FieldNameKey, value: JsonValue): JsonValue | undefined {
  const valueType = STRICT.get(name);
  if (valueType === undefined) return isOfType(value, FIELD_NAMES[name].type) ? value : undefined;
  return typeof value === "object" || typeof value === "boolean" ? undefined : convert(valueType, String(value));
}

function isOfType(value: JsonValue, type: FieldType): boolean {
  if (type === "list") return Array.isArray(value);
  if (type === "object") return objectOf(value) !== undefined;
  if (type === "number") return typeof value === "number" || typeof value === "bigint";
  return typeof value === (type === "text" ? "string" : "boolean");
}

function convert(valueType: ValueType, value: string): string | number | bigint | undefined {
  switch (valueType) {
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
    default:
      return unreachable(valueType);
  }
}
