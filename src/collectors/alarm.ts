import type { Severity } from "../model/event.ts";
import { FIELD_NAMES, type FieldNameKey } from "../model/field-names.ts";
import { actionOf, addressOf, integerOf, macOf, numberOf, portOf, secondsOf, typeOf } from "./fields.ts";
import { alarmKind, type AlarmKind } from "./alarm-kinds.ts";
import { makeSlot, type FieldList, type Slot } from "./field-list.ts";
import { threatClass, threatClassOfSignature } from "./threats.ts";
import { readAnyTime, type TimeContext } from "./times.ts";
import type { ReadEvent } from "./reading.ts";

// What a console tells in a CEF line or in a webhook: a product, a name, and parameters. The same, whichever way it comes.

type Take =
  | "text"
  | "lower"
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
}

const parameter = (name: FieldNameKey, take: Take = "text") => ({ name, take });

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
    proto: parameter("protocol", "lower"),
    app: parameter("app_protocol", "lower"),
    act: parameter("action", "action"),
    suser: parameter("user"),
    dvchost: parameter("device"),
    dvc: parameter("device_ip", "text"),
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
    UNIFIdeviceIp: parameter("device_ip"),
    UNIFIdeviceMac: parameter("device_mac", "mac"),
    UNIFIdeviceModel: parameter("model"),
    UNIFIsrcClientMac: parameter("src_mac", "mac"),
    UNIFIdstClientMac: parameter("dst_mac", "mac"),
    UNIFIclientMac: parameter("src_mac", "mac"),
    UNIFIclientIp: parameter("src_ip", "source"),
    UNIFIadmin: parameter("user"),
    UNIFIaccessMethod: parameter("service", "lower"),
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
  const own: Partial<Record<FieldNameKey, Take>> = {
    src_ip: "source",
    dst_ip: "destination",
    src_port: "port",
    dst_port: "port",
    src_mac: "mac",
    dst_mac: "mac",
    device_mac: "mac",
    action: "action",
    protocol: "lower",
  };
  const plain = { text: "text", number: "number", "yes or no": "never", list: "never", object: "never" } as const;
  return (Object.keys(FIELD_NAMES) as FieldNameKey[]).map((name) => [
    name,
    parameter(name, own[name] ?? plain[FIELD_NAMES[name].type]),
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
const fixed = (name: string): Slot => {
  let slot = FIXED.get(name);
  if (slot === undefined) FIXED.set(name, (slot = makeSlot(name)));
  return slot;
};
const field = (name: FieldNameKey): Slot => fixed(name);

const SLOTS = {
  action: field("action"),
  camera: field("camera"),
  category: field("category"),
  device: field("device"),
  door: field("door"),
  eventCode: field("event_code"),
  eventName: field("event_name"),
  host: field("host"),
  message: field("message"),
  product: fixed("product"),
  setting: field("setting"),
  signature: field("signature"),
  srcIp: field("src_ip"),
  threatCategory: fixed("UNIFIthreatCategory"),
  user: field("user"),
  version: field("version"),
};

/** Used for a name that is still free when all parameters are known, in this order: the order in the line does not count. */
const SECOND_CHOICES: readonly (readonly [Slot, Slot])[] = (
  [
    ["host", "UNIFIclientHostname"],
    ["host", "UNIFIclientAlias"],
    ["host", "UNIFIsrcClientHostname"],
    ["host", "UNIFIsrcClientAlias"],
    ["dst_host", "UNIFIdstClientHostname"],
    ["dst_host", "UNIFIdstClientAlias"],
    ["device", "UNIFIconnectedToDeviceName"],
    ["device", "UNIFIlastConnectedToDeviceName"],
    ["device", "UNIFIhost"],
    ["network", "UNIFInetworkName"],
    ["user", "duser"],
    ["user", "UNIFIuserName"],
    ["setting", "UNIFIsettingsSection"],
    ["category", "UNIFIsubCategory"],
    // A name where an address should be.
    ["src_host", "src"],
    ["dst_host", "dst"],
  ] as const
).map(([name, key]) => [field(name), fixed(key)]);

/** In this order: the first that can be a time is the time. The console's own language and zone come last. */
const TIMES = ["UNIFIutcTime", "rt", "timestamp", "end", "start", "UNIFIflowStartTime"].map(fixed);

/** Words that are remembered; with more of them, which only somebody who makes them up has, it begins anew. */
const PARAMETERS_MAX = 2000;
const parameters = new Map<string, Parameter>();
const slots = new Map<string, Slot>();

export function parameterOf(key: string): Parameter {
  let known = parameters.get(key);
  if (known === undefined) {
    if (parameters.size >= PARAMETERS_MAX) {
      parameters.clear();
      slots.clear();
    }
    const meaning = MEANINGS.get(key);
    const ownName = meaning?.name === key ? `${key}_told` : key;
    known = {
      key,
      slot: slotOf(meaning?.name ?? key),
      ownSlot: slotOf(ownName),
      take: meaning?.take ?? (NUMBERS.has(key) ? "own number" : "own"),
    };
    parameters.set(key, known);
  }
  return known;
}

function slotOf(name: string): Slot {
  let slot = FIXED.get(name) ?? slots.get(name);
  if (slot === undefined) slots.set(name, (slot = makeSlot(name)));
  return slot;
}

/** Takes one parameter. Of two that say the same thing, the first that does so in a way that can be used. */
export function addParameter(fields: FieldList, { slot, ownSlot, take }: Parameter, value: string): void {
  if (value === "" || value === "null") return;
  const taken = fields.has(slot) ? undefined : takeAs(take, value);
  if (taken !== undefined) fields.add(slot, taken);
  else if (!fields.has(ownSlot)) fields.add(ownSlot, value);
}

function takeAs(take: Take, value: string): string | number | undefined {
  switch (take) {
    case "own":
    case "text":
      return value;
    case "own number":
    case "number":
      return numberOf(value);
    case "lower":
      return value.toLowerCase();
    case "source":
    case "destination":
      return addressOf(value);
    case "port":
      return portOf(value);
    case "integer":
      return integerOf(value);
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

export interface Alarm {
  readonly vendor: string | undefined;
  readonly product: string;
  readonly version: string | undefined;
  readonly code: string | undefined;
  readonly name: string;
  readonly severity: Severity | undefined;
  /** What it was found to be last time, where the same alarm is read again and again. */
  meaning?: { readonly category: string; readonly kind: AlarmKind; readonly type: string };
}

/** The event that an alarm is, with what addParameter has put into `fields`. */
export function readAlarm(alarm: Alarm, fields: FieldList, context: TimeContext): ReadEvent {
  const { vendor, version, code, name, severity } = alarm;
  for (const [slot, other] of SECOND_CHOICES) {
    if (!fields.has(slot) && fields.has(other)) fields.add(slot, fields.get(other)!);
  }
  const { kind, type } = meaningOf(alarm, fields.text(SLOTS.category));
  fields.set(SLOTS.eventName, name);
  if (code !== undefined && code !== "") fields.set(SLOTS.eventCode, code);
  if (vendor !== undefined) fields.set(SLOTS.product, alarm.product);
  if (version !== undefined && version !== "") fields.set(SLOTS.version, version);
  if (type === "ids_alert") completeThreat(fields, name);
  else if (type === "config_changed" || type === "admin_login" || type === "login_failure") completeAdmin(fields);
  else if (type.startsWith("vpn_") && !fields.has(SLOTS.user)) copy(fields, SLOTS.user, SLOTS.host);
  if (kind.source === "protect") completeCamera(fields);
  else if (kind.source === "access" && !fields.has(SLOTS.door)) copy(fields, SLOTS.door, SLOTS.device);
  const timestampMs = timeOf(fields, context);
  const raw = fields.toObject();
  if (kind.known !== undefined) raw["known"] = kind.known;
  if (type === "firmware_updated" && raw["user"] === undefined) raw["automatic"] = true;
  const told = severity ?? kind.severity ?? "info";
  return { type, source: kind.source, severity: told, class: kind.class, timestampMs, raw };
}

function meaningOf(alarm: Alarm, category: string): NonNullable<Alarm["meaning"]> {
  if (alarm.meaning?.category !== category) {
    const kind = alarmKind(alarm.product, alarm.name, category);
    alarm.meaning = { category, kind, type: kind.type ?? typeOf(alarm.name, "unnamed") };
  }
  return alarm.meaning!;
}

function copy(fields: FieldList, to: Slot, from: Slot): void {
  const value = fields.get(from);
  if (value !== undefined) fields.set(to, value);
}

function timeOf(fields: FieldList, context: TimeContext): number | null {
  for (const slot of TIMES) {
    if (!fields.has(slot)) continue;
    const ms = readAnyTime(fields.get(slot), context);
    if (ms !== null) return ms;
  }
  return null;
}

function completeThreat(fields: FieldList, name: string): void {
  const told = fields.text(SLOTS.threatCategory);
  const category = told === "" ? threatClassOfSignature(fields.text(SLOTS.signature)) : threatClass(told);
  if (category !== undefined) fields.set(SLOTS.category, category);
  if (fields.has(SLOTS.action)) return;
  fields.add(SLOTS.action, /blocked|prevented|dropped/i.test(name) ? "block" : "allow");
}

const SOURCE_ADDRESS = "Source IP: ";
const ADMIN_VERBS = [" changed ", " made ", " accessed ", " logged "];

/** What only the sentence for people has: who, what, and from where. */
function completeAdmin(fields: FieldList): void {
  const message = fields.text(SLOTS.message);
  const address = message.lastIndexOf(SOURCE_ADDRESS);
  if (address >= 0 && !fields.has(SLOTS.srcIp)) {
    const source = addressOf(message.slice(address + SOURCE_ADDRESS.length).replace(/\.$/, ""));
    if (source !== undefined) fields.add(SLOTS.srcIp, source);
  }
  const verb = ADMIN_VERBS.find((one) => message.indexOf(one) > 0);
  if (verb !== undefined) {
    const at = message.indexOf(verb);
    if (!fields.has(SLOTS.user)) fields.add(SLOTS.user, message.slice(0, at));
    const end = message.indexOf(" setting", at);
    const isTold = verb === " changed " && end > at + verb.length;
    if (isTold && !fields.has(SLOTS.setting)) fields.add(SLOTS.setting, message.slice(at + verb.length, end));
  }
  if (fields.has(SLOTS.setting)) fields.set(SLOTS.setting, typeOf(fields.text(SLOTS.setting), "unnamed"));
}

const CAMERA_VERBS = [" has ", " detected ", " was ", " is ", " went ", " lost ", " recorded "];

/** The camera's name stands at the beginning of the sentence, where nothing else has it. */
function completeCamera(fields: FieldList): void {
  if (fields.has(SLOTS.camera)) return;
  if (fields.has(SLOTS.device)) return copy(fields, SLOTS.camera, SLOTS.device);
  const message = fields.text(SLOTS.message);
  const ends = CAMERA_VERBS.map((verb) => message.indexOf(verb)).filter((at) => at > 0);
  if (ends.length > 0) fields.add(SLOTS.camera, message.slice(0, Math.min(...ends)));
}
