import type { JsonObject, JsonValue } from "../model/event.ts";
import { readEve } from "./eve/eve.ts";
import { objectOf } from "./fields.ts";
import { readLine } from "./lines.ts";
import type { ReadContext, Reading } from "./reading.ts";
import type { OpenEvents } from "./webhooks/open-events.ts";
import { BODY_NAMES, readBody, type BodyName } from "./webhooks/webhooks.ts";

// Which reader something is for, where nobody says: a collector knows by the way it came, a file does not.

export type Format = "auto" | "syslog" | "eve" | BodyName;

/** One line, or one object as text. */
export function readAs(format: Format, text: string, context: ReadContext, open: OpenEvents): Reading {
  if (format === "syslog") return readLine(text, context);
  if (format === "eve") return readEve(text, context);
  const body = text.trimStart().startsWith("{") || text.trimStart().startsWith("[") ? parse(text) : undefined;
  if (format !== "auto") {
    return body === undefined
      ? { kind: "refused", reason: "malformed", message: "not JSON" }
      : readBody(format, body, context, open);
  }
  if (body === undefined) return readLine(text, context);
  const object = objectOf(body) ?? {};
  const isEve = typeof object["event_type"] === "string" && object["key"] === undefined;
  return isEve ? readEve(text, context) : readBody(senderOf(object), body, context, open);
}

function parse(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
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
