import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../../model/event.ts";
import { event } from "./bodies.fixture.ts";

describe("UniFi Network", () => {
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

  test("an alarm becomes the same event as in CEF, and keeps its body", () => {
    const read = event("network", alarm);
    expect(read).toMatchObject({
      type: "client_connected",
      source: "network",
      severity: "info",
      raw: { ...alarm, ...expected },
    });
    expect(new Date(read.timestampMs!).toISOString()).toBe("2026-11-15T19:59:40.001Z");
  });

  test("parameters may be beside the name", () => {
    const { parameters, ...rest } = alarm;
    expect(event("network", { ...rest, ...parameters })).toMatchObject({ type: "client_connected", raw: expected });
  });

  test.each([
    ["event.threat_detected", "THREAT_BLOCKED_V3", "ids_alert", { action: "block" }],
    ["event.threat_detected", "THREAT_DETECTED_V3", "ids_alert", { action: "allow" }],
    ["event.honeypot_triggered", "HONEYPOT_HIT_DETECTED_KNOWN_CLIENT", "honeypot_triggered", {}],
    ["event.admin_accessed_unifi_network", "ADMIN_ACCESS", "admin_login", {}],
    ["event.client_connected", "CLIENT_CONNECTED_WIRELESS", "client_connected", { src_mac: "02:00:00:77:88:99" }],
    ["event.client_disconnected", "CLIENT_DISCONNECTED_WIRED", "client_disconnected", {}],
    ["event.something_else", "THREAT_BLOCKED_KNOWN_SOURCE_CLIENT", "ids_alert", { action: "block" }],
    ["event.unheard_of", "UNHEARD_OF", "unheard_of", {}],
  ])("the alarm manager's event %s with the key %s is %s", (id, alertKey, type, raw) => {
    const scope = { site_id: "site-7", client_mac: "02:00:00:77:88:99" };
    const read = event("network", { events: [{ id, alert_key: alertKey, alert_id: "alert-3", scope }] });
    expect(read).toMatchObject({ type, source: "network" });
    expect(read.raw).toMatchObject({ ...raw, event_name: alertKey, event_id: "alert-3", site: "site-7" });
  });

  test("the app in the body decides the source", () => {
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

  test("a rogue access point has its hardware address and network in well-known fields", () => {
    const body = { key: "EVT_AP_DetectRogueAP", ap: "02:00:00:0a:0b:0c", bssid: "0200005E7701", essid: "Staff" };
    expect(event("network", body).raw).toMatchObject({
      src_mac: "02:00:00:5e:77:01",
      network: "Staff",
      device: "02:00:00:0a:0b:0c",
    });
  });

  test("a new admin is named", () => {
    const body = { key: "EVT_AD_AdminCreated", admin: "Anna", msg: "Anna invited Mallory as an admin" };
    expect(event("network", body).raw).toMatchObject({ user: "Anna", target: "Mallory" });
  });

  test("intrusion reports, in a list as the controller returns them", () => {
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

  test.each<[string, JsonObject]>([
    ["null", { parameters: null }],
    ["missing", {}],
    ["a list", { parameters: [] }],
  ])("an alarm whose parameters are %s is read", (_, more) =>
    expect(
      event("network", {
        app: "network",
        name: "Threat Detected and Blocked",
        message: "m",
        severity: 7,
        ...more,
      }),
    ).toMatchObject({ type: "ids_alert", severity: "high", class: "security", raw: { action: "block", message: "m" } }),
  );

  test("an alarm in the older form has the type of its name or trigger", () => {
    expect(event("network", { alarm: { name: "Threat Detected and Blocked" } })).toMatchObject({
      type: "ids_alert",
      severity: "high",
      class: "security",
      raw: { event_name: "Threat Detected and Blocked", action: "block" },
    });
    const alarm = { name: "Call me", triggers: [{ key: "honeypot_triggered" }], severity: 9 };
    expect(event("network", { alarm })).toMatchObject({
      type: "honeypot_triggered",
      severity: "critical",
      raw: { event_name: "Call me", alarm },
    });
    expect(event("network", { alarm: { name: "Call me" }, message: "m" })).toMatchObject({
      type: "call_me",
      severity: "medium",
      raw: { message: "m" },
    });
  });

  test("an alarm in the older form", () => {
    expect(event("network", { alarm: { name: "Link down" }, timestamp: 1_795_000_000_000 })).toMatchObject({
      type: "link_down",
      timestampMs: 1_795_000_000_000,
    });
  });
});
