import { describe, expect, test } from "vitest";
import { NOW } from "./context.fixture.ts";
import type { ParsedEvent } from "./reading.ts";
import { body, clock, eve, fired, found, line, times, titles } from "./rules-fire.fixture.ts";
import { CEF_CONFIG, EVE_RECORDS } from "./samples.fixture.ts";

// Field names and types are right only if the built-in rules match real lines.

describe("built-in rules match events of devices", () => {
  test.each<[string, () => readonly ParsedEvent[]]>([
    [
      "network.ids_critical",
      () =>
        line(
          "CEF:0|M|UniFi Network|1|201|Threat Detected and Blocked|9|src=192.0.2.1 dst=10.9.3.20 UNIFIipsSignatureId=1",
        ),
    ],
    ["network.ids_critical", () => eve(EVE_RECORDS.alert)],
    ["network.command_and_control", () => eve(EVE_RECORDS.alert)],
    [
      "network.ids_high_not_blocked",
      () => eve({ ...EVE_RECORDS.alert, alert: { ...EVE_RECORDS.alert.alert, severity: 2 } }),
    ],
    [
      "network.port_sweep",
      () =>
        times(25, (i) =>
          line(
            `<4>${clock(i)} gw [WAN_LOCAL-D-1] IN=eth8 OUT= SRC=192.0.2.80 DST=198.51.100.4 LEN=60 PROTO=TCP SPT=40112 DPT=${1000 + i}`,
          ),
        ).flat(),
    ],
    [
      "network.host_sweep",
      () =>
        times(25, (i) =>
          line(
            `<4>${clock(i)} gw [WAN_IN-B-4000000003-D]IN=eth8 OUT= SRC=192.0.2.80 DST=198.51.100.${i} LEN=60 PROTO=TCP SPT=40112 DPT=22`,
          ),
        ).flat(),
    ],
    [
      "network.brute_force",
      () =>
        times(12, (i) =>
          line(`<38>${clock(i)} gw gw sshd[9]: Failed password for root from 192.0.2.9 port ${4000 + i} ssh2`),
        ).flat(),
    ],
    [
      "network.password_spraying",
      () => times(6, (i) => line(`<38>${clock(i)} gw sshd[9]: Invalid user user${i} from 192.0.2.9 port 4000`)).flat(),
    ],
    [
      "network.port_sweep",
      () =>
        times(25, (i) =>
          line(
            `<4>${clock(i)} gw kernel: [ 8812.123456] DROP IN=eth0 OUT= MAC= SRC=192.0.2.80 DST=198.51.100.4 PROTO=TCP DPT=${i}`,
          ),
        ).flat(),
    ],
    [
      "network.brute_force_then_success",
      () => [
        ...times(6, (i) =>
          line(`<38>${clock(i)} gw sshd[9]: Failed password for root from 192.0.2.9 port 1 ssh2`),
        ).flat(),
        ...line(`<38>${clock(30)} gw sshd[9]: Accepted password for root from 192.0.2.9 port 1 ssh2`),
      ],
    ],
    ["network.remote_access_opened", () => line(CEF_CONFIG)],
    [
      "network.remote_access_opened",
      () => line("CEF:0|M|UniFi Network|1|546|Config Modified|5|UNIFIadmin=robin UNIFIsettingsSection=UPnP"),
    ],
    [
      "network.remote_access_opened",
      () =>
        line(
          "CEF:0|M|UniFi Network|1|546|Config Modified|5|UNIFIadmin=robin UNIFIsettingsSection=VPN UNIFIsettingsEntry=VPN Server",
        ),
    ],
    ["network.config_change_at_night", () => line(`<13>Nov 15 02:00:00 gw ${CEF_CONFIG}`)],
    ["network.change_by_unknown", () => line("CEF:0|M|UniFi Network|1|546|Config Modified|5|src=192.0.2.10 msg=text")],
    [
      "network.new_admin",
      () => line("CEF:0|M|UniFi OS|1|7|New Admin Added|5|UNIFIadmin=robin msg=robin added an admin"),
    ],
    [
      "network.rogue_dhcp",
      () => line("<12>Nov 15 19:00:00 sw switch: Rogue DHCP server detected: 10.9.5.99 02:00:00:de:ad:01"),
    ],
    [
      "network.rogue_access_point",
      () => body("network", { key: "EVT_AP_DetectRogueAP", ap_name: "AP 1", ssid: "Free", time: NOW }),
    ],
    ["network.honeypot_touched", () => line("CEF:0|M|UniFi Network|1|9|Honeypot Triggered|8|src=10.9.4.4")],
    [
      "network.unknown_device",
      () =>
        line("CEF:0|M|UniFi Network|1|401|New Client Connected|3|UNIFIclientMac=02:00:00:00:00:0b UNIFIwifiName=Staff"),
    ],
    [
      "network.wan_unsteady",
      () =>
        times(3, (i) =>
          line(`${clock(i)} gw CEF:0|M|UniFi Network|1|100|Internet Down|10|UNIFIwanId=WAN1 UNIFIdeviceName=gw`),
        ).flat(),
    ],
    [
      "network.dns_many_failures",
      () =>
        times(55, (i) => eve({ ...EVE_RECORDS.dns, dns: { ...EVE_RECORDS.dns.dns, rrname: `x${i}.example` } })).flat(),
    ],
    [
      "protect.camera_offline",
      () => body("protect", { id: "a", modelKey: "event", type: "disconnect", start: NOW, camera: "cam1" }),
    ],
    [
      "protect.camera_offline",
      () => line("CEF:0|M|UniFi Protect|7|2150|Camera Disconnected|6|msg=Yard was disconnected."),
    ],
    [
      "protect.several_cameras_offline",
      () =>
        times(3, (i) =>
          body("protect", { id: `a${i}`, modelKey: "event", type: "disconnect", start: NOW, camera: `cam${i}` }),
        ).flat(),
    ],
    [
      "protect.loitering_at_night",
      () =>
        times(5, (i) =>
          body("protect", {
            alarm: {
              name: "x",
              triggers: [
                { key: "person", device: "0200000A0B0C", timestamp: Date.parse("2026-11-15T02:00:00Z") + i * 60_000 },
              ],
            },
          }),
        ).flat(),
    ],
    [
      "protect.person_in_restricted_zone",
      () =>
        body("protect", {
          alarm: {
            triggers: [{ key: "person", device: "0200000A0B0C", zones: { zone: ["Archive"] }, timestamp: NOW }],
          },
        }),
    ],
    [
      "protect.camera_tampered",
      () => line("CEF:0|M|UniFi Protect|7|1|Camera Tampering Detected|8|UNIFIdeviceName=Yard"),
    ],
    ["access.repeated_denied", () => times(3, (i) => denied("u1", `AB1${i}`)).flat()],
    ["access.unnamed_badge_denied", () => times(3, () => denied("", "AB10")).flat()],
    ["access.many_badges_denied_at_door", () => times(5, (i) => denied("", `AB1${i}`)).flat()],
    ["access.badge_after_hours", () => unlocked("Main entrance", "2026-11-15T02:00:00Z")],
    ["access.badge_at_many_doors", () => times(5, (i) => unlocked(`Door ${i}`, "2026-11-15T12:00:00Z")).flat()],
    [
      "access.lockdown",
      () =>
        body("access", {
          event: "access.device.emergency_status",
          data: { object: { mode: "lockdown", value: true } },
        }),
    ],
    ["access.door_forced", () => line("CEF:0|M|UniFi Access|3|1|Door Forced Open|8|UNIFIdoorName=Archive")],
    [
      "site.door_after_camera_blinded",
      () => [
        ...body("protect", {
          alarm: { name: "x", triggers: [{ key: "cameraTampered", device: "c1", timestamp: NOW }] },
        }),
        ...forced("Archive"),
      ],
    ],
    [
      "site.door_after_camera_blinded",
      () => [
        ...body("protect", { id: "a", modelKey: "event", type: "disconnect", start: NOW, camera: "cam1" }),
        ...line("CEF:0|M|UniFi Access|3|1|Door Forced Open|8|UNIFIdoorName=Archive"),
      ],
    ],
    ["talk.toll_fraud", () => times(6, (i) => call(`+999500121${i}`, `2026-11-15T01:0${i}:00Z`)).flat()],
    ["talk.premium_number_called", () => call("+19005550100", "2026-11-16T12:00:00Z")],
  ])("%s", (name, events) => {
    expect(fired(events())).toContain(name);
    expect(found(events()).filter(({ title }) => title.includes("(none)"))).toEqual([]);
  });

  test.each<[string, () => readonly ParsedEvent[], readonly string[]]>([
    [
      "network.ids_critical",
      () =>
        [0, 1].flatMap((i) =>
          line(
            `CEF:0|M|UniFi Network|1|201|Threat Detected and Blocked|9|UNIFIsrcClientMac=02:00:00:00:00:0${i} UNIFIsrcClientHostname=lab-${i} UNIFIdstClientMac=02:00:00:00:00:0f UNIFIdeviceName=gw`,
          ),
        ),
      [
        "Intrusion: Threat Detected and Blocked (lab-0 to 02:00:00:00:00:0f)",
        "Intrusion: Threat Detected and Blocked (lab-1 to 02:00:00:00:00:0f)",
      ],
    ],
    [
      "network.rogue_access_point",
      () =>
        [0, 1].flatMap((i) =>
          body("network", {
            key: "EVT_AP_DetectRogueAP",
            ap_name: "AP 1",
            bssid: `02:00:00:00:00:0${i}`,
            essid: `Free ${i}`,
          }),
        ),
      ['Foreign access point "Free 0" near AP 1', 'Foreign access point "Free 1" near AP 1'],
    ],
    [
      "network.new_admin",
      () =>
        ["Mallory", "Oscar"].flatMap((name) =>
          line(`CEF:0|M|UniFi OS|1|7|Admin Created|4|UNIFIadmin=Anna msg=Anna created admin ${name}.`),
        ),
      ["Anna created an administrator: Mallory", "Anna created an administrator: Oscar"],
    ],
    [
      "protect.camera_tampered",
      () =>
        ["c1", "c2"].flatMap((device) =>
          body("protect", { alarm: { name: "Yard", triggers: [{ key: "cameraTampered", device, timestamp: NOW }] } }),
        ),
      ["Camera c1 was tampered with: Yard", "Camera c2 was tampered with: Yard"],
    ],
    [
      "access.lockdown",
      () =>
        body("access", {
          event: "access.device.emergency_status",
          data: { device: { alias: "Hub 1" }, object: { mode: "lockdown", value: true } },
        }),
      ["Emergency: lockdown at Hub 1"],
    ],
    [
      "access.door_forced",
      () => ["Hub 1", "Hub 2"].flatMap((alias) => forced(undefined, alias)),
      ["Door Hub 1 was forced", "Door Hub 2 was forced"],
    ],
  ])("different incidents are different alerts of %s, with their own titles", (name, events, expected) => {
    expect(titles(name, events())).toEqual(expected);
  });

  test("a user name mistyped twice is not a brute-force attack", () => {
    const attempts = [0, 1].flatMap((i) => [
      ...line(`<38>${clock(i * 10)} gw sshd[9]: Invalid user ana from 192.0.2.9 port 4000`),
      ...line(`<38>${clock(i * 10 + 1)} gw sshd[9]: Failed none for invalid user ana from 192.0.2.9 port 4000 ssh2`),
      ...line(
        `<38>${clock(i * 10 + 2)} gw sshd[9]: Failed password for invalid user ana from 192.0.2.9 port 4000 ssh2`,
      ),
      ...line(
        `<38>${clock(i * 10 + 3)} gw sshd[9]: Failed password for invalid user ana from 192.0.2.9 port 4000 ssh2`,
      ),
    ]);
    const success = line(`<38>${clock(40)} gw sshd[9]: Accepted password for anna from 192.0.2.9 port 4001 ssh2`);
    expect(fired([...attempts, ...success])).toEqual([]);
  });

  test("an attempt that PAM also reports counts once", () => {
    const attempts = times(9, (i) => [
      ...line(
        `<38>${clock(i)} gw sshd[9]: pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=192.0.2.9  user=root`,
      ),
      ...line(`<38>${clock(i)} gw sshd[9]: Failed password for root from 192.0.2.9 port 4000 ssh2`),
    ]).flat();
    expect(fired(attempts)).toEqual([]);
  });

  test("an ordinary Saturday is quiet", () => {
    const saturday = "2026-11-14T10:";
    const calls = times(9, (i) => [
      ...call(`+1202555012${i}`, `${saturday}1${i}:00Z`),
      ...body("talk", {
        uuid: `in ${i}`,
        from: "+12025550199",
        to: `+1202555013${i}`,
        direction: "in",
        time: `${saturday}2${i}:00Z`,
        status: "accepted",
        duration: 30,
      }),
    ]).flat();
    const browsing = times(40, (i) =>
      line(
        `<4>${clock(i)} gw [LAN_IN-A-2000] IN=br0 OUT=eth8 SRC=10.9.1.7 DST=203.0.113.${i} LEN=60 PROTO=TCP SPT=40112 DPT=443`,
      ),
    ).flat();
    expect(fired([...calls, ...browsing])).toEqual([]);
  });

  test("harmless events do not match", () => {
    const quiet = [
      ...line("CEF:0|M|UniFi Network|1|400|WiFi Client Connected|1|UNIFIclientMac=02:00:00:00:00:0b"),
      ...line("CEF:0|M|UniFi Network|1|578|Network Updated|4|UNIFIcategory=Software Updates"),
      ...line("<13>Nov 15 19:00:00 gw app: nothing much"),
      ...body("access", {
        event: "access.device.emergency_status",
        data: { object: { mode: "lockdown", value: false } },
      }),
      ...body("talk", {
        uuid: "c",
        from: "0101",
        to: "0102",
        direction: "out",
        time: "2026-11-15T12:00:00Z",
        status: "accepted",
        duration: 5,
      }),
    ];
    expect(fired(quiet)).toEqual([]);
  });
});

function forced(door: string | undefined, alias = "Hub 1"): readonly ParsedEvent[] {
  return body("access", {
    event: "access.device.dps_status",
    data: {
      ...(door !== undefined && { location: { location_type: "door", name: door } }),
      device: { alias },
      object: { event_type: "door_forced_open" },
    },
  });
}

function denied(id: string, badge: string): readonly ParsedEvent[] {
  const event = { type: "access.door.unlock", result: "BLOCKED", published: NOW };
  const actor = { id, display_name: id === "" ? "Unknown" : "robin" };
  return body("access", {
    event,
    actor,
    authentication: { credential_provider: "NFC", issuer: badge },
    target: [{ type: "door", display_name: "Entry" }],
  });
}

function unlocked(door: string, at: string): readonly ParsedEvent[] {
  const event = { type: "access.door.unlock", result: "ACCESS", published: Date.parse(at) };
  return body("access", {
    event,
    actor: { id: "u1", display_name: "robin" },
    target: [{ type: "door", display_name: door }],
  });
}

function call(to: string, at: string): readonly ParsedEvent[] {
  return body("talk", {
    uuid: to + at,
    from: "0114",
    to,
    direction: "out",
    time: at,
    status: "accepted",
    duration: 30,
  });
}
