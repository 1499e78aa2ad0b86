import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../../model/event.ts";
import { CONTEXT, onlyEvent } from "../context.fixture.ts";
import { readLine } from "../read-line.ts";
import type { ReadContext } from "../reading.ts";

const TS = 1_794_736_800.25;
const ENDS = {
  ts: TS,
  uid: "CAbc1d2EfGhIjKlMn3",
  "id.orig_h": "10.9.3.20",
  "id.orig_p": 51_522,
  "id.resp_h": "192.0.2.80",
  "id.resp_p": 443,
};
const read = (record: object) => readLine(JSON.stringify(record), CONTEXT);
const CONN = {
  ...ENDS,
  proto: "tcp",
  service: "ssl",
  duration: 1.5,
  orig_bytes: 900,
  resp_bytes: 41_000,
  conn_state: "SF",
  orig_pkts: 10,
  orig_ip_bytes: 1420,
  resp_pkts: 33,
  resp_ip_bytes: 42_720,
};

describe("a record of Zeek as JSON", () => {
  test("a connection becomes two flows", () => {
    const common = { protocol: 6, tcpFlags: 0, firstMs: TS * 1000, lastMs: TS * 1000 + 1500 };
    expect(read(CONN)).toEqual({
      kind: "flows",
      format: "zeek",
      flows: [
        { ...common, srcIp: "10.9.3.20", dstIp: "192.0.2.80", srcPort: 51_522, dstPort: 443, bytes: 1420, packets: 10 },
        {
          ...common,
          srcIp: "192.0.2.80",
          dstIp: "10.9.3.20",
          srcPort: 443,
          dstPort: 51_522,
          bytes: 42_720,
          packets: 33,
        },
      ],
    });
    const { orig_pkts, orig_ip_bytes, resp_pkts, resp_ip_bytes, orig_bytes, resp_bytes, ...empty } = CONN;
    expect([orig_pkts, orig_ip_bytes, resp_pkts, resp_ip_bytes, orig_bytes, resp_bytes].length).toBe(6);
    expect(onlyEvent(read(empty)).type).toBe("conn");
  });

  test.each<[string, object, string, JsonObject]>([
    [
      "dns",
      { proto: "udp", trans_id: 7, query: "no.example", qtype_name: "A", rcode_name: "NXDOMAIN" },
      "dns_query",
      { query: "no.example", query_type: "A", answer: "NXDOMAIN", protocol: "udp" },
    ],
    [
      "http",
      {
        trans_depth: 1,
        method: "GET",
        host: "www.example.org",
        uri: "/a?b",
        user_agent: "curl",
        request_body_len: 0,
        status_code: 404,
      },
      "http",
      { host: "www.example.org", url: "/a?b", http_status: 404, method: "GET", uri: "/a?b" },
    ],
    [
      "ssl",
      { version: "TLSv13", server_name: "www.example.org", established: true, resumed: false },
      "tls",
      { server_name: "www.example.org" },
    ],
    [
      "ssh",
      { version: 2, auth_success: false, auth_attempts: 6, client: "SSH-2.0-x" },
      "ssh",
      { service: "ssh", auth_attempts: 6, reason: "authentication failed" },
    ],
    ["weird", { name: "bad_TCP_checksum", notice: false, peer: "zeek" }, "anomaly", { reason: "bad_TCP_checksum" }],
    [
      "files",
      {
        fuid: "FAbc1d2EfGhIjKlMn3",
        source: "HTTP",
        seen_bytes: 100,
        total_bytes: 200,
        filename: "a.exe",
        sha256: "0a".repeat(32),
      },
      "fileinfo",
      { file: "a.exe", bytes: 200, sha256: "0a".repeat(32) },
    ],
    [
      "kerberos",
      {
        request_type: "AS",
        client: "robin/CORP.EXAMPLE",
        service: "krbtgt/CORP.EXAMPLE",
        success: false,
        error_msg: "KDC_ERR_PREAUTH_FAILED",
      },
      "kerberos",
      { user: "robin", reason: "KDC_ERR_PREAUTH_FAILED", zeek_service: "krbtgt/CORP.EXAMPLE" },
    ],
    [
      "smb_files",
      { action: "SMB::FILE_OPEN", path: "\\\\fs\\share", name: "a\\b.txt", size: 12 },
      "smb_files",
      { file: "a\\b.txt" },
    ],
    ["smb_mapping", { path: "\\\\fs\\IPC$", share_type: "PIPE" }, "smb_mapping", { share_type: "PIPE" }],
    [
      "rdp",
      { cookie: "robin", result: "encrypted", security_protocol: "HYBRID" },
      "rdp",
      { user: "robin", service: "rdp" },
    ],
    [
      "ntlm",
      { username: "robin", hostname: "LAPTOP-4", domainname: "CORP", success: true },
      "ntlm",
      { user: "robin", src_host: "LAPTOP-4" },
    ],
    [
      "x509",
      { "certificate.serial": "01", "certificate.subject": "CN=a" },
      "x509",
      { certificate: { serial: "01", subject: "CN=a" } },
    ],
    ["mqtt_connect", { _path: "mqtt_connect", proto_name: "MQIsdp" }, "mqtt_connect", {}],
    ["zeek", { something: "new" }, "zeek", { something: "new" }],
  ])("%s", (log, fields, type, expected) => {
    expect(onlyEvent(read({ ...ENDS, ...fields }))).toMatchObject({
      type,
      timestampMs: TS * 1000,
      raw: {
        src_ip: "10.9.3.20",
        src_port: 51_522,
        dst_ip: "192.0.2.80",
        dst_port: 443,
        log,
        id: { orig_h: "10.9.3.20" },
        ...expected,
      },
    });
  });

  test.each<[object, string, string, JsonObject]>([
    [
      { note: "SSH::Password_Guessing", msg: "guesses", src: "203.0.113.9", dst: "10.9.3.20", p: 22 },
      "ids_alert",
      "high",
      {
        signature: "SSH::Password_Guessing",
        category: "attempted-user",
        src_ip: "203.0.113.9",
        dst_ip: "10.9.3.20",
        dst_port: 22,
        local_ip: "10.9.3.20",
        action: "allow",
      },
    ],
    [
      { note: "Scan::Port_Scan", msg: "scan", src: "2001:db8::9", actions: ["Notice::ACTION_DROP"] },
      "ids_alert",
      "medium",
      { category: "attempted-recon", src_ip: "2001:db8::9", action: "block" },
    ],
    [{ note: "Own::Notice", msg: "x" }, "ids_alert", "medium", { signature: "Own::Notice" }],
    [
      { note: "CaptureLoss::Too_Much_Loss", msg: "x" },
      "sensor_notice",
      "info",
      { event_name: "CaptureLoss::Too_Much_Loss" },
    ],
    [
      {
        mac: "02:00:00:77:88:99",
        assigned_addr: "10.9.5.44",
        host_name: "tablet-4",
        lease_time: 3600.0,
        msg_types: ["DISCOVER", "OFFER", "REQUEST", "ACK"],
      },
      "dhcp_lease",
      "info",
      { src_ip: "10.9.5.44", src_mac: "02:00:00:77:88:99", host: "tablet-4", lease_s: 3600 },
    ],
    [{ mac: "02:00:00:77:88:99", client_addr: "10.9.5.44", msg_types: ["REQUEST", "NAK"] }, "dhcp_refused", "low", {}],
  ])("without a connection: %j", (fields, type, severity, expected) => {
    expect(onlyEvent(read({ ts: "2026-11-15T10:00:00.250000Z", ...fields }))).toMatchObject({
      type,
      severity,
      timestampMs: TS * 1000,
      raw: expected,
    });
  });

  test.each([
    ['{"ts":1794736800.25,"temperature":21}', "log_line"],
    ['{"ts":1794736800.25,"note":1', "unparsed"],
    ['{"ts":1794736800.25,"uid":"robin","conn_state":"SF","proto":"tcp"}', "log_line"],
    ['{"ts":null,"uid":"CAbc1d2EfGhIjKlMn3","conn_state":"SF","proto":"tcp"}', "log_line"],
  ])("is not %s", (line, type) => {
    expect(onlyEvent(readLine(line, CONTEXT)).type).toBe(type);
  });
});

describe("logs of Zeek as columns", () => {
  const from = (sender: string): ReadContext => ({ ...CONTEXT, sender });
  const SSL = [
    "ts",
    "uid",
    "id.orig_h",
    "id.orig_p",
    "id.resp_h",
    "id.resp_p",
    "version",
    "server_name",
    "resumed",
    "established",
  ];
  const row = [
    "1794736800.250000",
    "CAbc1d2EfGhIjKlMn3",
    "10.9.3.20",
    "51522",
    "2001:db8::80",
    "443",
    "TLSv13",
    "a\\x09b",
    "F",
    "T",
  ].join("\t");

  test("the header names the columns, for its sender only", () => {
    const header = [
      "#separator \\x09",
      "#set_separator\t,",
      "#empty_field\t(empty)",
      "#unset_field\t-",
      "#path\tssl",
      "#open\t2026-11-15-10-00-00",
      `#fields\t${SSL.join("\t")}`,
      "#types\ttime\tstring\taddr\tport\taddr\tport\tstring\tstring\tbool\tbool",
    ];
    expect(onlyEvent(readLine(row, from("192.0.2.71"))).type).toBe("unparsed");
    for (const line of header)
      expect(readLine(line, from("192.0.2.71"))).toEqual({ kind: "nothing", format: "zeek-tsv" });
    expect(onlyEvent(readLine(row, from("192.0.2.71")))).toMatchObject({
      type: "tls",
      timestampMs: TS * 1000,
      raw: { server_name: "a\tb", established: true, resumed: false, dst_ip: "2001:db8::80", src_port: 51_522 },
    });
    expect(onlyEvent(readLine(row.replace("\tF\t", "\tmaybe\t"), from("192.0.2.71"))).type).toBe("unparsed");
    expect(onlyEvent(readLine(row, from("192.0.2.72"))).type).toBe("unparsed");
    expect(readLine("#close\t2026-11-15-11-00-00", from("192.0.2.71")).kind).toBe("nothing");
  });

  test.each<[string, string[]]>([
    ["flows", ["tcp", "ssl", "1.5", "900", "41000", "SF", "T", "F", "0", "ShADadFf", "10", "1420", "33", "42720", "-"]],
    ["flows", ["udp", "dns", "-", "-", "-", "S0", "T", "F", "0", "D", "1", "60", "0", "0", "(empty)", "17"]],
    [
      "dns_query",
      [
        "udp",
        "7",
        "-",
        "no.example",
        "1",
        "C_INTERNET",
        "1",
        "A",
        "3",
        "NXDOMAIN",
        "F",
        "F",
        "T",
        "F",
        "0",
        "-",
        "-",
        "F",
      ],
    ],
    [
      "http",
      [
        "1",
        "GET",
        "www.example.org",
        "/",
        "-",
        "1.1",
        "curl",
        "-",
        "0",
        "12",
        "200",
        "OK",
        "-",
        "-",
        "(empty)",
        "-",
        "-",
        "-",
        "-",
        "-",
        "-",
        "-",
        "-",
        "-",
      ],
    ],
    [
      "unparsed",
      ["tcp", "ssl", "1.5", "900", "41000", "??", "T", "F", "0", "ShADadFf", "10", "1420", "33", "42720", "-"],
    ],
  ])("standard columns need no header: %s", (expected, cells) => {
    const line = [...row.split("\t").slice(0, 6), ...cells].join("\t");
    const reading = readLine(line, from("192.0.2.73"));
    expect(reading.kind === "flows" ? "flows" : onlyEvent(reading).type).toBe(expected);
    expect(readLine(`<13>Nov 15 10:00:00 sensor zeek_log[4]: ${line}`, from("192.0.2.73")).kind).toBe(reading.kind);
  });

  test("lines of other programs are not read", () => {
    expect(onlyEvent(readLine("<13>Nov 15 10:00:00 a shop: #fields\tts\tuid", CONTEXT)).type).toBe("unparsed");
  });

  test("spoiled lines never throw", () => {
    fc.assert(
      fc.property(fc.array(fc.string(), { maxLength: 40 }), (cells) => {
        readLine(["1794736800.250000", ...cells].join("\t"), from("192.0.2.74"));
        readLine(["#fields", ...cells].join("\t"), from("192.0.2.74"));
      }),
    );
  });
});
