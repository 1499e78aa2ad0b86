import { describe, expect, test } from "vitest";
import { alarmKind, sourceOfProduct } from "./alarm-kinds.ts";
import { onlyEvent, readDetected } from "../context.fixture.ts";
import { typeOf } from "../device-values.ts";

const typeOfAlarm = (product: string, name: string, category: string) =>
  alarmKind(product, name, category).type ?? typeOf(name, "unnamed");

/** Names and their expected types, for any category. */
const NAMES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "UniFi Network": {
    "Internet Down": "wan_link_down",
    "Internet Disconnected": "wan_link_down",
    "WAN Disconnected": "wan_link_down",
    "Internet Interrupted": "wan_link_down",
    "Internet Outage Detected": "wan_link_down",
    "WAN2 Backup Link Lost": "wan_link_down",
    "WAN Not Connected": "wan_link_down",
    "Lost Internet Connection": "wan_link_down",
    "Internet Restored": "wan_link_up",
    "Internet Reconnected": "wan_link_up",
    "Internet Outage Resolved": "wan_link_up",
    "WAN Connected": "wan_link_up",
    "WAN2 Link Up": "wan_link_up",
    "WAN Failed to Reconnect": "wan_failed_to_reconnect",
    "Internet Setup Changed": "config_changed",
    "Temporary Internet Failover": "wan_failover",
    "High Latency Detected": "wan_latency_high",
    "Latency Over Threshold": "wan_latency_high",
    "High Latency Resolved": "high_latency_resolved",
    "Admin Created Firewall Rule": "config_changed",
    "WiFi Network Created by Admin": "config_changed",
    "Admin Added": "admin_created",
    "Admin Account Created": "admin_created",
    "Admin Invited by Robin": "admin_created",
    "New Admin Added": "admin_created",
    "Robin Added as Admin": "admin_created",
    "Admin Created New Admin": "admin_created",
    "New Admin Login": "admin_login",
    "Network Accessed": "admin_login",
    "Admin Login Failed": "login_failure",
    "Admin Login Rejected": "login_failure",
    "Backup Created": "backup_created",
    "Config Modified": "config_changed",
    "Client Blocked by Admin": "client_blocked_by_admin",
    "Blocked by Ad Blocker": "firewall_blocked",
    "Blocked by Firewall": "firewall_blocked",
    "Threat Detected and Blocked": "ids_alert",
    "Intrusion Prevention Disabled": "config_changed",
    "IPS Signatures Updated": "ips_signatures_updated",
    "VPN Client Connected": "vpn_connected",
    "VPN Client Disconnected": "vpn_disconnected",
    "VPN Connection Failed": "vpn_connection_failed",
    "WiFi Client Connected": "client_connected",
    "WiFi Client Disconnected": "client_disconnected",
    "Wired Client Failed to Connect": "wired_client_failed_to_connect",
    "New Client Connected": "client_connected",
    "New Device Adopted": "device_adopted",
    "Device Reconnected": "device_online",
    "Device Disconnected": "device_offline",
    "Device Updated": "firmware_updated",
    "Firmware Update Available": "firmware_update_available",
    "Honeypot Triggered": "honeypot_triggered",
    "Honeypot Created": "config_changed",
    "Honeypot Removed": "config_changed",
    "Honeypot Alert Cleared": "honeypot_alert_cleared",
    "Rogue AP Detection Disabled": "config_changed",
    "Rogue AP Detected": "rogue_access_point",
    "Packet Loss Resolved": "packet_loss_resolved",
    "Access Point Offline": "device_offline",
    "AP Disconnected": "device_offline",
    "Switch Offline": "device_offline",
    "Switch Connected": "device_online",
    "Access Point Adopted": "device_adopted",
    "WiFi Channel Busy": "wifi_channel_busy",
    "PoE Budget Exceeded": "poe_budget_exceeded",
    "UPnP Port Opened": "upnp_port_opened",
  },
  "UniFi Protect": {
    "Camera Adopted": "device_adopted",
    "Camera Interface Error": "camera_interface_error",
    "Monitoring Paused": "monitoring_paused",
    "Recording Deleted": "recording_deleted",
    "Admin Deleted Video": "video_deleted",
    "Video Not Deleted": "video_not_deleted",
    "Personal Data Exported": "personal_data_exported",
    "Doorbell Ring": "doorbell",
    ring: "doorbell",
    "Doorbell Firmware Updated": "doorbell_firmware_updated",
    "Face Detected": "face",
    "Motion Settings Changed": "config_changed",
    "Person Detection Disabled": "config_changed",
    "Motion Alerts Turned Off": "config_changed",
    "Smoke Detection Enabled": "config_changed",
    "Motion Detected While Alerts Disabled": "motion",
    "Tamper Alarm Cleared": "tamper_alarm_cleared",
    "Siren Off": "siren_off",
    "Recording Turned Off": "recording_stopped",
    "Storage Full": "storage_full",
    "Storage Almost Full": "storage_almost_full",
    "Storage 90% Full": "storage_90_full",
    smartDetectPerson: "person",
    smartDetectLoiterZone: "loitering",
    cameraConnected: "camera_online",
    disconnect: "camera_offline",
    adminActivity: "admin_login",
    videoDeleted: typeOf("videoDeleted", "unnamed"),
  },
  "UniFi Access": {
    "Emergency Activated": "emergency",
    "Emergency Ended": "emergency_ended",
    "Emergency Cancelled": "emergency_ended",
    "Emergency: All Doors Released": "emergency",
    "Lockdown Started": "lockdown",
    "Lockdown Lifted": "lockdown_ended",
    "Lockdown Over": "lockdown_ended",
    "Lockdown Released": "lockdown_ended",
    "Lockdown Could Not Be Lifted": "lockdown",
    "End of Lockdown": "lockdown_ended",
    "Evacuation Cancelled": "evacuation_ended",
    "Evacuation Off": "evacuation_ended",
    "Access Granted": "access_granted",
    "Access Not Granted": "access_denied",
    "Door Unlocked": "access_granted",
    "Door Unlock Failed": "door_unlock_failed",
    "Entry Expired": "entry_expired",
    "Visitor Invited": "visitor_invited",
    "Visitor Checked In": "visitor_checked_in",
    "Visitor Check-in": "visitor_checked_in",
    "Visitor Arrived": "visitor_checked_in",
    "Visitor Checked Out": "visitor_checked_out",
    "Reader Rebooted": "reader_rebooted",
    "Doorbell Rang": "doorbell",
    "Door Forced Open": "door_forced",
    "Door Forced Open Alarm Cleared": "door_forced_open_alarm_cleared",
    "Door Held Open Alert Disabled": "config_changed",
    "Door No Longer Held Open": "door_no_longer_held_open",
    "Unauthorized Door Opening": "door_forced",
    "Access Denied: Credential Disabled": "access_denied",
    "Rule Enforced": "rule_enforced",
  },
  "UniFi Talk": {
    "SIP Registration Succeeded": "sip_registered",
    "Phone Registered": "sip_registered",
    "SIP Registration Rejected": "sip_registration_failed",
    "SIP Registration Denied": "sip_registration_failed",
    "Unauthorized Registration Attempt": "sip_registration_failed",
    "Registration Failed": "sip_registration_failed",
    "Phone Unregistered": "sip_unregistered",
    "Phone Deregistered": "sip_unregistered",
    "Registration Expired": "sip_unregistered",
    "Call Started": "call_started",
    "Call Ended": "call_ended",
    "Call Forwarding Changed": "call_forwarding_changed",
    "Incoming Call Rejected": "incoming_call_rejected",
  },
};

describe.each(Object.entries(NAMES))("%s", (product, names) => {
  test.each(Object.entries(names))("%s is %s, for any category", (name, type) => {
    for (const category of ["", "Monitoring", "System", "Audit", "Interface", "Configuration", "Internet and WAN"]) {
      expect([category, typeOfAlarm(product, name, category)]).toEqual([category, type]);
    }
  });
});

test.each([
  ["UniFi Network", "Network Updated", "Software Updates", "software_updated"],
  ["UniFi Network", "Network Updated", "System", "network_updated"],
  ["UniFi Network", "Signature Matched", "Intrusion Prevention", "ids_alert"],
  ["UniFi Protect", "access", "adminActivity", "admin_login"],
  ["UniFi Protect", "access", "system", "access"],
])("%s: the category helps a name that says too little: %s of %s is %s", (product, name, category, type) =>
  expect(typeOfAlarm(product, name, category)).toBe(type),
);

test.each([
  ["emergency", "Emergency Ended", "info"],
  ["lockdown", "Lockdown Lifted", "info"],
  ["lockdown", "Lockdown Started", "critical"],
])("the end of an %s is less severe: %s is %s", (_, name, severity) =>
  expect(alarmKind("UniFi Access", name, "").severity).toBe(severity),
);

test.each([
  ["Monitoring", "network"],
  ["WiFi", "network"],
  ["adminActivity", "audit"],
  ["Software Updates", "audit"],
  ["Wanted", undefined],
])("a name without a row has the class of its category %s", (category, eventClass) =>
  expect(alarmKind("UniFi Network", "Something New", category)).toEqual({
    source: "network",
    severity: "info",
    class: eventClass,
  }),
);

test.each([
  ["UniFi Protect", "protect"],
  ["unifi-access", "access"],
  ["UniFiTalk", "talk"],
  ["Endpoint Protection", "network"],
  ["Accessories", "network"],
  ["Access Point", "network"],
])("the product %s has the source %s", (product, source) => expect(sourceOfProduct(product)).toBe(source));

const cef = (product: string, name: string) => `CEF:0|Ubiquiti|${product}|9.0|1|${name}|5|a=b`;
test.each([
  ["rogue_access_point", [cef("UniFi Network", "Rogue AP Detected"), '{"key":"EVT_AP_DetectRogueAP","ap_name":"a"}']],
  [
    "rogue_dhcp",
    [
      cef("UniFi Network", "Rogue DHCP Server Detected"),
      "<30>Nov 15 20:00:00 sw switch: Rogue DHCP server detected: 10.9.5.99",
      '{"key":"EVT_SW_DetectRogueDHCP"}',
    ],
  ],
  [
    "doorbell",
    [
      cef("UniFi Access", "Doorbell Rang"),
      '{"event":"access.doorbell.incoming","data":{}}',
      '{"type":"add","item":{"modelKey":"event","id":"e1","type":"ring","start":1794772800000}}',
    ],
  ],
  [
    "camera_online",
    [
      cef("UniFi Protect", "Camera Connected"),
      '{"type":"update","item":{"modelKey":"camera","id":"c1","mac":"020000aabbcc","state":"CONNECTED"}}',
      '{"alarm":{"triggers":[{"key":"cameraConnected"}]}}',
    ],
  ],
])("%s has the class security in every format", (type, inputs) => {
  for (const input of inputs) {
    const event = onlyEvent(readDetected(input));
    expect([input, event.type, event.class]).toEqual([input, type, "security"]);
  }
});
