import { describe, expect, test } from "vitest";
import { compileCondition } from "../model/condition.ts";
import type { Event, JsonObject } from "../model/event.ts";
import { toConditions } from "../model/rule.ts";
import { importOne } from "./testing/imported.ts";

// Log sources of the Sigma taxonomy and of SigmaHQ's published rules: a rule of each matches its events.

function ruleFor(logsource: object, detection: object = { s: { a: 1 }, condition: "s" }) {
  const outcome = importOne(JSON.stringify({ title: "T", level: "low", logsource, detection }));
  if (!outcome.rule) throw new Error(JSON.stringify(outcome.reasons));
  const holds = compileCondition(toConditions(outcome.rule.conditions));
  return { ...outcome, sees: (type: string, raw: JsonObject = {}) => holds(event(type, { a: 1, ...raw })) };
}

function event(type: string, raw: JsonObject): Event {
  return {
    id: "evt_1",
    type,
    source: "custom",
    class: "security",
    severity: "info",
    timestamp: "2026-11-15T10:00:00.000Z",
    raw,
    enrichment: {},
  };
}

const OPERATIONAL = "Microsoft-Windows-*/Operational";
const operational = (...names: string[]) => names.map((name) => OPERATIONAL.replace("*", name));

/** Windows services with their channels. */
const CHANNELS: Readonly<Record<string, readonly string[]>> = {
  application: ["Application"],
  "application-experience": [
    "Microsoft-Windows-Application-Experience/Program-Telemetry",
    "Microsoft-Windows-Application-Experience/Program-Compatibility-Assistant",
  ],
  applocker: [
    "Microsoft-Windows-AppLocker/MSI and Script",
    "Microsoft-Windows-AppLocker/EXE and DLL",
    "Microsoft-Windows-AppLocker/Packaged app-Deployment",
    "Microsoft-Windows-AppLocker/Packaged app-Execution",
  ],
  "appmodel-runtime": ["Microsoft-Windows-AppModel-Runtime/Admin"],
  "appxdeployment-server": operational("AppXDeploymentServer"),
  "appxpackaging-om": operational("AppxPackaging"),
  bitlocker: ["Microsoft-Windows-BitLocker/BitLocker Management"],
  "bits-client": operational("Bits-Client"),
  capi2: operational("CAPI2"),
  "certificateservicesclient-lifecycle-system": operational("CertificateServicesClient-Lifecycle-System"),
  "codeintegrity-operational": operational("CodeIntegrity"),
  dhcp: operational("DHCP-Server"),
  "diagnosis-scripted": operational("Diagnosis-Scripted"),
  "dns-client": operational("DNS Client Events", "DNS-Client"),
  "dns-server": ["DNS Server"],
  "dns-server-analytic": ["Microsoft-Windows-DNS-Server/Analytical"],
  "dns-server-audit": ["Microsoft-Windows-DNS-Server/Audit"],
  "driver-framework": operational("DriverFrameworks-UserMode"),
  "firewall-as": ["Microsoft-Windows-Windows Firewall With Advanced Security/Firewall"],
  "hyper-v-worker": ["Microsoft-Windows-Hyper-V-Worker", "Microsoft-Windows-Hyper-V-Worker-Admin"],
  "iis-configuration": ["Microsoft-IIS-Configuration/Operational"],
  "kernel-event-tracing": [
    "Microsoft-Windows-Kernel-EventTracing",
    "Microsoft-Windows-Kernel-EventTracing/Admin",
    "Microsoft-Windows-Kernel-EventTracing/Analytic",
  ],
  "kernel-shimengine": [
    "Microsoft-Windows-Kernel-ShimEngine/Operational",
    "Microsoft-Windows-Kernel-ShimEngine/Diagnostic",
  ],
  ldap: ["Microsoft-Windows-LDAP-Client/Debug"],
  ldap_debug: ["Microsoft-Windows-LDAP-Client/Debug"],
  "lsa-server": operational("LSA"),
  "microsoft-servicebus-client": ["Microsoft-ServiceBus-Client", "Microsoft-ServiceBus-Client/Admin"],
  "msexchange-management": ["MSExchange Management"],
  ntfs: operational("Ntfs"),
  ntlm: operational("NTLM"),
  openssh: ["OpenSSH/Operational"],
  powershell: [...operational("PowerShell"), "PowerShellCore/Operational"],
  "powershell-classic": ["Windows PowerShell"],
  "printservice-admin": ["Microsoft-Windows-PrintService/Admin"],
  "printservice-operational": operational("PrintService"),
  security: ["Security"],
  "security-mitigations": [
    "Microsoft-Windows-Security-Mitigations/Kernel Mode",
    "Microsoft-Windows-Security-Mitigations/User Mode",
  ],
  sense: operational("SENSE"),
  "servicebus-client": ["Microsoft-ServiceBus-Client/Operational", "Microsoft-ServiceBus-Client/Admin"],
  "shell-core": operational("Shell-Core"),
  "smbclient-connectivity": ["Microsoft-Windows-SmbClient/Connectivity"],
  "smbclient-security": ["Microsoft-Windows-SmbClient/Security"],
  "smbserver-connectivity": ["Microsoft-Windows-SMBServer/Connectivity"],
  sysmon: operational("Sysmon"),
  system: ["System"],
  taskscheduler: operational("TaskScheduler"),
  "terminalservices-localsessionmanager": operational("TerminalServices-LocalSessionManager"),
  vhdmp: operational("VHDMP"),
  windefend: operational("Windows Defender"),
  wmi: operational("WMI-Activity"),
};

/** Services with two names. */
const SAME = new Map([
  ["ldap", "ldap_debug"],
  ["servicebus-client", "microsoft-servicebus-client"],
]);
const isSame = (a: string, b: string) => a === b || SAME.get(a) === b || SAME.get(b) === a;

describe("a Windows service", () => {
  test.each(Object.entries(CHANNELS))("%s matches its channels and no others", (service, channels) => {
    const { sees, remarks } = ruleFor({ product: "windows", service });
    expect(remarks).toEqual([]);
    expect(channels.filter((Channel) => !sees("anything", { Channel }))).toEqual([]);
    expect(channels.filter((Channel) => !sees("anything", { Channel: Channel.toUpperCase() }))).toEqual([]);
    const others = Object.entries(CHANNELS).flatMap(([other, list]) => (isSame(other, service) ? [] : list));
    expect(others.filter((Channel) => sees("anything", { Channel }))).toEqual([]);
    expect(sees(service)).toBe(false);
  });

  test("that the taxonomy lacks is matched by the channel, with a remark", () => {
    const { sees, remarks } = ruleFor({ product: "windows", service: "odd-thing" });
    expect(sees("anything", { Channel: "Vendor-Odd-Thing/Operational" })).toBe(true);
    expect(remarks).toEqual([
      { place: "logsource", message: expect.stringMatching(/^odd-thing: no channel is known .*raw\.Channel$/) },
    ]);
  });
});

const CATEGORIES = (
  "process_creation file_change network_connection sysmon_status process_termination driver_load image_load " +
  "create_remote_thread raw_access_thread process_access file_event registry_event registry_add registry_delete " +
  "registry_set registry_rename create_stream_hash pipe_created wmi_event dns_query file_delete clipboard_capture " +
  "process_tampering file_delete_detected file_block_executable file_block_shredding file_executable_detected " +
  "sysmon_error file_access ps_classic_start ps_classic_provider_start ps_classic_script ps_module ps_script file_rename"
).split(" ");

describe("a category", () => {
  const PARTS: Readonly<Record<string, readonly string[]>> = {
    registry_event: ["registry_add", "registry_delete", "registry_set", "registry_rename"],
  };

  test.each(CATEGORIES)("%s of Windows matches its own type and its subtypes in the taxonomy", (category) => {
    const { sees, remarks } = ruleFor({ product: "windows", category });
    expect(remarks).toEqual([]);
    expect(CATEGORIES.filter((type) => sees(type))).toEqual(
      CATEGORIES.filter((type) => type === category || PARTS[category]?.includes(type)),
    );
  });

  test.each([
    ["linux", "file_event"],
    ["linux", "network_connection"],
    ["linux", "process_creation"],
    ["macos", "file_event"],
    ["macos", "process_creation"],
  ])("of %s: %s matches its type", (product, category) => {
    const { sees, remarks } = ruleFor({ product, category });
    expect([sees(category), remarks]).toEqual([true, []]);
  });

  test.each(["antivirus", "database", "dns", "firewall", "proxy", "webserver", "network"])(
    "%s matches its type",
    (category) => {
      const { sees, remarks } = ruleFor({ category });
      expect([sees(category), remarks]).toEqual([true, []]);
    },
  );

  test.each([
    ["connection", ["connection", "network_connection"], ["dns", "dns_query"]],
    ["dns", ["dns", "dns_query"], ["connection"]],
  ])("network matches the types of the service %s", (service, seen, unseen) => {
    const { sees, remarks } = ruleFor({ category: "network", service });
    expect(remarks).toEqual([]);
    expect(seen.map((type) => sees(type))).toEqual(seen.map(() => true));
    expect(unseen.map((type) => sees(type))).toEqual(unseen.map(() => false));
  });
});

describe("a Linux service", () => {
  test.each([
    ["auditd", { program: "audispd" }],
    ["auth", { facility: 10 }],
    ["clamav", { program: "freshclam" }],
    ["cron", { program: "CRON" }],
    ["guacamole", { program: "guacd" }],
    ["sshd", { program: "sshd-session" }],
    ["sudo", { program: "sudo" }],
    ["syslog", { facility: 3, program: "kernel" }],
    ["vsftpd", { program: "vsftpd" }],
  ])("%s is recognised by the type or by the syslog line", (service, line) => {
    const { sees, remarks } = ruleFor({ product: "linux", service });
    expect(remarks).toEqual([]);
    expect([sees(service), sees("log_line", line), sees("log_line", { program: "other" })]).toEqual([
      true,
      true,
      false,
    ]);
    expect([sees(service, { os: { type: "Windows" } }), sees("log_line", { ...line, winlog: {} })]).toEqual([
      false,
      false,
    ]);
  });
});

/** Log sources whose service is the type of their events. */
const OTHERS =
  "aws/cloudtrail azure/activitylogs azure/auditlogs azure/pim azure/riskdetection azure/signinlogs bitbucket/audit " +
  "cisco/aaa cisco/bgp cisco/duo cisco/ldp fortigate/event gcp/gcp.audit gcp/google_workspace.admin " +
  "gcp/google_workspace.login github/audit huawei/bgp huawei/ldp juniper/bgp juniper/ldp kubernetes/audit m365/audit " +
  "m365/exchange m365/threat_detection m365/threat_management okta/okta onelogin/onelogin.events zeek/dce_rpc zeek/dns " +
  "zeek/http zeek/kerberos zeek/rdp zeek/smb_files zeek/x509";

describe("another log source", () => {
  test.each("django jvm kubernetes nodejs opencanary python rpc_firewall ruby_on_rails spring sql velocity".split(" "))(
    "the application %s: a remark says that its product cannot be recognised",
    (product) => {
      const { sees, remarks } = ruleFor({ category: "application", product });
      expect([sees("application"), sees(product)]).toEqual([true, false]);
      expect(remarks.map(({ place }) => place)).toEqual(["logsource.product"]);
    },
  );

  test("the service endpointsecurity of macOS matches its type", () => {
    const { sees, remarks } = ruleFor({ product: "macos", service: "endpointsecurity" });
    expect([sees("endpointsecurity"), sees("endpointsecurity", { os: "linux" }), remarks]).toEqual([true, false, []]);
  });

  test.each(OTHERS.split(" ").map((name) => name.split("/") as [string, string]))(
    "%s, %s: the service is the type; a remark says that the product cannot be recognised",
    (product, service) => {
      const { sees, remarks } = ruleFor({ product, service });
      expect([sees(service), sees("other")]).toEqual([true, false]);
      expect(remarks.map(({ place }) => place)).toEqual(["logsource.product"]);
    },
  );

  test.each(["apache", "nginx", "netflow"])("the service %s matches its type", (service) => {
    const { sees, remarks } = ruleFor({ service });
    expect([sees(service), remarks]).toEqual([true, []]);
  });

  test.each(["modsecurity", "qualys"])("the product %s matches its type", (product) => {
    const { sees, remarks } = ruleFor({ product });
    expect([sees(product), remarks]).toEqual([true, []]);
  });
});

describe("a product", () => {
  const OF: readonly (readonly [product: string, raw: JsonObject])[] = [
    ["windows", { Channel: "Security" }],
    ["windows", { winlog: { channel: "Security" } }],
    ["windows", { os: "Windows" }],
    ["windows", { host: { os: { type: "windows" } } }],
    ["linux", { os: { type: "linux" } }],
    ["linux", { "host.os.type": "linux" }],
    ["linux", { Channel: "Linux-Sysmon/Operational" }],
    ["linux", { platform: "Linux" }],
    ["macos", { platform: "darwin" }],
    ["macos", { product: "macos" }],
  ];
  const PRODUCTS = ["windows", "linux", "macos"];

  test.each(OF)("%s is recognised by %j in every category", (product, raw) => {
    const seen = PRODUCTS.filter((name) =>
      ruleFor({ product: name, category: "process_creation" }).sees("process_creation", raw),
    );
    expect(seen).toEqual([product]);
  });

  test.each(OF)("%s without a category or service matches every event with %j", (product, raw) => {
    const seen = PRODUCTS.filter((name) => {
      const { sees, remarks } = ruleFor({ product: name });
      expect(remarks).toEqual([]);
      return sees("whatever", raw);
    });
    expect(seen).toEqual([product]);
  });

  test("an event without a known product matches any product in a category, but none alone", () => {
    for (const product of PRODUCTS) {
      expect(ruleFor({ product, category: "process_creation" }).sees("process_creation", { os: "Plan 9" })).toBe(true);
      expect(ruleFor({ product }).sees("whatever")).toBe(false);
    }
  });
});

describe("the channel of a cleared log", () => {
  const LOGSOURCE = { product: "windows", service: "system" };
  const CLEARED = { EventID: 104, Provider_Name: "Microsoft-Windows-Eventlog" };
  const IMPORTANT = ["Security", "System", "Microsoft-Windows-Sysmon/Operational"];
  const any = ruleFor(LOGSOURCE, {
    selection: CLEARED,
    filter_main: { Channel: IMPORTANT },
    condition: "selection and not 1 of filter_main*",
  });
  const important = ruleFor(LOGSOURCE, { selection: { ...CLEARED, Channel: IMPORTANT }, condition: "selection" });
  const cleared = (Channel: string) => ({ Channel: "System", ...CLEARED, UserData: { LogFileCleared: { Channel } } });

  test.each([
    ["Application", true, false],
    ["Security", false, true],
    ["System", false, true],
  ])("event 104 about %s", (channel, isAny, isImportant) => {
    expect([any.sees("x", cleared(channel)), important.sees("x", cleared(channel))]).toEqual([isAny, isImportant]);
  });

  test("is not the channel of the event that reports it", () => {
    const raw = { Channel: "System", ...CLEARED };
    expect([any.sees("x", raw), important.sees("x", raw)]).toEqual([true, false]);
    expect([any.remarks, important.remarks]).toEqual([[], []]);
  });
});

describe("a rule that can never match is imported with a remark", () => {
  test.each([
    [{ service: "security" }, { s: { Channel: "System" }, condition: "s" }],
    [{ service: "security" }, { s: { EventID: 1 }, f: { Channel: "security" }, condition: "s and not f" }],
    [
      { category: "process_creation" },
      { s: { Image: "a.exe" }, f: { "Image|endswith": ".EXE" }, condition: "s and not f" },
    ],
    [{ category: "process_creation" }, { s: { EventID: 1 }, t: { EventID: [2, 3] }, condition: "all of them" }],
    [{ category: "process_creation" }, { s: { x: null }, t: { x: "a" }, condition: "s and t" }],
  ])("%j %j", (logsource, detection) => {
    const { kind, remarks } = ruleFor({ product: "windows", ...logsource }, detection);
    expect(kind).toBe("taken");
    expect(remarks).toEqual([
      { place: "detection", message: expect.stringMatching(/^can never match: .+ contradicts /) },
    ]);
  });
});

describe("a field name whose spaces Sigma removes", () => {
  const defender = { product: "windows", service: "windefend" };
  const Channel = "Microsoft-Windows-Windows Defender/Operational";

  test.each(["ThreatName", "Threat Name"])("is found as %s", (name) => {
    const { sees } = ruleFor(defender, { s: { "ThreatName|contains": "mimi" }, condition: "s" });
    expect(sees("x", { Channel, [name]: "HackTool:Mimikatz" })).toBe(true);
    expect(sees("x", { Channel, [name]: "other" })).toBe(false);
  });

  test("is missing if it is present under neither name", () => {
    const { sees } = ruleFor(defender, { s: { NewValue: null }, condition: "s" });
    expect(sees("x", { Channel })).toBe(true);
    expect(sees("x", { Channel, NewValue: "a" })).toBe(false);
    expect(sees("x", { Channel, "New Value": "a" })).toBe(false);
    const { sees: seesOther } = ruleFor(defender, { s: { "NewValue|neq": "a" }, condition: "s" });
    expect(seesOther("x", { Channel, "New Value": "a" })).toBe(false);
  });
});

describe("a keyword", () => {
  test("is searched in fields from the source, not in those that the service adds", () => {
    const { sees } = ruleFor(
      { product: "cisco", service: "aaa" },
      { keywords: ["username", "aaa"], condition: "keywords" },
    );
    expect(sees("aaa", { message: "nothing" })).toBe(false);
    expect(sees("aaa", { message: "no AAA new-model" })).toBe(true);
    expect(sees("aaa", { deep: [{ inside: "username admin" }] })).toBe(true);
  });
});
