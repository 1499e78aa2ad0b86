import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CONTEXT, eventsOf, onlyEvent } from "../context.fixture.ts";
import { EVE_RECORDS } from "../samples.fixture.ts";
import { readEve } from "./eve.ts";

const read = (record: unknown) => readEve(JSON.stringify(record), CONTEXT);
const event = (record: unknown) => onlyEvent(read(record));

describe("events of each event_type", () => {
  test("an alert", () => {
    const { raw, timestampMs, ...rest } = event(EVE_RECORDS.alert);
    expect(rest).toEqual({ type: "ids_alert", source: "network", severity: "critical", class: "security" });
    expect(new Date(timestampMs!).toISOString()).toBe("2026-11-15T20:01:03.482Z");
    expect(raw).toEqual({
      ...EVE_RECORDS.alert,
      dst_ip: "192.0.2.200",
      dst_port: 443,
      protocol: "tcp",
      app_protocol: "tls",
      in_interface: "eth1",
      signature_id: 2_900_002,
      signature: "ET MALWARE Made-up Beacon CnC",
      category: "command-and-control",
      action: "allow",
      local_ip: "10.9.3.20",
    });
  });

  test.each<[keyof typeof EVE_RECORDS, Record<string, unknown>]>([
    [
      "dns",
      {
        type: "dns_query",
        raw: { query: "no-such.example", answer: "NXDOMAIN", src_ip: "10.9.3.20", dst_ip: "10.9.0.1", dst_port: 53 },
      },
    ],
    ["tls", { type: "tls", raw: { server_name: "www.example.org" } }],
    [
      "http",
      {
        type: "http",
        raw: {
          host: "www.example.net",
          url: "/index.html?q=1",
          user_agent: "curl/9.0",
          method: "GET",
          http_status: 404,
        },
      },
    ],
    ["anomaly", { type: "anomaly", class: "security", severity: "low", raw: { reason: "stream.pkt_invalid_ack" } }],
    [
      "fileinfo",
      { type: "fileinfo", class: "security", raw: { file: "/tool.exe", bytes: 4096, sha256: "0a".repeat(32) } },
    ],
    ["ssh", { type: "ssh", class: "network", raw: { dst_port: 22 } }],
  ])("%s", (kind, expected) => {
    const { [kind]: part } = EVE_RECORDS[kind] as Record<string, unknown>;
    expect(event(EVE_RECORDS[kind])).toMatchObject({ ...expected, source: "network" });
    expect(event(EVE_RECORDS[kind]).raw[kind]).toEqual(part);
  });

  test("a flow becomes one flow for each direction and no event", () => {
    const firstMs = Date.parse("2026-11-15T20:00:00Z");
    const both = { protocol: 6, firstMs, lastMs: firstMs + 42_500 };
    expect(read(EVE_RECORDS.flow)).toEqual({
      kind: "flows",
      flows: [
        {
          ...both,
          srcIp: "10.9.3.20",
          dstIp: "192.0.2.200",
          srcPort: 51_522,
          dstPort: 443,
          bytes: 1800,
          packets: 10,
          tcpFlags: 0x1b,
        },
        {
          ...both,
          srcIp: "192.0.2.200",
          dstIp: "10.9.3.20",
          srcPort: 443,
          dstPort: 51_522,
          bytes: 92_000,
          packets: 8,
          tcpFlags: 0x13,
        },
      ],
    });
  });

  test("an unanswered flow has one direction, ICMP has no ports", () => {
    const flow = { pkts_toserver: 1, pkts_toclient: 0, bytes_toserver: 98, bytes_toclient: 0 };
    const record = { ...EVE_RECORDS.flow, proto: "IPv6-ICMP", src_port: undefined, dest_port: undefined, flow };
    expect(read(record)).toMatchObject({ flows: [{ protocol: 58, srcPort: 0, dstPort: 0, bytes: 98 }] });
    const netflow = { pkts: 2, bytes: 120, start: "2026-11-15T20:00:00.000000+0000" };
    expect(read({ ...EVE_RECORDS.flow, event_type: "netflow", netflow })).toMatchObject({
      flows: [{ bytes: 120, packets: 2 }],
    });
  });

  test("stats become nothing, an unknown event_type is kept as the type", () => {
    expect(read(EVE_RECORDS.stats)).toEqual({ kind: "nothing" });
    expect(event({ ...EVE_RECORDS.tls, event_type: "krb5" })).toMatchObject({
      type: "krb5",
      class: "network",
      severity: "info",
    });
    expect(event({ event_type: "__proto__" }).type).toBe("proto");
  });

  test("QUIC has a server name, as TLS has", () => {
    const { tls: _, ...record } = EVE_RECORDS.tls;
    expect(event({ ...record, event_type: "quic", quic: { sni: "www.example.org" } })).toMatchObject({
      type: "quic",
      class: "network",
      raw: { server_name: "www.example.org" },
    });
    expect(event({ ...EVE_RECORDS.alert, quic: { sni: "q.example.org" } }).raw["server_name"]).toBe("q.example.org");
  });
});

describe("fields", () => {
  const alert = (more: object) => ({ ...EVE_RECORDS.alert, alert: { ...EVE_RECORDS.alert.alert, ...more } });

  test.each([
    [1, "critical"],
    [2, "high"],
    [3, "medium"],
    [4, "low"],
    [9, "low"],
    ["x", "medium"],
    ["1", "critical"],
    ["2", "high"],
  ])("priority %s is %s: 1 is the worst", (severity, expected) =>
    expect(event(alert({ severity })).severity).toBe(expected),
  );

  test.each([
    ["Potential Corporate Privacy Violation", "medium"],
    ["Inappropriate Content was Detected", "medium"],
    ["Not Suspicious Traffic", "low"],
    ["Attempted Information Leak", "high"],
    ["Attempted Administrator Privilege Gain", "critical"],
    ["A Class Of Tomorrow", "critical"],
  ])("priority 1 in the class %s is %s", (category, severity) => {
    expect(event(alert({ category, severity: 1 })).severity).toBe(severity);
  });

  test("an alert has the names of its application protocol, so that domain lists match", () => {
    const http = { hostname: "www.example.net", url: "/a", http_user_agent: "curl", http_method: "GET", status: 200 };
    expect(event({ ...EVE_RECORDS.alert, http }).raw).toMatchObject({
      host: "www.example.net",
      url: "/a",
      user_agent: "curl",
      method: "GET",
      http_status: 200,
      http,
    });
    expect(event({ ...EVE_RECORDS.alert, tls: { sni: "www.example.org" } }).raw["server_name"]).toBe("www.example.org");
    const dns = { query: [{ type: "query", rrname: "bad.example", rrtype: "A" }] };
    expect(event({ ...EVE_RECORDS.alert, dns }).raw).toMatchObject({ query: "bad.example", query_type: "A" });
    expect(event({ ...EVE_RECORDS.fileinfo, http }).raw).toMatchObject({ host: "www.example.net", file: "/tool.exe" });
    expect(event({ ...EVE_RECORDS.alert, http: "x", tls: 7, dns: null }).type).toBe("ids_alert");
  });

  test("a DNS record with several questions becomes an event for each", () => {
    const names = ["one.example", "two.example"];
    const dns = { version: 3, type: "request", queries: names.map((rrname) => ({ rrname, rrtype: "A" })) };
    const events = eventsOf(read({ ...EVE_RECORDS.dns, dns }));
    expect(events.map(({ type, raw }) => [type, raw["query"]])).toEqual(names.map((name) => ["dns_query", name]));
    const many = { queries: Array.from({ length: 100 }, (_, n) => ({ rrname: `n${n}.example` })) };
    expect(eventsOf(read({ ...EVE_RECORDS.dns, dns: many }))).toHaveLength(16);
  });

  test("a dropped packet has its signature", () => {
    const { alert, ...record } = { ...EVE_RECORDS.alert, event_type: "drop", drop: { len: 60, reason: "rules" } };
    expect(event({ ...record, alert })).toMatchObject({
      type: "drop",
      class: "security",
      severity: "critical",
      raw: { action: "block", signature_id: alert.signature_id, signature: alert.signature, reason: "rules" },
    });
    expect(event(record)).toMatchObject({
      type: "drop",
      class: "security",
      severity: "low",
      raw: { action: "block", reason: "rules" },
    });
  });

  test("actions are normalised", () => {
    expect(event(alert({ action: "blocked" })).raw["action"]).toBe("block");
    expect(event(alert({ action: "allowed" })).raw["action"]).toBe("allow");
  });

  test("addresses are canonical, and other values have another name", () => {
    const { raw } = event({
      ...EVE_RECORDS.tls,
      src_ip: "2001:0db8:0000:0000:0000:0000:0000:0001",
      dest_ip: "54.36.x.x",
      src_port: "abc",
    });
    expect(raw).toMatchObject({ src_ip: "2001:db8::1", dst_host: "54.36.x.x", dest_ip: "54.36.x.x" });
    expect(raw).not.toHaveProperty("dst_ip");
    expect(raw).not.toHaveProperty("src_port");
  });

  test("the sensor's name is the device, not the host", () => {
    const { raw } = event({ ...EVE_RECORDS.tls, host: "sensor-1" });
    expect(raw["device"]).toBe("sensor-1");
    expect(raw).not.toHaveProperty("host");
  });

  test("newer and older forms of DNS records", () => {
    expect(
      event({
        ...EVE_RECORDS.dns,
        dns: { version: 3, type: "request", queries: [{ rrname: "a.example", rrtype: "AAAA" }] },
      }).raw,
    ).toMatchObject({
      query: "a.example",
      query_type: "AAAA",
    });
  });
});

test.each([
  ["", "malformed"],
  ["{", "malformed"],
  ["[]", "malformed"],
  ["null", "malformed"],
  ['"text"', "malformed"],
  ["{}", "unknown_kind"],
  ['{"event_type":7}', "unknown_kind"],
  ['{"event_type":"flow"}', "malformed"],
  [`{"event_type":"x","a":${"[".repeat(30_000)}${"]".repeat(30_000)}}`, "malformed"],
])("%.40s is refused with its reason", (line, reason) =>
  expect(readEve(line, CONTEXT)).toMatchObject({ kind: "refused", reason, message: expect.stringMatching(/\w/) }),
);

test("any record is read without a throw and can be stored", () => {
  const value = fc.jsonValue({ maxDepth: 3 });
  const record = fc
    .tuple(
      fc.constantFrom(...Object.values(EVE_RECORDS)),
      fc.dictionary(
        fc.constantFrom(
          "src_ip",
          "dest_ip",
          "src_port",
          "proto",
          "host",
          "alert",
          "dns",
          "flow",
          "timestamp",
          "tcp",
          "event_type",
          "__proto__",
          "line",
        ),
        value,
      ),
    )
    .map(([whole, spoiled]) => JSON.stringify({ ...whole, ...spoiled }));
  const halves = record.map((text) => text.replace('"eth1"', '"\\ud800x"'));
  fc.assert(
    fc.property(fc.oneof(record, halves, fc.json(), fc.string()), (line) => {
      const reading = readEve(line, CONTEXT);
      if (reading.kind !== "events") return;
      const text = JSON.stringify(reading.events);
      // JSON.stringify escapes an unpaired surrogate; a literal backslash is doubled.
      expect(text.isWellFormed() && !/(?<!\\)(?:\\\\)*\\ud[89ab]/i.test(text)).toBe(true);
      for (const { raw } of reading.events) {
        for (const name of ["src_port", "dst_port", "signature_id"])
          expect(["number", "undefined"]).toContain(typeof raw[name]);
      }
    }),
    { numRuns: 1500 },
  );
});
