import { severityOfSyslog } from "../model/device-severity.ts";
import type { JsonObject } from "../model/event.ts";
import { readCef } from "./cef/cef.ts";
import { parseRecord, readEveRecord } from "./eve/eve.ts";
import { addressOf, objectOf, put } from "./fields.ts";
import { readFirewall } from "./gateway/firewall.ts";
import { LEASE_PROGRAMS, readLease, readStranger } from "./gateway/leases.ts";
import { LOGIN_PROGRAMS, readLogin } from "./gateway/logins.ts";
import type { ReadContext, ReadEvent, Reading } from "./reading.ts";
import { readHeader, type SyslogHeader } from "./syslog/header.ts";
import { unwrapRelayed } from "./syslog/relay.ts";

// A line of text that some device has sent: what stands before the message is taken off, then the first reader that
// knows the message says what it is. The line itself is always kept.

type ReadMessage = (header: SyslogHeader, context: ReadContext) => ReadEvent | undefined;

/** Asked in this order. A line here is one more format. */
const MESSAGES: Readonly<Record<string, ReadMessage>> = {
  cef: ({ program, message }, context) => readCef(program, message, context),
  firewall: ({ program, message }) => readFirewall(program, message),
  stranger: ({ message }) => readStranger(message),
};
const READERS = Object.values(MESSAGES);

/**
 * Programs whose lines hold what strangers have typed, and who alone reads them. Nobody else is asked: a name for which
 * somebody tries to log in may look like anything.
 */
const PROGRAMS: ReadonlyMap<string, (message: string) => ReadEvent | undefined> = new Map([
  ...LOGIN_PROGRAMS.map((program) => [program, readLogin] as const),
  ...LEASE_PROGRAMS.map((program) => [program, readLease] as const),
]);
/** One of them, or the kernel, behind a word or two that are no header: no time before the host, or another name for it. */
const LATE_PROGRAM = new RegExp(
  `^(?:[^\\s:=|[\\]]{1,255} ){0,2}(${[...PROGRAMS.keys(), "kernel"].map(RegExp.escape).join("|")})(?:\\[(\\d{1,9})\\])?: *`,
);

/** What became of a line. Never throws, and refuses nothing: what no reader knows is an event of the type `unparsed`. */
export function readLine(line: string, context: ReadContext): Reading {
  const text = line.isWellFormed() ? line : line.toWellFormed();
  const outer = readHeader(text, context);
  if (outer.message.trim() === "" && text.trim() === "") return { kind: "nothing" };
  const relayed = unwrapRelayed(outer, context);
  const original = relayed && withProgram(relayed.header);
  const reading = original && readMessage(original, text, context);
  if (reading) return reading;
  if (original && relayed.isCertain) return { kind: "events", events: [unparsed(original, text, context)] };
  const header = withProgram(outer);
  return readMessage(header, text, context) ?? { kind: "events", events: [unparsed(header, text, context)] };
}

/** Undefined where no reader understands it. */
function readMessage(header: SyslogHeader, line: string, context: ReadContext): Reading | undefined {
  const only = header.program === null ? undefined : PROGRAMS.get(header.program);
  if (only !== undefined) {
    const event = only(header.message);
    return event && { kind: "events", events: [withHeader(event, header, line, context)] };
  }
  for (const read of READERS) {
    const event = read(header, context);
    if (event) return { kind: "events", events: [withHeader(event, header, line, context)] };
  }
  return readRecord(header, line, context);
}

function withProgram(header: SyslogHeader): SyslogHeader {
  if (header.program !== null || header.message.startsWith("CEF:") || header.message.startsWith("[")) return header;
  const late = LATE_PROGRAM.exec(header.message);
  if (late === null) return header;
  const [before, program, processId] = late;
  return {
    ...header,
    host: header.host ?? hostIn(before),
    program: program!,
    processId: processId === undefined ? header.processId : Number(processId),
    message: header.message.slice(before.length),
  };
}

function hostIn(before: string): string | null {
  const space = before.indexOf(" ");
  return space > 0 && space < before.trimEnd().length ? before.slice(0, space) : null;
}

/** EVE that came by way of syslog. Other programs have an `event_type` too: what is not of Suricata must look like it. */
function readRecord(header: SyslogHeader, line: string, context: ReadContext): Reading | undefined {
  if (!header.message.startsWith("{") || !header.message.includes('"event_type"')) return undefined;
  const record = parseRecord(header.message);
  if (record === undefined || !(header.program?.startsWith("suricata") || isEve(record))) return undefined;
  const reading = readEveRecord(record, context);
  if (reading.kind === "refused") return undefined;
  if (reading.kind !== "events") return reading;
  return { kind: "events", events: reading.events.map((event) => withHeader(event, header, line, context)) };
}

/** A time, and the two ends of what was seen or the counters of the sensor. */
function isEve(record: JsonObject): boolean {
  if (typeof record["timestamp"] !== "string") return false;
  if (addressOf(record["src_ip"]) !== undefined && record["dest_ip"] !== undefined) return true;
  return record["event_type"] === "stats" && typeof objectOf(record["stats"])?.["uptime"] === "number";
}

/** What the message does not say itself, its header does. */
function withHeader(event: ReadEvent, header: SyslogHeader, line: string, context: ReadContext): ReadEvent {
  const { raw } = event;
  putHeader(raw, header, context);
  raw["line"] = line;
  return event.timestampMs !== null || header.timeMs === null ? event : { ...event, timestampMs: header.timeMs };
}

function putHeader(raw: JsonObject, header: SyslogHeader, { sender }: ReadContext): void {
  if (raw["device"] === undefined) {
    // Where nothing names the device, the address is what there is to know it by.
    const device = header.host ?? addressOf(sender) ?? sender;
    if (device !== "") raw["device"] = device;
  }
  if (header.relay !== null) put(raw, "relay", header.relay);
  if (header.deviceMac !== null) put(raw, "device_mac", header.deviceMac);
  if (header.model !== null) put(raw, "model", header.model);
  if (header.program !== null) raw["program"] = header.program;
  if (header.processId !== null && raw["process_id"] === undefined) raw["process_id"] = header.processId;
  if (header.facility !== null && raw["facility"] === undefined) raw["facility"] = header.facility;
  if (header.structuredData !== null) put(raw, "structured_data", header.structuredData);
}

function unparsed(header: SyslogHeader, line: string, context: ReadContext): ReadEvent {
  const raw: JsonObject = {};
  putHeader(raw, header, context);
  put(raw, "event_name", header.messageId ?? undefined);
  put(raw, "message", header.message);
  raw["line"] = line;
  const severity = severityOfSyslog(header.severity);
  return { type: "unparsed", source: "network", severity, timestampMs: header.timeMs, raw };
}
