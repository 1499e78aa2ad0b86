import type { JsonObject, Severity } from "../../../model/event.ts";
import { alarmKind } from "./alarm-kinds.ts";
import { objectOf, textOf, typeOf } from "../device-values.ts";

// Event types for detections of cameras, sensors and lights.

interface DetectionKind {
  readonly type: string;
  readonly severity: Severity;
  /** True if the source is not a camera. */
  readonly isAtSensor: boolean;
}

const camera = (type: string, severity: Severity = "info"): DetectionKind => ({ type, severity, isAtSensor: false });
const sensor = (type: string, severity: Severity = "info"): DetectionKind => ({ type, severity, isAtSensor: true });

const KINDS: Readonly<Record<string, DetectionKind>> = {
  motion: camera("motion"),
  person: camera("person", "low"),
  vehicle: camera("vehicle"),
  animal: camera("animal"),
  package: camera("package"),
  face: camera("face"),
  licensePlate: camera("license_plate"),
  smartDetectLoiterZone: camera("loitering", "low"),
  smartDetectZone: camera("detection"),
  smartDetectLine: camera("detection"),
  smartAudioDetect: camera("sound"),
  alrmSmoke: camera("smoke_alarm", "critical"),
  smoke_cmonx: camera("smoke_alarm", "critical"),
  alrmCmonx: camera("carbon_monoxide_alarm", "critical"),
  alrmGlassBreak: camera("glass_break", "high"),
  alrmBurglar: camera("burglar_alarm", "high"),
  alrmSiren: camera("siren", "medium"),
  ring: camera("doorbell"),
  disconnect: camera("camera_offline", "medium"),
  cameraDisconnected: camera("camera_offline", "medium"),
  cameraConnected: camera("camera_online"),
  deviceDisconnected: sensor("device_offline", "medium"),
  deviceConnected: sensor("device_online"),
  tamper: camera("tamper", "high"),
  cameraTampered: camera("tamper", "high"),
  smartDetectTamper: camera("tamper", "high"),
  recordingOff: camera("recording_stopped", "high"),
  recordingDeleted: camera("recording_deleted", "medium"),
  videoDeleted: camera("video_deleted", "medium"),
  recordingModeChanged: camera("recording_mode_changed", "low"),
  driveFailed: sensor("disk_failed", "high"),
  storageFull: sensor("storage_full", "high"),
  nfcCardScanned: camera("badge_scanned"),
  fingerprintIdentified: camera("fingerprint_identified"),
  sensorMotion: sensor("sensor_motion"),
  sensorOpened: sensor("sensor_opened", "low"),
  sensorClosed: sensor("sensor_closed"),
  sensorAlarm: sensor("sensor_alarm", "high"),
  sensorTampered: sensor("tamper", "high"),
  sensorTamper: sensor("tamper", "high"),
  sensorWaterLeak: sensor("water_leak", "high"),
  sensorExtremeValues: sensor("sensor_extreme_values", "medium"),
  sensorBatteryLow: sensor("battery_low", "low"),
  lightMotion: sensor("light_motion"),
  doorAccess: camera("door_access"),
  access: sensor("admin_login"),
  deviceAdopted: sensor("device_adopted", "low"),
  deviceUpdate: sensor("device_updated"),
};

/** Detections whose types are in a separate list. */
const WITH_LIST = new Set(["smartDetectZone", "smartDetectLine", "smartAudioDetect"]);
const TYPES_MAX = 16;

/** The types of a detection, in the device's own words. */
export function typesOf(type: string | undefined, detected: readonly string[]): string[] {
  const distinct = [...new Set(detected)].slice(0, TYPES_MAX);
  if (type === undefined) return distinct;
  return WITH_LIST.has(type) && distinct.length > 0 ? distinct : [type];
}

/** Alarms name detections in their own words, similar to CEF lines. */
function kindOfWord(word: string): DetectionKind {
  const { type, severity = "info" } = alarmKind("protect", word, "");
  const isAtSensor = /^(?:sensor|light|chime|device)/i.test(word);
  if (type === undefined) return { type: typeOf(word, "detection"), severity, isAtSensor };
  return { type: isAtSensor ? type.replace(/^camera_/, "device_") : type, severity, isAtSensor };
}

/** `item` may show that a card or fingerprint is unknown, or that a door stayed closed. */
export function detectionKind(word: string, item?: JsonObject): DetectionKind {
  const kind = Object.hasOwn(KINDS, word) ? KINDS[word]! : kindOfWord(word);
  const metadata = objectOf(item?.["metadata"]);
  if (kind.type === "fingerprint_identified" && metadata && isUnknownPerson(metadata["fingerprint"])) {
    return camera("fingerprint_unknown", "low");
  }
  if (kind.type === "door_access" && metadata?.["openSuccess"] === false) return camera("access_denied", "medium");
  return kind.type === "badge_scanned" && metadata && isUnknownPerson(metadata["nfc"])
    ? camera("unknown_badge", "low")
    : kind;
}

function isUnknownPerson(value: unknown): boolean {
  const { ulpId, userId } = objectOf(value) ?? {};
  return textOf(ulpId) === undefined && textOf(userId) === undefined;
}
