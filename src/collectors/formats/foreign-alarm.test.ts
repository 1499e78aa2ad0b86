import { describe, expect, test } from "vitest";
import { CONTEXT, onlyEvent } from "./context.fixture.ts";
import { readLine } from "./read-line.ts";

const read = (line: string) => onlyEvent(readLine(line, CONTEXT));

describe("CEF of other makers", () => {
  test.each([
    ["Check Point|VPN-1 & FireWall-1|Check Point|Log|https|Unknown", "act=Accept", "firewall_allowed", "allow"],
    ["Check Point|VPN-1 & FireWall-1|Check Point|Log|telnet|Unknown", "act=Drop", "firewall_blocked", "block"],
    ["Check Point|SmartDefense|Check Point|Log|Made Up Overflow|High", "act=Prevent", "ids_alert", "block"],
    ["Palo Alto Networks|PAN-OS|11.0|end|TRAFFIC|1", "act=deny", "firewall_blocked", "block"],
    ["Made Up|Gateway|1|7|Virus found|8", "act=blocked", "malware_found", "block"],
  ])("%s with %s", (header, action, type, expected) => {
    const event = read(`CEF:0|${header}|${action} src=192.0.2.80 dst=10.9.3.20 spt=40112 dpt=443 proto=6`);
    expect(event.type).toBe(type);
    expect(event.raw).toMatchObject({ action: expected, src_ip: "192.0.2.80", dst_port: 443, protocol: "tcp" });
  });

  test.each([
    ["without a verdict", "Made Up|Firewall|1|7|Session closed|3", "src=192.0.2.80 dst=10.9.3.20", "session_closed"],
    ["without a destination", "Made Up|Firewall|1|7|Port scan|3", "act=drop src=192.0.2.80", "port_scan"],
    ["that filter no traffic", "Made Up|Mail|1|7|Spam|3", "act=drop src=192.0.2.80 dst=10.9.3.20", "spam"],
  ])("%s keeps its name", (_, header, pairs, type) => {
    expect(read(`CEF:0|${header}|${pairs}`).type).toBe(type);
  });

  test("of a console of ours keeps its name", () => {
    const line = "CEF:0|Ubiquiti|UniFi Network|1|9|Traffic Rule Hit|3|act=blocked src=192.0.2.80 dst=10.9.3.20";
    expect(read(line).type).toBe("traffic_rule_hit");
  });
});
