import { parseSent } from "../lib/exact-json.ts";
import type { JsonObject, JsonValue } from "../model/event.ts";
import { readEve } from "./eve/eve.ts";
import { objectOf } from "./fields.ts";
import { markReplaced, textOf } from "./inlet/text.ts";
import { readLine } from "./lines.ts";
import { UNPARSED_TYPE, type ReadContext, type Reading, type RefusalReason } from "./reading.ts";
import type { OpenEvents } from "./webhooks/open-events.ts";
import { BODY_NAMES, readBody, type BodyName } from "./webhooks/webhooks.ts";

// Which reader something is for, where nobody says: a collector knows by the way it came, a file does not.

export type Format = "auto" | "syslog" | "eve" | BodyName;

/** One line, or one object as text. */
export function readAs(format: Format, text: string, context: ReadContext, open: OpenEvents): Reading {
  if (format === "syslog") return readLine(text, context);
  if (format === "eve") return readEve(text, context);
  const body = parse(text);
  if (format !== "auto") {
    return body === undefined
      ? { kind: "refused", reason: "malformed", message: "not JSON" }
      : readBody(format, body, context, open);
  }
  const found = formatOf(body);
  if (found === "syslog") return readLine(text, context);
  return found === "eve" ? readEve(text, context) : readBody(found, body!, context, open);
}

export interface FormatLimits {
  readonly lineBytesMax: number;
  /** Of the JSON of one body. */
  readonly thingBytesMax: number;
  readonly keepsUnparsed: boolean;
}

/** The same of bytes: what a collector would refuse before it is read, or would not keep, is refused here too. */
export function readBytesAs(
  format: Format,
  bytes: Buffer,
  { lineBytesMax, thingBytesMax, keepsUnparsed }: FormatLimits,
  context: ReadContext,
  open: OpenEvents,
): Reading {
  const refuse = (reason: RefusalReason, message: string): Reading => ({ kind: "refused", reason, message });
  const line = textOf(bytes);
  const found = format === "auto" ? formatOf(line && parse(line.text)) : format;
  const bytesMax = found === "syslog" || found === "eve" ? lineBytesMax : thingBytesMax;
  if (bytes.length > bytesMax) return refuse("too_long", `it is longer than ${bytesMax} bytes`);
  if (!line) return refuse("not_text", "it is not text");
  const reading = markReplaced(readAs(found, line.text, context, open), line);
  if (reading.kind !== "events" || keepsUnparsed) return reading;
  const kept = reading.events.filter(({ type }) => type !== UNPARSED_TYPE);
  return kept.length > 0 ? { kind: "events", events: kept } : refuse("unknown_kind", "no reader understands it");
}

/** `body`: what the text is as JSON. */
function formatOf(body: JsonValue | undefined): Exclude<Format, "auto"> {
  if (body === undefined) return "syslog";
  const object = objectOf(body) ?? {};
  const isEve = typeof object["event_type"] === "string" && object["key"] === undefined;
  return isEve ? "eve" : senderOf(object);
}

/** An object or a list; undefined where it is neither. */
function parse(text: string): JsonValue | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return parseSent(text) as JsonValue;
  } catch {
    return undefined;
  }
}

/** By what only one of them has. */
function senderOf(object: JsonObject): BodyName {
  const { event, app } = object;
  const named = BODY_NAMES.find((name) => name === app);
  if (named) return named;
  if (Array.isArray(objectOf(object["data"])?.["hits"])) return "access";
  if ("_source" in object || objectOf(event) || (typeof event === "string" && event.startsWith("access.")))
    return "access";
  if ("modelKey" in object || "item" in object || "triggers" in object || "alarm" in object) return "protect";
  return "from" in object && "to" in object ? "talk" : "network";
}
