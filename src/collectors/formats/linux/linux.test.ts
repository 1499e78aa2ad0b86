import { describe, expect, test } from "vitest";
import { CONTEXT, onlyEvent } from "../context.fixture.ts";
import { readLine } from "../read-line.ts";
import { EVE_RECORDS, FIREWALL_LINE } from "../samples.fixture.ts";

const read = (line: string) => onlyEvent(readLine(line, CONTEXT));

describe("lines of gateways", () => {
  test("a dropped packet", () => {
    expect(read(FIREWALL_LINE)).toMatchObject({
      type: "firewall_blocked",
      severity: "low",
      raw: {
        src_ip: "192.0.2.80",
        src_port: 40_112,
        src_mac: "02:00:00:aa:bb:cc",
        dst_ip: "198.51.100.4",
        dst_port: 23,
        dst_mac: "02:00:00:11:22:33",
        protocol: "tcp",
        action: "block",
        rule: "[WAN_LOCAL]Drop the rest",
        chain: "WAN_LOCAL",
        in_interface: "eth8",
        bytes: 60,
        tcp_flags: "SYN",
        device: "North-Gateway",
        line: FIREWALL_LINE,
      },
    });
  });

  test.each([
    ["[WAN_LOCAL-D-2147483647] ", "firewall_blocked", "block"],
    ["[WAN_LOCAL-A-2147483647] ", "firewall_allowed", "allow"],
    ["[WAN_IN-R-2000] ", "firewall_blocked", "reject"],
    ["[WAN_IN-B-4000000003-D]", "firewall_blocked", "block"],
    ["[WAN_IN-B-4000000003-A]", "firewall_allowed", "allow"],
    ["[LAN_IN-2001-A]", "firewall_allowed", "allow"],
    ["[12345.678901] [UFW BLOCK] ", "firewall_blocked", "block"],
    ["[ 8812.123456] DROP ", "firewall_blocked", "block"],
    ["[88123.123456] iptables denied: ", "firewall_blocked", "block"],
    ["[  812.1] reject wan in: ", "firewall_blocked", "reject"],
    ["FINAL_REJECT: ", "firewall_blocked", "reject"],
    ["[    0.5] ACCEPT-lan ", "firewall_allowed", "allow"],
    ["[    0.5] ", "firewall_logged", undefined],
    ["", "firewall_logged", undefined],
  ])("%j is %s", (prefix, type, action) => {
    const event = read(
      `<4>Nov 15 20:00:00 gw kernel: ${prefix}IN=eth0 OUT= SRC=192.0.2.1 DST=192.0.2.2 LEN=40 PROTO=ICMP TYPE=8 CODE=0`,
    );
    expect(event.type).toBe(type);
    expect(event.raw["action"]).toBe(action);
    expect(event.raw).toMatchObject({ src_ip: "192.0.2.1", protocol: "icmp", icmp_type: 8, program: "kernel" });
  });

  test("the packet that an ICMP error quotes is not the packet itself", () => {
    const quoted = "[SRC=192.0.2.2 DST=192.0.2.1 LEN=36 PROTO=UDP SPT=40000 DPT=33434 LEN=8 ] MARK=0x1";
    const { raw } = read(
      `<4>Nov 15 20:00:00 gw kernel: [WAN_IN-D-1]IN=eth0 OUT= SRC=192.0.2.1 DST=192.0.2.2 LEN=64 PROTO=ICMP TYPE=3 CODE=3 ${quoted}`,
    );
    expect(raw).toMatchObject({
      src_ip: "192.0.2.1",
      protocol: "icmp",
      icmp_type: 3,
      icmp_code: 3,
      bytes: 64,
      mark: "0x1",
    });
    expect(raw).not.toHaveProperty("src_port");
    expect(raw).not.toHaveProperty("dst_port");
  });

  test.each([
    ["[ 8812.123456] DROP ", "DROP"],
    ["[88123.123456] iptables denied: ", "iptables denied"],
    ["[ 1.5] [UFW BLOCK] ", "UFW BLOCK"],
    ["[    0.5] ", undefined],
  ])("the kernel's clock is not the rule: %j", (prefix, rule) =>
    expect(read(`<4>Nov 15 20:00:00 gw kernel: ${prefix}IN=eth0 OUT= SRC=192.0.2.1 DST=192.0.2.2`).raw["rule"]).toBe(
      rule,
    ),
  );

  test.each([
    ["TCP", "tcp"],
    ["47", "gre"],
    ["58", "icmpv6"],
    ["ICMPv6", "icmpv6"],
    ["IPv6-ICMP", "icmpv6"],
    ["2", "igmp"],
    ["3PC", "3pc"],
  ])("PROTO=%s is %s", (value, protocol) => {
    const event = read(`<4>Nov 15 20:00:00 gw kernel: IN=eth0 OUT= SRC=192.0.2.1 DST=192.0.2.2 PROTO=${value}`);
    expect(event.raw["protocol"]).toBe(protocol);
  });

  test.each<[string, string, Record<string, unknown>]>([
    [
      "Failed password for root from 192.0.2.9 port 4711 ssh2",
      "login_failure",
      { user: "root", src_ip: "192.0.2.9", src_port: 4711, method: "password" },
    ],
    [
      "Failed password for invalid user admin from 192.0.2.9 port 1 ssh2",
      "login_failure",
      { user: "admin", reason: "unknown user" },
    ],
    [
      "Failed none for invalid user a from b from 192.0.2.9 port 1 ssh2",
      "login_attempt",
      { user: "a from b", src_ip: "192.0.2.9" },
    ],
    ["Invalid user oracle from 2001:DB8::9 port 4711", "login_attempt", { user: "oracle", src_ip: "2001:db8::9" }],
    ["Invalid user  from 192.0.2.9 port 4711", "login_attempt", { src_ip: "192.0.2.9" }],
    [
      "error: PAM: Authentication failure for robin from 192.0.2.9",
      "login_failure",
      { user: "robin", src_ip: "192.0.2.9" },
    ],
    [
      "Failed keyboard-interactive/pam for robin from 192.0.2.9 port 22 ssh2",
      "login_attempt",
      { user: "robin", method: "keyboard-interactive/pam", src_port: 22 },
    ],
    [
      "error: PAM: Authentication failure for illegal user oracle from 192.0.2.9",
      "login_attempt",
      { user: "oracle", reason: "unknown user" },
    ],
    [
      "Failed keyboard-interactive/pam for invalid user oracle from 192.0.2.9 port 22 ssh2",
      "login_failure",
      { user: "oracle", method: "keyboard-interactive/pam", reason: "unknown user" },
    ],
    [
      "pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=192.0.2.9  user=root",
      "login_attempt",
      { user: "root", src_ip: "192.0.2.9" },
    ],
    [
      "pam_sss(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=2001:DB8::9 user=a rhost=192.0.2.1",
      "login_attempt",
      { user: "a rhost=192.0.2.1", src_ip: "2001:db8::9" },
    ],
    [
      "pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=client.example ",
      "login_attempt",
      { src_host: "client.example" },
    ],
    [
      "PAM 2 more authentication failures; logname= uid=0 euid=0 tty=ssh ruser= rhost=192.0.2.9  user=root",
      "login_attempt",
      { user: "root", src_ip: "192.0.2.9" },
    ],
    ["pam_unix(sshd:auth): check pass; user unknown", "login_attempt", { reason: "unknown user" }],
    ["pam_unix(sshd:session): session opened for user root by (uid=0)", "session_opened", { user: "root" }],
    [
      "pam_unix(sshd:session): session opened for user robin(uid=1000) by robin(uid=0)",
      "session_opened",
      { user: "robin" },
    ],
    ["pam_unix(sshd:session): session closed for user root", "session_closed", { user: "root" }],
    ["pam_unix(sshd:account): account robin has expired", "unparsed", {}],
    [
      "Accepted publickey for robin from 10.9.1.7 port 5000 ssh2: ED25519 SHA256:abc",
      "login_success",
      { user: "robin", method: "publickey", src_port: 5000 },
    ],
    ["Disconnected from user robin 10.9.1.7 port 5000", "session_closed", { user: "robin", src_ip: "10.9.1.7" }],
    [
      "Disconnected from authenticating user root 192.0.2.9 port 22 [preauth]",
      "session_closed",
      { user: "root", reason: "before logging in" },
    ],
    [
      "Received disconnect from 192.0.2.9 port 22:11: Bye Bye [preauth]",
      "session_closed",
      { src_ip: "192.0.2.9", src_port: 22 },
    ],
    ["Connection closed by 192.0.2.9 port 4000", "session_closed", { src_ip: "192.0.2.9" }],
    [
      "message repeated 3 times: [ Failed password for root from 192.0.2.9 port 1 ssh2]",
      "login_failure",
      { user: "root", repeated: 3 },
    ],
    [
      "Bad password attempt for 'ubnt' from 192.0.2.9:4711",
      "login_failure",
      { user: "ubnt", src_ip: "192.0.2.9", src_port: 4711 },
    ],
    ...["", "error: "].map((before): [string, string, Record<string, unknown>] => [
      `${before}maximum authentication attempts exceeded for root from 192.0.2.9 port 22 ssh2 [preauth]`,
      "login_failure",
      { user: "root", src_ip: "192.0.2.9", src_port: 22, reason: "too many attempts" },
    ]),
    ["Server listening on 0.0.0.0 port 22.", "unparsed", {}],
  ])("sshd: %s", (message, type, expected) => {
    const line = `<38>Nov 15 20:00:00 gw sshd[99]: ${message}`;
    expect(read(line)).toMatchObject({ type, source: "network", raw: { ...expected, device: "gw", line } });
  });

  test.each<[string, string, Record<string, unknown>]>([
    [
      "dnsmasq-dhcp[1]: DHCPACK(br0) 10.9.5.44 02:00:00:77:88:99 tablet-4",
      "dhcp_lease",
      { src_ip: "10.9.5.44", src_mac: "02:00:00:77:88:99", host: "tablet-4", in_interface: "br0" },
    ],
    ["dnsmasq-dhcp[1]: DHCPOFFER(br0) 10.9.5.44 02:00:00:77:88:99", "dhcp_offer", { src_ip: "10.9.5.44" }],
    [
      "dnsmasq-dhcp[1]: DHCPNAK(br0) 10.9.5.44 02:00:00:77:88:99 wrong network",
      "dhcp_refused",
      { src_ip: "10.9.5.44", reason: "wrong network" },
    ],
    [
      "dhcpd: DHCPACK on 10.9.5.44 to 02:00:00:77:88:99 (tablet-4) via eth1",
      "dhcp_lease",
      { src_ip: "10.9.5.44", src_mac: "02:00:00:77:88:99", host: "tablet-4", in_interface: "eth1" },
    ],
    [
      "dhcpd: DHCPREQUEST for 10.9.5.44 from 02:00:00:77:88:99 via eth1: unknown lease 10.9.5.44.",
      "dhcp_request",
      { reason: "unknown lease 10.9.5.44." },
    ],
    [
      "dhcpd: DHCPDISCOVER from 02:00:00:77:88:99 via eth1: network 10.9.0.0/16: no free leases",
      "dhcp_exhausted",
      { src_mac: "02:00:00:77:88:99", reason: "no free leases", in_interface: "eth1" },
    ],
    [
      "dhcpd: DHCPDISCOVER from 02:00:00:77:88:99 (no free leases) via eth1",
      "dhcp_discover",
      { src_mac: "02:00:00:77:88:99" },
    ],
    [
      "dnsmasq-dhcp[1]: DHCPDISCOVER(br0) 02:00:00:77:88:99 no address available",
      "dhcp_exhausted",
      { src_mac: "02:00:00:77:88:99", reason: "no address available", in_interface: "br0" },
    ],
    ["dnsmasq-dhcp[1]: no address range available for DHCP request via br0", "dhcp_exhausted", { in_interface: "br0" }],
    [
      "dnsmasq-dhcp[1]: 4711 DHCPDISCOVER(br0) 02:00:00:77:88:99 ignored",
      "dhcp_discover",
      { reason: "ignored", in_interface: "br0" },
    ],
    [
      "switch: Rogue DHCP server detected: 10.9.5.99 02:00:00:de:ad:01 on port 7",
      "rogue_dhcp",
      { src_ip: "10.9.5.99", src_mac: "02:00:00:de:ad:01" },
    ],
    [
      "kea-dhcp4: WARN ALLOC_ENGINE_V4_ALLOC_FAIL_NO_POOLS [hwtype=1 02:00:00:77:88:99], cid=[no info]: no pools",
      "dhcp_exhausted",
      { src_mac: "02:00:00:77:88:99" },
    ],
    ["dnsmasq[1]: using nameserver 192.0.2.53#53", "unparsed", {}],
  ])("%s", (message, type, expected) =>
    expect(read(`<30>Nov 15 20:00:00 gw ${message}`)).toMatchObject({ type, raw: { ...expected, device: "gw" } }),
  );

  test.each(["no address available", "wrong address", "ignored"])("%s is not the name of a host", (reason) =>
    expect(
      read(`<30>Nov 15 20:00:00 gw dnsmasq-dhcp[1]: DHCPNAK(br0) 10.9.5.44 02:00:00:77:88:99 ${reason}`).raw,
    ).not.toHaveProperty("host"),
  );

  test.each([
    [
      "Pubkey auth succeeded for 'root' with key sha1!! aa from 192.0.2.9:5555",
      "login_success",
      { user: "root", method: "publickey", src_ip: "192.0.2.9", src_port: 5555 },
    ],
    [
      "Pubkey auth succeeded for 'it's' with ssh-ed25519 key SHA256:abc from 192.0.2.9:5555",
      "login_success",
      { user: "it's", method: "publickey" },
    ],
    ["Password auth succeeded for 'root' from 192.0.2.9:5555", "login_success", { user: "root", method: "password" }],
    ["Bad password attempt for 'root' from 192.0.2.9:5555", "login_failure", { user: "root", method: "password" }],
    [
      "Bad PAM password attempt for 'root' from 192.0.2.9:5555",
      "login_failure",
      { user: "root", method: "password", src_ip: "192.0.2.9" },
    ],
  ])("dropbear: %s", (message, type, expected) =>
    expect(read(`<38>Nov 15 20:00:00 gw dropbear[99]: ${message}`)).toMatchObject({ type, raw: expected }),
  );

  test.each([
    ["sshd[123]: Failed password for root from 192.0.2.9 port 1 ssh2", "login_failure", 123],
    ["dnsmasq-dhcp[99]: DHCPACK(br0) 10.9.5.44 02:00:00:77:88:99 tablet-4", "dhcp_lease", 99],
    ["app[7]: hello", "unparsed", 7],
  ])("%s has its process and program", (message, type, processId) =>
    expect(read(`<86>Nov 15 20:00:00 gw ${message}`)).toMatchObject({
      type,
      raw: { process_id: processId, facility: 10 },
    }),
  );

  test("the process in the message takes precedence over the header", () => {
    const line = "<134>Nov 15 20:00:00 gw app[7]: CEF:0|M|UniFi Network|1|1|x|1|process_id=8 a=1";
    expect(read(line).raw).toMatchObject({ process_id: 8, facility: 16 });
  });

  test("EVE in syslog keeps the line too", () => {
    const line = `<134>Nov 15 20:00:00 ids suricata[3]: ${JSON.stringify(EVE_RECORDS.alert)}`;
    expect(read(line)).toMatchObject({
      type: "ids_alert",
      severity: "critical",
      raw: { signature_id: 2_900_002, device: "ids", line },
    });
    expect(readLine(`<134>Nov 15 20:00:00 ids suricata: ${JSON.stringify(EVE_RECORDS.flow)}`, CONTEXT)).toMatchObject({
      kind: "flows",
      flows: [{}, {}],
    });
    expect(read('<134>Nov 15 20:00:00 ids app: {"event_type": broken').type).toBe("unparsed");
  });
});
