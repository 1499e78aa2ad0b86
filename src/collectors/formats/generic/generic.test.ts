import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../../model/event.ts";
import { CONTEXT, NOW, onlyEvent } from "../context.fixture.ts";
import { readLine } from "../read-line.ts";
import { CsvTables } from "./csv-tables.ts";

const read = (line: string, tables = new CsvTables()) => onlyEvent(readLine(line, { ...CONTEXT, tables }));

describe("a line of an unknown program gets the fields that it states", () => {
  test.each<[string, string, string, JsonObject]>([
    [
      "pairs",
      '<134>Nov 15 10:00:00 gw5 acme: level=warning src=192.0.2.9 dst_ip=10.9.3.20 sport=4711 dport=22 proto=6 action=denied user=ann msg="no = way" zone-id=4',
      "low",
      {
        src_ip: "192.0.2.9",
        dst_ip: "10.9.3.20",
        src_port: 4711,
        dst_port: 22,
        protocol: "tcp",
        action: "block",
        user: "ann",
        message: "no = way",
        "zone-id": "4",
        device: "gw5",
        program: "acme",
      },
    ],
    [
      "pairs with commas",
      "acme: clientIP=2001:db8::9, serverPort=22, userName=ann b",
      "info",
      { src_ip: "2001:db8::9", user: "ann b", serverPort: "22" },
    ],
    [
      "pairs with semicolons",
      "acme: SourceIP=192.0.2.9;DestinationIP=192.0.2.8;Severity=High",
      "high",
      { src_ip: "192.0.2.9", dst_ip: "192.0.2.8" },
    ],
    [
      "JSON",
      '<14>1 2026-11-15T10:00:00Z gw5 acme 7 - - {"source":{"ip":"192.0.2.9","port":4711},"user":{"name":"ann"},"log":{"level":"error"},"tags":["a","b"]}',
      "medium",
      { src_ip: "192.0.2.9", src_port: 4711, user: "ann", tags: "a, b" },
    ],
    [
      "JSON alone",
      '{"client_ip":"192.0.2.9","@timestamp":"2026-11-15T10:00:00Z","severity":"critical"}',
      "critical",
      { src_ip: "192.0.2.9" },
    ],
    ["JSON behind a mark", 'acme: @cee: {"src_ip":"192.0.2.9","ok":true}', "info", { src_ip: "192.0.2.9", ok: "true" }],
  ])("%s", (_, line, severity, fields) => {
    const event = read(line);
    expect(event).toMatchObject({ type: "log_line", severity, raw: { ...fields, line } });
    expect(readLine(line, CONTEXT)).toMatchObject({ format: "generic" });
  });

  test.each([
    ["an ISO time", "ts=2026-11-15T09:00:00Z a=1 b=2", "2026-11-15T09:00:00.000Z"],
    ["seconds", '{"timestamp":1794733200.5,"a":1}', "2026-11-15T09:00:00.500Z"],
    ["a date and a time", "date=2026-11-15 time=09:00:00 a=1", "2026-11-15T09:00:00.000Z"],
    [
      "the header's time, for seconds since a start",
      "<13>Nov 15 10:00:00 gw acme: time=12.5 a=1 b=2",
      "2026-11-15T10:00:00.000Z",
    ],
  ])("time: %s", (_, line, time) => {
    expect(new Date(read(line).timestampMs ?? NOW).toISOString()).toBe(time);
  });
});

describe("what is not sure is left out", () => {
  test.each([
    ["an address that is none", "src=eth0 a=1 b=2", ["src_ip", "src_host"]],
    ["a port that is none", "sport=http a=1 b=2", ["src_port"]],
    ["an action of another kind", "action=alert a=1 b=2", ["action"]],
    ["a protocol of another kind", "protocol=https a=1 b=2", ["protocol"]],
    ["a repeated name", "user=ann a=1 user=bob", ["user"]],
    ["two names for one field that disagree", "src=192.0.2.1 client_ip=192.0.2.2 a=1", ["src_ip"]],
    ["a name of ours that may mean something else", "host=a from=b to=c", ["host", "from", "to"]],
    ["whose address it is", "ip=192.0.2.1 remote_ip=192.0.2.2 a=1", ["src_ip", "dst_ip"]],
    ["a severity on an unknown scale", "severity=3 a=1 b=2", []],
  ])("%s", (_, line, absent) => {
    const event = read(line);
    expect(event).toMatchObject({ type: "log_line", severity: "info" });
    for (const field of absent) expect(event.raw).not.toHaveProperty(field);
  });

  test.each([
    ["pairs behind words", "acme: ann said src=192.0.2.9 user=root action=deny"],
    ["pairs with words between", "acme: user=ann said src=192.0.2.9 dst=192.0.2.8"],
    ["few pairs", "acme: a=1 b=2"],
    ["a quote that is never closed", 'acme: a=1 b=2 c="3 src=192.0.2.9'],
    ["a quote inside a value", 'acme: a=1 b=2" c=3 d=4'],
    ["JSON that is cut off", 'acme: {"src_ip":"192.0.2.9",'],
    ["a JSON array", 'acme: ["192.0.2.9"]'],
    ["JSON that is nested too deep", `acme: ${'{"a":'.repeat(20)}1${"}".repeat(20)}`],
    ["lines of an owned program", "sshd[9]: src=192.0.2.9 user=root action=deny"],
  ])("no fields from %s", (_, line) => {
    const { type, raw } = read(line);
    expect(type).toBe("unparsed");
    expect(raw).not.toHaveProperty("src_ip");
  });
});

describe("CSV below a line of column names", () => {
  const NAMES = "time,src_ip,dst_port,user,comment";

  test("gets its fields, for each program of each sender", () => {
    const tables = new CsvTables();
    expect(read(`acme: ${NAMES}`, tables)).toMatchObject({ type: "log_line", raw: { message: NAMES } });
    expect(read('acme: 2026-11-15T09:00:00Z,192.0.2.9,22,ann,"a, ""b"""', tables)).toMatchObject({
      type: "log_line",
      timestampMs: Date.parse("2026-11-15T09:00:00Z"),
      raw: { src_ip: "192.0.2.9", dst_port: 22, user: "ann", comment: 'a, "b"' },
    });
    expect(read("shop: 2026-11-15T09:00:00Z,192.0.2.9,22,ann,x", tables).type).toBe("unparsed");
    const other = onlyEvent(readLine("acme: 1,192.0.2.9,22,ann,x", { ...CONTEXT, sender: "192.0.2.77", tables }));
    expect(other.type).toBe("unparsed");
  });

  test.each([
    ["another number of values", "2026-11-15T09:00:00Z,192.0.2.9,22"],
    ["a value that does not fit its column", "2026-11-15T09:00:00Z,someone,22,ann,x"],
  ])("not with %s", (_, row) => {
    const tables = new CsvTables();
    read(`acme: ${NAMES}`, tables);
    expect(read(`acme: ${row}`, tables).type).toBe("unparsed");
  });

  test("a sentence with commas is no line of names", () => {
    const tables = new CsvTables();
    for (const line of ["apples, pears, plums", "user, ann, left", "a,b,c"]) {
      expect(read(`acme: ${line}`, tables).type).toBe("unparsed");
    }
  });

  test.each([";", "\t", "|"])("with %j between the values", (separator) => {
    const tables = new CsvTables();
    read(`acme: ${["src_ip", "user", "note"].join(separator)}`, tables);
    expect(read(`acme: ${["192.0.2.9", "ann", "x"].join(separator)}`, tables)).toMatchObject({ raw: { user: "ann" } });
  });
});

test("any text is read, and keeps its line", () => {
  const tables = new CsvTables();
  const part = fc.oneof(
    fc.constantFrom(
      "a=",
      "src=192.0.2.1 ",
      '"',
      "\\",
      ",",
      "{",
      "}",
      ":",
      "user,src_ip,action",
      "@cee:",
      "__proto__=1 ",
      " ",
    ),
    fc.string({ unit: "binary", maxLength: 8 }),
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 20 }), (parts) => {
      const line = `acme: x${parts.join("")}`.toWellFormed();
      expect(read(line, tables).raw["line"]).toBe(line);
    }),
  );
});
