import type { JsonObject } from "../../../model/event.ts";
import { listOf, macOf, objectOf, put, textOf, typeOf } from "../device-values.ts";
import type { ReadContext, ParsedEvent } from "../reading.ts";
import { readAnyTime } from "../device-times.ts";
import { detectionKind, typesOf } from "./camera-detections.ts";
import type { OpenEvents } from "./open-events.ts";

// UniFi Protect: alarms, and frames of its event stream, which report a detection in parts.

/** Triggers of one alarm that become events. Limited because the `raw` of each contains all of them. */
const TRIGGERS_MAX = 64;

/** Undefined if the object is neither an alarm nor a frame. */
export function readProtect(
  object: JsonObject,
  context: ReadContext,
  open: OpenEvents,
): readonly ParsedEvent[] | undefined {
  const alarm = objectOf(object["alarm"]) ?? (Array.isArray(object["triggers"]) ? object : undefined);
  if (alarm) return readAlarm(object, alarm, context, open);
  const item = objectOf(object["item"]);
  if (item) return readItem(item, { frame: textOf(object["type"]) ?? null }, context, open);
  return readItem(object, {}, context, open);
}

function readAlarm(
  object: JsonObject,
  alarm: JsonObject,
  context: ReadContext,
  open: OpenEvents,
): readonly ParsedEvent[] {
  const triggers = listOf(alarm["triggers"])
    .map(objectOf)
    .filter((trigger) => trigger !== undefined)
    .slice(0, TRIGGERS_MAX);
  const [condition] = listOf(alarm["conditions"]).map((one) => objectOf(objectOf(one)?.["condition"]));
  const [source] = listOf(alarm["sources"]).map(objectOf);
  const fallback: JsonObject = {
    key: condition?.["source"] ?? alarm["name"] ?? "alarm",
    device: source?.["device"] ?? null,
  };
  return (triggers.length > 0 ? triggers : [fallback]).map((trigger) => {
    const raw: JsonObject = { ...object };
    const key = textOf(trigger["key"]) ?? "alarm";
    const [kind] = typesOf(key, []);
    const { type, severity, isAtSensor } = detectionKind(kind!);
    put(raw, "event_name", textOf(alarm["name"]));
    put(raw, "event_id", textOf(trigger["eventId"]));
    putDevice(raw, textOf(trigger["deviceName"]) ?? nameOf(trigger["device"], open), isAtSensor);
    put(raw, "device_mac", macOf(trigger["device"]));
    put(raw, "zone", zoneOf(trigger));
    if (type === "license_plate") put(raw, "plate", plateOf(trigger));
    else if (type === "face" && !key.endsWith("unknown")) put(raw, "user", nameIn(trigger));
    if (type === "license_plate" || type === "face") putKnown(raw, key);
    put(raw, "url", textOf(alarm["eventLocalLink"]));
    const timestampMs = readAnyTime(trigger["timestamp"], context) ?? readAnyTime(object["timestamp"], context);
    return { type, source: "protect", severity, timestampMs, raw };
  });
}

/** Name of the first named zone. */
function zoneOf(trigger: JsonObject): string | undefined {
  const zones = objectOf(trigger["zones"]);
  const [zone] = [...listOf(zones?.["zone"]), ...listOf(zones?.["line"]), ...listOf(zones?.["loiter"])];
  return typeof zone === "object" ? textOf(objectOf(zone)?.["name"]) : textOf(zone);
}

function plateOf(trigger: JsonObject): string | undefined {
  return textOf(trigger["value"]) ?? textOf(trigger["licensePlate"]) ?? nameIn(trigger);
}

function nameIn(trigger: JsonObject): string | undefined {
  return textOf(trigger["value"]) ?? textOf(objectOf(trigger["group"])?.["name"]);
}

/** Reads from the key whether a face or plate has been named: `face_unknown`, `license_plate_known`, `face_of_interest`. */
function putKnown(raw: JsonObject, key: string): void {
  const [, is] = /_((?:un)?known|of_interest)$/.exec(key) ?? [];
  if (is === undefined) return;
  put(raw, "category", key);
  if (is !== "of_interest") put(raw, "known", is === "known");
}

function nameOf(id: unknown, open: OpenEvents): string | undefined {
  const text = textOf(id);
  return text === undefined ? undefined : (open.nameOf(text) ?? text);
}

function putDevice(raw: JsonObject, name: string | undefined, isAtSensor: boolean): void {
  if (name === undefined) return;
  if (!isAtSensor) raw["camera"] = name;
  raw["device"] = name;
}

function readItem(
  item: JsonObject,
  more: JsonObject,
  context: ReadContext,
  open: OpenEvents,
): readonly ParsedEvent[] | undefined {
  const model = textOf(item["modelKey"]);
  const isEvent = model === "event" || (model === undefined && textOf(item["type"]) !== undefined && "start" in item);
  if (isEvent) return readDetection(item, more, context, open);
  return model === undefined ? undefined : [readDevice(model, item, more, context, open)];
}

/** Reports the news of a frame: types detected since the last frame, and the end. */
function readDetection(
  item: JsonObject,
  more: JsonObject,
  context: ReadContext,
  open: OpenEvents,
): readonly ParsedEvent[] {
  const id = textOf(item["id"]);
  const before = id === undefined ? undefined : open.get(id);
  const startMs = readAnyTime(item["start"], context) ?? before?.startMs ?? null;
  // Frames may arrive out of order: a start that follows its end has its duration.
  const endMs = readAnyTime(item["end"], context) ?? before?.endMs ?? null;
  const type = textOf(item["type"]) ?? before?.type;
  const device = textOf(item["camera"] ?? item["device"]) ?? before?.device;
  const listed = listOf(item["smartDetectTypes"]).filter((one) => typeof one === "string");
  // An update without types adds none.
  const lacksTypes = listed.length === 0 && before !== undefined && before.types.length > 0;
  const types = lacksTypes ? [] : typesOf(type, listed);
  const fresh = types.filter((one) => before === undefined || !before.types.includes(one));
  const known = [...(before?.types ?? []), ...fresh];
  if (id !== undefined) {
    open.set(id, { types: known, type, startMs, endMs, device, hasEnded: endMs !== null });
  }
  const durationMs = endMs !== null && startMs !== null && endMs >= startMs ? endMs - startMs : undefined;
  const detection = { item, more, device, durationMs, known, open };
  const events = fresh.map((one) => detected(one, startMs ?? endMs, detection));
  const isEnd = endMs !== null && before?.hasEnded !== true;
  // The return of a camera is reported even if it arrives together with its loss.
  const wasOffline = known.some((one) => detectionKind(one).type === "camera_offline");
  if (isEnd && (wasOffline || fresh.length === 0)) events.push(ended(endMs, wasOffline, detection));
  return events;
}

interface CameraDetection {
  readonly item: JsonObject;
  readonly more: JsonObject;
  readonly device: string | undefined;
  readonly durationMs: number | undefined;
  readonly known: readonly string[];
  readonly open: OpenEvents;
}

function detected(one: string, timestampMs: number | null, detection: CameraDetection): ParsedEvent {
  const { type, severity, isAtSensor } = detectionKind(one, detection.item);
  return { type, source: "protect", severity, timestampMs, raw: rawOf(detection, isAtSensor) };
}

function ended(timestampMs: number, wasOffline: boolean, detection: CameraDetection): ParsedEvent {
  const raw = rawOf(detection, false);
  if (detection.known.length > 0) raw["detections"] = detection.known.map((one) => detectionKind(one).type);
  const type = wasOffline ? "camera_online" : "detection_ended";
  return { type, source: "protect", severity: "info", timestampMs, raw };
}

function rawOf({ item, more, device, durationMs, open }: CameraDetection, isAtSensor: boolean): JsonObject {
  const raw: JsonObject = { ...item, ...more };
  const metadata = objectOf(item["metadata"]);
  const metadataText = (name: string) => textOf(objectOf(metadata?.[name])?.["text"]);
  const name = metadataText("sensorName") ?? metadataText("lightName") ?? metadataText("name");
  putDevice(raw, name ?? nameOf(device ?? metadataText("sensorId") ?? metadataText("lightId"), open), isAtSensor);
  if (raw["camera"] === null) delete raw["camera"];
  if (!isAtSensor && device !== undefined && raw["camera"] !== device) raw["camera_id"] = device;
  if (durationMs !== undefined) raw["duration_s"] = durationMs / 1000;
  put(raw, "event_id", textOf(item["id"]));
  put(raw, "reason", textOf(metadata?.["reason"]));
  const nfc = objectOf(metadata?.["nfc"]);
  const fingerprint = objectOf(metadata?.["fingerprint"]);
  put(raw, "badge", textOf(nfc?.["nfcId"]));
  const user = nfc?.["ulpId"] ?? nfc?.["userId"] ?? fingerprint?.["ulpId"] ?? metadata?.["userName"];
  put(raw, "user", textOf(user) ?? metadataText("userName") ?? metadataText("adoptedBy"));
  put(raw, "device_mac", macOf(metadataText("mac")));
  const plate = objectOf(metadata?.["licensePlate"]);
  put(raw, "plate", textOf(plate?.["name"] ?? metadata?.["licensePlate"]));
  put(raw, "service", textOf(metadata?.["clientPlatform"]));
  return raw;
}

/** Reads the state of a camera, sensor or light. Learns its name; going offline or online is an event. */
function readDevice(
  model: string,
  item: JsonObject,
  more: JsonObject,
  context: ReadContext,
  open: OpenEvents,
): ParsedEvent {
  const id = textOf(item["id"]);
  const name = textOf(item["name"]);
  const mac = textOf(item["mac"]);
  if (name !== undefined && id !== undefined) open.learnName(id, name);
  if (name !== undefined && mac !== undefined) open.learnName(mac, name);
  const raw: JsonObject = { ...item, ...more };
  const state = textOf(item["state"]);
  // Users and keys have the same form, without these fields.
  if (mac !== undefined || state !== undefined) putDevice(raw, name ?? nameOf(id, open), model !== "camera");
  put(raw, "device_mac", macOf(mac));
  const timestampMs = readAnyTime(item["lastSeen"], context);
  const kind = model === "camera" ? "camera" : "device";
  if (state === "DISCONNECTED") {
    // `lastSeen` is not the time at which it went offline.
    return { type: `${kind}_offline`, source: "protect", severity: "medium", timestampMs: null, raw };
  }
  const isBack = state === "CONNECTED" && more["frame"] === "update";
  const type = isBack ? `${kind}_online` : `${typeOf(model, "device")}_updated`;
  return { type, source: "protect", severity: "info", class: "audit", timestampMs, raw };
}
