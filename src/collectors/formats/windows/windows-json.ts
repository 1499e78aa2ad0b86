import type { JsonObject, JsonValue } from "../../../model/event.ts";
import { integerOf, listOf, objectOf, textOf } from "../device-values.ts";
import { parseFlatRecord } from "../json-record.ts";
import type { LineFormat, LineMessage, MessageReading } from "../line-format.ts";
import type { ParsedEvent, ReadContext, Reading } from "../reading.ts";
import { namedInserts } from "./string-inserts.ts";
import { readWindowsEvent, type NamedValues, type WindowsEvent } from "./windows-event.ts";
import { readEventXml } from "./windows-xml.ts";

// Windows events in the JSON of three shippers: Winlogbeat (nested, in winlog), NXLog (flat) and Fluent Bit (flat, with values
// that have no names, or with the event as XML).

export const WINDOWS_JSON = {
  name: "windows",
  about: "Windows events as JSON, from Winlogbeat, NXLog or Fluent Bit",
  devices: ["Windows"],
  page: "windows",
  example:
    '{"EventTime":"2026-11-15T10:00:00.000+00:00","EventType":"AUDIT_FAILURE","EventID":4625,' +
    '"SourceName":"Microsoft-Windows-Security-Auditing","Channel":"Security","TargetUserName":"robin","LogonType":"3",' +
    '"SubStatus":"0xc000006a","IpAddress":"192.0.2.9","IpPort":"51000"}',
  read: readMessage,
  bare: { recognises, read: readBare },
} as const satisfies LineFormat;

/** The last one is in an event that Fluent Bit renders as XML. */
const MARKS = ['"EventID"', '"winlog"', "<EventID"];

function recognises(object: JsonObject): boolean {
  return eventOf(object) !== undefined;
}

function readMessage({ message }: LineMessage, context: ReadContext): MessageReading | undefined {
  if (!message.startsWith("{") || !MARKS.some((mark) => message.includes(mark))) return undefined;
  const record = parseFlatRecord(message);
  const event = record && readWindowsRecord(record, context);
  return event && { kind: "events", events: [event] };
}

function readBare(line: string, context: ReadContext): Reading {
  const record = parseFlatRecord(line);
  if (record === undefined) return { kind: "refused", reason: "malformed", message: "not a JSON object" };
  const event = readWindowsRecord(record, context);
  if (event !== undefined) return { kind: "events", events: [event] };
  return { kind: "refused", reason: "unknown_kind", message: "the object is not a Windows event" };
}

/** Undefined if the object is not a Windows event. */
function readWindowsRecord(record: JsonObject, context: ReadContext): ParsedEvent | undefined {
  const event = eventOf(record);
  return event && readWindowsEvent(event, context);
}

function eventOf(record: JsonObject): WindowsEvent | undefined {
  const winlog = objectOf(record["winlog"]);
  return winlog === undefined ? flatEvent(record) : winlogbeatEvent(winlog, record);
}

function winlogbeatEvent(winlog: JsonObject, record: JsonObject): WindowsEvent | undefined {
  const channel = textOf(winlog["channel"]);
  const eventId = integerOf(winlog["event_id"]) ?? integerOf(objectOf(record["event"])?.["code"]);
  if (channel === undefined || eventId === undefined) return undefined;
  const data = objectOf(winlog["event_data"]) ?? {};
  const userData = objectOf(winlog["user_data"]);
  return {
    channel,
    eventId,
    provider: textOf(winlog["provider_name"]),
    computer: textOf(winlog["computer_name"]) ?? textOf(objectOf(record["host"])?.["name"]),
    level: LEVELS[String(objectOf(record["log"])?.["level"]).toLowerCase()],
    time: record["@timestamp"],
    recordId: textOf(winlog["record_id"]),
    message: textOf(record["message"]),
    data: listed(data),
    userData: userData && { name: xmlName(userData), values: userData },
    system: { winlog: true, ...texts({ Task: winlog["task"], Opcode: winlog["opcode"], Version: winlog["version"] }) },
  };
}

/** Winlogbeat keeps the element's name beside its values. */
function xmlName(userData: JsonObject): string {
  return textOf(userData["xml_name"]) ?? "EventXML";
}

/** Values without a name are `param1`, `param2`...; rules look for them in Data. */
function listed(data: JsonObject): NamedValues {
  const names = Object.keys(data);
  const values = Object.values(data);
  if (data["param1"] === undefined || data["Data"] !== undefined) return { names, values };
  const list = values.filter((_, index) => /^param\d{1,3}$/.test(names[index]!));
  return { names: [...names, "Data"], values: [...values, list] };
}

const LEVELS: Readonly<Record<string, number>> = {
  critical: 1,
  error: 2,
  warning: 3,
  information: 4,
  info: 4,
  verbose: 5,
};

/** Fields of System in flat records, and those that shippers add. All others are event data. */
const SYSTEM_NAMES: ReadonlySet<string> = new Set([
  "ActivityID",
  "Category",
  "Channel",
  "Computer",
  "Domain",
  "EventID",
  "EventReceivedTime",
  "EventRecordID",
  "EventTime",
  "Host",
  "Hostname",
  "Keywords",
  "Level",
  "Message",
  "Opcode",
  "OpcodeValue",
  "ProviderGuid",
  "ProviderName",
  "Qualifiers",
  "RecordNumber",
  "RelatedActivityID",
  "Severity",
  "SeverityValue",
  "SourceModuleName",
  "SourceModuleType",
  "SourceName",
  "StringInserts",
  "System",
  "Task",
  "ThreadID",
  "TimeCreated",
  "UserID",
  "Version",
]);
/** One of these tells a Windows event from other JSON with an EventID. */
const SHIPPED = ["SourceName", "ProviderName", "SourceModuleType", "EventTime", "TimeCreated"] as const;
const KEPT = ["Keywords", "Opcode", "Task", "Version", "Category", "Qualifiers"] as const;
/** The event's process, unless the event data has one of the same name. */
const PROCESS = "ProcessID";

function flatEvent(record: JsonObject): WindowsEvent | undefined {
  const { System: xml } = record;
  if (typeof xml === "string" && xml.startsWith("<Event")) return readEventXml(xml, textOf(record["Message"]));
  const channel = textOf(record["Channel"]);
  const eventId = integerOf(record["EventID"]);
  if (channel === undefined || eventId === undefined) return undefined;
  if (!SHIPPED.some((name) => record[name] !== undefined)) return undefined;
  const inserts = listOf(record["StringInserts"]);
  const data = dataOf(record, channel);
  const named = namedInserts(channel, eventId, inserts);
  if (named !== undefined) {
    data.names.push(...named.names);
    data.values.push(...named.values);
  } else if (inserts.length > 0) {
    data.names.push("Data");
    data.values.push([...inserts]);
  }
  return {
    channel,
    eventId,
    provider: textOf(record["ProviderName"]) ?? textOf(record["SourceName"]),
    computer: textOf(record["Computer"]) ?? textOf(record["Hostname"]),
    level: integerOf(record["Level"]) ?? NXLOG_LEVELS[String(record["SeverityValue"])],
    time: record["TimeCreated"] ?? record["EventTime"],
    recordId: textOf(record["EventRecordID"]) ?? textOf(record["RecordNumber"]),
    message: textOf(record["Message"]),
    data,
    system: kept(record),
  };
}

function dataOf(record: JsonObject, channel: string): { readonly names: string[]; readonly values: JsonValue[] } {
  const names: string[] = [];
  const values: JsonValue[] = [];
  for (const name in record) {
    if (SYSTEM_NAMES.has(name) || name === PROCESS) continue;
    const value = record[name]!;
    // NXLog calls the kind of the event what Sysmon calls the kind of the change.
    if (name === "EventType" && (channel === "Security" || String(value).startsWith("AUDIT_"))) continue;
    names.push(name);
    values.push(value);
  }
  return { names, values };
}

/** NXLog's own scale, from 1 (debug) to 5 (critical). */
const NXLOG_LEVELS: Readonly<Record<string, number>> = { 5: 1, 4: 2, 3: 3, 2: 4, 1: 5 };

function kept(record: JsonObject): JsonObject {
  const found: JsonObject = {};
  for (const name of KEPT) {
    const value = record[name];
    if (value !== undefined && textOf(value) !== undefined) found[name] = value;
  }
  return found;
}

function texts(values: Record<string, JsonValue | undefined>): JsonObject {
  const found: JsonObject = {};
  for (const [name, value] of Object.entries(values)) if (textOf(value) !== undefined) found[name] = value!;
  return found;
}
