import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JsonObject, JsonValue } from "../../model/event.ts";
import { FIELD_NAMES } from "../../model/field-names.ts";
import { CONTEXT, eventsOf, onlyEvent } from "../context.fixture.ts";
import { OpenEvents } from "./open-events.ts";
import { BODY_NAMES, BODY_OBJECTS_MAX, readBody, type BodyName } from "./webhooks.ts";

const read = (name: BodyName, body: JsonValue, open = new OpenEvents()) => readBody(name, body, CONTEXT, open);
const event = (name: BodyName, body: JsonValue, open?: OpenEvents) => onlyEvent(read(name, body, open));
const types = (name: BodyName, body: JsonValue, open?: OpenEvents) =>
  eventsOf(read(name, body, open)).map(({ type }) => type);

describe("the network's console", () => {
  const alarm = {
    app: "network",
    name: "WiFi Client Connected",
    deviceEventClassId: "400",
    message: "Tablet 4 connected to House Staff.",
    severity: 1,
    version: "10.6.101",
    parameters: {
      UNIFIcategory: "Monitoring",
      UNIFIclientIp: "10.9.5.44",
      UNIFIclientMac: "02:00:00:77:88:99",
      UNIFIclientHostname: "tablet-4",
      UNIFIwifiName: "House Staff",
      UNIFIconnectedToDeviceName: "AP Stairs",
      UNIFIutcTime: "2026-11-15T19:59:40.001Z",
    },
  };
  const expected = {
    src_ip: "10.9.5.44",
    src_mac: "02:00:00:77:88:99",
    host: "tablet-4",
    network: "House Staff",
    device: "AP Stairs",
  };

  test("an alarm is what the same alarm in CEF is, and keeps its body", () => {
    const read = event("network", alarm);
    expect(read).toMatchObject({
      type: "client_connected",
      source: "network",
      severity: "info",
      raw: { ...alarm, ...expected },
    });
    expect(new Date(read.timestampMs!).toISOString()).toBe("2026-11-15T19:59:40.001Z");
  });

  test("parameters may stand beside the name", () => {
    const { parameters, ...rest } = alarm;
    expect(event("network", { ...rest, ...parameters })).toMatchObject({ type: "client_connected", raw: expected });
  });

  test("the app in the body says whose it is", () => {
    const body = { app: "protect", name: "Camera Disconnected", severity: 6, parameters: { UNIFIdeviceName: "Yard" } };
    expect(event("network", body)).toMatchObject({
      source: "protect",
      type: "camera_offline",
      severity: "medium",
      raw: { camera: "Yard" },
    });
  });

  test("an event of the controller", () => {
    const body = {
      key: "EVT_WU_Disconnected",
      user: "02:00:00:77:88:99",
      hostname: "tablet-4",
      ap_name: "AP Stairs",
      ssid: "House Staff",
      duration: 61,
      time: 1_795_000_000_000,
      msg: "gone",
    };
    const { raw, ...rest } = event("network", body);
    expect(rest).toMatchObject({ type: "client_disconnected", timestampMs: 1_795_000_000_000 });
    expect(raw).toMatchObject({
      src_mac: "02:00:00:77:88:99",
      host: "tablet-4",
      device: "AP Stairs",
      network: "House Staff",
      duration_s: 61,
      message: "gone",
    });
    expect(raw).not.toHaveProperty("user");
  });

  test.each([
    ["EVT_AD_LoginFailed", "login_failure"],
    ["EVT_AD_Login", "admin_login"],
    ["EVT_AP_DetectRogueAP", "rogue_access_point"],
    ["EVT_SW_DetectRogueDHCP", "rogue_dhcp"],
    ["EVT_AP_Lost_Contact", "device_offline"],
    ["EVT_SW_Connected", "device_online"],
    ["EVT_XX_SomethingNew", "xx_something_new"],
  ])("%s is %s", (key, type) =>
    expect(event("network", { key, admin: "robin" })).toMatchObject({ type, raw: { user: "robin" } }),
  );

  test("what its intrusion detection says, in a list as the controller answers", () => {
    const threat = {
      key: "EVT_IPS_IpsAlert",
      src_ip: "192.0.2.8",
      src_port: 1,
      dest_ip: "10.9.3.20",
      dest_port: 80,
      proto: "TCP",
      host: "gw",
      inner_alert_signature: "ET MALWARE x",
      inner_alert_signature_id: 9,
      inner_alert_category: "A Network Trojan was Detected",
      inner_alert_severity: 1,
      inner_alert_action: "allowed",
      time: 1_795_000_000_000,
    };
    expect(event("network", { meta: { rc: "ok" }, data: [threat] })).toMatchObject({
      type: "ids_alert",
      severity: "critical",
      raw: {
        src_ip: "192.0.2.8",
        dst_ip: "10.9.3.20",
        dst_port: 80,
        protocol: "tcp",
        signature_id: 9,
        category: "trojan-activity",
        action: "allow",
        device: "gw",
      },
    });
  });

  test("an alarm in the older shape", () => {
    expect(event("network", { alarm: { name: "Link down" }, timestamp: 1_795_000_000_000 })).toMatchObject({
      type: "link_down",
      timestampMs: 1_795_000_000_000,
    });
  });
});

describe("the cameras' console", () => {
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
  ])("an alarm %s has an event for each trigger", (_, body) => {
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

  test("an alarm without triggers says what its condition was", () => {
    const body = {
      alarm: { name: "x", conditions: [{ condition: { source: "ring" } }], sources: [{ device: "0200000A0B0C" }] },
    };
    expect(event("protect", body)).toMatchObject({ type: "doorbell", raw: { camera: "0200000A0B0C" } });
  });

  const frame = (type: string, item: JsonObject) => ({ type, item: { id: "d1", modelKey: "event", ...item } });
  const add = frame("add", {
    type: "smartDetectZone",
    start: 1_795_000_000_000,
    device: "cam1",
    smartDetectTypes: ["person"],
  });

  test("a detection is told once, an update says what is new, an end how long it took", () => {
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

  test("one that is over when it is first heard of has its duration at once", () => {
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
    [{ type: "somethingNew", start: 1, camera: "cam1" }, { type: "something_new" }],
    [
      { type: "motion", start: "never", end: 1_795_000_000_000 },
      { type: "motion", timestampMs: 1_795_000_000_000 },
    ],
  ])("%j", (item, expected) =>
    expect(event("protect", { id: "x", modelKey: "event", ...item })).toMatchObject(expected),
  );

  test("a camera that is back is news", () => {
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

  test("the names of cameras are learnt from their own objects", () => {
    const open = new OpenEvents();
    expect(
      types("protect", { modelKey: "camera", id: "cam1", name: "Yard", mac: "0200000A0B0C", state: "CONNECTED" }, open),
    ).toEqual(["camera_updated"]);
    expect(event("protect", add, open).raw).toMatchObject({ camera: "Yard", camera_id: "cam1" });
    expect(
      event("protect", { type: "update", item: { modelKey: "camera", id: "cam1", state: "DISCONNECTED" } }, open),
    ).toMatchObject({ type: "camera_offline", raw: { camera: "Yard" } });
  });

  test("however many are open, so many are remembered", () => {
    const open = new OpenEvents();
    for (let index = 0; index < 12_000; index++)
      read("protect", { id: `d${index}`, modelKey: "event", type: "motion", start: 1, camera: "c" }, open);
    expect([open.size, open.forgotten]).toEqual([10_000, 2000]);
    const long = "y".repeat(1000);
    for (const item of [{ id: long }, { id: "z", camera: long }, { id: "z", type: long }]) {
      expect(types("protect", { modelKey: "event", type: "motion", start: 1, ...item }, open)).toHaveLength(1);
    }
    expect(open.get("z")).toBeUndefined();
  });
});

describe("the doors' console", () => {
  const notify = (name: string, data: JsonObject = {}) => ({ event: name, event_object_id: "o1", data });
  const parts = {
    location: { name: "Main entrance", location_type: "door" },
    device: { alias: "Hub 1" },
    actor: { id: "u1", name: "robin" },
  };

  test.each<[string, JsonObject, Record<string, unknown>]>([
    [
      "access.door.unlock",
      { ...parts, object: { authentication_type: "NFC", result: "Access Granted" } },
      { type: "access_granted", raw: { user: "robin", door: "Main entrance", device: "Hub 1", method: "badge" } },
    ],
    [
      "access.door.unlock",
      { ...parts, object: { authentication_type: "PIN_CODE", result: "Access Denied: outside hours" } },
      { type: "access_denied", severity: "medium", raw: { reason: "Access Denied: outside hours", method: "code" } },
    ],
    [
      "access.data.device.remote_unlock",
      { name: "Side door", location_type: "door" },
      { type: "door_unlocked", raw: { door: "Side door", method: "remote" } },
    ],
    ["access.device.dps_status", { ...parts, object: { status: "open" } }, { type: "door_opened" }],
    ["access.device.dps_status", { ...parts, object: { status: "close" } }, { type: "door_closed" }],
    [
      "access.device.dps_status",
      { ...parts, object: { event_type: "door_forced_open" } },
      { type: "door_forced", severity: "high" },
    ],
    [
      "access.device.dps_status",
      { ...parts, object: { event_type: "door_held_open", duration: 180 } },
      { type: "door_held", raw: { duration_s: 180 } },
    ],
    [
      "access.device.emergency_status",
      { object: { mode: "lockdown", value: true } },
      { type: "lockdown", severity: "critical", class: "security" },
    ],
    ["access.device.emergency_status", { object: { mode: "lockdown", value: false } }, { type: "lockdown_ended" }],
    [
      "access.device.emergency_status",
      { object: { mode: "evacuation", value: true } },
      { type: "evacuation", severity: "critical" },
    ],
    ["access.device.emergency_status", { object: {} }, { type: "emergency", severity: "critical" }],
    ["access.temporary_unlock.start", parts, { type: "temporary_unlock_started", severity: "low" }],
    ["access.temporary_unlock.end", parts, { type: "temporary_unlock_ended" }],
    ["access.unlock_schedule.activate", parts, { type: "unlock_schedule_started" }],
    ["access.doorbell.incoming", parts, { type: "doorbell", raw: { door: "Main entrance" } }],
    [
      "access.doorbell.completed",
      { object: { reason_code: 106 } },
      { type: "doorbell_ended", raw: { reason: "refused" } },
    ],
    [
      "access.visitor.status.changed",
      { ...parts, object: { status: "VISITED", name: "Guest 1" } },
      { type: "visitor_checked_in", raw: { visitor: "Guest 1" } },
    ],
    [
      "access.data.v2.device.update",
      { alias: "Hub 1", online: false, mac: "02:00:00:00:00:0a" },
      { type: "device_offline", raw: { device: "Hub 1", device_mac: "02:00:00:00:00:0a" } },
    ],
    ["access.something.new", { some: "thing" }, { type: "access_something_new", severity: "info", class: "audit" }],
  ])("%s %j", (name, data, expected) => {
    const body = notify(name, data);
    expect(event("access", body)).toMatchObject({ source: "access", ...expected });
    expect(event("access", body).raw).toMatchObject(body);
  });

  test("what only says that the connection is there is nothing", () => {
    expect(read("access", notify("access.base.info", { top_log_count: 4 }))).toEqual({ kind: "nothing" });
  });

  const log = (result: string, more: JsonObject = {}) => ({
    event: {
      type: "access.door.unlock",
      result,
      published: 1_795_000_000_000,
      display_message: "Access Denied",
      reason: "",
    },
    actor: { id: "u1", display_name: "robin" },
    authentication: { credential_provider: "NFC", issuer: "AB12" },
    target: [{ type: "door", display_name: "Entry" }],
    ...more,
  });

  test.each([
    ["ACCESS", "access_granted", "info"],
    ["BLOCKED", "access_denied", "medium"],
    ["INCOMPLETE", "access_incomplete", "low"],
  ])("an entry of the log with %s, sent as it is, wrapped and twice wrapped", (result, type, severity) => {
    const bodies = [
      log(result),
      { _id: "1", _source: log(result) },
      notify("access.logs.add", { _id: "1", _source: log(result) }),
    ];
    for (const body of bodies) {
      expect(event("access", body)).toMatchObject({
        type,
        severity,
        timestampMs: 1_795_000_000_000,
        raw: { user: "robin", badge: "AB12", door: "Entry", method: "badge" },
      });
    }
  });

  test("strangers are not one person called Unknown, and a plate is no badge", () => {
    const stranger = log("BLOCKED", {
      actor: { id: "", display_name: "Unknown" },
      authentication: { credential_provider: "LICENSEPLATE", issuer: "XX1" },
    });
    const { raw } = event("access", stranger);
    expect(raw).toMatchObject({ method: "plate", plate: "XX1" });
    expect(raw).not.toHaveProperty("user");
    expect(raw).not.toHaveProperty("badge");
  });
});

describe("the telephones' console", () => {
  const call = {
    uuid: "c1",
    from: "0114",
    to: "+9995001210",
    direction: "out",
    time: "2026-11-15T01:00:00.000Z",
    status: "ringing",
    duration: null,
  };

  test("a call that goes on is told as it goes", () => {
    const open = new OpenEvents();
    expect(event("talk", call, open)).toMatchObject({
      type: "call_started",
      source: "talk",
      class: "network",
      raw: { from: "0114", to: "+9995001210", call: "c1" },
    });
    expect(read("talk", { ...call, status: "accepted" }, open)).toEqual({ kind: "nothing" });
    const over = { type: "CALL_LOG_UPDATED", data: { ...call, status: "accepted", duration: 61 } };
    expect(event("talk", over, open)).toMatchObject({
      type: "call_ended",
      timestampMs: Date.parse("2026-11-15T01:01:01Z"),
      raw: { duration_s: 61 },
    });
    expect(read("talk", over, open)).toEqual({ kind: "nothing" });
  });

  test.each([
    [{ direction: "in", status: "voicemail", duration: 12 }, ["call_missed"]],
    [{ direction: "out", status: "refused", duration: 0 }, ["call_started", "call_refused"]],
    [{ direction: "in", status: "accepted", duration: 5 }, ["call_started", "call_ended"]],
  ])("%j is %j", (more, expected) => expect(types("talk", { ...call, ...more })).toEqual(expected));

  test("calls without an id of their own are not taken for one", () => {
    const open = new OpenEvents();
    const nil = { ...call, uuid: "00000000-0000-0000-0000-000000000000" };
    expect([...types("talk", nil, open), ...types("talk", nil, open)]).toEqual(["call_started", "call_started"]);
  });
});

describe("whatever comes", () => {
  test("what lets somebody in somewhere is not kept, however deep it stands", () => {
    const keys = {
      nfc_token: "s1",
      pinCode: "s2",
      api_key: "s3",
      Authorization: "s4",
      pin_codes: ["s5", { code: "s6" }],
    };
    const body = { event: "access.remote_view", data: { token: "s7", rooms: [{ PIN: 4711, name: "Hall" }], keys } };
    const { raw } = event("access", body);
    expect(JSON.stringify(raw)).not.toMatch(/s[1-7]"|4711/);
    expect(JSON.stringify(raw)).toContain('"PIN":"(hidden)","name":"Hall"');
  });

  test.each(BODY_NAMES)("%s: what nobody knows is kept as it is", (name) => {
    expect(event(name, { some: "thing" })).toMatchObject({ type: "unparsed", source: name, raw: { some: "thing" } });
    expect(event(name, ["text"])).toMatchObject({ type: "unparsed", raw: { body: "text" } });
    expect(read(name, [])).toEqual({ kind: "nothing" });
  });

  test.each<JsonValue>(["text", 7, null, true])("%j is refused", (body) =>
    expect(read("network", body)).toMatchObject({ kind: "refused", reason: "malformed" }),
  );

  test("too deep and too many are refused", () => {
    const deep = JSON.parse(`${"[".repeat(5000)}${"]".repeat(5000)}`) as JsonValue;
    expect(read("access", deep)).toMatchObject({ kind: "refused" });
    expect(
      read(
        "access",
        Array.from({ length: BODY_OBJECTS_MAX + 1 }, () => ({})),
      ),
    ).toMatchObject({ kind: "refused" });
  });

  test("never a throw, nothing that cannot be written down, and our names in their types", () => {
    const key = fc.constantFrom(
      "event",
      "data",
      "item",
      "alarm",
      "triggers",
      "type",
      "id",
      "modelKey",
      "start",
      "end",
      "from",
      "to",
      "key",
      "name",
      "parameters",
      "_source",
      "actor",
      "object",
      "metadata",
      "user",
      "camera",
      "status",
      "direction",
      "__proto__",
      "src_ip",
      "duration_s",
      "smartDetectTypes",
      "time",
    );
    const text = fc.constantFrom(
      "access.door.unlock",
      "access.logs.add",
      "event",
      "motion",
      "add",
      "EVT_AD_Login",
      "10.0.0.1",
      "\ud800",
      "null",
      "",
    );
    const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        text,
        fc.integer(),
        fc.constant(null),
        fc.boolean(),
        fc.array(tie("value"), { maxLength: 3 }),
        fc.dictionary(key, tie("value"), { maxKeys: 5 }),
      ),
    }));
    fc.assert(
      fc.property(fc.constantFrom(...BODY_NAMES), value, (name, body) => {
        const before = JSON.stringify(body);
        const written = JSON.stringify(eventsOf(read(name, body)));
        expect(JSON.stringify(body)).toBe(before);
        expect(/\\ud[89ab]/i.test(written)).toBe(false);
        for (const { raw } of eventsOf(read(name, body))) {
          for (const [field, { type }] of Object.entries(FIELD_NAMES)) {
            const found = raw[field];
            if (found === undefined) continue;
            if (type === "text") expect(typeof found).toBe("string");
            if (type === "number") expect(typeof found).toBe("number");
          }
        }
      }),
      { numRuns: 1500 },
    );
  });
});
