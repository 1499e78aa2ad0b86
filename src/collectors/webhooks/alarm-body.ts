import { severityOfCef } from "../../model/device-severity.ts";
import type { JsonObject, SourceKind } from "../../model/event.ts";
import { FIELD_NAMES } from "../../model/field-names.ts";
import { putParameter, readAlarm } from "../alarm.ts";
import { objectOf, textOf } from "../fields.ts";
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
  const parameters = objectOf(body["parameters"]);
  const isAlarm = parameters !== undefined || "deviceEventClassId" in body || "UNIFIcategory" in body;
  if (name === undefined || !isAlarm) return undefined;
  const told: JsonObject = {};
  for (const [key, value] of Object.entries({ ...body, ...parameters })) {
    if (key === "name" || key === "message" || key === "severity" || key === "version" || key === "app") continue;
    if (typeof value === "string" || typeof value === "number") putParameter(told, key, String(value));
  }
  const message = textOf(body["message"]);
  if (message !== undefined) told["message"] = message;
  const severity = body["severity"];
  const event = readAlarm(
    {
      product: textOf(body["app"]) ?? sender,
      code: textOf(body["deviceEventClassId"]),
      name,
      severity: typeof severity === "string" || typeof severity === "number" ? severityOfCef(severity) : undefined,
      raw: told,
    },
    context,
  );
  const named = Object.entries(told).filter(([key]) => Object.hasOwn(FIELD_NAMES, key));
  return [{ ...event, raw: { ...body, event_name: name, ...Object.fromEntries(named) } }];
}
