import type { EventClass, JsonObject, Severity } from "../../../model/event.ts";
import {
  actionOf,
  addressOf,
  integerOf,
  listOf,
  macOf,
  objectOf,
  portOf,
  protocolOf,
  put,
  secondsOf,
  textOf,
  typeOf,
} from "../device-values.ts";
import { completeRogueAccessPoint, completeTarget } from "./alarm.ts";
import { alarmKind } from "./alarm-kinds.ts";
import type { ReadContext, ParsedEvent } from "../reading.ts";
import { rateThreat } from "../threat-severity.ts";
import { threatClass } from "../threat-classes.ts";
import { readAnyTime } from "../device-times.ts";
import { alarmOf } from "./alarm-body.ts";

// UniFi Network: events of the controller, intrusion reports, and alarms of both generations.

/** Triggers of one alarm that are examined. */
const TRIGGERS_MAX = 64;

/** Undefined if the object is unknown. */
export function readNetwork(object: JsonObject, context: ReadContext): readonly ParsedEvent[] | undefined {
  const key = textOf(object["key"]);
  if (textOf(object["inner_alert_signature"]) !== undefined || key === "EVT_IPS_IpsAlert") {
    return [readThreat(object, context)];
  }
  if (key !== undefined) return [readEvent(key, object, context)];
  const alertKey = textOf(object["alert_key"]);
  if (alertKey !== undefined) return [readAlert(alertKey, object, context)];
  const alarm = objectOf(object["alarm"]);
  return alarm && readOlderAlarm(object, alarm, context);
}

function readThreat(object: JsonObject, context: ReadContext): ParsedEvent {
  const raw: JsonObject = { ...object };
  const category = textOf(object["inner_alert_category"]);
  putEnds(raw, object);
  put(raw, "signature_id", integerOf(object["inner_alert_signature_id"]));
  put(raw, "signature", textOf(object["inner_alert_signature"]));
  put(raw, "category", category && threatClass(category));
  put(raw, "action", actionOf(object["inner_alert_action"]));
  const severity = rateThreat(raw, object["inner_alert_severity"]);
  return { type: "ids_alert", source: "network", severity, timestampMs: timeOf(object, context), raw };
}

/** Prefix of event names in alarms. */
const EVENT_PREFIX = /^event\./;

/**
 * Reads `{ id: "event.threat_detected", alert_key: "THREAT_BLOCKED_V3", alert_id, scope: { site_id } }`: the alarm manager
 * names the event and refers to the controller's record. The id gives the type, the key the action.
 */
function readAlert(key: string, object: JsonObject, context: ReadContext): ParsedEvent {
  const name = textOf(object["id"])?.replace(EVENT_PREFIX, "");
  const scope = objectOf(object["scope"]) ?? {};
  const known = [name, key].find((words) => words !== undefined && alarmKind("network", words, "").type !== undefined);
  const event = alarmOf("network", known ?? name ?? key, { ...scope, ...object }, context);
  const raw: JsonObject = { ...object, ...event.raw, event_name: key };
  delete raw["id"];
  put(raw, "event_id", textOf(object["alert_id"]));
  put(raw, "site", textOf(object["site_name"] ?? scope["site_name"] ?? scope["site_id"]));
  put(raw, "src_mac", macOf(scope["client_mac"]));
  put(raw, "device_mac", macOf(scope["device_mac"]));
  if (event.type === "ids_alert") put(raw, "action", actionOf(key.replaceAll("_", " ")) ?? "allow");
  const timestampMs = event.timestampMs ?? timeOf(object, context);
  return { ...event, timestampMs, raw };
}

function putEnds(raw: JsonObject, object: JsonObject): void {
  const source = addressOf(object["src_ip"]);
  if (source === undefined) {
    put(raw, "src_host", textOf(object["src_ip"]));
    delete raw["src_ip"];
  } else raw["src_ip"] = source;
  const destination = addressOf(object["dest_ip"]);
  put(raw, "dst_ip", destination);
  if (destination === undefined) put(raw, "dst_host", textOf(object["dest_ip"]));
  put(raw, "src_port", portOf(object["src_port"]));
  put(raw, "dst_port", portOf(object["dest_port"]));
  put(raw, "src_mac", macOf(object["src_mac"]));
  put(raw, "dst_mac", macOf(object["dst_mac"]));
  put(raw, "protocol", protocolOf(textOf(object["proto"]) ?? ""));
  put(raw, "app_protocol", textOf(object["app_proto"]));
  put(raw, "in_interface", textOf(object["in_iface"]));
  put(raw, "message", textOf(object["msg"]));
  // The sensor's name, not the machine that the event is about.
  put(raw, "device", textOf(object["host"]));
  delete raw["host"];
}

interface KeyMeaning {
  readonly type: string;
  readonly severity: Severity;
  readonly class?: EventClass;
}

/** Meaning of a key such as `EVT_WU_Connected`; the first matching row counts. */
const KEYS: readonly (readonly [RegExp, KeyMeaning])[] = [
  [/^EVT_[WL][UG]_.*Disconnected/, { type: "client_disconnected", severity: "info" }],
  [/^EVT_[WL][UG]_.*Connected/, { type: "client_connected", severity: "info" }],
  [/^EVT_[WL][UG]_Roam/, { type: "client_roamed", severity: "info" }],
  [/RogueD[Hh][Cc][Pp]/, { type: "rogue_dhcp", severity: "high" }],
  [/Rogue/, { type: "rogue_access_point", severity: "high" }],
  [/^EVT_AD_LoginFailed/, { type: "login_failure", severity: "medium" }],
  [/^EVT_AD_Login/, { type: "admin_login", severity: "info" }],
  [/^EVT_AD_.*(?:Created|Added|Invited)/, { type: "admin_created", severity: "medium" }],
  [/^EVT_AD_/, { type: "config_changed", severity: "low" }],
  [/Lost_?Contact|_Disconnected/, { type: "device_offline", severity: "medium" }],
  [/^EVT_(?:AP|SW|GW|XG|DM)_Connected/, { type: "device_online", severity: "info" }],
  [/Adopted/, { type: "device_adopted", severity: "low" }],
  [/Upgraded/, { type: "firmware_updated", severity: "low" }],
  [/WANTransition|Failover/, { type: "wan_failover", severity: "medium" }],
];

function readEvent(key: string, object: JsonObject, context: ReadContext): ParsedEvent {
  const short = key.slice(0, 100);
  const meaning = KEYS.find(([pattern]) => pattern.test(short))?.[1] ?? otherMeaning(short);
  const raw: JsonObject = { ...object };
  const client = macOf(object["user"]) ?? macOf(object["guest"]) ?? macOf(object["client"]);
  if (client !== undefined) {
    raw["src_mac"] = client;
    // The controller calls a client a user and identifies it by hardware address, which is not a user name.
    if (macOf(object["user"]) !== undefined) delete raw["user"];
  }
  put(raw, "host", textOf(object["hostname"]));
  put(raw, "user", textOf(object["admin"]));
  put(raw, "src_ip", addressOf(object["ip"]));
  const names = ["ap_name", "sw_name", "gw_name", "dm_name", "ap", "sw", "gw", "dm"];
  put(
    raw,
    "device",
    names.map((name) => textOf(object[name])).find((name) => name !== undefined),
  );
  put(raw, "network", textOf(object["ssid"] ?? object["network"]));
  put(raw, "duration_s", secondsOf(object["duration"]));
  put(raw, "message", textOf(object["msg"]));
  put(raw, "site", textOf(object["site_name"] ?? object["site_id"]));
  put(raw, "event_id", textOf(object["_id"]));
  put(raw, "event_name", key);
  if (meaning.type === "firmware_updated" && raw["user"] === undefined) raw["automatic"] = true;
  if (meaning.type === "admin_created") completeTarget(raw);
  else if (meaning.type === "rogue_access_point") completeRogueAccessPoint(raw);
  const timestampMs = timeOf(object, context);
  return { type: meaning.type, source: "network", severity: meaning.severity, class: meaning.class, timestampMs, raw };
}

function otherMeaning(key: string): KeyMeaning {
  return { type: typeOf(key.replace(/^EVT_/, ""), "unnamed"), severity: "info", class: "network" };
}

/** Reads an alarm of older consoles: a name, which a person may have chosen, and its triggers. */
function readOlderAlarm(
  object: JsonObject,
  alarm: JsonObject,
  context: ReadContext,
): readonly ParsedEvent[] | undefined {
  const name = textOf(alarm["name"]);
  if (name === undefined) return undefined;
  const product = textOf(alarm["app"] ?? object["app"]) ?? "network";
  const keys = listOf(alarm["triggers"]).map((trigger) => textOf(objectOf(trigger)?.["key"]));
  const known = [name, ...keys.slice(0, TRIGGERS_MAX)].find(
    (words) => words !== undefined && alarmKind(product, words, "").type !== undefined,
  );
  const event = alarmOf(product, known ?? name, { message: object["message"] ?? null, ...alarm }, context);
  const isRated = known !== undefined || "severity" in alarm;
  return [
    {
      ...event,
      severity: isRated ? event.severity : "medium",
      timestampMs: event.timestampMs ?? readAnyTime(object["timestamp"], context),
      raw: { ...object, ...event.raw, event_name: name },
    },
  ];
}

function timeOf(object: JsonObject, context: ReadContext): number | null {
  return (
    readAnyTime(object["time"], context) ??
    readAnyTime(object["datetime"], context) ??
    readAnyTime(object["timestamp"], context)
  );
}
