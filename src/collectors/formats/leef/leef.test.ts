import { describe, expect, test } from "vitest";
import { CONTEXT, onlyEvent } from "../context.fixture.ts";
import { readLine } from "../read-line.ts";

const read = (line: string) => onlyEvent(readLine(line, CONTEXT));
const ENDS = { src_ip: "192.0.2.80", dst_ip: "10.9.3.20", src_port: 40112, dst_port: 443, protocol: "tcp" };

describe("LEEF", () => {
  test.each([
    ["1.0 with tabs", "LEEF:1.0|Made Up|Packet Filter|7|Drop|", "\t"],
    ["1.0 with tabs that a relay escaped", "LEEF:1.0|Made Up|Packet Filter|7|Drop|", "#011"],
    ["2.0 with a caret", "LEEF:2.0|Made Up|Packet Filter|7|Drop|^|", "^"],
    ["2.0 with a number", "LEEF:2.0|Made Up|Packet Filter|7|Drop|x5E|", "^"],
    ["2.0 with a longer number", "LEEF:2.0|Made Up|Packet Filter|7|Drop|0x7c|", "|"],
    ["2.0 with an empty separator", "LEEF:2.0|Made Up|Packet Filter|7|Drop||", "\t"],
    ["2.0 without a separator", "LEEF:2.0|Made Up|Packet Filter|7|Drop|", "\t"],
  ])("%s", (_, header, separator) => {
    const pairs = [
      "src=192.0.2.80",
      "dst=10.9.3.20",
      "srcPort=40112",
      "dstPort=443",
      "proto=TCP",
      "action=drop",
      "sev=3",
    ];
    const event = read(`<13>Nov 15 10:00:00 gw5 ${header}${pairs.join(separator)}`);
    expect(event).toMatchObject({ type: "firewall_blocked", severity: "low", source: "network" });
    expect(event.raw).toMatchObject({
      ...ENDS,
      action: "block",
      device: "gw5",
      product: "Packet Filter",
      version: "7",
    });
  });

  test("the names of the format become ours", () => {
    const event = read(
      "LEEF:1.0|Made Up|Portal|7|Sign On|devTime=1794736800000\tusrName=ann smith\tsrc=2001:db8::10\tsrcMAC=02:00:00:00:00:07\tpolicy=staff only\turl=https://www.example/a=b\tcat=Portal\tsev=8\town=kept",
    );
    expect(event).toMatchObject({ type: "sign_on", severity: "high", timestampMs: 1_794_736_800_000 });
    expect(event.raw).toMatchObject({
      user: "ann smith",
      src_ip: "2001:db8::10",
      src_mac: "02:00:00:00:00:07",
      rule: "staff only",
      url: "https://www.example/a=b",
      category: "Portal",
      event_name: "Sign On",
      own: "kept",
    });
  });

  test.each([
    ["SmartDefense", "Detect", "detect", "ids_alert"],
    ["Anti-Virus", "Prevent", "prevent", "malware_found"],
    ["Firewall", "Accept", "accept", "firewall_allowed"],
    ["Firewall", "Reject", "reject", "firewall_blocked"],
  ])("%s with %s", (product, event, action, type) => {
    const line = `LEEF:2.0|Made Up|${product}|1|${event}|^|src=192.0.2.80^dst=10.9.3.20^action=${action}`;
    expect(read(line).type).toBe(type);
  });

  test.each(["LEEF:1.0|a|b", "LEEF:3.0|a|b|c|d|src=192.0.2.1", "LEEF:", "LEEF:2.0|a||c|d|^|src=192.0.2.1"])(
    "%s is not LEEF",
    (line) => {
      expect(read(line).type).toBe("unparsed");
    },
  );
});
