import type { JsonObject, Severity } from "../../../model/event.ts";
import type { FieldNameKey } from "../../../model/field-names.ts";
import { alarmKind, type AlarmKind } from "./alarm-kinds.ts";
import type { FieldList, LineFieldSlot } from "../field-list.ts";
import { accessMethodOf, addressOf, macOf, ownText, textOf, typeOf } from "../device-values.ts";
import { fixedSlot } from "./alarm-parameters.ts";
import { typeOfForeignAlarm } from "../foreign-alarm.ts";
import type { ParsedEvent } from "../reading.ts";
import { threatClass, threatClassOfSignature } from "../threat-classes.ts";
import { readAnyTime, type TimeContext } from "../device-times.ts";

// Alarms of consoles: a product, a name and parameters. They are the same in CEF lines and in webhooks.

/** Longer categories are cut before they are cached. */
const CATEGORY_CHARACTERS_MAX = 200;

const field = (name: FieldNameKey): LineFieldSlot => fixedSlot(name);

const SLOTS = {
  accessMethod: fixedSlot("UNIFIaccessMethod"),
  action: field("action"),
  camera: field("camera"),
  category: field("category"),
  device: field("device"),
  dstIp: field("dst_ip"),
  door: field("door"),
  eventCode: field("event_code"),
  eventName: field("event_name"),
  host: field("host"),
  message: field("message"),
  method: field("method"),
  product: fixedSlot("product"),
  service: field("service"),
  setting: field("setting"),
  signature: field("signature"),
  srcIp: field("src_ip"),
  threatCategory: fixedSlot("UNIFIthreatCategory"),
  user: field("user"),
  version: field("version"),
};

/** Fallbacks for fields that no parameter has set, in order of preference, whatever the order in the line. */
const FALLBACKS: readonly (readonly [LineFieldSlot, LineFieldSlot])[] = (
  [
    ["host", "UNIFIclientHostname"],
    ["host", "UNIFIclientAlias"],
    ["host", "UNIFIsrcClientHostname"],
    ["host", "UNIFIsrcClientAlias"],
    ["src_host", "UNIFIsrcClientHostname"],
    ["src_host", "UNIFIsrcClientAlias"],
    ["dst_host", "UNIFIdstClientHostname"],
    ["dst_host", "UNIFIdstClientAlias"],
    ["device", "UNIFIconnectedToDeviceName"],
    ["device", "UNIFIlastConnectedToDeviceName"],
    ["device", "UNIFIhost"],
    ["network", "UNIFInetworkName"],
    ["user", "duser"],
    ["user", "UNIFIuserName"],
    ["setting", "UNIFIsettingsSection"],
    ["target", "UNIFIsettingsEntry"],
    ["category", "UNIFIsubCategory"],
    // A name in place of an address.
    ["src_host", "src"],
    ["dst_host", "dst"],
  ] as const
).map(([name, key]) => [field(name), fixedSlot(key)]);

/** Time fields; the first valid one counts. Those in the console's own language and zone come last. */
const TIMES = ["UNIFIutcTime", "rt", "timestamp", "end", "start", "UNIFIflowStartTime"].map(fixedSlot);

export interface Alarm {
  readonly vendor: string | undefined;
  readonly product: string;
  readonly version: string | undefined;
  readonly code: string | undefined;
  readonly name: string;
  readonly severity: Severity | undefined;
  /** Cached meaning, for alarms that are read repeatedly. */
  meaning?: { readonly category: string; readonly kind: AlarmKind; readonly type: string };
}

/** Builds the event of an alarm from the fields that addParameter has set. */
export function readAlarm(alarm: Alarm, fields: FieldList, context: TimeContext): ParsedEvent {
  const { vendor, version, code, name, severity } = alarm;
  for (const [slot, other] of FALLBACKS) {
    if (!fields.has(slot) && fields.has(other)) fields.add(slot, fields.get(other)!);
  }
  const { kind, type: named } = meaningOf(alarm, fields.text(SLOTS.category));
  const type = (kind.type === undefined && isForeign(vendor) ? foreignType(alarm, fields) : undefined) ?? named;
  fields.set(SLOTS.eventName, name);
  if (code !== undefined && code !== "") fields.set(SLOTS.eventCode, code);
  if (vendor !== undefined) fields.set(SLOTS.product, alarm.product);
  if (version !== undefined && version !== "") fields.set(SLOTS.version, version);
  if (type === "ids_alert") completeThreat(fields, name);
  else if (type === "firewall_blocked" && !fields.has(SLOTS.action)) fields.add(SLOTS.action, "block");
  else if (type === "config_changed" || type === "admin_login" || type === "login_failure") completeAdmin(fields);
  else if (type.startsWith("vpn_") && !fields.has(SLOTS.user)) copy(fields, SLOTS.user, SLOTS.host);
  if (kind.source === "protect") completeCamera(fields);
  else if (kind.source === "access" && !fields.has(SLOTS.door)) copy(fields, SLOTS.door, SLOTS.device);
  if (fields.has(SLOTS.accessMethod)) completeMethod(fields, kind.source === "access");
  const timestampMs = timeOf(fields, context);
  const raw = fields.toObject();
  if (kind.known !== undefined) raw["known"] = kind.known;
  if (type === "firmware_updated" && raw["user"] === undefined) raw["automatic"] = true;
  if (type === "admin_created") completeTarget(raw);
  else if (type === "rogue_access_point") completeRogueAccessPoint(raw);
  const rated = severity ?? kind.severity ?? "info";
  return { type, source: kind.source, severity: rated, class: kind.class, timestampMs, raw };
}

function isForeign(vendor: string | undefined): boolean {
  return vendor !== undefined && !vendor.startsWith("Ubiquiti");
}

function foreignType({ product, name }: Alarm, fields: FieldList): string | undefined {
  const hasBothEnds = fields.has(SLOTS.srcIp) && fields.has(SLOTS.dstIp);
  return typeOfForeignAlarm(product, name, fields.text(SLOTS.category), fields.text(SLOTS.action), hasBothEnds);
}

function meaningOf(alarm: Alarm, category: string): NonNullable<Alarm["meaning"]> {
  if (alarm.meaning?.category === category) return alarm.meaning;
  const kind = alarmKind(alarm.product, alarm.name, category);
  const short = ownText(category.slice(0, CATEGORY_CHARACTERS_MAX));
  return (alarm.meaning = { category: short, kind, type: kind.type ?? typeOf(alarm.name, "unnamed") });
}

function copy(fields: FieldList, to: LineFieldSlot, from: LineFieldSlot): void {
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
  const reported = fields.text(SLOTS.threatCategory);
  const category = reported === "" ? threatClassOfSignature(fields.text(SLOTS.signature)) : threatClass(reported);
  if (category !== undefined) fields.set(SLOTS.category, category);
  if (fields.has(SLOTS.action)) return;
  fields.add(SLOTS.action, /blocked|prevented|dropped/i.test(name) ? "block" : "allow");
}

/** The access method is a credential at a door, and a service for an admin login. */
function completeMethod(fields: FieldList, isDoor: boolean): void {
  const method = fields.text(SLOTS.accessMethod);
  const slot = isDoor ? SLOTS.method : SLOTS.service;
  const value = isDoor ? accessMethodOf(method) : method.toLowerCase();
  if (value !== undefined && !fields.has(slot)) fields.add(slot, value);
}

const CREATED = "(?:created|added|invited|made)";
const ADMIN = "(?:(?:as|an?|the|new|super|local|site) )*admin(?:istrator)?(?: account| user)?";
const NAME = "(?!(?:as|an?|the|new|super|local|site) )[^]{1,100}?";
/** Sentences that name a new admin and the creator. Passive forms are tried before active ones. */
const ADMIN_CREATED: readonly RegExp[] = [
  `^${ADMIN} (?<target>${NAME}) (?:was|has been) ${CREATED}(?: by (?<user>${NAME}))?$`,
  `^(?<target>${NAME}) (?:was|has been) ${CREATED} ${ADMIN}(?: by (?<user>${NAME}))?$`,
  `^(?<user>${NAME}) ${CREATED} ${ADMIN}:? (?<target>${NAME})$`,
  `^(?<user>${NAME}) ${CREATED} (?<target>${NAME}) ${ADMIN}$`,
].map((pattern) => new RegExp(pattern, "i"));
/** Rest of the sentence after the names. */
const AFTER_NAMES = /\.? Source IP: [^]*$|[.!]$| (?:to|on|in|for|with|from|via|at) [^]*$/g;
const SENTENCE_CHARACTERS_MAX = 300;

/** Sets the new admin as the target, not as the user. Reads the name from the message if no field has it. */
export function completeTarget(raw: JsonObject): void {
  const created = raw["duser"];
  if (typeof created === "string") {
    raw["target"] ??= created;
    if (raw["user"] === created) delete raw["user"];
  }
  if (raw["target"] !== undefined) return;
  const sentence = (textOf(raw["message"]) ?? "").slice(0, SENTENCE_CHARACTERS_MAX).replaceAll(AFTER_NAMES, "");
  const names = ADMIN_CREATED.map((pattern) => pattern.exec(sentence)).find((match) => match !== null)?.groups;
  if (names?.["target"] === undefined) return;
  raw["target"] = names["target"];
  if (names["user"] !== undefined) raw["user"] ??= names["user"];
}

/** Identifies a rogue access point by its hardware address and its network name. */
export function completeRogueAccessPoint(raw: JsonObject): void {
  const address = macOf(raw["bssid"]);
  const network = textOf(raw["essid"] ?? raw["ssid"]);
  if (address !== undefined) raw["src_mac"] ??= address;
  if (network !== undefined) raw["network"] ??= network;
}

const SOURCE_ADDRESS = "Source IP: ";
const ADMIN_VERBS = [" changed ", " made ", " accessed ", " logged "];

/** Reads user, setting and source address from the message, where no field has them. */
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
    const hasSetting = verb === " changed " && end > at + verb.length;
    if (hasSetting && !fields.has(SLOTS.setting)) fields.add(SLOTS.setting, message.slice(at + verb.length, end));
  }
  if (fields.has(SLOTS.setting)) fields.set(SLOTS.setting, typeOf(fields.text(SLOTS.setting), "unnamed"));
}

/** Start of a sentence about the recorder, not a camera. */
const NO_CAMERA = /^(?:the |your )?(?:storage|disks?|drives?|recordings?|recorder|nvr|console|system|videos?)\b/i;
const CAMERA_VERBS = [" has ", " detected ", " was ", " is ", " went ", " lost ", " recorded "];

/** Reads the camera's name from the start of the message, where no field has it. */
function completeCamera(fields: FieldList): void {
  if (fields.has(SLOTS.camera)) return;
  if (fields.has(SLOTS.device)) return copy(fields, SLOTS.camera, SLOTS.device);
  const message = fields.text(SLOTS.message);
  if (NO_CAMERA.test(message)) return;
  const ends = CAMERA_VERBS.map((verb) => message.indexOf(verb)).filter((at) => at > 0);
  if (ends.length > 0) fields.add(SLOTS.camera, message.slice(0, Math.min(...ends)));
}
