import { describe, expect, test } from "vitest";
import { loadBuiltinRules } from "../../detection/rules/builtin.ts";
import { Reference } from "../../detection/testing/reference-engine.ts";
import { formatTime } from "../../lib/time.ts";
import type { Finding } from "../../model/finding.ts";
import { classOfType, sourceName, type Event, type JsonValue } from "../../model/event.ts";
import { CONTEXT, eventsOf, NOW } from "./context.fixture.ts";
import { readEve } from "./eve/eve.ts";
import { readLine } from "./read-line.ts";
import type { ParsedEvent } from "./reading.ts";
import { CEF_CONFIG, EVE_RECORDS } from "./samples.fixture.ts";
import { OpenEvents } from "./unifi/open-events.ts";
import { readBody, type BodyName } from "./unifi/webhooks.ts";

// Field names and types are right only if the built-in rules match real lines.

// Absence rules depend on the clock and are left out.
const rules = loadBuiltinRules({ platform: "platform", timezone: "UTC" }).filter(({ absence }) => !absence);

/** Findings of the built-in rules. */
function found(read: readonly ParsedEvent[]): readonly Finding[] {
  const events = read.map((event, index): Event => ({
    id: `evt_${String(index).padStart(8, "0")}`,
    type: event.type,
    source: sourceName("platform", event.source),
    class: classOfType(event.type, event.class),
    severity: event.severity,
    timestamp: formatTime(event.timestampMs ?? NOW),
    raw: event.raw,
    enrichment: {},
  }));
  return new Reference(rules).process(events, NOW).findings;
}

function fired(read: readonly ParsedEvent[]): string[] {
  return [...new Set(found(read).map(({ rule }) => rule.name))].sort();
}

/** Titles of one rule's findings, in order. */
const titles = (name: string, read: readonly ParsedEvent[]) =>
  found(read)
    .filter(({ rule }) => rule.name === name)
    .map(({ title }) => title);

const times = <Made>(count: number, make: (index: number) => Made): Made[] =>
  Array.from({ length: count }, (_, i) => make(i));
const line = (text: string) => eventsOf(readLine(text, CONTEXT));
const body = (name: BodyName, value: JsonValue, open = new OpenEvents()) =>
  eventsOf(readBody(name, value, CONTEXT, open));
const eve = (record: unknown) => eventsOf(readEve(JSON.stringify(record), CONTEXT));
const clock = (index: number) =>
  `Nov 15 19:${String(10 + Math.floor(index / 60)).padStart(2, "0")}:${String(index % 60).padStart(2, "0")}`;

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
    [
      "talk.registration_failures",
      () =>
        times(20, (i) =>
          line(
            `<133>${clock(i)} pbx asterisk[8]: NOTICE[9]: chan_sip.c:28468 in handle_request_register: Registration from '"1${i}" <sip:1${i}@192.0.2.10>' failed for '203.0.113.9:5071' - Wrong password`,
          ),
        ).flat(),
    ],
    [
      "talk.registration_failures",
      () =>
        times(20, (i) =>
          line(
            `<132>${clock(i)} pbx freeswitch[8]: 2026-11-15 19:10:${10 + i}.000000 98.00% [WARNING] sofia_reg.c:1842 SIP auth failure (REGISTER) on sofia profile 'internal' for [${i}@192.0.2.10] from ip 203.0.113.9`,
          ),
        ).flat(),
    ],
    [
      "talk.premium_number_called",
      () =>
        line(
          "<133>Nov 15 19:10:00 sip kamailio[8]: NOTICE: acc [acc.c:287]: acc_log_request(): ACC: transaction answered: timestamp=1794769800;method=INVITE;from_tag=1;to_tag=2;call_id=c;code=200;reason=OK;src_user=101;src_domain=d;src_ip=10.9.5.44;dst_ouser=00449005550100;dst_user=00449005550100;dst_domain=d",
        ),
    ],
    [
      "talk.toll_fraud",
      () =>
        times(5, (i) =>
          line(
            `Call ${i},id${i},00:00:31,2026/11/15 01:0${i}:00,2026/11/15 01:0${i}:04,2026/11/15 01:0${i}:35,TerminatedBySrc,Ext.101,+99955501${i},101,10000,0099955501${i},`,
          ),
        ).flat(),
    ],
    [
      "network.brute_force",
      () =>
        times(10, (i) =>
          line(`<38>${clock(i)} bsd sshd[9]: error: PAM: authentication error for root from 203.0.113.9`),
        ).flat(),
    ],
    [
      "network.password_spraying",
      () =>
        times(5, (i) =>
          line(`<38>${clock(i)} web sshd[9]: User u${i} from 203.0.113.9 not allowed because not listed in AllowUsers`),
        ).flat(),
    ],
    [
      "network.brute_force",
      () =>
        times(10, (i) =>
          line(
            `<86>${clock(i)} web xrdp-sesman[9]: pam_unix(xrdp-sesman:auth): authentication failure; logname= uid=0 euid=0 tty=xrdp-sesman ruser= rhost=203.0.113.9  user=root`,
          ),
        ).flat(),
    ],
    [
      "network.brute_force",
      () =>
        times(10, (i) =>
          line(
            `type=USER_LOGIN msg=audit(17947698${10 + i}.000:${i}): pid=9 uid=0 msg='op=login acct="root" exe="/usr/sbin/sshd" hostname=? addr=203.0.113.9 terminal=sshd res=failed'`,
          ),
        ).flat(),
    ],
    [
      "network.brute_force",
      () =>
        times(10, (i) =>
          line(
            `{"EventTime":"2026-11-15 19:10:${10 + i}","EventID":4625,"SourceName":"Microsoft-Windows-Security-Auditing","Channel":"Security","TargetUserName":"u${i}","LogonType":"3","IpAddress":"203.0.113.9"}`,
          ),
        ).flat(),
    ],
    [
      "network.new_admin",
      () =>
        line(
          "<Event><System><EventID>4732</EventID><Channel>Security</Channel></System><EventData><Data Name='MemberSid'>S-1-5-21-1-2-3-1104</Data><Data Name='TargetSid'>S-1-5-32-544</Data><Data Name='SubjectUserName'>robin</Data></EventData></Event>",
        ),
    ],
    [
      "network.dns_many_failures",
      () =>
        times(55, (i) =>
          line(
            `{"ts":${1_794_769_800 + i},"uid":"CAbc1d2EfGhIjKlMn3","id.orig_h":"10.9.3.20","id.orig_p":51522,"id.resp_h":"10.9.0.1","id.resp_p":53,"proto":"udp","trans_id":7,"query":"x${i}.example","qtype_name":"A","rcode_name":"NXDOMAIN"}`,
          ),
        ).flat(),
    ],
    [
      "network.ids_repeated",
      () =>
        times(10, (i) =>
          line(
            `{"ts":${1_794_769_800 + i},"note":"Scan::Port_Scan","msg":"scan","src":"203.0.113.9","dst":"10.9.3.${i}"}`,
          ),
        ).flat(),
    ],
    [
      "network.brute_force",
      () =>
        times(10, (i) =>
          eve({
            timestamp: `2026-11-15T19:10:${10 + i}.000000+0000`,
            event_type: "ftp",
            src_ip: "203.0.113.9",
            dest_ip: "10.9.3.20",
            dest_port: 21,
            proto: "TCP",
            ftp: { command: "PASS", completion_code: ["530"] },
          }),
        ).flat(),
    ],
    [
      "network.password_spraying",
      () =>
        times(5, (i) =>
          line(
            `<190>${clock(i)} web nginx: 203.0.113.9 - u${i} [15/Nov/2026:19:10:0${i} +0000] "GET /admin HTTP/1.1" 401 5 "-" "curl"`,
          ),
        ).flat(),
    ],
    [
      "network.brute_force",
      () =>
        times(10, (i) =>
          line(
            `<187>${clock(i)} web apache2: [auth_basic:error] [pid 9] [client 203.0.113.9:5000] AH01617: user robin: authentication failure for "/": Password Mismatch`,
          ),
        ).flat(),
    ],
    [
      "network.brute_force",
      () =>
        times(10, (i) =>
          line(
            `<29>${clock(i)} vpn openvpn[9]: 203.0.113.9:${5000 + i} TLS Auth Error: Auth Username/Password verification failed for peer`,
          ),
        ).flat(),
    ],
    [
      "network.brute_force_then_success",
      () =>
        times(6, (i) =>
          line(
            i < 5
              ? `<29>${clock(i)} vpn openvpn[9]: 203.0.113.9:5000 TLS Auth Error: Auth Username/Password verification failed for peer`
              : `<29>${clock(i)} vpn openvpn[9]: 203.0.113.9:5000 TLS: Username/Password authentication succeeded for username 'robin'`,
          ),
        ).flat(),
    ],
    ...[
      (i: number) => `postfix/smtpd[9]: warning: unknown[203.0.113.9]: SASL LOGIN authentication failed: ${i}`,
      (i: number) =>
        `dovecot: imap-login: Disconnected (auth failed, 1 attempts in 2 secs): user=<u${i}>, method=PLAIN, rip=203.0.113.9, lip=198.51.100.4`,
      (i: number) =>
        `smbd[9]: Auth: [SMB2,(null)] user [CORP]\\[u${i}] at [a] with [NTLMv2] status [NT_STATUS_WRONG_PASSWORD] workstation [L] remote host [ipv4:203.0.113.9:5000]`,
      (i: number) => `vsftpd[9]: [u${i}] FAIL LOGIN: Client "203.0.113.9"`,
      (i: number) =>
        `Connection: User [u${i}] from [203.0.113.9] failed to sign in to [DSM] via [password] due to authorization failure.`,
      (i: number) =>
        `qulogd[9]: conn log: Users: u${i}, Source IP: 203.0.113.9, Computer name: ---, Connection type: HTTPS, Accessed resources: Administration, Action: Login Fail`,
      (i: number) =>
        `pvedaemon[9]: authentication failure; rhost=203.0.113.9 user=u${i}@pam msg=Authentication failure`,
      (i: number) =>
        `Hostd: info hostd[2100] [Originator@6876 sub=Vimsvc.ha-eventmgr] Event ${i} : Cannot login u${i}@203.0.113.9`,
    ].map((message): [string, () => readonly ParsedEvent[]] => [
      "network.brute_force",
      () => times(10, (i) => line(`<22>${clock(i)} mail ${message(i)}`)).flat(),
    ]),
    [
      "network.brute_force",
      () =>
        times(10, (i) =>
          line(
            `{"timestamp":"2026-11-15T19:10:${10 + i}.000+0000","rule":{"level":5,"description":"sshd: authentication failed.","id":"5760","groups":["authentication_failed"]},"agent":{"id":"001"},"data":{"srcip":"203.0.113.9"}}`,
          ),
        ).flat(),
    ],
    [
      "network.ids_repeated",
      () =>
        times(10, (i) =>
          line(
            `{"scenario":"crowdsecurity/http-probing","created_at":"2026-11-15T19:10:${10 + i}Z","source":{"scope":"Ip","value":"203.0.113.9"}}`,
          ),
        ).flat(),
    ],
    [
      "network.remote_access_opened",
      () =>
        line(
          "<14>Nov 15 19:10:00 esx1 vobd: [GenericCorrelator] 7us: [esx.audit.ssh.enabled] SSH access has been enabled.",
        ),
    ],
    ["network.new_admin", () => line("<86>Nov 15 19:10:00 web usermod[9]: add 'robin' to group 'sudo'")],
    [
      "talk.account_taken_over",
      () =>
        times(6, (i) =>
          line(
            `<133>${clock(i)} pbx asterisk[8]: SECURITY[9]: res_security_log.c:114 in security_event_stasis_cb: SecurityEvent="${i < 5 ? "InvalidPassword" : "SuccessfulAuth"}",EventTV="2026-11-15T19:10:0${i}.000+0000",Severity="Error",Service="PJSIP",EventVersion="2",AccountID="101",SessionID="a",LocalAddress="IPV4/UDP/192.0.2.10/5060",RemoteAddress="IPV4/UDP/203.0.113.9/5071"`,
          ),
        ).flat(),
    ],
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
