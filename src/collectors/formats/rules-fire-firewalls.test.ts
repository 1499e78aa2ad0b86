import { describe, expect, test } from "vitest";
import { CONTEXT, eventsOf } from "./context.fixture.ts";
import { readLine } from "./read-line.ts";
import { fired, found } from "./rules-fire.fixture.ts";

// Lines of firewalls, and the built-in rules that they must fire.

/** Lines a second apart. */
const lines = (count: number, make: (index: number) => string) =>
  Array.from({ length: count }, (_, index) =>
    eventsOf(readLine(`<134>${clock(index)} gw ${make(index)}`, CONTEXT)),
  ).flat();
const clock = (index: number) => `Nov 15 19:10:${String(index).padStart(2, "0")}`;

describe("built-in rules match lines of firewalls", () => {
  test.each<[string, string, number, (index: number) => string]>([
    [
      "filterlog",
      "network.port_sweep",
      25,
      (i) =>
        `filterlog[1]: 5,,,1000000103,igb0,match,block,in,4,0x0,,54,1,0,DF,6,tcp,60,192.0.2.80,198.51.100.4,40112,${1000 + i},0,S,1,,1,,`,
    ],
    [
      "pfsense",
      "network.brute_force",
      12,
      () => "php-fpm[347]: /index.php: webConfigurator authentication error for user 'admin' from: 192.0.2.66",
    ],
    [
      "pfsense",
      "network.brute_force_then_success",
      7,
      (i) =>
        i < 6
          ? "audit[1]: /index.php: Web GUI authentication error for 'root' from 192.0.2.66"
          : "audit[1]: /index.php: Successful login for user 'root' from: 192.0.2.66",
    ],
    [
      "fortigate",
      "network.brute_force",
      12,
      () =>
        'date=2026-11-15 time=19:10:00 devname="fg" logid="0100032002" type="event" subtype="system" level="alert" logdesc="Admin login failed" user="admin" ui="ssh(192.0.2.66)" method="ssh" srcip=192.0.2.66 action="login" status="failed"',
    ],
    [
      "fortigate",
      "network.ids_critical",
      1,
      () =>
        'date=2026-11-15 time=19:10:00 devname="fg" logid="0419016384" type="utm" subtype="ips" eventtype="signature" level="alert" severity="critical" srcip=192.0.2.44 dstip=10.9.3.20 action="detected" attack="Made.Up.Overflow" attackid=51006',
    ],
    [
      "fortigate",
      "network.new_admin",
      1,
      () =>
        'date=2026-11-15 time=19:10:00 devname="fg" logid="0100044547" type="event" subtype="system" level="information" logdesc="Object attribute configured" user="ann" ui="GUI(192.0.2.10)" action="Add" cfgpath="system.admin" cfgobj="mallory" cfgattr="" msg="Add"',
    ],
    [
      "cisco-asa",
      "network.port_sweep",
      25,
      (i) =>
        `%ASA-4-106023: Deny tcp src outside:192.0.2.80/40112 dst inside:198.51.100.4/${1000 + i} by access-group "out" [0x0, 0x0]`,
    ],
    [
      "cisco-asa",
      "network.brute_force",
      12,
      () => '%ASA-6-605004: Login denied from 192.0.2.66/40112 to outside:198.51.100.4/ssh for user "root"',
    ],
    [
      "cisco-asa",
      "network.new_admin",
      1,
      () => "%ASA-5-502101: New user added to local dbase: Uname: mallory Priv: 15 Encpass: ****",
    ],
    [
      "cisco-ftd-events",
      "network.ids_high_not_blocked",
      1,
      () =>
        "%FTD-1-430001: EventPriority: High, DeviceUUID: 0, SrcIP: 192.0.2.44, DstIP: 10.9.3.20, Protocol: tcp, Priority: 1, SID: 1002003, Message: made up, InlineResult: Would Have Dropped",
    ],
    [
      "cisco-ios",
      "network.brute_force_then_success",
      7,
      (i) =>
        i < 6
          ? "%SEC_LOGIN-4-LOGIN_FAILED: Login failed [user: root] [Source: 192.0.2.66] [localport: 22] [Reason: Login Authentication Failed] at 10:00:00 UTC Sun Nov 15 2026"
          : "%SEC_LOGIN-5-LOGIN_SUCCESS: Login Success [user: root] [Source: 192.0.2.66] [localport: 22] at 10:00:00 UTC Sun Nov 15 2026",
    ],
    [
      "cisco-ios",
      "network.rogue_dhcp",
      1,
      () =>
        "%DHCP_SNOOPING-5-DHCP_SNOOPING_UNTRUSTED_PORT: DHCP_SNOOPING drop message on untrusted port, message type: DHCPOFFER, MAC sa: 0200.0000.00aa",
    ],
    [
      "palo-alto",
      "network.port_sweep",
      25,
      (i) =>
        `1,2026/11/15 19:10:00,007951000000001,TRAFFIC,drop,2561,2026/11/15 19:10:00,192.0.2.80,198.51.100.4,0.0.0.0,0.0.0.0,deny,,,not-applicable,vsys1,untrust,trust,ethernet1/1,,,,0,1,40112,${1000 + i},0,0,0x0,tcp,deny`,
    ],
    [
      "palo-alto",
      "network.command_and_control",
      1,
      () =>
        "1,2026/11/15 19:10:00,007951000000001,THREAT,spyware,2561,2026/11/15 19:10:00,10.9.3.20,192.0.2.44,0.0.0.0,0.0.0.0,out,,,dns,vsys1,trust,untrust,ethernet1/2,ethernet1/1,,,1,1,51200,53,0,0,0x0,udp,alert,bad.example,Made Up(12000),any,high,client-to-server,1,0x0,,,0,,0,,,0,,,,,,,,0,0,0,0,0,,gw5,,,,,,,,,,command-and-control",
    ],
    [
      "palo-alto",
      "network.new_admin",
      1,
      () =>
        "1,2026/11/15 19:10:00,007951000000001,CONFIG,0,0,2026/11/15 19:10:00,192.0.2.10,,set,ann,CLI,Succeeded, mgt-config users mallory,1,0x0",
    ],
    [
      "leef",
      "network.port_sweep",
      25,
      (i) =>
        `LEEF:2.0|Made Up|Packet Filter|7|Drop|^|src=192.0.2.80^dst=198.51.100.4^dstPort=${1000 + i}^proto=TCP^action=drop`,
    ],
    [
      "check-point",
      "network.brute_force",
      12,
      () => '[action:"Failed Log In"; time:"1794769800"; product:"Mobile Access"; src:"192.0.2.66"; user:"root"]',
    ],
    [
      "check-point-generic",
      "network.command_and_control",
      1,
      () =>
        "time=1794769800|hostname=gw5|product=Anti-Bot|action=Detect|src=10.9.3.20|dst=192.0.2.44|severity=High|protection_name=Made.Up",
    ],
    [
      "cef",
      "network.port_sweep",
      25,
      (i) =>
        `CEF:0|Check Point|VPN-1 & FireWall-1|Check Point|Log|x|Unknown|act=Drop src=192.0.2.80 dst=198.51.100.4 dpt=${1000 + i}`,
    ],
    [
      "sophos",
      "network.brute_force",
      12,
      () =>
        'device="SFW" date=2026-11-15 time=19:10:00 device_name="gw5" log_id=062009617502 log_type="Event" log_component="GUI" log_subtype="Admin" status="Failed" user_name="admin" src_ip=192.0.2.66 message="User admin failed to login to Web Admin Console because of wrong credentials"',
    ],
    [
      "sonicwall",
      "network.port_sweep",
      25,
      (i) =>
        `id=firewall sn=020000000001 time="2026-11-15 19:10:00 UTC" fw=198.51.100.4 pri=5 c=64 m=36 msg="TCP connection dropped" src=192.0.2.80:40112:X1 dst=198.51.100.4:${1000 + i}:X1 proto=tcp/x`,
    ],
    [
      "watchguard",
      "network.host_sweep",
      25,
      (i) =>
        `firewall: msg_id="3000-0148" Deny 0-External Firebox 52 tcp 20 127 192.0.2.80 198.51.100.${i} 40112 22 offset 8 S 1 win 64 (Unhandled-00)`,
    ],
    [
      "juniper-srx",
      "network.port_sweep",
      25,
      (i) =>
        `RT_FLOW: RT_FLOW_SESSION_DENY: session denied 192.0.2.80/40112->198.51.100.4/${1000 + i} junos-x 6(0) deny-all untrust trust UNKNOWN`,
    ],
    [
      "mikrotik",
      "network.port_sweep",
      25,
      (i) =>
        `firewall,info drop input: in:ether1 out:(unknown 0), src-mac 02:00:00:00:00:07, proto TCP (SYN), 192.0.2.80:40112->198.51.100.4:${1000 + i}, len 60`,
    ],
    [
      "mikrotik",
      "network.brute_force",
      12,
      () => "system,error,critical login failure for user root from 192.0.2.66 via ssh",
    ],
    [
      "meraki",
      "network.port_sweep",
      25,
      (i) =>
        `1 1794769800.0 gw5 flows src=192.0.2.80 dst=198.51.100.4 protocol=tcp sport=40112 dport=${1000 + i} pattern: deny all`,
    ],
    [
      "meraki",
      "network.rogue_access_point",
      1,
      () =>
        "1 1794769800.0 ap-7 airmarshal_events type=rogue_ssid_detected ssid='Free' bssid='02:00:00:00:00:aa' channel='6'",
    ],
    [
      "stormshield",
      "network.brute_force",
      12,
      () =>
        'id=firewall time="2026-11-15 19:10:00" fw="gw5" tz=+0000 src=192.0.2.66 user="root" method="PLAIN" error=4 msg="Authentication failed" logtype="auth"',
    ],
    [
      "zyxel",
      "network.port_sweep",
      25,
      (i) =>
        `src="192.0.2.80:40112" dst="198.51.100.4:${1000 + i}" msg="Match default rule, DROP" note="ACCESS BLOCK" user="unknown" devID="020000000001" cat="Firewall" protoID=6`,
    ],
  ])("%s fires %s", (_, name, count, make) => {
    const events = lines(count, make);
    expect(fired(events)).toContain(name);
    expect(found(events).filter(({ title }) => title.includes("(none)"))).toEqual([]);
  });
});
