import type { EventClass, JsonObject, JsonValue, Severity } from "../../../model/event.ts";
import { wordsOf } from "./alarm-kinds.ts";
import { accessMethodOf, listOf, macOf, objectOf, put, textOf, typeOf } from "../device-values.ts";
import type { ReadContext, ParsedEvent } from "../reading.ts";
import { readAnyTime } from "../device-times.ts";

// UniFi Access: named notifications, and entries of its log.

interface AccessMeaning {
  readonly type: string;
  readonly severity?: Severity;
  readonly class?: EventClass;
}

/** Undefined if the object is neither a notification nor a log entry. */
export function readAccess(object: JsonObject, context: ReadContext): readonly ParsedEvent[] | undefined {
  const name = textOf(object["event"]);
  const data = objectOf(object["data"]);
  const log = objectOf(data?.["_source"]) ?? objectOf(object["_source"]) ?? (objectOf(object["event"]) && object);
  if (log) return [readLog(object, log, context)];
  if (name === undefined) return undefined;
  // A keep-alive, sent every few seconds.
  if (name === "access.base.info") return [];
  return [readNotification(name, object, data ?? {}, context)];
}

type NotificationParts = Readonly<Record<"location" | "device" | "actor" | "object", JsonObject>>;

/** Meanings of notifications that do not follow from the name alone. */
const NOTIFICATIONS: Readonly<Record<string, (parts: NotificationParts, data: JsonObject) => AccessMeaning>> = {
  // Without a result field the name counts: the door was unlocked.
  "access.door.unlock": ({ object }) => outcomeOf(resultOf(object) ?? "Access Granted"),
  "access.data.device.remote_unlock": () => ({ type: "door_unlocked", severity: "low" }),
  "access.remote_view": () => ({ type: "doorbell" }),
  "access.remote_view.change": () => ({ type: "doorbell_ended" }),
  "access.doorbell.incoming": () => ({ type: "doorbell" }),
  "access.doorbell.incoming.REN": () => ({ type: "doorbell" }),
  "access.doorbell.completed": () => ({ type: "doorbell_ended" }),
  "access.device.dps_status": ({ object }) => doorStatus(object),
  "access.device.emergency_status": ({ object }, data) => emergency({ ...data, ...object }),
  "access.unlock_schedule.activate": () => ({ type: "unlock_schedule_started" }),
  "access.unlock_schedule.deactivate": () => ({ type: "unlock_schedule_ended" }),
  "access.temporary_unlock.start": () => ({ type: "temporary_unlock_started", severity: "low" }),
  "access.temporary_unlock.end": () => ({ type: "temporary_unlock_ended" }),
  "access.visitor.status.changed": ({ object }, data) => visitor({ ...data, ...object }),
  "access.data.device.update": (_, data) => deviceStatus(data),
  "access.data.v2.device.update": (_, data) => deviceStatus(data),
};

function readNotification(name: string, body: JsonObject, data: JsonObject, context: ReadContext): ParsedEvent {
  const part = (key: keyof NotificationParts) => objectOf(data[key]) ?? {};
  const parts = { location: part("location"), device: part("device"), actor: part("actor"), object: part("object") };
  const meaning: AccessMeaning = Object.hasOwn(NOTIFICATIONS, name)
    ? NOTIFICATIONS[name]!(parts, data)
    : { type: typeOf(name, "access"), class: "audit" };
  const { location, device, actor, object } = parts;
  const raw: JsonObject = { ...body };
  put(raw, "event_name", name);
  put(raw, "user", nameOf(actor));
  const isDoor = textOf(data["location_type"]) === "door";
  const doorName = (textOf(location["location_type"]) ?? "door") === "door" ? location["name"] : undefined;
  put(raw, "door", textOf(doorName ?? data["door_name"] ?? (isDoor ? data["name"] : undefined)));
  // A floor is a zone of the site, not a site of its own.
  put(raw, "zone", textOf(data["floor_name"]));
  put(raw, "device", textOf(device["alias"] ?? device["name"] ?? data["device_name"] ?? data["alias"]));
  if (raw["device"] === undefined && !isDoor) put(raw, "device", textOf(data["name"]));
  // The hub identifies a door without a name.
  if (meaning.type.startsWith("door_") && raw["door"] === undefined) put(raw, "door", textOf(raw["device"]));
  put(raw, "device_ip", textOf(data["ip"]));
  put(raw, "device_mac", macOf(data["mac"]));
  put(raw, "version", textOf(data["firmware"]));
  put(raw, "direction", textOf(data["in_or_out"]));
  put(raw, "method", name.endsWith("remote_unlock") ? "remote" : accessMethodOf(object["authentication_type"]));
  put(raw, "visitor", name.startsWith("access.visitor") ? textOf(object["name"] ?? actor["name"]) : undefined);
  const reasonCode = object["reason_code"] ?? data["reason_code"];
  put(
    raw,
    "reason",
    textOf(object["reason"]) ?? doorbellReason(reasonCode) ?? reasonOf(meaning, textOf(object["result"])),
  );
  put(raw, "duration_s", typeof object["duration"] === "number" ? object["duration"] : undefined);
  const { type, severity = "info", class: eventClass } = meaning;
  const timestampMs = readAnyTime(data["create_time"] ?? body["timestamp"], context);
  return { type, source: "access", severity, class: eventClass, timestampMs, raw };
}

/** Reads a log entry: actor, credential, door and result. */
function readLog(body: JsonObject, log: JsonObject, context: ReadContext): ParsedEvent {
  const event = objectOf(log["event"]) ?? {};
  const actor = objectOf(log["actor"]) ?? {};
  const authentication = objectOf(log["authentication"]) ?? {};
  const targets = listOf(log["target"]).map(objectOf);
  const target = (type: string) => textOf(targets.find((one) => one?.["type"] === type)?.["display_name"]);
  const name = textOf(event["type"]) ?? "access.log";
  const result = resultOf(event);
  const isUnlock = name.startsWith("access.door") || name === "access.log";
  const meaning: AccessMeaning =
    result !== undefined && isUnlock ? outcomeOf(result) : { type: typeOf(name, "access"), class: "audit" };
  const raw: JsonObject = { ...body };
  put(raw, "event_name", name);
  put(raw, "user", nameOf(actor));
  put(raw, "door", target("door") ?? textOf(targets[0]?.["display_name"]));
  put(raw, "device", target("UAH") ?? target("device") ?? target("hub"));
  put(raw, "site", target("building") ?? target("site"));
  put(raw, "zone", target("floor"));
  const method = accessMethodOf(authentication["credential_provider"]);
  put(raw, "method", method);
  put(raw, method === "plate" ? "plate" : "badge", textOf(authentication["issuer"]));
  put(raw, "message", textOf(event["display_message"]));
  put(raw, "reason", textOf(event["reason"]) ?? reasonOf(meaning, textOf(event["display_message"])));
  const data = objectOf(body["data"]);
  put(raw, "event_id", textOf(data?.["_id"] ?? body["_id"]));
  const timestampMs =
    readAnyTime(event["published"], context) ?? readAnyTime(data?.["@timestamp"] ?? body["@timestamp"], context);
  const { type, severity = "info", class: eventClass } = meaning;
  return { type, source: "access", severity, class: eventClass, timestampMs, raw };
}

/** Undefined for an actor without an id: all strangers of a day must not count as one person named Unknown. */
function nameOf(actor: JsonObject): string | undefined {
  return actor["id"] === "" ? undefined : textOf(actor["display_name"] ?? actor["name"]);
}

/** The result; empty if the field is there without a value, in which case access was not confirmed. */
function resultOf(object: JsonObject): string | undefined {
  return "result" in object ? (textOf(object["result"]) ?? "") : undefined;
}

const INCOMPLETE = /\b(incomplete|time(d )?out|abort(s|ed)?|cancel(s|l?ed)?|pending)\b/;
const REFUSED =
  /\b(den(y|ies|ied)|block|fail|reject|refus|declin|invalid|illegal|unauthori[sz]ed|unsuccessful|forbid|prohibit|expire|revoke|disabled|inactive|suspended|false\b)|\b(not|never|cannot|unable)\b|\bno (access|entry|permission)/;
const GRANTED =
  /^access$|\b(grant(s|ed)?|allow(s|ed)?|permit(s|ted)?|accept(s|ed)?|approved|authori[sz]ed|success(ful|fully)?|succeeded|unlock(s|ed)?|open(s|ed)?|valid|pass(ed)?|ok|true)\b/;

/**
 * Meaning of `ACCESS`, `BLOCKED`, `INCOMPLETE`, and of sentences with such words. Access counts as granted only if the result
 * says so; an unknown word is incomplete.
 */
function outcomeOf(result: string): AccessMeaning {
  const words = wordsOf(result).trim();
  if (REFUSED.test(words)) return { type: "access_denied", severity: "medium" };
  const isGranted = GRANTED.test(words) && !INCOMPLETE.test(words);
  return isGranted ? { type: "access_granted" } : { type: "access_incomplete", severity: "low" };
}

/** Reason of a refusal: the sentence, unless it only repeats that access was refused. */
function reasonOf({ type }: AccessMeaning, sentence: string | undefined): string | undefined {
  const isEmpty =
    sentence === undefined || /^(?:access[ _]?)?(?:den(?:y|ied)|blocked|refused|rejected)$/i.test(sentence);
  return type === "access_denied" && !isEmpty ? sentence : undefined;
}

function doorStatus(object: JsonObject): AccessMeaning {
  const words = wordsOf(`${textOf(object["event_type"]) ?? ""} ${textOf(object["status"]) ?? ""}`);
  if (/\bforc|\bbreak/.test(words)) return { type: "door_forced", severity: "high" };
  if (/\b(held|left|ajar|long)\b/.test(words)) return { type: "door_held", severity: "medium" };
  if (/open/.test(words)) return { type: "door_opened" };
  return /clos/.test(words) ? { type: "door_closed" } : { type: "door_status" };
}

/** Fields that name the emergency, or say that there is none. */
const EMERGENCY_WORDS = ["mode", "status", "state", "type", "event_type", "value"] as const;
const OVER = /\b(normal|none|off|inactive|deactivated|disabled|cleared|ended|over|cancell?ed|idle|false)\b/;

/** An emergency is over only if the body says so: one alarm too many is better. */
function emergency(object: JsonObject): AccessMeaning {
  const words = wordsOf(EMERGENCY_WORDS.map((name) => String(object[name] ?? "")).join(" "));
  const flags = Object.entries(object)
    .filter((entry): entry is [string, boolean] => typeof entry[1] === "boolean" && entry[0] !== "value")
    .map(([name, isOn]) => ({ kind: emergencyKind(wordsOf(name)), isOn }))
    .filter(({ kind }) => kind !== undefined);
  const raised = flags.find(({ isOn }) => isOn);
  const kinds = new Set(flags.map(({ kind }) => kind));
  const kind = raised?.kind ?? emergencyKind(words) ?? (kinds.size === 1 ? flags[0]!.kind! : "emergency");
  const isOver = raised === undefined && (OVER.test(words) || (flags.length > 0 && emergencyKind(words) === undefined));
  return isOver ? { type: `${kind}_ended`, severity: "medium" } : { type: kind, severity: "critical" };
}

/** Matches words within names, such as `software_lockdown`. */
function emergencyKind(words: string): string | undefined {
  if (/\block ?down\b/.test(words)) return "lockdown";
  if (/\bevac/.test(words)) return "evacuation";
  return /\bemergency\b/.test(words) ? "emergency" : undefined;
}

function visitor(object: JsonObject): AccessMeaning {
  const status =
    textOf(object["status"] ?? object["visitor_status"])
      ?.slice(0, 100)
      .toLowerCase() ?? "";
  if (/visited|check.?in|arrived|\bactive/.test(status)) return { type: "visitor_checked_in" };
  if (/check.?out|left|complete/.test(status)) return { type: "visitor_checked_out" };
  return { type: "visitor_status_changed" };
}

function deviceStatus(data: JsonObject): AccessMeaning {
  const isOffline = data["is_online"] === false || data["online"] === false || data["is_connected"] === false;
  return isOffline ? { type: "device_offline", severity: "medium" } : { type: "device_updated" };
}

const DOORBELL_REASONS: Readonly<Record<number, string>> = {
  105: "nobody answered",
  106: "refused",
  107: "let in",
  108: "cancelled by the visitor",
  400: "answered elsewhere",
};

function doorbellReason(code: JsonValue | undefined): string | undefined {
  return typeof code === "number" ? DOORBELL_REASONS[code] : undefined;
}
