import { severityOfCef } from "../../../model/device-severity.ts";
import type { JsonObject, SourceKind } from "../../../model/event.ts";
import { FIELD_NAMES } from "../../../model/field-names.ts";
import { readAlarm } from "./alarm.ts";
import { FieldList } from "../field-list.ts";
import { FIELDS_MAX, objectOf, textOf } from "../device-values.ts";
import { addParameter, parameterOf } from "./alarm-parameters.ts";
import type { ReadContext, ParsedEvent } from "../reading.ts";

/**
 * Reads an alarm of newer consoles: a name, and the parameters of a CEF line, nested or beside the name. Undefined if the body
 * is something else.
 */
export function readAlarmBody(
  sender: SourceKind,
  body: JsonObject,
  context: ReadContext,
): readonly ParsedEvent[] | undefined {
  const name = textOf(body["name"]);
  const isAlarm =
    "parameters" in body ||
    "deviceEventClassId" in body ||
    "UNIFIcategory" in body ||
    (textOf(body["app"]) !== undefined && !OTHER_BODY_KEYS.some((key) => key in body));
  if (name === undefined || !isAlarm) return undefined;
  const event = alarmOf(textOf(body["app"]) ?? sender, name, body, context);
  return [{ ...event, raw: { ...body, ...event.raw } }];
}

/** The event of a named alarm, with only well-known fields in `raw`. */
export function alarmOf(product: string, name: string, body: JsonObject, context: ReadContext): ParsedEvent {
  const fields = new FieldList();
  for (const [key, value] of Object.entries({ ...body, ...objectOf(body["parameters"]) }).slice(0, FIELDS_MAX)) {
    if (HEADER_KEYS.has(key) || typeof value === "object" || typeof value === "boolean") continue;
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

/** Keys of other bodies that name their application. */
const OTHER_BODY_KEYS = ["triggers", "alarm", "event", "item"];

/** Keys of an alarm that are not parameters. */
const HEADER_KEYS = new Set(["name", "message", "severity", "version", "app", "deviceEventClassId"]);
