import { isDeeperThan } from "../../lib/json.ts";
import type { JsonObject, JsonValue, SourceKind } from "../../model/event.ts";
import { FIELD_NAMES, type FieldNameKey } from "../../model/field-names.ts";
import { objectOf } from "../fields.ts";
import { ownValue } from "../parameters.ts";
import { hideSecrets } from "../secrets.ts";
import type { ReadContext, ReadEvent, Reading } from "../reading.ts";
import { wellFormed } from "../well-formed.ts";
import { readAccess } from "./access.ts";
import { readAlarmBody } from "./alarm-body.ts";
import { readNetwork } from "./network.ts";
import type { OpenEvents } from "./open-events.ts";
import { readProtect } from "./protect.ts";
import { readTalk } from "./talk.ts";

/** Gives the events of one object; none where there is nothing new; undefined where it does not know the object. */
export type ReadObject = (
  object: JsonObject,
  context: ReadContext,
  open: OpenEvents,
) => readonly ReadEvent[] | undefined;

/** Whose bodies are read: the last part of the path that they are sent to. A line here is one more sender. */
const READERS = {
  network: readNetwork,
  protect: readProtect,
  access: readAccess,
  talk: readTalk,
} as const satisfies Partial<Record<SourceKind, ReadObject>>;

export type BodyName = keyof typeof READERS;
export const BODY_NAMES = Object.keys(READERS) as BodyName[];

/** Objects in one body; one with more is refused as a whole. */
export const BODY_OBJECTS_MAX = 2000;
const DEPTH_MAX = 32;
const OUR_NAMES = Object.keys(FIELD_NAMES) as FieldNameKey[];

/**
 * What became of the JSON that a controller has sent: an object, or an array of them. `open` remembers what has begun and
 * not ended; one for the whole service, kept from body to body. Never throws; what no reader knows is an event of the type
 * `unparsed`.
 */
export function readBody(name: BodyName, body: JsonValue, context: ReadContext, open: OpenEvents): Reading {
  if (typeof body !== "object" || body === null) return refused("it is neither an object nor a list of objects");
  if (isDeeperThan(body, DEPTH_MAX)) return refused(`the body is nested deeper than ${DEPTH_MAX}`);
  const objects = objectsOf(wellFormed(body));
  if (objects.length > BODY_OBJECTS_MAX) return refused(`the body has more than ${BODY_OBJECTS_MAX} objects`);
  const events = objects.flatMap((one) => {
    const object = objectOf(one);
    if (!object) return [unparsed(name, { body: one })];
    return readAlarmBody(name, object, context) ?? READERS[name](object, context, open) ?? [unparsed(name, object)];
  });
  for (const { raw } of events) {
    hideSecrets(raw);
    keepTypes(raw);
  }
  return events.length > 0 ? { kind: "events", events } : { kind: "nothing" };
}

/** A body's own field that has one of our names but cannot be what the name means stands beside it. */
function keepTypes(raw: JsonObject): void {
  for (const name of OUR_NAMES) {
    const value = raw[name];
    if (value === undefined) continue;
    const own = ownValue(name, value);
    if (own !== undefined) raw[name] = own;
    else {
      delete raw[name];
      if (value !== null && value !== "") raw[`${name}_told`] = value;
    }
  }
}

/** Controllers answer questions with `{ meta, data: [...] }` or `{ data: { hits: [...] } }`, and some senders pass that on as it is. */
function objectsOf(body: JsonValue): readonly JsonValue[] {
  if (Array.isArray(body)) return body;
  const { data, events } = body as JsonObject;
  const list = objectOf(data)?.["hits"] ?? data;
  if (Array.isArray(list) && !("event" in (body as JsonObject))) return list;
  return Array.isArray(events) ? events : [body];
}

function unparsed(source: BodyName, raw: JsonObject): ReadEvent {
  return { type: "unparsed", source, severity: "info", timestampMs: null, raw };
}

function refused(message: string): Reading {
  return { kind: "refused", reason: "malformed", message };
}
