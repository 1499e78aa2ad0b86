import { describe, expect, test } from "vitest";
import { CONTEXT, onlyEvent, readDetected } from "../context.fixture.ts";
import { readLine } from "../read-line.ts";

const read = (record: object) => onlyEvent(readLine(JSON.stringify(record), CONTEXT));

const wazuh = (rule: object, data: object = {}, more: object = {}) => ({
  timestamp: "2026-11-15T10:00:00.000+0000",
  rule: { level: 5, description: "A rule", id: "5760", groups: [], ...rule },
  agent: { id: "001", name: "web-1", ip: "10.9.3.20" },
  manager: { name: "siem" },
  id: "1794736800.812",
  full_log: "a line",
  location: "/var/log/auth.log",
  data,
  ...more,
});

describe("alerts of Wazuh", () => {
  test.each<[object, object, string, string, Record<string, unknown>]>([
    [
      { groups: ["sshd", "authentication_failed"] },
      { srcip: "192.0.2.9", srcport: "51000", dstuser: "root" },
      "login_failure",
      "medium",
      { src_ip: "192.0.2.9", src_port: 51_000, user: "root" },
    ],
    [
      { level: 3, groups: ["authentication_success"] },
      { srcip: "2001:db8::9", dstuser: "root" },
      "login_success",
      "info",
      { src_ip: "2001:db8::9" },
    ],
    [
      { level: 10, groups: ["authentication_failures"] },
      { srcip: "192.0.2.9" },
      "ids_alert",
      "medium",
      { category: "attempted-user" },
    ],
    [
      { level: 15, groups: ["web", "attack"] },
      { srcip: "192.0.2.9", url: "/x" },
      "ids_alert",
      "critical",
      { category: "web-application-attack", url: "/x" },
    ],
    [
      { level: 12, groups: ["ids"] },
      { src_ip: "192.0.2.9", dest_ip: "10.9.3.20", dest_port: "22" },
      "ids_alert",
      "high",
      { dst_ip: "10.9.3.20", dst_port: 22 },
    ],
    [{ level: 7, groups: ["ossec", "syscheck"] }, {}, "file_changed", "medium", {}],
    [{ level: 4, groups: ["something"] }, {}, "wazuh_alert", "low", {}],
    [
      { groups: ["windows", "win_authentication_failed"] },
      { win: { eventdata: { targetUserName: "robin", ipAddress: "192.0.2.9" } } },
      "login_failure",
      "medium",
      { user: "robin", src_ip: "192.0.2.9" },
    ],
    [{ groups: "x" }, { srcip: "not an address" }, "wazuh_alert", "low", {}],
  ])("%j %j", (rule, data, type, severity, expected) => {
    expect(read(wazuh(rule, data))).toMatchObject({
      type,
      severity,
      timestampMs: Date.parse("2026-11-15T10:00:00Z"),
      raw: {
        signature: "A rule",
        signature_id: 5760,
        device: "web-1",
        device_ip: "10.9.3.20",
        message: "a line",
        wazuh_rule: { id: "5760" },
        data,
        ...expected,
      },
    });
  });

  test("the file of an integrity check", () => {
    expect(read(wazuh({ groups: ["syscheck"] }, {}, { syscheck: { path: "/etc/passwd" } })).raw["file"]).toBe(
      "/etc/passwd",
    );
  });
});

const crowdsec = (scenario: string, more: object = {}) => ({
  scenario,
  created_at: "2026-11-15T10:00:00Z",
  events_count: 6,
  message: "performed",
  source: { scope: "Ip", value: "192.0.2.9", ip: "192.0.2.9", cn: "NL" },
  decisions: [{ type: "ban", value: "192.0.2.9" }],
  ...more,
});

describe("alerts of CrowdSec", () => {
  test.each([
    ["crowdsecurity/ssh-bf", "attempted-user", "medium"],
    ["crowdsecurity/http-path-traversal-probing", "web-application-attack", "medium"],
    ["crowdsecurity/http-crawl-non_statics", "attempted-recon", "medium"],
    ["crowdsecurity/CVE-2026-0001", "attempted-admin", "high"],
    ["own/thing", undefined, "medium"],
  ])("%s is %s", (scenario, category, severity) => {
    const allowed = read(crowdsec(scenario, { decisions: null }));
    expect(allowed).toMatchObject({
      type: "ids_alert",
      severity,
      raw: { signature: scenario, src_ip: "192.0.2.9", country: "NL", repeated: 6, action: "allow" },
    });
    expect(allowed.raw["category"]).toBe(category);
    expect(read(crowdsec(scenario)).raw["action"]).toBe("block");
    expect(read(crowdsec(scenario, { simulated: true })).raw["action"]).toBe("allow");
  });

  test("a range has no address", () => {
    const { raw } = read(crowdsec("a/b", { source: { scope: "Range", value: "192.0.2.0/24" } }));
    expect(raw).not.toHaveProperty("src_ip");
  });
});

test.each([
  ['{"rule":{"level":5},"agent":{}}', "log_line"],
  ['{"rule":"x","agent":{"id":"1"}}', "log_line"],
  ['{"scenario":"a/b","source":"192.0.2.9"}', "log_line"],
  ['{"scenario":1,"source":{"scope":"Ip","value":"x"}}', "log_line"],
  ['{"rule":{"level":5,"id":"1"},"agent":{}', "unparsed"],
])("is not an alert: %s", (line, type) => {
  expect(onlyEvent(readLine(line, CONTEXT)).type).toBe(type);
});

test("alerts are detected by `tocsin parse`", () => {
  expect(onlyEvent(readDetected(JSON.stringify(wazuh({})))).type).toBe("wazuh_alert");
  expect(onlyEvent(readDetected(JSON.stringify(crowdsec("a/b")))).type).toBe("ids_alert");
});
