import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../../model/event.ts";
import { eventsOf, readDetected } from "../context.fixture.ts";
import { event, read } from "./bodies.fixture.ts";

describe("UniFi Access", () => {
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
    ...["", " ", null].map((result): [string, JsonObject, Record<string, unknown>] => [
      "access.door.unlock",
      { ...parts, object: { authentication_type: "NFC", result } },
      { type: "access_incomplete", severity: "low", raw: { user: "robin", door: "Main entrance" } },
    ]),
    ...[
      "DENY",
      "Unauthorized",
      "Access Not Granted",
      "No Access",
      "Expired",
      "not allowed",
      "ACCESS_DENIED",
      "accessDenied",
      "Access Denied: timeout",
    ].map((result): [string, JsonObject, Record<string, unknown>] => [
      "access.door.unlock",
      { ...parts, object: { authentication_type: "NFC", result } },
      { type: "access_denied", severity: "medium", class: "security", raw: { user: "robin" } },
    ]),
    ...["ACCESS", "granted", "Allowed", "success", "ACCESS_GRANTED", "Access Granted (NFC)"].map(
      (result): [string, JsonObject, Record<string, unknown>] => [
        "access.door.unlock",
        { ...parts, object: { authentication_type: "NFC", result } },
        { type: "access_granted", severity: "info", class: "audit" },
      ],
    ),
    ...[0, 7, "zugelassen", "timeout", "Access Incomplete (PIN)"].map(
      (result): [string, JsonObject, Record<string, unknown>] => [
        "access.door.unlock",
        { ...parts, object: { authentication_type: "NFC", result } },
        { type: "access_incomplete", severity: "low" },
      ],
    ),
    ["access.door.unlock", { ...parts, object: { authentication_type: "NFC" } }, { type: "access_granted" }],
    [
      "access.data.device.remote_unlock",
      { name: "Side door", location_type: "door" },
      { type: "door_unlocked", raw: { door: "Side door", method: "remote" } },
    ],
    ["access.device.dps_status", { ...parts, object: { status: "open" } }, { type: "door_opened" }],
    ["access.device.dps_status", { ...parts, object: { status: "close" } }, { type: "door_closed" }],
    [
      "access.device.dps_status",
      { device: { alias: "Hub 1" }, object: { event_type: "door_forced_open" } },
      { type: "door_forced", raw: { door: "Hub 1" } },
    ],
    [
      "access.remote_view",
      { door_name: "Main entrance", floor_name: "1F" },
      { type: "doorbell", raw: { door: "Main entrance", zone: "1F" } },
    ],
    [
      "access.device.dps_status",
      { ...parts, object: { event_type: "door_forced_open" } },
      { type: "door_forced", severity: "high" },
    ],
    ["access.device.dps_status", { ...parts, object: { event_type: "dps_force_open" } }, { type: "door_forced" }],
    ["access.device.dps_status", { ...parts, object: { event_type: "dps_open_long" } }, { type: "door_held" }],
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
    ["access.device.emergency_status", { object: { software_lockdown: true } }, { type: "lockdown" }],
    ["access.device.emergency_status", { object: { software_lockdown: false } }, { type: "lockdown_ended" }],
    ["access.device.emergency_status", { object: { mode: "lockdown", evacuation: false } }, { type: "lockdown" }],
    [
      "access.device.emergency_status",
      { object: { lockdown: false, evacuation: true } },
      { type: "evacuation", severity: "critical" },
    ],
    ...[
      { status: "none" },
      { state: "off" },
      { status: "normal" },
      { value: false },
      { lockdown: false, evacuation: false },
    ].map((object): [string, JsonObject, Record<string, unknown>] => [
      "access.device.emergency_status",
      { object },
      { type: "emergency_ended", severity: "medium" },
    ]),
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

  test("a keep-alive is not an event", () => {
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
    ["", "access_incomplete", "low"],
    ["DENY", "access_denied", "medium"],
    ["No Access", "access_denied", "medium"],
    ["SOMETHING_NEW", "access_incomplete", "low"],
  ])("a log entry with %s, plain, wrapped and wrapped twice", (result, type, severity) => {
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

  test("an API response about the log is a list of its entries", () => {
    const hits = ["ACCESS", "BLOCKED"].map((result, index) => ({ _id: String(index), _source: log(result) }));
    const answer = { code: "SUCCESS", msg: "success", data: { hits } };
    expect(eventsOf(read("access", answer)).map(({ type, raw }) => [type, raw["event_id"], raw["door"]])).toEqual([
      ["access_granted", "0", "Entry"],
      ["access_denied", "1", "Entry"],
    ]);
    expect(readDetected(JSON.stringify(answer))).toEqual(read("access", answer));
    expect(read("access", { code: "SUCCESS", data: { hits: [] } })).toEqual({ kind: "nothing" });
  });

  test("strangers are not one person named Unknown, and a plate is not a badge", () => {
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
