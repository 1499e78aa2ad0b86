import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CONTEXT, onlyEvent } from "./context.fixture.ts";
import { readLine } from "./lines.ts";
import { CEF_CLIENT, CEF_CONFIG, CEF_LINES, CEF_THREAT, EVE_RECORDS, FIREWALL_LINE } from "./samples.fixture.ts";

const read = (line: string) => onlyEvent(readLine(line, CONTEXT));
const timeOf = (line: string) => {
  const { timestampMs } = read(line);
  return timestampMs === null ? null : new Date(timestampMs).toISOString();
};

describe("what stands before the message", () => {
  test.each<[string, string, Record<string, unknown>]>([
    [
      "RFC 5424",
      '<165>1 2026-11-15T19:00:00.003Z gw-1 app 4711 ID47 [a@1 x="1 \\"two\\" \\]" y="z"][b@1] \ufeffhello there',
      {
        device: "gw-1",
        program: "app",
        process_id: 4711,
        facility: 20,
        structured_data: { "a@1": { x: '1 "two" ]', y: "z" }, "b@1": {} },
        message: "hello there",
      },
    ],
    ["RFC 5424 with nothing in it", "<13>1 - - - - - - hello", { facility: 1, message: "hello" }],
    ["RFC 5424 without a message", "<13>1 2026-11-15T19:00:00Z gw app - - -", { device: "gw", program: "app" }],
    [
      "RFC 3164",
      "<13>Nov 15 19:00:00 gw app[12]: hello",
      { device: "gw", program: "app", process_id: 12, message: "hello" },
    ],
    ["no priority", "Nov 15 19:00:00 gw app: hello", { device: "gw", program: "app", message: "hello" }],
    ["the host twice", "<13>Nov 15 19:00:00 gw gw app: hello", { device: "gw", program: "app", message: "hello" }],
    ["no host", "<13>Nov 15 19:00:00 app[7]: hello", { program: "app", process_id: 7, message: "hello" }],
    ["a stray space in the time", "<13>2026-11-15 T19:00:00Z gw app: hello", { device: "gw", program: "app" }],
    [
      "a stray space before the zone",
      "<13>1 2026-11-15T19:00:00 +0000 gw app - - - hello",
      { device: "gw", message: "hello" },
    ],
    ["a mark at the beginning", "\ufeff<13>Nov 15 19:00:00 gw app: hello", { device: "gw", message: "hello" }],
    ["a priority that cannot be", "<999>hello", { message: "<999>hello" }],
    [
      "a device where the program should be",
      "<13>Nov 15 19:00:00 ap-7 0200000a0b0c,U6-Lite-6.7.54: hostapd[9]: hello",
      {
        device: "ap-7",
        device_mac: "02:00:00:0a:0b:0c",
        model: "U6-Lite-6.7.54",
        program: "hostapd",
        message: "hello",
      },
    ],
    ["nothing at all: the device is who sent it", "hello", { device: "192.0.2.1", message: "hello" }],
  ])("%s", (_, line, expected) => {
    const event = read(line);
    expect(event).toMatchObject({ type: "unparsed", source: "network", class: "network" });
    expect(event.raw).toMatchObject({ ...expected, line });
  });

  test("a time in the header is the time, where the message has none", () => {
    expect(timeOf("<13>Nov 15 19:00:00 gw app: hello")).toBe("2026-11-15T19:00:00.000Z");
    expect(timeOf("<13>2026-11-15 T19:00:00+02:00 gw app: hello")).toBe("2026-11-15T17:00:00.000Z");
    expect(timeOf("hello")).toBeNull();
  });

  test.each([
    ["<8>x", "critical"],
    ["<10>x", "high"],
    ["<11>x", "medium"],
    ["<12>x", "low"],
    ["<14>x", "info"],
    ["x", "info"],
  ])("the severity of %s is %s", (line, severity) => expect(read(line).severity).toBe(severity));

  test.each(["", "   ", "<13>"])("%j says nothing", (line) => {
    const reading = readLine(line, CONTEXT);
    expect(line.trim() === "" ? reading.kind : onlyEvent(reading).type).toBe(
      line.trim() === "" ? "nothing" : "unparsed",
    );
  });
});

describe("CEF", () => {
  test("a threat has everything under the names that rules use", () => {
    const event = read(CEF_THREAT);
    expect(event).toMatchObject({ type: "ids_alert", source: "network", severity: "high" });
    expect(new Date(event.timestampMs!).toISOString()).toBe("2026-11-15T19:58:12.250Z");
    expect(event.raw).toMatchObject({
      src_ip: "192.0.2.44",
      src_port: 51_200,
      dst_ip: "10.9.3.20",
      dst_port: 8443,
      dst_mac: "02:00:00:44:55:66",
      dst_host: "Build server",
      protocol: "tcp",
      action: "block",
      signature: "ET SCAN Made-up Scanner",
      signature_id: 2_900_001,
      category: "attempted-recon",
      device: "North Gateway",
      device_ip: "10.9.0.1",
      in_interface: "Internet 1",
      rule: "Known Scanners",
      bytes: 1460,
      event_name: "Threat Detected and Blocked",
      event_code: "201",
      line: CEF_THREAT,
    });
    expect(event.raw).not.toHaveProperty("UNIFIflowId");
  });

  test("a change has who, what and from where out of the sentence", () => {
    expect(read(CEF_CONFIG)).toMatchObject({
      type: "config_changed",
      severity: "low",
      raw: { user: "Robin K.", setting: "remote_access", src_ip: "10.9.1.7", device: "North Gateway" },
    });
  });

  test("a client has its address, its name and where it is", () => {
    expect(read(CEF_CLIENT)).toMatchObject({
      type: "client_connected",
      severity: "info",
      raw: {
        src_ip: "10.9.5.44",
        src_mac: "02:00:00:77:88:99",
        host: "tablet-4",
        network: "House Staff",
        device: "AP Stairs",
        UNIFIWiFiRssi: -61,
      },
    });
  });

  const header = "CEF:0|Maker|UniFi Network|1|1|Some Thing|5|";
  test.each<[string, string, Record<string, unknown>]>([
    ["a space behind the colon", "CEF: 0|Maker|UniFi Network|1|1|Some Thing|5|spt=1", { src_port: 1 }],
    ["no CEF at all", "0|Maker|UniFi Network|1|1|Some Thing|5|spt=1", { src_port: 1 }],
    ["a header with bars", "CEF:0|Ma\\|ker|UniFi Network|1|1|Some \\\\ Thing|5|spt=1", { event_name: "Some \\ Thing" }],
    ["no extension", "CEF:0|Maker|UniFi Network|1|1|Some Thing|5", { event_name: "Some Thing" }],
    ["values with spaces", `${header}a=one two b=three`, { a: "one two", b: "three" }],
    ["values with equals signs", `${header}a=x=y=z b=1\\=2 c\\=3 d=4`, { a: "x=y=z", b: "1=2 c=3", d: "4" }],
    ["escapes", `${header}a=one\\ntwo\\\\three\\|four b=\\x`, { a: "one\ntwo\\three|four", b: "\\x" }],
    ["quotes", `${header}msg="Door A has x=1 in it." a=2`, { message: "Door A has x=1 in it.", a: "2" }],
    ["a quote that does not end", `${header}msg="Door a=2`, { message: '"Door', a: "2" }],
    ["nothing and null", `${header}a= b=null c=1`, { c: "1" }],
    ["the same twice", `${header}spt=1 spt=2 a=1 a=2`, { src_port: 1, a: "1" }],
    [
      "numbers of some country",
      `${header}dpt=32,400 UNIFItotalBytes=1.234.567 spt=٤٤٣`,
      { dst_port: 32_400, bytes: 1_234_567, src_port: 443 },
    ],
    [
      "a name for an address",
      `${header}src=printer dst=10.0.0.300`,
      { src_host: "printer", dst_host: "10.0.0.300", src: "printer" },
    ],
    ["a port that is none", `${header}dpt=70000 spt=http`, { dpt: "70000", spt: "http" }],
    [
      "our own names",
      `${header}src_ip=2001:DB8:0::1 camera=Yard known=no score=high`,
      { src_ip: "2001:db8::1", camera: "Yard", known_told: "no", score_told: "high" },
    ],
    [
      "names that objects know",
      `${header}__proto__=x constructor=y toString=z`,
      { _proto_: "x", constructor: "y", toString: "z" },
    ],
    ["a relay before it", `relay says ${header}a=1`, { a: "1" }],
  ])("%s", (_, line, expected) => {
    const { raw, severity } = read(line);
    expect(raw).toMatchObject({ ...expected, line });
    expect(severity).toBe("medium");
    expect(raw).not.toHaveProperty("null");
  });

  test("a threat with hardware addresses only", () => {
    const line =
      "CEF:0|M|UniFi Network|1|201|Threat Detected|9|UNIFIsrcClientMac=02:00:00:00:00:0A UNIFIsrcClientHostname=lab";
    expect(read(line)).toMatchObject({
      type: "ids_alert",
      severity: "critical",
      raw: { src_mac: "02:00:00:00:00:0a", host: "lab", action: "allow" },
    });
    expect(read(line).raw).not.toHaveProperty("src_ip");
  });

  test("the order of the keys does not count", () => {
    const [head, extension] = [
      CEF_THREAT.slice(0, CEF_THREAT.indexOf("|7|") + 3),
      CEF_THREAT.slice(CEF_THREAT.indexOf("|7|") + 3),
    ];
    const pairs = extension.split(/ (?=\w+=)/);
    const { line: _, ...expected } = read(CEF_THREAT).raw;
    fc.assert(
      fc.property(fc.shuffledSubarray(pairs, { minLength: pairs.length }), (order) => {
        const { line: __, ...raw } = read(head + order.join(" ")).raw;
        expect(raw).toEqual(expected);
      }),
      { numRuns: 30 },
    );
  });

  test("what was read before does not change what is read", () => {
    const word = fc.stringMatching(/^[a-zA-Z]{1,6}$/);
    const value = fc.stringMatching(/^[a-z0-9]([a-z0-9 ]{0,8}[a-z0-9])?$/).filter((text) => text !== "null");
    fc.assert(
      fc.property(fc.array(fc.tuple(word, value), { maxLength: 30 }), (pairs) => {
        const { raw } = read(`CEF:0|M|P|1|1|n|1|${pairs.map(([key, text]) => `o${key}=${text}`).join(" ")}`);
        const first = new Map([...pairs].reverse().map(([key, text]) => [`o${key}`, text]));
        for (const [key, text] of first) if (key !== "out") expect(raw[key]).toBe(text);
      }),
    );
  });

  test("a line that came before gives the same as it did then", () => {
    const value = fc.oneof(
      fc.constantFrom("", "null", "a b", 'q"', '"q r"', "x=y", "\\=z", "\\\\", "two  ", "10.0.0.1", "7", "\n"),
      fc.string({ maxLength: 6 }),
    );
    const key = fc.constantFrom("src", "dpt", "a", "b.c", "d-e", "f[0]", "msg", "UNIFIhost");
    fc.assert(
      fc.property(fc.array(fc.tuple(key, value), { maxLength: 8 }), fc.nat(), (pairs, number) => {
        const line = `CEF:0|M|P|${number}|1|n|1|${pairs.map(([name, text]) => `${name}=${text}`).join(" ")}`;
        const first = read(line).raw;
        for (let times = 0; times < 3; times++) expect(read(line).raw).toEqual(first);
      }),
      { numRuns: 500 },
    );
  });

  test("ten thousand keys: some are taken, the rest is counted, the line has them all", () => {
    const line = `CEF:0|M|UniFi Network|1|1|x|1|${Array.from({ length: 10_000 }, (_, i) => `k${i}=v${i}`).join(" ")}`;
    const { raw } = read(line);
    expect(raw).toMatchObject({ k0: "v0", k255: "v255", fields_left_out: 9744, line });
    expect(raw).not.toHaveProperty("k256");
  });

  test.each([
    ["UniFi Network", "network"],
    ["UniFi OS", "network"],
    ["UniFi Protect", "protect"],
    ["UniFi Access", "access"],
    ["UniFi Talk", "talk"],
    ["Some Firewall", "network"],
    ["Access Point", "network"],
  ])("%s is of the source %s", (product, source) =>
    expect(read(`CEF:0|M|${product}|1|1|Anything|1|a=1`).source).toBe(source),
  );

  test.each([
    ["UniFi Network", "Honeypot Triggered", "honeypot_triggered"],
    ["UniFi Network", "Blocked by Firewall", "firewall_blocked"],
    ["UniFi Network", "Admin Accessed UniFi Network", "admin_login"],
    ["UniFi OS", "Admin Login Failed", "login_failure"],
    ["UniFi OS", "New Admin Added", "admin_created"],
    ["UniFi Network", "Internet Down", "wan_link_down"],
    ["UniFi Network", "Internet Restored", "wan_link_up"],
    ["UniFi Network", "Device Offline", "device_offline"],
    ["UniFi Network", "Wired Client Disconnected", "client_disconnected"],
    ["UniFi Network", "VPN Client Connected", "vpn_connected"],
    ["UniFi Network", "Rogue AP Detected", "rogue_access_point"],
    ["UniFi Network", "Rogue DHCP Server Detected", "rogue_dhcp"],
    ["UniFi Network", "Device Firmware Updated", "firmware_updated"],
    ["UniFi Protect", "motion", "motion"],
    ["UniFi Protect", "smartDetectPerson", "person"],
    ["UniFi Protect", "Camera Disconnected", "camera_offline"],
    ["UniFi Protect", "Camera Tampering Detected", "tamper"],
    ["UniFi Access", "Access Granted", "access_granted"],
    ["UniFi Access", "Door Forced Open", "door_forced"],
    ["UniFi Access", "Door Held Open", "door_held"],
    ["UniFi Talk", "Call Started", "call_started"],
    ["UniFi Talk", "Registration Failed", "sip_registration_failed"],
    ["UniFi Network", "Something New", "something_new"],
  ])("%s: %s is %s, whatever its number", (product, name, type) => {
    for (const code of [1, 201, 999]) expect(read(`CEF:0|M|${product}|1|${code}|${name}|1|a=1`).type).toBe(type);
  });
});

describe("lines of gateways", () => {
  test("a packet that was dropped", () => {
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
    ["", "firewall_logged", undefined],
  ])("%j is %s", (prefix, type, action) => {
    const event = read(
      `<4>Nov 15 20:00:00 gw kernel: ${prefix}IN=eth0 OUT= SRC=192.0.2.1 DST=192.0.2.2 LEN=40 PROTO=ICMP TYPE=8 CODE=0`,
    );
    expect(event.type).toBe(type);
    expect(event.raw["action"]).toBe(action);
    expect(event.raw).toMatchObject({ src_ip: "192.0.2.1", protocol: "icmp", icmp_type: 8, program: "kernel" });
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
      "login_failure",
      { user: "a from b", src_ip: "192.0.2.9" },
    ],
    ["Invalid user oracle from 2001:DB8::9 port 4711", "login_failure", { user: "oracle", src_ip: "2001:db8::9" }],
    ["Invalid user  from 192.0.2.9 port 4711", "login_failure", { src_ip: "192.0.2.9" }],
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
      { src_ip: "10.9.5.44" },
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
      "dhcp_discover",
      { src_mac: "02:00:00:77:88:99", reason: "no free leases" },
    ],
    [
      "switch: Rogue DHCP server detected: 10.9.5.99 02:00:00:de:ad:01 on port 7",
      "rogue_dhcp",
      { src_ip: "10.9.5.99", src_mac: "02:00:00:de:ad:01" },
    ],
    ["dnsmasq[1]: using nameserver 192.0.2.53#53", "unparsed", {}],
  ])("%s", (message, type, expected) =>
    expect(read(`<30>Nov 15 20:00:00 gw ${message}`)).toMatchObject({ type, raw: { ...expected, device: "gw" } }),
  );

  test.each([
    ["sshd[123]: Failed password for root from 192.0.2.9 port 1 ssh2", "login_failure", 123],
    ["dnsmasq-dhcp[99]: DHCPACK(br0) 10.9.5.44 02:00:00:77:88:99 tablet-4", "dhcp_lease", 99],
    ["app[7]: hello", "unparsed", 7],
  ])("%s says which process has written it, and as what", (message, type, processId) =>
    expect(read(`<86>Nov 15 20:00:00 gw ${message}`)).toMatchObject({
      type,
      raw: { process_id: processId, facility: 10 },
    }),
  );

  test("what the message says of its process counts before what the header says", () => {
    const line = "<134>Nov 15 20:00:00 gw app[7]: CEF:0|M|UniFi Network|1|1|x|1|process_id=8 a=1";
    expect(read(line).raw).toMatchObject({ process_id: 8, facility: 16 });
  });

  test("EVE by way of syslog keeps the line too", () => {
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

describe("whatever comes", () => {
  const seeds = [...CEF_LINES, FIREWALL_LINE, JSON.stringify(EVE_RECORDS.alert), '<13>1 - - - - - [a b="c"] x'];
  const spoiled = fc
    .tuple(
      fc.constantFrom(...seeds),
      fc.array(
        fc.tuple(
          fc.nat(2000),
          fc.constantFrom("", "=", "\\", "|", " ", '"', "[", "]", "\u0000", "\ud800", "{", "<", "\ufeff", "key="),
        ),
        { maxLength: 12 },
      ),
      fc.nat(2000),
    )
    .map(([line, edits, end]) => {
      let text = line;
      for (const [at, put] of edits)
        text = text.slice(0, at % (text.length + 1)) + put + text.slice((at % (text.length + 1)) + 1);
      return end % 3 === 0 ? text.slice(0, end) : text;
    });

  test("never a throw, and the line is in the event", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ unit: "binary", maxLength: 300 }), fc.string({ maxLength: 300 }), spoiled),
        (line) => {
          const reading = readLine(line, CONTEXT);
          if (reading.kind !== "events") return;
          for (const event of reading.events) {
            expect(event.raw["line"]).toBe(line.toWellFormed());
            expect(event.type).toMatch(/^[\p{L}\p{N}][\p{L}\p{N}_.:/ -]{0,127}$/u);
            expect(JSON.stringify(event.raw).isWellFormed()).toBe(true);
            expect(Object.getPrototypeOf(event.raw)).toBe(Object.prototype);
          }
        },
      ),
      { numRuns: 2000 },
    );
  });

  test("a megabyte of anything is read at once", () => {
    const fill = (unit: string) => unit.repeat(Math.ceil(1_000_000 / unit.length));
    const hostile = [
      " a=",
      "a=",
      "=",
      "\\=",
      "\\",
      '"',
      ' a="',
      " aaaaaaaa=b",
      "|",
      "[",
      "[a ",
      '[a b="',
      "IN=SRC=",
      "x",
      " ",
      "\u0000",
    ];
    for (const unit of hostile) {
      for (const before of [
        "",
        "CEF:0|M|P|1|1|n|5|",
        "<13>1 - - - - - ",
        "<4>Nov 15 20:00:00 gw sshd[1]: Failed ",
        "<4>Nov 15 20:00:00 gw dhcpd: DHCPACK ",
      ]) {
        expect(readLine(before + fill(unit), CONTEXT).kind).not.toBe("refused");
      }
    }
  }, 20_000);
});
