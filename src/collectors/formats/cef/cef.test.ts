import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CONTEXT, onlyEvent } from "../context.fixture.ts";
import { readLine } from "../read-line.ts";
import { CEF_CLIENT, CEF_CONFIG, CEF_THREAT } from "../samples.fixture.ts";

const read = (line: string) => onlyEvent(readLine(line, CONTEXT));

describe("CEF", () => {
  test("a threat has all its values in well-known fields", () => {
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

  test("a change has user, setting and source address from the message", () => {
    expect(read(CEF_CONFIG)).toMatchObject({
      type: "config_changed",
      severity: "low",
      raw: { user: "Robin K.", setting: "remote_access", src_ip: "10.9.1.7", device: "North Gateway" },
    });
  });

  test("tabs separate pairs as spaces do, within a line and between lines", () => {
    const head = "CEF:0|M|UniFi Network|1|1|Some Name|1|";
    for (const line of [
      `${head}src=192.0.2.1\tmsg=two words\tsuser=robin`,
      `${head}src=192.0.2.1 msg=two words suser=robin`,
      `${head}src=192.0.2.1 \tmsg="two words"\tsuser=robin\t`,
      `${head}src=192.0.2.1 msg=two words suser=robin`,
      `${head}src=192.0.2.1 msg=two words\tsuser=robin`,
    ]) {
      expect(read(line).raw).toMatchObject({ src_ip: "192.0.2.1", message: "two words", user: "robin" });
    }
  });

  test("a new admin is the target, not the user", () => {
    const made = (fields: string) => read(`CEF:0|M|UniFi Network|1|1|Admin Created|5|${fields}`);
    expect(made("suser=robin duser=kim")).toMatchObject({
      type: "admin_created",
      raw: { user: "robin", target: "kim" },
    });
    expect(made("duser=kim").raw).toMatchObject({ target: "kim" });
    expect(made("duser=kim").raw).not.toHaveProperty("user");
  });

  test.each([
    ["UNIFIadmin=Anna msg=Anna created admin Mallory.", "Anna", "Mallory"],
    ["msg=Anna created admin Oscar K. Source IP: 192.0.2.3", "Anna", "Oscar K"],
    ["msg=Anna invited Mallory as a super admin to Default.", "Anna", "Mallory"],
    ["msg=Anna added a new administrator: Mallory", "Anna", "Mallory"],
    ["msg=Mallory was added as an admin by Anna.", "Anna", "Mallory"],
    ["msg=Admin account mallory@example.org has been created by Anna", "Anna", "mallory@example.org"],
    ["UNIFIadmin=Anna msg=Anna added an admin", "Anna", undefined],
    ["UNIFIadmin=Anna msg=Something else", "Anna", undefined],
  ])("a new admin is read from the message: %s", (fields, user, target) => {
    const { raw } = read(`CEF:0|M|UniFi OS|1|1|Admin Created|4|${fields}`);
    expect([raw["user"], raw["target"]]).toEqual([user, target]);
  });

  test("a blocked threat has its action, even if no field gives it", () => {
    const blocked = (fields: string) => read(`CEF:0|M|UniFi Network|1|1|Blocked by Firewall|4|${fields}`).raw["action"];
    expect(blocked("src=192.0.2.1")).toBe("block");
    expect(blocked("src=192.0.2.1 act=rejected")).toBe("reject");
  });

  test("a setting keeps its name and the part that was changed", () => {
    const changed = (fields: string) => read(`CEF:0|M|UniFi Network|1|1|Config Modified|4|${fields}`).raw;
    expect(changed("UNIFIsettingsSection=UPnP")).toMatchObject({ setting: "upnp" });
    expect(changed("UNIFIsettingsSection=VPN UNIFIsettingsEntry=VPN Server")).toMatchObject({
      setting: "vpn",
      target: "VPN Server",
    });
  });

  test("full storage is not a camera event", () => {
    const { raw } = read("CEF:0|M|UniFi Protect|1|1|Storage Almost Full|4|msg=Storage is almost full.");
    expect(raw).not.toHaveProperty("camera");
  });

  test("an access point is not a door", () => {
    expect(read("CEF:0|M|UniFi Network|1|1|Access Point Restarted|4|a=1").class).toBe("network");
  });

  test.each([
    ["7.5", "high"],
    ["11", "critical"],
    ["-1", "info"],
    ["0", "info"],
  ])("a severity of %s with an unknown name is %s", (severity, expected) =>
    expect(read(`CEF:0|M|UniFi Network|1|1|Some Name|${severity}|a=1`).severity).toBe(expected),
  );

  test("a client has its address, name and access point", () => {
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
    ["a protocol by its number", `${header}proto=6`, { protocol: "tcp" }],
    ["another", `${header}proto=047`, { protocol: "gre" }],
    ["an invalid protocol", `${header}proto=256`, { protocol: "256" }],
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
    [
      "the address of a device",
      `${header}dvc=2001:DB8:0::1 UNIFIdeviceIp=nowhere`,
      { device_ip: "2001:db8::1", UNIFIdeviceIp: "nowhere" },
    ],
    ["an invalid port", `${header}dpt=70000 spt=http`, { dpt: "70000", spt: "http" }],
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
      raw: { src_mac: "02:00:00:00:00:0a", src_host: "lab", host: "lab", action: "allow" },
    });
    expect(read(line).raw).not.toHaveProperty("src_ip");
  });

  test("only the first value of a repeated key counts", () => {
    const once = { src_ip: "192.0.2.1", dst_ip: "192.0.2.2", user: "robin", message: "one", protocol: "tcp" };
    const twice = "src=192.0.2.1 dst=192.0.2.2 suser=robin msg=one proto=tcp dpt=x";
    const again = "src=9.9.9.9 src=evil dst=9.9.9.8 suser=eve msg=two proto=udp dpt=443";
    for (let times = 0; times < 4; times++) {
      const { line: _, ...raw } = read(`${header}${twice} ${again}`).raw;
      const { line: __, ...alone } = read(`${header}${twice}`).raw;
      expect(raw).toEqual(alone);
      expect(raw).toMatchObject({ ...once, dpt: "x" });
    }
    expect(read(`${header}suser=robin duser=eve suser=mallory src=null src=192.0.2.1`).raw).toMatchObject({
      user: "robin",
      duser: "eve",
      src_ip: "192.0.2.1",
    });
  });

  test.each([
    ["NFC", "badge"],
    ["PIN_CODE", "code"],
    ["Mobile", "phone"],
    ["Retina", "retina"],
  ])("at a door, %s is the method %s", (value, method) => {
    const { raw } = read(`CEF:0|Ubiquiti|UniFi Access|3|1|Access Granted|1|UNIFIaccessMethod=${value}`);
    expect(raw["method"]).toBe(method);
    expect(raw).not.toHaveProperty("service");
  });

  test("an admin login has a service", () => {
    const { raw } = read("CEF:0|Ubiquiti|UniFi Network|9|544|Admin Accessed UniFi Network|1|UNIFIaccessMethod=Web");
    expect(raw["service"]).toBe("web");
    expect(raw).not.toHaveProperty("method");
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

  test("earlier lines do not change the result", () => {
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

  test("a repeated line gives the same result", () => {
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

  test("of ten thousand keys some become fields, the rest is counted, and the line has them all", () => {
    const line = `CEF:0|M|UniFi Network|1|1|x|1|${Array.from({ length: 10_000 }, (_, i) => `k${i}=v${i}`).join(" ")}`;
    const { raw } = read(line);
    expect(raw).toMatchObject({ k0: "v0", k255: "v255", fields_left_out: 9744, line });
    expect(raw).not.toHaveProperty("k256");
  });

  test.each(["constructor", "toString", "__proto__", "odd"])("%s is not a severity, like any other word", (word) =>
    expect(read(`CEF:0|M|UniFi Network|1|1|Anything|${word}|a=1`).severity).toBe("info"),
  );

  test.each([
    ["UniFi Network", "network"],
    ["UniFi OS", "network"],
    ["UniFi Protect", "protect"],
    ["UniFi Access", "access"],
    ["UniFi Talk", "talk"],
    ["Some Firewall", "network"],
    ["Access Point", "network"],
  ])("%s has the source %s", (product, source) =>
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
  ])("%s: %s is %s, for any number", (product, name, type) => {
    for (const code of [1, 201, 999]) expect(read(`CEF:0|M|${product}|1|${code}|${name}|1|a=1`).type).toBe(type);
  });
});
