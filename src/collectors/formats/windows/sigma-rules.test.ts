import { describe, expect, test } from "vitest";
import { compileCondition } from "../../../model/condition.ts";
import { sourceName, type Event } from "../../../model/event.ts";
import { toConditions } from "../../../model/rule.ts";
import { importOne } from "../../../sigma/testing/imported.ts";
import { CONTEXT, onlyEvent } from "../context.fixture.ts";
import { readLine } from "../read-line.ts";

// Imported Sigma rules find events that came as lines, without a mapping of the operator's own.

function isFound(rule: string, line: string): boolean {
  const { type, source, severity, class: eventClass, raw } = onlyEvent(readLine(line, CONTEXT));
  const event: Event = {
    id: "evt_1",
    type,
    source: sourceName("platform", source),
    severity,
    class: eventClass!,
    timestamp: "2026-11-15T10:00:00.000Z",
    raw,
    enrichment: {},
  };
  const outcome = importOne(`title: A rule\nlevel: high\n${rule}`);
  if (!outcome.rule) throw new Error(JSON.stringify(outcome.reasons));
  return compileCondition(toConditions(outcome.rule.conditions))(event);
}

const nxlog = (channel: string, id: number, data: object) =>
  JSON.stringify({ EventTime: "2026-11-15 10:00:00", EventID: id, Channel: channel, SourceName: "P", ...data });
const winlogbeat = (channel: string, id: number, data: object) =>
  JSON.stringify({
    "@timestamp": "2026-11-15T10:00:00Z",
    winlog: { channel, event_id: id, provider_name: "P", event_data: data },
  });
const xml = (channel: string, id: number, data: object) =>
  `<Event><System><Provider Name='P'/><EventID>${id}</EventID><Channel>${channel}</Channel></System><EventData>${Object.entries(
    data,
  )
    .map(([name, value]) => `<Data Name='${name}'>${value}</Data>`)
    .join("")}</EventData></Event>`;

const SYSMON = "Microsoft-Windows-Sysmon/Operational";

const RULES: readonly (readonly [rule: string, channel: string, id: number, data: object, other: object])[] = [
  [
    "logsource: { category: process_creation, product: windows }\ndetection:\n  selection: { Image|endswith: '\\whoami.exe', User|contains: 'SYSTEM' }\n  condition: selection",
    SYSMON,
    1,
    { Image: "C:\\Windows\\System32\\whoami.exe", User: "NT AUTHORITY\\SYSTEM" },
    { Image: "C:\\Windows\\System32\\whoami.exe", User: "CORP\\robin" },
  ],
  [
    "logsource: { category: process_creation, product: windows }\ndetection:\n  selection: { Image|endswith: '\\net.exe', CommandLine|contains: ' user ' }\n  condition: selection",
    "Security",
    4688,
    { NewProcessName: "C:\\Windows\\System32\\net.exe", CommandLine: "net user mallory /add" },
    { NewProcessName: "C:\\Windows\\System32\\net.exe", CommandLine: "net view" },
  ],
  [
    "logsource: { product: windows, service: security }\ndetection:\n  selection: { EventID: 4625, LogonType: 3 }\n  filter: { IpAddress|cidr: 10.0.0.0/8 }\n  condition: selection and not filter",
    "Security",
    4625,
    { LogonType: "3", IpAddress: "192.0.2.9" },
    { LogonType: "3", IpAddress: "10.9.1.7" },
  ],
  [
    "logsource: { product: windows, service: system }\ndetection:\n  selection: { Provider_Name: P, EventID: 7045, ServiceName: PSEXESVC }\n  condition: selection",
    "System",
    7045,
    { ServiceName: "PSEXESVC" },
    { ServiceName: "spooler" },
  ],
  [
    "logsource: { product: windows, category: registry_set }\ndetection:\n  selection: { TargetObject|contains: '\\CurrentVersion\\Run\\' }\n  condition: selection",
    SYSMON,
    13,
    { TargetObject: "HKLM\\Software\\Microsoft\\Windows\\CurrentVersion\\Run\\x" },
    { TargetObject: "HKLM\\Software\\x" },
  ],
  [
    "logsource: { product: windows, category: ps_script }\ndetection:\n  selection: { ScriptBlockText|contains: DownloadString }\n  condition: selection",
    "Microsoft-Windows-PowerShell/Operational",
    4104,
    { ScriptBlockText: "(New-Object Net.WebClient).DownloadString('x')" },
    { ScriptBlockText: "Get-Date" },
  ],
  [
    "logsource: { product: windows, category: network_connection }\ndetection:\n  selection: { Initiated: 'true', DestinationPort: 4444 }\n  condition: selection",
    SYSMON,
    3,
    { Initiated: "true", DestinationPort: "4444", DestinationIp: "192.0.2.80" },
    { Initiated: "true", DestinationPort: "443", DestinationIp: "192.0.2.80" },
  ],
];

describe("Sigma rules for Windows fire unchanged", () => {
  test.each(RULES)("%s", (rule, channel, id, data, other) => {
    for (const shipped of [nxlog, winlogbeat, xml]) {
      expect(isFound(rule, shipped(channel, id, data)), shipped.name).toBe(true);
      expect(isFound(rule, shipped(channel, id, other)), shipped.name).toBe(false);
    }
  });

  test("one for Linux does not find a Windows event", () => {
    const rule =
      "logsource: { category: process_creation, product: linux }\ndetection:\n  selection: { Image|endswith: net.exe }\n  condition: selection";
    expect(isFound(rule, winlogbeat(SYSMON, 1, { Image: "net.exe" }))).toBe(false);
  });

  test("one for auditd finds its record", () => {
    const rule =
      "logsource: { product: linux, service: auditd }\ndetection:\n  selection: { type: EXECVE, a0: curl, a1|startswith: '-o' }\n  condition: selection";
    const record = 'type=EXECVE msg=audit(1794736800.250:812): argc=2 a0="curl" a1="-o"';
    expect(isFound(rule, record)).toBe(true);
    expect(isFound(rule, `<13>Nov 15 10:00:00 web-1 audisp-syslog: ${record}`)).toBe(true);
    expect(isFound(rule, record.replace("curl", "wget"))).toBe(false);
  });
});
