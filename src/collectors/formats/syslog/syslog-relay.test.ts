import { describe, expect, test } from "vitest";
import { CONTEXT, onlyEvent } from "../context.fixture.ts";
import { readLine } from "../read-line.ts";

const read = (line: string) => onlyEvent(readLine(line, CONTEXT));
const timeOf = (line: string) => new Date(read(line).timestampMs!).toISOString();

const CEF =
  "CEF:0|Ubiquiti|UniFi Network|10.6|201|Threat Detected and Blocked|9|src=192.0.2.1 dst=10.9.3.20 act=blocked";
const LOGIN = "Failed password for root from 192.0.2.9 port 4711 ssh2";

describe("a relayed line is read like the original, with both host names", () => {
  test.each([
    ["a time with a zone inside", `<13>Nov 16 05:00:00 relay-1 2026-11-16T04:59:59.250Z gateway ${CEF}`],
    ["an offset inside", `<13>Nov 16 05:00:00 relay-1 2026-11-16T05:59:59.250+01:00 gateway ${CEF}`],
    [
      "a complete header inside, with a priority",
      `Nov 16 05:00:00 relay-1 <132>2026-11-16T04:59:59.250Z gateway ${CEF}`,
    ],
    ["RFC 5424 outside", `<13>1 2026-11-16T05:00:00Z relay-1 - - - - <132>2026-11-16T04:59:59.250Z gateway ${CEF}`],
    ["RFC 5424 inside", `<13>Nov 16 05:00:00 relay-1 <132>1 2026-11-16T04:59:59.250Z gateway - - - - ${CEF}`],
    [
      "RFC 5424 twice",
      `<13>1 2026-11-16T05:00:00Z relay-1 - - - - <132>1 2026-11-16T04:59:59.250Z gateway - - - - ${CEF}`,
    ],
    ["a relay that names itself", `<46>Nov 16 05:00:00 relay-1 rsyslogd: 2026-11-16T04:59:59.250Z gateway ${CEF}`],
    [
      "one that names itself in RFC 5424",
      `<46>1 2026-11-16T05:00:00Z relay-1 syslog-ng 7 - - 2026-11-16T04:59:59.250Z gateway ${CEF}`,
    ],
    [
      "the sender's address",
      `<13>Nov 16 05:00:00 relay-1 Original Address=192.0.2.3 <132>2026-11-16T04:59:59.250Z gateway ${CEF}`,
    ],
    ["Cribl", `<13>Nov 16 05:00:00 relay-1 Cribl: <132>2026-11-16T04:59:59.250Z gateway ${CEF}`],
    ["Logstash", `<13>Nov 16 05:00:00 relay-1 LOGSTASH[-]: <132>2026-11-16T04:59:59.250Z gateway ${CEF}`],
    [
      "Graylog, with structured data",
      `<14>1 2026-11-16T05:00:00Z relay-1 graylog - - [x@1 y="z"] <132>2026-11-16T04:59:59.250Z gateway ${CEF}`,
    ],
    ["nothing but a name", `relay-1 <132>2026-11-16T04:59:59.250Z gateway ${CEF}`],
    ["a name in brackets", `[relay-1] <132>2026-11-16T04:59:59.250Z gateway ${CEF}`],
    ["a chain of syslog-ng", `<132>2026-11-16T04:59:59.250Z gateway/relay-1 ${CEF}`],
    ["a chain with the name of a source", `<132>2026-11-16T04:59:59.250Z s_net@gateway/relay-2/relay-1 ${CEF}`],
    [
      "JSON of a relay that names itself",
      `<13>Nov 16 05:00:00 relay-1 fluent-bit: ${JSON.stringify({ message: `<132>2026-11-16T04:59:59.250Z gateway ${CEF}`, x: 1 })}`,
    ],
    [
      "JSON of Cribl",
      JSON.stringify({ _raw: `<132>2026-11-16T04:59:59.250Z gateway ${CEF}`, host: "relay-1", _time: 1 }),
    ],
    [
      "GELF",
      JSON.stringify({
        version: "1.1",
        host: "relay-1",
        short_message: "Threat",
        full_message: `<132>2026-11-16T04:59:59.250Z gateway ${CEF}`,
      }),
    ],
    ["two relays", `<13>Nov 16 05:00:01 relay-1 <13>Nov 16 05:00:00 relay-2 2026-11-16T04:59:59.250Z gateway ${CEF}`],
  ])("%s", (_, line) => {
    const event = read(line);
    expect(event).toMatchObject({ type: "ids_alert", severity: "critical" });
    expect(event.raw).toMatchObject({
      device: "gateway",
      relay: "relay-1",
      src_ip: "192.0.2.1",
      action: "block",
      line,
    });
    expect(timeOf(line)).toBe("2026-11-16T04:59:59.250Z");
  });

  test("a relayed login has its program and the facility of its own header", () => {
    expect(read(`<13>Nov 16 05:00:00 relay-1 <38>Nov 16 04:59:59 web sshd[12]: ${LOGIN}`)).toMatchObject({
      type: "login_failure",
      raw: { device: "web", relay: "relay-1", program: "sshd", process_id: 12, facility: 4, src_ip: "192.0.2.9" },
    });
    expect(read(`<38>Nov 16 05:00:00 Message forwarded from web: sshd[12]: ${LOGIN}`)).toMatchObject({
      type: "login_failure",
      raw: { device: "web", program: "sshd" },
    });
  });

  test("an access point behind a relay keeps its name", () => {
    const login = "dropbear[12]: Bad password attempt for 'root' from 192.0.2.9:4711";
    for (const between of ["", "Nov 16 04:59:59 "]) {
      const line = `<14>Nov 16 05:00:00 relay-1 ${between}ap-7 0200000a0b0c,U6-Lite-6.7.54: ${login}`;
      expect(read(line)).toMatchObject({
        type: "login_failure",
        raw: { device: "ap-7", relay: "relay-1", device_mac: "02:00:00:0a:0b:0c", model: "U6-Lite-6.7.54" },
      });
    }
  });

  test("an unparsed line keeps the fields of its own header", () => {
    expect(read("<13>Nov 16 05:00:00 relay-1 <11>Nov 16 04:59:59 web backup[3]: nothing was copied")).toMatchObject({
      type: "unparsed",
      severity: "medium",
      raw: { device: "web", relay: "relay-1", program: "backup", message: "nothing was copied" },
    });
  });

  test("a relay that keeps the host name is not recorded", () => {
    const { raw } = read(`<13>Nov 16 05:00:00 gateway <132>Nov 16 04:59:59 gateway ${CEF}`);
    expect(raw["device"]).toBe("gateway");
    expect(raw).not.toHaveProperty("relay");
  });
});

describe("text that only looks like a relayed header", () => {
  test("a message that starts with a time keeps its own header", () => {
    expect(read("<13>Nov 16 05:00:00 web 2026-11-16 04:59:59 ERROR worker: lost")).toMatchObject({
      type: "unparsed",
      raw: { device: "web", message: "2026-11-16 04:59:59 ERROR worker: lost" },
    });
  });

  test.each([
    ["of a program", (typed: string) => `<13>Nov 16 05:00:00 web shop[7]: ${JSON.stringify({ message: typed })}`],
    ["of nobody", (typed: string) => JSON.stringify({ message: typed, user: "ann" })],
  ])("JSON %s may have text that a stranger typed", (_, wrap) => {
    const event = read(wrap(`<38>Nov 16 04:59:59 vault sshd[12]: ${LOGIN}`));
    expect(event.type).toBe("log_line");
    expect(event.raw["device"]).not.toBe("vault");
  });

  test.each(["shop[7]", "sshd[7]"])("a message of %s may start with text that a stranger typed", (program) => {
    const typed = `<38>Nov 16 04:59:59 vault sshd[12]: ${LOGIN}`;
    const event = read(`<13>Nov 16 05:00:00 web ${program}: ${typed}`);
    expect(event.type).toBe("unparsed");
    expect(event.raw["device"]).toBe("web");
  });
});
