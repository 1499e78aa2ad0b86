import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../../model/event.ts";
import { CONTEXT, onlyEvent } from "../context.fixture.ts";
import { readEve } from "./eve.ts";

const COMMON = {
  timestamp: "2026-11-15T20:01:03.482910+0000",
  flow_id: 1,
  src_ip: "10.9.3.20",
  src_port: 51_522,
  dest_ip: "2001:db8::80",
  dest_port: 443,
  proto: "TCP",
};
const event = (kind: string, part: unknown) =>
  onlyEvent(readEve(JSON.stringify({ ...COMMON, event_type: kind, [kind]: part }), CONTEXT));

describe("records of Suricata about application protocols", () => {
  test.each<[string, JsonObject, string, JsonObject]>([
    ["ssh", { client: { software_version: "OpenSSH_9.9" } }, "ssh", { service: "ssh", version: "OpenSSH_9.9" }],
    [
      "smtp",
      { helo: "mail.example", mail_from: "<a@example.org>" },
      "smtp",
      { service: "smtp", src_host: "mail.example" },
    ],
    ["smtp", { helo: "a b=c" }, "smtp", { service: "smtp" }],
    ["ftp", { command: "USER", command_data: "robin" }, "ftp", { user: "robin", service: "ftp" }],
    ["ftp", { command: "PASS", completion_code: ["530"] }, "login_failure", { service: "ftp" }],
    ["ftp", { command: "PASS", completion_code: ["230"] }, "login_success", {}],
    ["ftp", { command: "PASS", completion_code: ["331"] }, "ftp", {}],
    ["ftp_data", { filename: "a.zip", command: "RETR" }, "ftp_data", { file: "a.zip" }],
    ["tftp", { packet: "read", file: "boot.cfg" }, "tftp", { file: "boot.cfg" }],
    ["nfs", { filename: "a", procedure: "READ" }, "nfs", { file: "a" }],
    ["smb", { command: "SMB2_COMMAND_CREATE", filename: "a.txt" }, "smb", { file: "a.txt" }],
    [
      "smb",
      { command: "SMB2_COMMAND_SESSION_SETUP", status: "STATUS_LOGON_FAILURE", ntlmssp: { user: "robin" } },
      "login_failure",
      { user: "robin", service: "smb" },
    ],
    [
      "krb5",
      { msg_type: "KRB_ERROR", cname: "<empty>", error_code: "KDC_ERR_PREAUTH_FAILED" },
      "krb5",
      { reason: "KDC_ERR_PREAUTH_FAILED" },
    ],
    ["krb5", { msg_type: "KRB_AS_REP", cname: "robin" }, "krb5", { user: "robin" }],
    ["rdp", { event_type: "initial_request", cookie: "mstshash=robin" }, "rdp", { user: "robin" }],
    ["rfb", { authentication: { security_result: "FAIL" } }, "login_failure", { service: "vnc" }],
    ["rfb", { authentication: { security_result: "OK" } }, "login_success", {}],
    [
      "ldap",
      { request: { operation: "bind_request", bind_request: { name: "cn=robin" } } },
      "ldap",
      { user: "cn=robin" },
    ],
    ["pgsql", { request: { startup_parameters: { user: "robin" } } }, "pgsql", { user: "robin" }],
    ["mqtt", { connect: { username: "meter" } }, "mqtt", { user: "meter" }],
    ["sip", { method: "REGISTER", uri: "sip:pbx.example" }, "sip", { method: "REGISTER", url: "sip:pbx.example" }],
    ["snmp", { version: 3, usm: "robin" }, "snmp", { user: "robin" }],
    ["modbus", { id: 1 }, "modbus", {}],
    ["something_new", { a: 1 }, "something_new", {}],
    ["ssh", {}, "ssh", {}],
  ])("%s %j", (kind, part, type, expected) => {
    const { raw, type: is } = event(kind, part);
    expect(is).toBe(type);
    expect(raw).toMatchObject({ src_ip: "10.9.3.20", dst_ip: "2001:db8::80", dst_port: 443, ...expected });
    expect(raw[kind]).toEqual(part);
  });

  test.each<[JsonObject, string, string]>([
    [
      {
        type: "reply",
        dhcp_type: "ack",
        client_mac: "02:00:00:77:88:99",
        assigned_ip: "10.9.5.44",
        hostname: "tablet-4",
        lease_time: 3600,
      },
      "dhcp_lease",
      "2001:db8::80",
    ],
    [
      {
        type: "request",
        dhcp_type: "request",
        client_mac: "02:00:00:77:88:99",
        client_ip: "0.0.0.0",
        requested_ip: "10.9.5.44",
      },
      "dhcp_request",
      "10.9.3.20",
    ],
    [
      { type: "reply", dhcp_type: "nak", client_mac: "02:00:00:77:88:99", client_ip: "10.9.5.44" },
      "dhcp_refused",
      "2001:db8::80",
    ],
  ])("a lease is about the client: %j", (dhcp, type, other) => {
    const { raw, type: is } = event("dhcp", dhcp);
    expect(is).toBe(type);
    expect(raw).toMatchObject({ src_ip: "10.9.5.44", src_mac: "02:00:00:77:88:99" });
    expect(raw["dst_ip"]).not.toBe(other);
    expect(raw).not.toHaveProperty("src_port");
  });

  test("a part of the wrong type adds nothing", () => {
    for (const kind of ["dhcp", "smb", "ftp", "rfb", "ldap", "arp", "engine"]) {
      expect(event(kind, [1]).raw["event_type"]).toBe(kind);
      expect(
        event(kind, { authentication: 1, ntlmssp: "x", completion_code: 530, request: [] }).raw["event_type"],
      ).toBe(kind);
    }
  });
});
