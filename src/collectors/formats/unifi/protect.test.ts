import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../../model/event.ts";
import { eventsOf } from "../context.fixture.ts";
import { event, read, types } from "./bodies.fixture.ts";
import { OpenEvents } from "./open-events.ts";

describe("UniFi Protect", () => {
  const trigger = {
    key: "person",
    device: "0200000A0B0C",
    eventId: "e1",
    zones: { zone: ["Yard"], line: [], loiter: [] },
    timestamp: 1_795_000_000_000,
  };
  const alarm = {
    name: "Person at night",
    triggers: [trigger, { key: "vehicle", device: "0200000A0B0C" }],
    eventLocalLink: "https://10.9.0.1/e1",
  };

  test.each<[string, JsonObject]>([
    ["with a wrapper", { alarm, timestamp: 1_795_000_009_000 }],
    ["without one", { ...alarm, timestamp: 1_795_000_009_000 }],
  ])("an alarm %s becomes an event for each trigger", (_, body) => {
    const [person, vehicle] = eventsOf(read("protect", body));
    expect(person).toMatchObject({
      type: "person",
      source: "protect",
      severity: "low",
      timestampMs: 1_795_000_000_000,
      raw: {
        camera: "0200000A0B0C",
        device_mac: "02:00:00:0a:0b:0c",
        zone: "Yard",
        event_id: "e1",
        event_name: "Person at night",
        url: "https://10.9.0.1/e1",
      },
    });
    expect(vehicle).toMatchObject({ type: "vehicle", timestampMs: 1_795_000_009_000 });
  });

  test("the number of triggers that become events is limited, and each event contains all of them", () => {
    const triggers = Array.from({ length: 1000 }, (_, n) => ({ key: "motion", device: `c${n}` }));
    const events = eventsOf(read("protect", { alarm: { name: "all", triggers } }));
    expect(events).toHaveLength(64);
    expect(events[63]!.raw).toMatchObject({ camera: "c63", alarm: { triggers } });
  });

  test("an alarm without triggers has the type of its condition", () => {
    const body = {
      alarm: { name: "x", conditions: [{ condition: { source: "ring" } }], sources: [{ device: "0200000A0B0C" }] },
    };
    expect(event("protect", body)).toMatchObject({ type: "doorbell", raw: { camera: "0200000A0B0C" } });
  });

  test.each([
    ["camera_offline", "camera_offline", "medium"],
    ["camera_online", "camera_online", "info"],
    ["sensor_water_leak", "water_leak", "high"],
    ["sensor_opened", "sensor_opened", "low"],
    ["sensor_offline", "device_offline", "medium"],
    ["audio_alarm_smoke", "smoke_alarm", "critical"],
    ["audio_alarm_co", "carbon_monoxide_alarm", "critical"],
    ["audio_alarm_glass_break", "glass_break", "high"],
    ["audio_alarm_burglar", "burglar_alarm", "high"],
    ["loitering", "loitering", "low"],
    ["face_unknown", "face", "info"],
    ["face_of_interest", "face", "info"],
    ["license_plate_known", "license_plate", "info"],
    ["something_new", "something_new", "info"],
  ])("the trigger %s is %s, with the severity of a frame: %s", (key, type, severity) =>
    expect(event("protect", { alarm: { name: "x", triggers: [{ key, device: "c1" }] } })).toMatchObject({
      type,
      severity,
      class: type === "device_offline" ? "network" : "security",
    }),
  );

  test("a trigger of a sensor has no camera, and one of a plate has the plate", () => {
    const of = (trigger: JsonObject) => event("protect", { alarm: { name: "x", triggers: [trigger] } }).raw;
    expect(of({ key: "sensor_water_leak", device: "s1" })).toMatchObject({ device: "s1" });
    expect(of({ key: "sensor_water_leak", device: "s1" })).not.toHaveProperty("camera");
    const key = "license_plate_unknown";
    expect(of({ key, value: "AB123", device: "c1" })).toMatchObject({ plate: "AB123", camera: "c1" });
    expect(of({ key, group: { name: "AB124" } })).toMatchObject({ plate: "AB124" });
  });

  test("a named face or plate is known and has its owner", () => {
    const of = (trigger: JsonObject) => event("protect", { alarm: { name: "x", triggers: [trigger] } }).raw;
    expect(of({ key: "face_known", value: "Robin" })).toMatchObject({
      user: "Robin",
      known: true,
      category: "face_known",
    });
    expect(of({ key: "license_plate_unknown", value: "AB123" })).toMatchObject({ plate: "AB123", known: false });
    expect(of({ key: "face_of_interest", group: { name: "Kim" } })).toMatchObject({
      user: "Kim",
      category: "face_of_interest",
    });
    expect(of({ key: "face_of_interest" })).not.toHaveProperty("known");
    expect(of({ key: "face", value: "" })).not.toHaveProperty("user");
  });

  const frame = (type: string, item: JsonObject) => ({ type, item: { id: "d1", modelKey: "event", ...item } });
  const add = frame("add", {
    type: "smartDetectZone",
    start: 1_795_000_000_000,
    device: "cam1",
    smartDetectTypes: ["person"],
  });

  test("a detection is reported once, an update reports news, an end the duration", () => {
    const open = new OpenEvents();
    expect(types("protect", add, open)).toEqual(["person"]);
    expect(read("protect", add, open)).toEqual({ kind: "nothing" });
    expect(event("protect", frame("update", { smartDetectTypes: ["person", "vehicle"] }), open)).toMatchObject({
      type: "vehicle",
      timestampMs: 1_795_000_000_000,
      raw: { camera: "cam1", frame: "update" },
    });
    const end = frame("update", { end: 1_795_000_010_500 });
    expect(event("protect", end, open)).toMatchObject({
      type: "detection_ended",
      timestampMs: 1_795_000_010_500,
      raw: { camera: "cam1", duration_s: 10.5, detections: ["person", "vehicle"] },
    });
    expect(read("protect", end, open)).toEqual({ kind: "nothing" });
  });

  test("a detection that is over when first reported has its duration at once", () => {
    const body = frame("update", {
      type: "smartDetectZone",
      start: 1_795_000_000_000,
      end: 1_795_000_006_000,
      device: "cam1",
      smartDetectTypes: ["package"],
    });
    expect(event("protect", body)).toMatchObject({ type: "package", raw: { duration_s: 6 } });
  });

  test.each<[JsonObject, Record<string, unknown>]>([
    [
      { type: "motion", start: 1, camera: "cam1" },
      { type: "motion", raw: { camera: "cam1" } },
    ],
    [{ type: "ring", start: 1, camera: "cam1" }, { type: "doorbell" }],
    [
      { type: "disconnect", start: 1, camera: "cam1", metadata: { reason: "CONNECTION_LOSS" } },
      { type: "camera_offline", severity: "medium", raw: { camera: "cam1", reason: "CONNECTION_LOSS" } },
    ],
    [
      { type: "nfcCardScanned", start: 1, device: "cam1", metadata: { nfc: { nfcId: "AB12", ulpId: "u1" } } },
      { type: "badge_scanned", raw: { badge: "AB12", user: "u1" } },
    ],
    [
      { type: "nfcCardScanned", start: 1, device: "cam1", metadata: { nfc: { nfcId: "AB12" } } },
      { type: "unknown_badge" },
    ],
    [
      { type: "fingerprintIdentified", start: 1, metadata: { fingerprint: { ulpId: null } } },
      { type: "fingerprint_unknown" },
    ],
    [
      { type: "sensorOpened", start: 1, metadata: { sensorName: { text: "Garage" } } },
      { type: "sensor_opened", raw: { device: "Garage" } },
    ],
    [
      { type: "lightMotion", start: 1, device: "l1" },
      { type: "light_motion", raw: { device: "l1" } },
    ],
    [
      { type: "smartAudioDetect", start: 1, camera: "cam1", smartDetectTypes: ["alrmSmoke"] },
      { type: "smoke_alarm", severity: "critical" },
    ],
    [
      { type: "sensorTamper", start: 1, metadata: { sensorName: { text: "Garage" } } },
      { type: "tamper", severity: "high", raw: { device: "Garage" } },
    ],
    [
      { type: "recordingDeleted", start: 1, camera: "cam1" },
      { type: "recording_deleted", severity: "medium", raw: { camera: "cam1" } },
    ],
    [
      { type: "videoDeleted", start: 1, camera: "cam1" },
      { type: "video_deleted", severity: "medium" },
    ],
    [
      { type: "doorAccess", start: 1, camera: "cam1", metadata: { openSuccess: false, userName: "robin" } },
      { type: "access_denied", severity: "medium", class: "security", raw: { user: "robin" } },
    ],
    [
      { type: "doorAccess", start: 1, camera: "cam1", metadata: { openSuccess: true, userName: { text: "robin" } } },
      { type: "door_access", severity: "info", class: "audit", raw: { user: "robin" } },
    ],
    [{ type: "somethingNew", start: 1, camera: "cam1" }, { type: "something_new" }],
    [
      { type: "motion", start: "never", end: 1_795_000_000_000 },
      { type: "motion", timestampMs: 1_795_000_000_000 },
    ],
  ])("%j", (item, expected) =>
    expect(event("protect", { id: "x", modelKey: "event", ...item })).toMatchObject(expected),
  );

  test("a detection whose end arrived first has its duration at its start", () => {
    const open = new OpenEvents();
    expect(types("protect", frame("update", { end: 1_795_000_010_500 }), open)).toEqual(["detection_ended"]);
    expect(event("protect", add, open)).toMatchObject({ type: "person", raw: { duration_s: 10.5 } });
    expect(read("protect", frame("update", { end: 1_795_000_010_500 }), open)).toEqual({ kind: "nothing" });
  });

  test("the return of a camera is an event", () => {
    const body = {
      id: "x",
      modelKey: "event",
      type: "disconnect",
      start: 1_795_000_000_000,
      end: 1_795_000_060_000,
      camera: "cam1",
    };
    expect(types("protect", body)).toEqual(["camera_offline", "camera_online"]);
  });

  test("names of cameras are learnt from their objects", () => {
    const open = new OpenEvents();
    expect(
      types("protect", { modelKey: "camera", id: "cam1", name: "Yard", mac: "0200000A0B0C", state: "CONNECTED" }, open),
    ).toEqual(["camera_updated"]);
    expect(event("protect", add, open).raw).toMatchObject({ camera: "Yard", camera_id: "cam1" });
    expect(
      event("protect", { type: "update", item: { modelKey: "camera", id: "cam1", state: "DISCONNECTED" } }, open),
    ).toMatchObject({ type: "camera_offline", raw: { camera: "Yard" } });
  });

  test("the number of tracked open events is limited", () => {
    const open = new OpenEvents();
    for (let index = 0; index < 12_000; index++)
      read("protect", { id: `d${index}`, modelKey: "event", type: "motion", start: 1, camera: "c" }, open);
    expect([open.size, open.evicted]).toEqual([10_000, 2000]);
    const long = "y".repeat(1000);
    for (const item of [{ id: long }, { id: "z", camera: long }, { id: "z", type: long }]) {
      expect(types("protect", { modelKey: "event", type: "motion", start: 1, ...item }, open)).toHaveLength(1);
    }
    expect(open.get("z")).toBeUndefined();
  });
});
