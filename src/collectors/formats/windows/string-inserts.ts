import type { JsonValue } from "../../../model/event.ts";
import { textOf } from "../device-values.ts";
import type { NamedValues } from "./windows-event.ts";

// Names of the values that Fluent Bit sends without them, in the order of Windows' event manifests. Later versions of an event
// append values. A list that does not begin as the manifest says stays without names.

const SUBJECT = "SubjectUserSid SubjectUserName SubjectDomainName SubjectLogonId";
const TARGET = "TargetUserName TargetDomainName TargetSid";
const MEMBER = `MemberName MemberSid ${TARGET} ${SUBJECT} PrivilegeList`;

const INSERTS: Readonly<Record<string, string>> = {
  "security 4624": `${SUBJECT} TargetUserSid TargetUserName TargetDomainName TargetLogonId LogonType LogonProcessName AuthenticationPackageName WorkstationName LogonGuid TransmittedServices LmPackageName KeyLength ProcessId ProcessName IpAddress IpPort`,
  "security 4625": `${SUBJECT} TargetUserSid TargetUserName TargetDomainName Status FailureReason SubStatus LogonType LogonProcessName AuthenticationPackageName WorkstationName TransmittedServices LmPackageName KeyLength ProcessId ProcessName IpAddress IpPort`,
  "security 4634": "TargetUserSid TargetUserName TargetDomainName TargetLogonId LogonType",
  "security 4648": `${SUBJECT} LogonGuid TargetUserName TargetDomainName TargetLogonGuid TargetServerName TargetInfo ProcessId ProcessName IpAddress IpPort`,
  "security 4672": `${SUBJECT} PrivilegeList`,
  "security 4688": `${SUBJECT} NewProcessId NewProcessName TokenElevationType ProcessId CommandLine TargetUserSid TargetUserName TargetDomainName TargetLogonId ParentProcessName MandatoryLabel`,
  "security 4697": `${SUBJECT} ServiceName ServiceFileName ServiceType ServiceStartType ServiceAccount`,
  "security 4698": `${SUBJECT} TaskName TaskContent`,
  "security 4720": `${TARGET} ${SUBJECT}`,
  "security 4722": `${TARGET} ${SUBJECT}`,
  "security 4724": `${TARGET} ${SUBJECT}`,
  "security 4725": `${TARGET} ${SUBJECT}`,
  "security 4726": `${TARGET} ${SUBJECT}`,
  "security 4740": `${TARGET} ${SUBJECT}`,
  "security 4728": MEMBER,
  "security 4732": MEMBER,
  "security 4756": MEMBER,
  "security 4768": `${TARGET} ServiceName ServiceSid TicketOptions Status TicketEncryptionType PreAuthType IpAddress IpPort`,
  "security 4769":
    "TargetUserName TargetDomainName ServiceName ServiceSid TicketOptions TicketEncryptionType IpAddress IpPort Status",
  "security 4771": "TargetUserName TargetSid ServiceName TicketOptions Status PreAuthType IpAddress IpPort",
  "security 4776": "PackageName TargetUserName Workstation Status",
  "system 7045": "ServiceName ImagePath ServiceType StartType AccountName",
  "microsoft-windows-powershell/operational 4104": "MessageNumber MessageTotal ScriptBlockText ScriptBlockId Path",
  "microsoft-windows-sysmon/operational 1":
    "RuleName UtcTime ProcessGuid ProcessId Image FileVersion Description Product Company OriginalFileName CommandLine CurrentDirectory User LogonGuid LogonId TerminalSessionId IntegrityLevel Hashes ParentProcessGuid ParentProcessId ParentImage ParentCommandLine ParentUser",
  "microsoft-windows-sysmon/operational 3":
    "RuleName UtcTime ProcessGuid ProcessId Image User Protocol Initiated SourceIsIpv6 SourceIp SourceHostname SourcePort SourcePortName DestinationIsIpv6 DestinationIp DestinationHostname DestinationPort DestinationPortName",
  "microsoft-windows-sysmon/operational 22":
    "RuleName UtcTime ProcessGuid ProcessId QueryName QueryStatus QueryResults Image User",
};

const NAMES: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries(INSERTS).map(([event, names]) => [event, names.split(" ")]),
);

const SID = /^S-1-[\d-]{1,180}$/;
const GUID = /^\{[0-9A-Fa-f-]{36}\}$/;

/** A value that has the form its name promises. */
function fits(name: string, value: string): boolean {
  if (name.endsWith("UserSid")) return SID.test(value);
  return name !== "ProcessGuid" || GUID.test(value);
}

/** The values by their names; undefined if the manifest of this event is not known or does not fit. */
export function namedInserts(channel: string, eventId: number, inserts: readonly JsonValue[]): NamedValues | undefined {
  const names = NAMES.get(`${channel.toLowerCase()} ${eventId}`);
  if (names === undefined || inserts.length < names.length - MISSING_MAX) return undefined;
  const found: { names: string[]; values: JsonValue[] } = { names: [], values: [] };
  for (const [index, name] of names.entries()) {
    const value = textOf(inserts[index]);
    if (value === undefined) continue;
    if (!fits(name, value)) return undefined;
    found.names.push(name);
    found.values.push(value);
  }
  return found;
}

/** Values at the end that older versions of an event lack. */
const MISSING_MAX = 6;
