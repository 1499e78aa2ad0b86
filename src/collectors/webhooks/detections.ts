import type { JsonObject, Severity } from "../../model/event.ts";
import { alarmKind } from "../alarm-kinds.ts";
import { objectOf, textOf, typeOf } from "../fields.ts";

// What cameras, sensors and lights see, in our words.

interface DetectionKind {
  readonly type: string;
  readonly severity: Severity;
  /** It is no camera that saw it. */
  readonly isAtSensor: boolean;
}

const seen = (type: string, severity: Severity = "info"): DetectionKind => ({ type, severity, isAtSensor: false });
const sensed = (type: string, severity: Severity = "info"): DetectionKind => ({ type, severity, isAtSensor: true });

const KINDS: Readonly<Record<string, DetectionKind>> = {
  motion: seen("motion"),
  person: seen("person", "low"),
  vehicle: seen("vehicle"),
  animal: seen("animal"),
  package: seen("package"),
  face: seen("face"),
  licensePlate: seen("license_plate"),
  smartDetectLoiterZone: seen("loitering", "low"),
  smartDetectZone: seen("detection"),
  smartDetectLine: seen("detection"),
  smartAudioDetect: seen("sound"),
  alrmSmoke: seen("smoke_alarm", "critical"),
  smoke_cmonx: seen("smoke_alarm", "critical"),
  alrmCmonx: seen("carbon_monoxide_alarm", "critical"),
  alrmGlassBreak: seen("glass_break", "high"),
  alrmBurglar: seen("burglar_alarm", "high"),
  alrmSiren: seen("siren", "medium"),
  ring: seen("doorbell"),
  disconnect: seen("camera_offline", "medium"),
  cameraDisconnected: seen("camera_offline", "medium"),
  cameraConnected: seen("camera_online"),
  deviceDisconnected: sensed("device_offline", "medium"),
  deviceConnected: sensed("device_online"),
  tamper: seen("tamper", "high"),
  cameraTampered: seen("tamper", "high"),
  smartDetectTamper: seen("tamper", "high"),
  recordingOff: seen("recording_stopped", "high"),
  recordingDeleted: seen("recording_deleted", "medium"),
  videoDeleted: seen("video_deleted", "medium"),
  recordingModeChanged: seen("recording_mode_changed", "low"),
  driveFailed: sensed("disk_failed", "high"),
  storageFull: sensed("storage_full", "high"),
  nfcCardScanned: seen("badge_scanned"),
  fingerprintIdentified: seen("fingerprint_identified"),
  sensorMotion: sensed("sensor_motion"),
  sensorOpened: sensed("sensor_opened", "low"),
  sensorClosed: sensed("sensor_closed"),
  sensorAlarm: sensed("sensor_alarm", "high"),
  sensorTampered: sensed("tamper", "high"),
  sensorTamper: sensed("tamper", "high"),
  sensorWaterLeak: sensed("water_leak", "high"),
  sensorExtremeValues: sensed("sensor_extreme_values", "medium"),
  sensorBatteryLow: sensed("battery_low", "low"),
  lightMotion: sensed("light_motion"),
  doorAccess: seen("door_access"),
  access: sensed("admin_login"),
  deviceAdopted: sensed("device_adopted", "low"),
  deviceUpdate: sensed("device_updated"),
};

/** Those that say what they saw in a list of its own. */
const WITH_LIST = new Set(["smartDetectZone", "smartDetectLine", "smartAudioDetect"]);
const TYPES_MAX = 16;

/** All that one detection is, by the device's own words. */
export function typesOf(type: string | undefined, detected: readonly string[]): string[] {
  const distinct = [...new Set(detected)].slice(0, TYPES_MAX);
  if (type === undefined) return distinct;
  return WITH_LIST.has(type) && distinct.length > 0 ? distinct : [type];
}

/** Alarms have words of their own for what frames tell of, much like those of CEF lines. */
function kindOfWord(word: string): DetectionKind {
  const { type, severity = "info" } = alarmKind("protect", word, "");
  const isAtSensor = /^(?:sensor|light|chime|device)/i.test(word);
  if (type === undefined) return { type: typeOf(word, "detection"), severity, isAtSensor };
  return { type: isAtSensor ? type.replace(/^camera_/, "device_") : type, severity, isAtSensor };
}

/** `item` may say that a card or finger belongs to nobody who is known, or that a door stayed closed. */
export function detectionKind(word: string, item?: JsonObject): DetectionKind {
  const kind = Object.hasOwn(KINDS, word) ? KINDS[word]! : kindOfWord(word);
  const metadata = objectOf(item?.["metadata"]);
  if (kind.type === "fingerprint_identified" && metadata && isNobody(metadata["fingerprint"])) {
    return seen("fingerprint_unknown", "low");
  }
  if (kind.type === "door_access" && metadata?.["openSuccess"] === false) return seen("access_denied", "medium");
  return kind.type === "badge_scanned" && metadata && isNobody(metadata["nfc"]) ? seen("unknown_badge", "low") : kind;
}

function isNobody(value: unknown): boolean {
  const { ulpId, userId } = objectOf(value) ?? {};
  return textOf(ulpId) === undefined && textOf(userId) === undefined;
}
