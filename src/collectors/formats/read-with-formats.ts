import { severityOfSyslog } from "../../model/device-severity.ts";
import type { JsonObject } from "../../model/event.ts";
import { addressOf, put } from "./device-values.ts";
import { GENERIC, readGeneric } from "./generic/generic.ts";
import { lateProgram } from "./late-program.ts";
import type { LineFormat, MessageReading } from "./line-format.ts";
import { beginsOwnHeader, type LineFormats } from "./line-formats.ts";
import { UNPARSED_TYPE, type ReadContext, type ParsedEvent, type Reading } from "./reading.ts";
import { readHeader, type SyslogHeader } from "./syslog/syslog-header.ts";
import { lineInJson, type CarriedLine } from "./syslog/line-in-json.ts";
import { unwrapRelayed, withoutChain } from "./syslog/syslog-relay.ts";

// Lines of text from devices. The syslog header is removed, then the first format that understands the message reads it.
// The event always keeps the original line.

/** Reads a line. Never throws or refuses: a line that no format understands becomes an event of type `unparsed`. */
export function readWithFormats(formats: LineFormats, line: string, context: ReadContext): Reading {
  const text = line.isWellFormed() ? line : line.toWellFormed();
  const outer = withoutChain(readHeader(text, context));
  if (outer.message.trim() === "" && text.trim() === "") return { kind: "nothing" };
  const relayed = unwrapRelayed(outer, context);
  const original = relayed && withProgram(relayed.header, formats);
  const reading = original && readMessage(original, text, context, formats);
  if (reading) return reading;
  if (original && relayed.isCertain) return readAtLast(original, text, context, formats);
  const header = withProgram(outer, formats);
  return readMessage(header, text, context, formats) ?? readAtLast(header, text, context, formats);
}

/** A line that no format understands. Lines of an owned program contain text that strangers typed. */
function readAtLast(header: SyslogHeader, line: string, context: ReadContext, formats: LineFormats): Reading {
  const { owners } = formats;
  const carried = lineInJson(header, context);
  if (carried !== undefined) return readCarried(carried, header, line, context, formats);
  const event = header.program !== null && owners.has(header.program) ? undefined : readGeneric(header, context);
  if (event === undefined) return { kind: "events", events: [unparsed(header, line, context)] };
  if (event.raw["event_name"] === undefined) put(event.raw, "event_name", header.messageId ?? undefined);
  return { kind: "events", events: [eventWithHeader(event, header, line, context)], format: GENERIC };
}

/** A line that a relay sent inside a JSON object. It has no such object inside, so this ends. */
function readCarried(
  { line: inner, host }: CarriedLine,
  header: SyslogHeader,
  line: string,
  context: ReadContext,
  formats: LineFormats,
): Reading {
  const reading = readWithFormats(formats, inner, context);
  if (reading.kind !== "events") return reading;
  const relay = header.host ?? host;
  const events = reading.events.map(({ raw, ...event }) => {
    const isOther = raw["relay"] === undefined && relay !== null && raw["device"] !== relay;
    return { ...event, raw: { ...raw, ...(isOther && { relay }), line } };
  });
  return { ...reading, events };
}

/** The message of a line, without the headers of its device and of relays. */
export function messageOf(formats: LineFormats, line: string, context: ReadContext): SyslogHeader {
  const outer = withoutChain(readHeader(line.toWellFormed(), context));
  return withProgram(unwrapRelayed(outer, context)?.header ?? outer, formats);
}

/** Undefined if no format understands the message. */
function readMessage(
  header: SyslogHeader,
  line: string,
  context: ReadContext,
  formats: LineFormats,
): Reading | undefined {
  for (const format of formats.candidates(header)) {
    const reading = format.read(header, context);
    if (reading !== undefined) return withHeader(format, reading, header, line, context);
  }
  return undefined;
}

function withProgram(header: SyslogHeader, { programs }: LineFormats): SyslogHeader {
  if (header.program !== null || beginsOwnHeader(header.message, 0) || header.message.startsWith("[")) return header;
  const late = lateProgram(header.message, programs);
  if (late === undefined) return header;
  const { start, end, program, processId } = late;
  return {
    ...header,
    host: header.host ?? hostIn(header.message.slice(0, start)),
    program,
    processId: processId ?? header.processId,
    message: header.message.slice(end),
  };
}

/** The first of the words before the program. */
function hostIn(before: string): string | null {
  const space = before.indexOf(" ");
  return space > 0 ? before.slice(0, space) : null;
}

function withHeader(
  { name: format, readsStructuredData = false }: LineFormat,
  reading: MessageReading | undefined,
  header: SyslogHeader,
  line: string,
  context: ReadContext,
): Reading | undefined {
  if (reading === undefined) return undefined;
  if (reading.kind !== "events") return { ...reading, format };
  const events = reading.events.map((event) =>
    eventWithHeader(event, readsStructuredData ? { ...header, structuredData: null } : header, line, context),
  );
  return { kind: "events", events, format };
}

/** The message takes precedence: the header fills in only the fields that the message lacks. */
function eventWithHeader(event: ParsedEvent, header: SyslogHeader, line: string, context: ReadContext): ParsedEvent {
  const { raw } = event;
  putHeader(raw, header, context);
  raw["line"] = line;
  return event.timestampMs !== null || header.timeMs === null ? event : { ...event, timestampMs: header.timeMs };
}

function putHeader(raw: JsonObject, header: SyslogHeader, { sender }: ReadContext): void {
  if (raw["device"] === undefined) {
    // Without a device name, the sender's address is the best identification.
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

function unparsed(header: SyslogHeader, line: string, context: ReadContext): ParsedEvent {
  const raw: JsonObject = {};
  putHeader(raw, header, context);
  put(raw, "event_name", header.messageId ?? undefined);
  put(raw, "message", header.message);
  raw["line"] = line;
  const severity = severityOfSyslog(header.severity);
  return { type: UNPARSED_TYPE, source: "network", severity, timestampMs: header.timeMs, raw };
}
