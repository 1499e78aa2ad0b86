import { parseSent } from "../../lib/exact-json.ts";
import type { JsonObject, JsonValue } from "../../model/event.ts";
import { markReplaced, decodeLine } from "../lines/line-text.ts";
import { objectOf } from "./device-values.ts";
import { BARE_FORMATS, type BareFormatName, type LineFormats } from "./line-formats.ts";
import { readWithFormats } from "./read-with-formats.ts";
import { UNPARSED_TYPE, type ReadContext, type Reading, type RefusalReason } from "./reading.ts";
import type { OpenEvents } from "./unifi/open-events.ts";
import { BODY_NAMES, readBody, type BodyName } from "./unifi/webhooks.ts";

// Detects the format of input from a file. A collector knows the format by the port or path; a file does not say.

/** Formats of `tocsin parse --format`. `syslog` is any line of text, in every line format, with or without a header. */
export type InputFormat = "auto" | DetectedFormat;
type DetectedFormat = "syslog" | BareFormatName | BodyName;

export const INPUT_FORMATS: readonly InputFormat[] = [
  "auto",
  "syslog",
  ...BARE_FORMATS.map(({ name }) => name),
  ...BODY_NAMES,
];

export interface InputOptions {
  readonly formats: LineFormats;
  readonly lineBytesMax: number;
  /** For the JSON of one body. */
  readonly bodyBytesMax: number;
  readonly keepsUnparsed: boolean;
}

/** Reads one line, or one object as JSON. Refuses input that a collector would refuse or not keep. */
export function readInput(
  format: InputFormat,
  bytes: Buffer,
  { formats, lineBytesMax, bodyBytesMax, keepsUnparsed }: InputOptions,
  context: ReadContext,
  open: OpenEvents,
): Reading {
  const line = decodeLine(bytes);
  const mayBeBody = format === "auto" || isBodyName(format);
  const body = line && mayBeBody ? parseJson(line.text) : undefined;
  const detected = format === "auto" ? detectFormat(body) : format;
  const bytesMax = isBodyName(detected) ? bodyBytesMax : lineBytesMax;
  if (bytes.length > bytesMax) return refuse("too_long", `the input is longer than ${bytesMax} bytes`);
  if (!line) return refuse("not_text", "the input is not text");
  const reading = markReplaced(readAs(detected, line.text, body, context, open, formats), line);
  if (reading.kind !== "events" || keepsUnparsed) return reading;
  const kept = reading.events.filter(({ type }) => type !== UNPARSED_TYPE);
  return kept.length > 0 ? { kind: "events", events: kept } : refuse("unknown_kind", "no reader understands it");
}

function readAs(
  format: DetectedFormat,
  text: string,
  body: JsonValue | undefined,
  context: ReadContext,
  open: OpenEvents,
  formats: LineFormats,
): Reading {
  if (isBodyName(format)) {
    return body === undefined ? refuse("malformed", "not JSON") : readBody(format, body, context, open);
  }
  const bare = BARE_FORMATS.find(({ name }) => name === format);
  return bare === undefined ? readWithFormats(formats, text, context) : bare.read(text, context);
}

function isBodyName(format: InputFormat): format is BodyName {
  return (BODY_NAMES as readonly InputFormat[]).includes(format);
}

function detectFormat(body: JsonValue | undefined): DetectedFormat {
  if (body === undefined) return "syslog";
  const object = objectOf(body) ?? {};
  return BARE_FORMATS.find(({ recognises }) => recognises(object))?.name ?? detectSender(object);
}

/** The webhook sender, recognised by a field that no other sender has. */
function detectSender(object: JsonObject): BodyName {
  const { event, app } = object;
  const named = BODY_NAMES.find((name) => name === app);
  if (named) return named;
  if (Array.isArray(objectOf(object["data"])?.["hits"])) return "access";
  if ("_source" in object || objectOf(event) || (typeof event === "string" && event.startsWith("access.")))
    return "access";
  if ("modelKey" in object || "item" in object || "triggers" in object || "alarm" in object) return "protect";
  return "from" in object && "to" in object ? "talk" : "network";
}

/** Undefined if the text is not a JSON object or array. */
function parseJson(text: string): JsonValue | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return parseSent(text) as JsonValue;
  } catch {
    return undefined;
  }
}

function refuse(reason: RefusalReason, message: string): Reading {
  return { kind: "refused", reason, message };
}
