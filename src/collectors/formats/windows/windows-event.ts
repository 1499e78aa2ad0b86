import type { JsonObject, JsonValue } from "../../../model/event.ts";
import { isTargetName } from "../described/field-values.ts";
import { readAnyTime } from "../device-times.ts";
import { addressOf, FIELDS_MAX, integerOf, portOf, protocolOf, put, putForeign, textOf } from "../device-values.ts";
import type { ParsedEvent, ReadContext } from "../reading.ts";
import { meaningOf } from "./event-kinds.ts";

// A Windows event, from whichever shipper. System fields and event data are flat and have Windows' own names, as Sigma rules
// expect them; ours stand beside them.

/** Values in the order of their names. Two lists are filled faster than an object. */
export interface NamedValues {
  readonly names: readonly string[];
  readonly values: readonly JsonValue[];
}

export interface WindowsEvent {
  readonly channel: string;
  readonly eventId: number;
  readonly provider: string | undefined;
  readonly computer: string | undefined;
  readonly level: number | undefined;
  readonly time: unknown;
  readonly recordId: string | undefined;
  readonly message: string | undefined;
  readonly data: NamedValues;
  /** The element of an event that has UserData instead of EventData. */
  readonly userData?: { readonly name: string; readonly values: JsonObject } | undefined;
  /** Other fields of System that rules ask for: Task, Opcode, Keywords... */
  readonly system?: JsonObject;
}

const MESSAGE_CHARACTERS_MAX = 8192;

export function readWindowsEvent(event: WindowsEvent, context: ReadContext): ParsedEvent {
  const { channel, eventId, provider, computer, level, time, recordId, message, data, userData, system } = event;
  const raw: JsonObject = { EventID: eventId, Channel: channel };
  if (provider !== undefined) raw["Provider_Name"] = provider;
  if (computer !== undefined) raw["Computer"] = computer;
  if (level !== undefined) raw["Level"] = level;
  for (const name in system) raw[name] = system[name]!;
  let leftOut = putData(data, raw);
  if (userData !== undefined) {
    // Nested as Windows writes them, and flat under names that are still free.
    const { name, values } = userData;
    const texts = Object.entries(values).filter(([, value]) => isPlain(value));
    raw["UserData"] = { [name === "__proto__" ? "_proto_" : name]: Object.fromEntries(texts.slice(0, FIELDS_MAX)) };
    const free = texts.filter(([key]) => !Object.hasOwn(raw, key));
    leftOut += putData({ names: free.map(([key]) => key), values: free.map(([, value]) => value) }, raw);
  }
  if (leftOut > 0) put(raw, "fields_left_out", leftOut);
  put(raw, "event_code", String(eventId));
  put(raw, "event_id", recordId);
  put(raw, "device", computer);
  put(raw, "host", computer);
  if (message !== undefined) put(raw, "message", firstLines(message));
  putOurs(channel.toLowerCase(), eventId, raw);
  const { type, severity, class: eventClass, source } = meaningOf(channel, eventId, level, raw);
  return {
    type,
    source: source ?? "network",
    severity,
    class: eventClass,
    timestampMs: readAnyTime(time, context),
    raw,
  };
}

function firstLines(message: string): string {
  return message.length > MESSAGE_CHARACTERS_MAX ? message.slice(0, MESSAGE_CHARACTERS_MAX) : message;
}

/** A value whose name is one of ours gets the prefix `data_`: Windows means something else by it. */
function putData({ names, values }: NamedValues, raw: JsonObject): number {
  let count = 0;
  let leftOut = 0;
  for (let index = 0; index < names.length; index++) {
    const name = names[index]!;
    const value = values[index];
    if (!isPlain(value)) continue;
    if (count++ >= FIELDS_MAX) leftOut++;
    else putForeign(raw, isTargetName(name) || Object.hasOwn(raw, name) ? `data_${name}` : name, value);
  }
  return leftOut;
}

/** A text, a number, or a list of them. Nested values are only in the line. */
function isPlain(value: JsonValue | undefined): value is JsonValue {
  switch (typeof value) {
    case "string":
      return value !== "";
    case "number":
      return Number.isFinite(value);
    case "object":
      return Array.isArray(value) && value.every((one) => typeof one !== "object");
    default:
      return value !== undefined;
  }
}

const MISSING = new Set(["-", "LOCAL", "%%1833", "NULL SID", "S-1-0-0"]);

function named(raw: JsonObject, name: string): string | undefined {
  const value = textOf(raw[name]);
  return value === undefined || MISSING.has(value) ? undefined : value;
}

/** `CORP\robin` is robin. */
function account(value: string | undefined): string | undefined {
  return value?.slice(value.lastIndexOf("\\") + 1);
}

/** Security events whose user is the one that acted; in the others it is the one that logged on. */
const ACTED_ON: ReadonlySet<number> = new Set([
  4720, 4722, 4723, 4724, 4725, 4726, 4728, 4729, 4732, 4733, 4738, 4740, 4756, 4757, 4767,
]);
const MEMBERSHIPS: ReadonlySet<number> = new Set([4728, 4729, 4732, 4733, 4756, 4757]);

/** Administrators, and the administrators of a domain, of its schema and of the whole forest. */
const ADMINISTRATORS = /^S-1-5-(?:32-544|21-\d{1,10}-\d{1,10}-\d{1,10}-51[289])$/;

/** Words for status codes of a failed logon. */
const REASONS: Readonly<Record<string, string>> = {
  "0xc0000064": "unknown user",
  "0xc000006a": "wrong password",
  "0xc000006d": "wrong user or password",
  "0xc000006e": "account restriction",
  "0xc000006f": "outside logon hours",
  "0xc0000070": "not allowed from this workstation",
  "0xc0000071": "password expired",
  "0xc0000072": "account disabled",
  "0xc000015b": "logon type not granted",
  "0xc0000193": "account expired",
  "0xc0000224": "password must be changed",
  "0xc0000234": "account locked",
  "0x6": "unknown user",
  "0x12": "account disabled, expired or locked",
  "0x17": "password expired",
  "0x18": "wrong password",
};

function reasonOf(status: JsonValue | undefined): string | undefined {
  const code = typeof status === "string" ? status.toLowerCase() : "";
  return Object.hasOwn(REASONS, code) ? REASONS[code] : undefined;
}

function putOurs(channel: string, eventId: number, raw: JsonObject): void {
  putEnds(raw);
  const subject = account(named(raw, "SubjectUserName"));
  const target = account(named(raw, "TargetUserName"));
  if (channel === "security" && ACTED_ON.has(eventId)) {
    put(raw, "user", subject);
    put(raw, "target", MEMBERSHIPS.has(eventId) ? (memberOf(raw) ?? target) : target);
    if (MEMBERSHIPS.has(eventId)) {
      const isAdministrators = ADMINISTRATORS.test(String(raw["TargetSid"]));
      put(raw, "role", isAdministrators ? "administrator" : target);
    }
  } else put(raw, "user", target ?? subject ?? account(named(raw, "User")) ?? account(named(raw, "AccountName")));
  const method = named(raw, "AuthenticationPackageName") ?? named(raw, "PackageName");
  put(raw, "method", method?.toLowerCase());
  if (textOf(raw["LogonType"]) === "10") put(raw, "service", "rdp");
  put(raw, "reason", reasonOf(raw["SubStatus"]) ?? reasonOf(raw["Status"]));
  if (channel === "security" && eventId === 4688) {
    // Sigma has one name for what Sysmon and the security log call differently.
    for (const [own, sigma] of [
      ["NewProcessName", "Image"],
      ["ParentProcessName", "ParentImage"],
    ] as const) {
      if (raw[sigma] === undefined && raw[own] !== undefined) raw[sigma] = raw[own];
    }
  }
  if (channel === "security" && (eventId === 5152 || eventId === 5157)) put(raw, "action", "block");
  if (channel === "security" && eventId === 5156) put(raw, "action", "allow");
  if (raw["QueryName"] !== undefined) put(raw, "query", textOf(raw["QueryName"]));
  put(raw, "file", textOf(raw["TargetFilename"]));
  const hashes = textOf(raw["Hashes"]);
  if (hashes !== undefined) put(raw, "sha256", /SHA256=([0-9A-Fa-f]{64})/.exec(hashes)?.[1]?.toLowerCase());
}

/** `CN=Robin K,OU=Staff,DC=corp` is Robin K; without a name the SID. */
function memberOf(raw: JsonObject): string | undefined {
  const name = named(raw, "MemberName");
  return name === undefined ? named(raw, "MemberSid") : (/^CN=((?:[^,\\]|\\.){1,256})/.exec(name)?.[1] ?? name);
}

const ENDS = [
  ["src_ip", ["IpAddress", "SourceIp", "SourceAddress", "ClientAddress"]],
  ["dst_ip", ["DestinationIp", "DestAddress"]],
] as const;
const PORTS = [
  ["src_port", ["IpPort", "SourcePort"]],
  ["dst_port", ["DestinationPort", "DestPort"]],
] as const;

function putEnds(raw: JsonObject): void {
  for (const [name, sources] of ENDS) put(raw, name, first(raw, sources, addressOf));
  for (const [name, sources] of PORTS) {
    const port = first(raw, sources, portOf);
    if (port !== 0) put(raw, name, port);
  }
  put(raw, "src_host", named(raw, "WorkstationName") ?? named(raw, "Workstation"));
  const protocol = textOf(raw["Protocol"]);
  if (protocol !== undefined) put(raw, "protocol", protocolOf(protocol));
  if (raw["NewProcessId"] === undefined) put(raw, "process_id", integerOf(raw["ProcessId"]));
}

function first<Value>(raw: JsonObject, names: readonly string[], convert: (value: JsonValue) => Value | undefined) {
  for (const name of names) {
    const value = raw[name];
    const converted = value === undefined ? undefined : convert(value);
    if (converted !== undefined) return converted;
  }
  return undefined;
}
