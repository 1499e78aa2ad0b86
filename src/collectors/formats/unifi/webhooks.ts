import { isDeeperThan } from "../../../lib/json.ts";
import type { JsonObject, JsonValue, SourceKind } from "../../../model/event.ts";
import { FIELD_NAMES, type FieldNameKey } from "../../../model/field-names.ts";
import { objectOf } from "../device-values.ts";
import { wellKnownValue } from "./alarm-parameters.ts";
import { redactSecrets } from "../redact-secrets.ts";
import type { ReadContext, ParsedEvent, Reading } from "../reading.ts";
import { wellFormed } from "../well-formed.ts";
import { readAccess } from "./access.ts";
import { readAlarmBody } from "./alarm-body.ts";
import { readNetwork } from "./network.ts";
import type { OpenEvents } from "./open-events.ts";
import { readProtect } from "./protect.ts";
import { readTalk } from "./talk.ts";

/** Reads the events of one object: none if there is nothing new, undefined if the object is unknown. */
export type ReadObject = (
  object: JsonObject,
  context: ReadContext,
  open: OpenEvents,
) => readonly ParsedEvent[] | undefined;

/** Readers by sender, which is the last part of the path. A new sender is one line here. */
const READERS = {
  network: readNetwork,
  protect: readProtect,
  access: readAccess,
  talk: readTalk,
} as const satisfies Partial<Record<SourceKind, ReadObject>>;

export type BodyName = keyof typeof READERS;
export const BODY_NAMES = Object.keys(READERS) as BodyName[];

/** Objects in one body; a body with more is refused as a whole. */
export const BODY_OBJECTS_MAX = 2000;
const DEPTH_MAX = 32;
const WELL_KNOWN_NAMES = Object.keys(FIELD_NAMES) as FieldNameKey[];

/**
 * Reads the JSON of a controller: an object or an array of objects. `open` holds the open events of the whole service across
 * bodies. Never throws; an object that no reader understands becomes an event of type `unparsed`.
 */
export function readBody(name: BodyName, body: JsonValue, context: ReadContext, open: OpenEvents): Reading {
  if (typeof body !== "object" || body === null) return refused("the body is neither an object nor a list of objects");
  if (isDeeperThan(body, DEPTH_MAX)) return refused(`the body is nested deeper than ${DEPTH_MAX}`);
  const objects = objectsOf(wellFormed(body));
  if (objects.length > BODY_OBJECTS_MAX) return refused(`the body has more than ${BODY_OBJECTS_MAX} objects`);
  const events = objects.flatMap((one) => {
    const object = objectOf(one);
    if (!object) return [unparsed(name, { body: one })];
    return readAlarmBody(name, object, context) ?? READERS[name](object, context, open) ?? [unparsed(name, object)];
  });
  for (const { raw } of events) {
    redactSecrets(raw);
    keepTypes(raw);
  }
  return events.length > 0 ? { kind: "events", events } : { kind: "nothing" };
}

/** Renames a body's own field that has a well-known name but not its type to `<name>_told`. */
function keepTypes(raw: JsonObject): void {
  for (const name of WELL_KNOWN_NAMES) {
    const value = raw[name];
    if (value === undefined) continue;
    const own = wellKnownValue(name, value);
    if (own !== undefined) raw[name] = own;
    else {
      delete raw[name];
      if (value !== null && value !== "") raw[`${name}_told`] = value;
    }
  }
}

/** Unwraps `{ meta, data: [...] }` and `{ data: { hits: [...] } }`, as some senders forward API responses of controllers. */
function objectsOf(body: JsonValue): readonly JsonValue[] {
  if (Array.isArray(body)) return body;
  const { data, events } = body as JsonObject;
  const list = objectOf(data)?.["hits"] ?? data;
  if (Array.isArray(list) && !("event" in (body as JsonObject))) return list;
  return Array.isArray(events) ? events : [body];
}

function unparsed(source: BodyName, raw: JsonObject): ParsedEvent {
  return { type: "unparsed", source, severity: "info", timestampMs: null, raw };
}

function refused(message: string): Reading {
  return { kind: "refused", reason: "malformed", message };
}
