import { severityOfCef } from "../../model/device-severity.ts";
import type { JsonObject, SourceKind } from "../../model/event.ts";
import { FIELD_NAMES } from "../../model/field-names.ts";
import { readAlarm } from "../alarm.ts";
import { FieldList } from "../field-list.ts";
import { FIELDS_MAX, objectOf, textOf } from "../fields.ts";
import { addParameter, parameterOf } from "../parameters.ts";
import type { ReadContext, ReadEvent } from "../reading.ts";

/**
 * What the alarm managers of newer consoles send: a name, and the parameters that a CEF line has, in an object of their own
 * or beside the name. Undefined where it is something else.
 */
export function readAlarmBody(
  sender: SourceKind,
  body: JsonObject,
  context: ReadContext,
): readonly ReadEvent[] | undefined {
  const name = textOf(body["name"]);
  const isAlarm =
    "parameters" in body ||
    "deviceEventClassId" in body ||
    "UNIFIcategory" in body ||
    (textOf(body["app"]) !== undefined && !OTHERS.some((key) => key in body));
  if (name === undefined || !isAlarm) return undefined;
  const event = alarmOf(textOf(body["app"]) ?? sender, name, body, context);
  return [{ ...event, raw: { ...body, ...event.raw } }];
}

/** The event that an alarm of this name is, with nothing in `raw` but what has a name of ours. */
export function alarmOf(product: string, name: string, body: JsonObject, context: ReadContext): ReadEvent {
  const fields = new FieldList();
  for (const [key, value] of Object.entries({ ...body, ...objectOf(body["parameters"]) }).slice(0, FIELDS_MAX)) {
    if (HEADER.has(key) || typeof value === "object" || typeof value === "boolean") continue;
    addParameter(fields, parameterOf(key), String(value));
  }
  addParameter(fields, parameterOf("msg"), textOf(body["message"]) ?? "");
  const severity = body["severity"];
  const event = readAlarm(
    {
      vendor: undefined,
      product,
      version: textOf(body["version"]),
      code: textOf(body["deviceEventClassId"]),
      name,
      severity: typeof severity === "string" || typeof severity === "number" ? severityOfCef(severity) : undefined,
    },
    fields,
    context,
  );
  const named = Object.entries(event.raw).filter(([key]) => Object.hasOwn(FIELD_NAMES, key));
  return { ...event, raw: Object.fromEntries(named) };
}

/** What else names its application has one of these. */
const OTHERS = ["triggers", "alarm", "event", "item"];

/** What an alarm says besides its parameters. */
const HEADER = new Set(["name", "message", "severity", "version", "app", "deviceEventClassId"]);
