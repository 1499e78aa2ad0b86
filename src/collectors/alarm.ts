import type { JsonObject, Severity } from "../model/event.ts";
import { FIELD_NAMES, type FieldNameKey } from "../model/field-names.ts";
import {
  actionOf,
  addressOf,
  integerOf,
  macOf,
  numberOf,
  portOf,
  put,
  putForeign,
  secondsOf,
  textOf,
  typeOf,
} from "./fields.ts";
import { alarmKind } from "./alarm-kinds.ts";
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
  | "never";

interface Parameter {
  readonly name: FieldNameKey;
  readonly take: Take;
}

const parameter = (name: FieldNameKey, take: Take = "text"): Parameter => ({ name, take });

/** What is meant by each parameter. One that is not here is kept under its own name. */
const PARAMETERS: ReadonlyMap<string, Parameter> = new Map([
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
function ownNames(): [string, Parameter][] {
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

/** Used for a name that is still free when all parameters are known, in this order: the order in the line does not count. */
const SECOND_CHOICES: readonly (readonly [FieldNameKey, string])[] = [
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
];

/** In this order: the first that can be a time is the time. The console's own language and zone come last. */
const TIMES = ["UNIFIutcTime", "rt", "timestamp", "end", "start", "UNIFIflowStartTime"] as const;

/** Takes one parameter. Of two that say the same thing, the first that does so in a way that can be used. */
export function putParameter(raw: JsonObject, key: string, value: string): void {
  if (value === "" || value === "null") return;
  const known = PARAMETERS.get(key);
  if (known === undefined) {
    if (!Object.hasOwn(raw, key)) putForeign(raw, key, NUMBERS.has(key) ? (numberOf(value) ?? value) : value);
    return;
  }
  const taken = takeAs(raw, known, value);
  if (taken !== undefined && raw[known.name] === undefined) raw[known.name] = taken;
  else putForeign(raw, key === known.name ? `${key}_told` : key, value);
}

function takeAs(raw: JsonObject, { take }: Parameter, value: string): string | number | undefined {
  switch (take) {
    case "text":
      return value;
    case "lower":
      return value.toLowerCase();
    case "source":
      return addressOf(value) ?? asHost(raw, "src_host", value);
    case "destination":
      return addressOf(value) ?? asHost(raw, "dst_host", value);
    case "port":
      return portOf(value);
    case "integer":
      return integerOf(value);
    case "number":
      return numberOf(value);
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

/** A name where an address should be: kept as the name that it is. */
function asHost(raw: JsonObject, name: "src_host" | "dst_host", value: string): undefined {
  put(raw, name, value);
  return undefined;
}

export interface Alarm {
  readonly vendor?: string | undefined;
  readonly product: string;
  readonly version?: string | undefined;
  readonly code?: string | undefined;
  readonly name: string;
  readonly severity: Severity | undefined;
  /** What putParameter has put into it. */
  readonly raw: JsonObject;
}

/** The event that an alarm is. */
export function readAlarm(
  { vendor, product, version, code, name, severity, raw }: Alarm,
  context: TimeContext,
): ReadEvent {
  for (const [field, key] of SECOND_CHOICES) {
    if (raw[field] === undefined && typeof raw[key] === "string") raw[field] = raw[key];
  }
  const message = typeof raw["message"] === "string" ? raw["message"] : "";
  const kind = alarmKind(product, name, String(raw["category"] ?? ""));
  const type = kind.type ?? typeOf(name, "unnamed");
  if (vendor !== undefined) put(raw, "event_name", name);
  put(raw, "event_code", code);
  if (vendor !== undefined) raw["product"] = vendor === "" ? product : `${vendor} ${product}`;
  if (version !== undefined) put(raw, "version", version);
  if (kind.known !== undefined) raw["known"] = kind.known;
  if (type === "ids_alert") completeThreat(raw, name);
  else if (type === "config_changed" || type === "admin_login" || type === "login_failure") completeAdmin(raw, message);
  else if (type === "firmware_updated" && raw["user"] === undefined) raw["automatic"] = true;
  if (type === "vpn_connected" || type === "vpn_disconnected") put(raw, "user", textOf(raw["user"] ?? raw["host"]));
  if (kind.source === "protect") completeCamera(raw, message);
  if (kind.source === "access" && raw["door"] === undefined) put(raw, "door", textOf(raw["device"]));
  return {
    type,
    source: kind.source,
    severity: severity ?? kind.severity ?? "info",
    class: kind.class,
    timestampMs: timeOf(raw, context),
    raw,
  };
}

function timeOf(raw: JsonObject, context: TimeContext): number | null {
  for (const key of TIMES) {
    const value = raw[key];
    if (value === undefined) continue;
    const ms = readAnyTime(value, context);
    if (ms !== null) return ms;
  }
  return null;
}

function completeThreat(raw: JsonObject, name: string): void {
  const signature = textOf(raw["signature"]);
  const told = textOf(raw["UNIFIthreatCategory"]);
  const category = told === undefined ? signature && threatClassOfSignature(signature) : threatClass(told);
  put(raw, "category", category);
  if (raw["action"] === undefined) raw["action"] = /blocked|prevented|dropped/i.test(name) ? "block" : "allow";
}

const SOURCE_ADDRESS = "Source IP: ";

/** What only the sentence for people has: who, what, and from where. */
function completeAdmin(raw: JsonObject, message: string): void {
  const address = message.lastIndexOf(SOURCE_ADDRESS);
  if (address >= 0 && raw["src_ip"] === undefined) {
    put(
      raw,
      "src_ip",
      addressOf(
        message
          .slice(address + SOURCE_ADDRESS.length)
          .replace(/\.$/, "")
          .trim(),
      ),
    );
  }
  for (const verb of [" changed ", " made ", " accessed ", " logged "]) {
    const at = message.indexOf(verb);
    if (at <= 0) continue;
    if (raw["user"] === undefined) put(raw, "user", message.slice(0, at));
    const end = message.indexOf(" setting", at);
    if (verb === " changed " && raw["setting"] === undefined && end > at + verb.length) {
      raw["setting"] = message.slice(at + verb.length, end);
    }
    break;
  }
  if (typeof raw["setting"] === "string") raw["setting"] = typeOf(raw["setting"], "");
}

const CAMERA_VERBS = [" has ", " detected ", " was ", " is ", " went ", " lost ", " recorded "];

/** The camera's name stands at the beginning of the sentence, where nothing else has it. */
function completeCamera(raw: JsonObject, message: string): void {
  const told = textOf(raw["camera"] ?? raw["device"]);
  if (told !== undefined) return put(raw, "camera", told);
  const ends = CAMERA_VERBS.map((verb) => message.indexOf(verb)).filter((at) => at > 0);
  if (ends.length > 0) put(raw, "camera", message.slice(0, Math.min(...ends)));
}
