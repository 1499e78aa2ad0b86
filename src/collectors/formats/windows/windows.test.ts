import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../../model/event.ts";
import { CONTEXT, onlyEvent, readDetected } from "../context.fixture.ts";
import { readLine } from "../read-line.ts";

const read = (line: string) => onlyEvent(readLine(line, CONTEXT));
const json = (record: object) => read(JSON.stringify(record));
const AT = "2026-11-15T10:00:00.000Z";

/** One failed logon, as each shipper sends it. */
const DATA = {
  SubjectUserSid: "S-1-0-0",
  SubjectUserName: "-",
  SubjectDomainName: "-",
  SubjectLogonId: "0x0",
  TargetUserSid: "S-1-0-0",
  TargetUserName: "robin",
  TargetDomainName: "CORP",
  Status: "0xc000006d",
  FailureReason: "%%2313",
  SubStatus: "0xc000006a",
  LogonType: "3",
  LogonProcessName: "NtLmSsp ",
  AuthenticationPackageName: "NTLM",
  WorkstationName: "LAPTOP-4",
  TransmittedServices: "-",
  LmPackageName: "-",
  KeyLength: "0",
  ProcessId: "0x0",
  ProcessName: "-",
  IpAddress: "192.0.2.9",
  IpPort: "51000",
};
const winlogbeat = (channel: string, id: number, data: JsonObject, more: JsonObject = {}) => ({
  "@timestamp": AT,
  winlog: {
    channel,
    event_id: String(id),
    provider_name: "Provider",
    computer_name: "ws-7.corp.example",
    record_id: 812,
    event_data: data,
    ...more,
  },
  event: { code: String(id), kind: "event" },
  host: { name: "ws-7", os: { type: "windows" } },
  log: { level: "information" },
  message: "An account failed to log on.",
  agent: { type: "winlogbeat" },
});
const NXLOG = {
  EventTime: "2026-11-15 10:00:00",
  Hostname: "ws-7.corp.example",
  Keywords: "9232379236109516800",
  EventType: "AUDIT_FAILURE",
  SeverityValue: 4,
  Severity: "ERROR",
  EventID: 4625,
  SourceName: "Microsoft-Windows-Security-Auditing",
  RecordNumber: 812,
  ProcessID: 744,
  Channel: "Security",
  Message: "An account failed to log on.",
  SourceModuleType: "im_msvistalog",
  ...DATA,
};
const FLUENT_BIT = {
  ProviderName: "Microsoft-Windows-Security-Auditing",
  EventID: 4625,
  Level: 0,
  Keywords: "0x8010000000000000",
  TimeCreated: "2026-11-15 10:00:00 +0000",
  EventRecordID: 812,
  Channel: "Security",
  Computer: "ws-7.corp.example",
  Message: "An account failed to log on.",
  StringInserts: Object.values(DATA),
};
const xml = (id: number, channel: string, data: string, tail = "") =>
  `<Event xmlns='http://schemas.microsoft.com/win/2004/08/events/event'><System><Provider Name='P' Guid='{1}'/><EventID Qualifiers="0">${id}</EventID><Level>4</Level><TimeCreated SystemTime='${AT}'/><EventRecordID>812</EventRecordID><Correlation/><Execution ProcessID='744' ThreadID='8'/><Channel>${channel}</Channel><Computer>ws-7.corp.example</Computer><Security/></System>${data}${tail}</Event>`;
const named = (data: JsonObject) =>
  `<EventData>${Object.entries(data)
    .map(([name, value]) => `<Data Name='${name}'>${String(value)}</Data>`)
    .join("")}</EventData>`;
const XML = xml(4625, "Security", named(DATA));

describe("a Windows event", () => {
  test.each<[string, string]>([
    ["Winlogbeat", JSON.stringify(winlogbeat("Security", 4625, DATA))],
    ["NXLog", JSON.stringify(NXLOG)],
    ["Fluent Bit", JSON.stringify(FLUENT_BIT)],
    ["Fluent Bit with XML", JSON.stringify({ System: XML, Message: "An account failed to log on." })],
    ["XML", XML],
    ["a relay", `<134>Nov 15 10:00:00 collector winlog: ${JSON.stringify(NXLOG)}`],
  ])("is the same from %s", (_, line) => {
    expect(read(line)).toMatchObject({
      type: "login_failure",
      source: "network",
      severity: "medium",
      class: "security",
      timestampMs: Date.parse(AT),
      raw: {
        EventID: 4625,
        Channel: "Security",
        TargetUserName: "robin",
        LogonType: "3",
        user: "robin",
        src_ip: "192.0.2.9",
        src_port: 51_000,
        src_host: "LAPTOP-4",
        method: "ntlm",
        reason: "wrong password",
        device: "ws-7.corp.example",
        host: "ws-7.corp.example",
        event_id: "812",
        event_code: "4625",
        line,
      },
    });
  });

  test("is detected by `tocsin parse`", () => {
    expect(onlyEvent(readDetected(JSON.stringify(NXLOG))).type).toBe("login_failure");
  });

  test.each<[string, number, JsonObject, string, JsonObject]>([
    [
      "Security",
      4624,
      { TargetUserName: "robin", LogonType: "10", IpAddress: "2001:db8::9" },
      "login_success",
      { service: "rdp", src_ip: "2001:db8::9" },
    ],
    [
      "Security",
      4624,
      { TargetUserName: "SYSTEM", LogonType: "5", IpAddress: "-" },
      "session_opened",
      { user: "SYSTEM" },
    ],
    [
      "Security",
      4688,
      { SubjectUserName: "robin", NewProcessName: "C:\\a.exe", ParentProcessName: "C:\\b.exe", CommandLine: "a -x" },
      "process_creation",
      { Image: "C:\\a.exe", ParentImage: "C:\\b.exe", CommandLine: "a -x", user: "robin" },
    ],
    [
      "Security",
      4720,
      { TargetUserName: "mallory", SubjectUserName: "admin" },
      "user_created",
      { user: "admin", target: "mallory" },
    ],
    [
      "Security",
      4732,
      {
        MemberName: "CN=Mallory M,OU=Staff,DC=corp",
        MemberSid: "S-1-5-21-1-2-3-1104",
        TargetUserName: "Administratoren",
        TargetSid: "S-1-5-32-544",
        SubjectUserName: "admin",
      },
      "user_role_changed",
      { user: "admin", target: "Mallory M", role: "administrator" },
    ],
    [
      "Security",
      4728,
      {
        MemberName: "-",
        MemberSid: "S-1-5-21-1-2-3-1104",
        TargetUserName: "Staff",
        TargetSid: "S-1-5-21-1-2-3-1200",
        SubjectUserName: "admin",
      },
      "user_role_changed",
      { target: "S-1-5-21-1-2-3-1104", role: "Staff" },
    ],
    [
      "Security",
      4771,
      { TargetUserName: "robin", Status: "0x18", IpAddress: "::ffff:192.0.2.9" },
      "login_failure",
      { reason: "wrong password" },
    ],
    [
      "Security",
      4768,
      { TargetUserName: "robin", Status: "0x6", IpAddress: "::ffff:192.0.2.9" },
      "login_failure",
      { reason: "unknown user" },
    ],
    ["Security", 4768, { TargetUserName: "robin", Status: "0x0", IpAddress: "::1" }, "kerberos_ticket", {}],
    [
      "Security",
      5157,
      { SourceAddress: "192.0.2.9", SourcePort: "4000", DestAddress: "10.9.3.20", DestPort: "445", Protocol: "6" },
      "firewall_blocked",
      { src_ip: "192.0.2.9", dst_port: 445, protocol: "tcp", action: "block" },
    ],
    [
      "System",
      7045,
      { ServiceName: "x", ImagePath: "C:\\x.exe", AccountName: "LocalSystem" },
      "service_installed",
      { user: "LocalSystem" },
    ],
    [
      "Microsoft-Windows-Sysmon/Operational",
      1,
      { User: "CORP\\robin", Image: "C:\\a.exe", Hashes: `MD5=00,SHA256=${"0A".repeat(32)}` },
      "process_creation",
      { user: "robin", sha256: "0a".repeat(32) },
    ],
    [
      "Microsoft-Windows-Sysmon/Operational",
      3,
      {
        SourceIp: "10.9.3.20",
        SourcePort: "4000",
        DestinationIp: "2001:db8::80",
        DestinationPort: "443",
        Protocol: "tcp",
        Initiated: "true",
      },
      "network_connection",
      { dst_ip: "2001:db8::80", dst_port: 443, protocol: "tcp" },
    ],
    [
      "Microsoft-Windows-Sysmon/Operational",
      12,
      { EventType: "DeleteKey", TargetObject: "HKLM\\x" },
      "registry_delete",
      {},
    ],
    [
      "Microsoft-Windows-Sysmon/Operational",
      12,
      { EventType: "CreateKey", TargetObject: "HKLM\\x" },
      "registry_add",
      { EventType: "CreateKey" },
    ],
    ["Microsoft-Windows-Sysmon/Operational", 22, { QueryName: "evil.example" }, "dns_query", { query: "evil.example" }],
    [
      "Microsoft-Windows-PowerShell/Operational",
      4104,
      { ScriptBlockText: "iex" },
      "ps_script",
      { ScriptBlockText: "iex" },
    ],
    ["Application", 1000, { param1: "a.exe", param2: "b" }, "windows", { Data: ["a.exe", "b"] }],
    // Names of ours with another meaning.
    ["Application", 1, { user: "x", line: "y" }, "windows", { data_user: "x", data_line: "y" }],
  ])("%s %i %j", (channel, id, data, type, expected) => {
    expect(json(winlogbeat(channel, id, data))).toMatchObject({
      type,
      raw: { ...expected, EventID: id, Channel: channel },
    });
    const { param1, ...withNames } = data;
    if (param1 !== undefined) return;
    expect(read(xml(id, channel, named(withNames)))).toMatchObject({ type, raw: expected });
    expect(json({ EventTime: "2026-11-15 10:00:00", EventID: id, Channel: channel, ...withNames }).type).toBe(type);
  });

  test("a cleared log is named in UserData", () => {
    const cleared =
      "<UserData><LogFileCleared xmlns='x'><SubjectUserName>robin</SubjectUserName><Channel>Setup</Channel></LogFileCleared></UserData>";
    expect(read(xml(104, "System", cleared))).toMatchObject({
      type: "log_cleared",
      raw: { Channel: "System", UserData: { LogFileCleared: { Channel: "Setup" } }, user: "robin" },
    });
    const record = winlogbeat(
      "System",
      104,
      {},
      { user_data: { xml_name: "LogFileCleared", SubjectUserName: "robin", Channel: "Setup" } },
    );
    expect(json(record)).toMatchObject({
      raw: { Channel: "System", UserData: { LogFileCleared: { Channel: "Setup" } } },
    });
  });

  test("entities are decoded, and values without a name are a list", () => {
    const event = read(
      xml(
        1000,
        "Application",
        "<EventData><Data>a &lt;b&gt; &amp;amp; &#x41;&#66;</Data><Data/><Binary>00</Binary></EventData>",
      ),
    );
    expect(event.raw["Data"]).toEqual(["a <b> &amp; AB", ""]);
  });

  test("values without names stay so if they do not fit the manifest", () => {
    const { raw } = json({ ...FLUENT_BIT, StringInserts: ["a", "b", "c"] });
    expect(raw).toMatchObject({ Data: ["a", "b", "c"] });
    expect(raw).not.toHaveProperty("user");
    const shifted = json({ ...FLUENT_BIT, StringInserts: ["x", ...Object.values(DATA)] });
    expect(shifted.raw).not.toHaveProperty("src_ip");
  });

  test("text in a value cannot imitate an element", () => {
    const data = named({
      TargetUserName: "a&lt;/Data&gt;&lt;Data Name='IpAddress'&gt;198.51.100.1",
      IpAddress: "192.0.2.9",
    });
    expect(read(xml(4625, "Security", data)).raw).toMatchObject({ src_ip: "192.0.2.9" });
  });

  test.each([
    "<Event><System><EventID>x</EventID><Channel>Security</Channel></System></Event>",
    "<Event><System><EventID>1</EventID></System></Event>",
    XML.slice(0, -3),
    XML.replace("</System>", ""),
    `<Event>${"<a>".repeat(100)}`,
    '{"EventID":4625,"Channel":"Security","EventTime":"now"',
  ])("is not %s", (line) => {
    expect(read(line).type).toBe("unparsed");
  });

  test.each([
    '{"EventID":4625}',
    '{"EventID":4625,"Channel":"Security"}',
    '{"EventID":"x","Channel":"Security","EventTime":"now"}',
    '{"winlog":{"channel":"Security"}}',
  ])("is not %s, which is JSON of another program", (line) => {
    expect(read(line).type).toBe("log_line");
  });

  test("spoiled XML never throws", () => {
    fc.assert(
      fc.property(fc.nat(XML.length), fc.nat(40), fc.string(), (at, cut, text) => {
        read(XML.slice(0, at) + text + XML.slice(at + cut));
      }),
    );
  });
});
