import { describe, expect, test } from "vitest";
import { CONTEXT, onlyEvent } from "../context.fixture.ts";
import { readLine } from "../read-line.ts";

const read = (line: string) => onlyEvent(readLine(line, CONTEXT));
const timeOf = (line: string) => {
  const { timestampMs } = read(line);
  return timestampMs === null ? null : new Date(timestampMs).toISOString();
};

describe("the syslog header", () => {
  test.each<[string, string, Record<string, unknown>]>([
    [
      "RFC 5424",
      '<165>1 2026-11-15T19:00:00.003Z gw-1 app 4711 ID47 [a@1 x="1 \\"two\\" \\]" y="z"][b@1] \ufeffhello there',
      {
        device: "gw-1",
        program: "app",
        process_id: 4711,
        facility: 20,
        structured_data: { "a@1": { x: '1 "two" ]', y: "z" }, "b@1": {} },
        message: "hello there",
      },
    ],
    ["an empty RFC 5424 header", "<13>1 - - - - - - hello", { facility: 1, message: "hello" }],
    ["RFC 5424 without a message", "<13>1 2026-11-15T19:00:00Z gw app - - -", { device: "gw", program: "app" }],
    [
      "RFC 3164",
      "<13>Nov 15 19:00:00 gw app[12]: hello",
      { device: "gw", program: "app", process_id: 12, message: "hello" },
    ],
    ["no priority", "Nov 15 19:00:00 gw app: hello", { device: "gw", program: "app", message: "hello" }],
    ["the host twice", "<13>Nov 15 19:00:00 gw gw app: hello", { device: "gw", program: "app", message: "hello" }],
    ["no host", "<13>Nov 15 19:00:00 app[7]: hello", { program: "app", process_id: 7, message: "hello" }],
    ["a stray space in the time", "<13>2026-11-15 T19:00:00Z gw app: hello", { device: "gw", program: "app" }],
    [
      "a stray space before the zone",
      "<13>1 2026-11-15T19:00:00 +0000 gw app - - - hello",
      { device: "gw", message: "hello" },
    ],
    ["a byte order mark at the start", "\ufeff<13>Nov 15 19:00:00 gw app: hello", { device: "gw", message: "hello" }],
    ["an invalid priority", "<999>hello", { message: "hello" }],
    ["the same before a header", "<999>Nov 15 19:00:00 gw app: hello", { device: "gw", program: "app" }],
    ["an empty priority", "<>1 2026-11-15T19:00:00Z gw app - - - hello", { device: "gw", program: "app" }],
    ["angle brackets that are no priority", "<b>hello", { message: "<b>hello" }],
    ["RFC 5424 without a priority", "1 2026-11-15T19:00:00Z gw app - - - hello", { device: "gw", message: "hello" }],
    ["a 1 that is not a version", "1 hello", { message: "1 hello" }],
    ["the same before a dash", "1 - hello you there", { message: "1 - hello you there" }],
    ["a year and a colon after the time", "<13>Nov 15 19:00:00 2026: gw app: hello", { device: "gw" }],
    [
      "tabs",
      "<13>Nov 15 19:00:00\tgw\tapp[12]:\thello\tthere",
      { device: "gw", process_id: 12, message: "hello\tthere" },
    ],
    ["tabs in RFC 5424", "<13>1\t2026-11-15T19:00:00Z\tgw\tapp\t-\t-\t-\thello", { device: "gw", message: "hello" }],
    ["a year after the time", "<13>Nov 15 19:00:00 2026 gw app: hello", { device: "gw", program: "app" }],
    ["a host of digits after the time", "<13>Nov 15 19:00:00 2001:db8::1 app: hello", { device: "2001:db8::1" }],
    ["a stray space before the fraction", "<13>2026-11-15T19:00:00 .123Z gw app: hello", { device: "gw" }],
    ["the same in RFC 5424", "<13>1 2026-11-15T19:00:00 .123Z gw app - - - hello", { device: "gw", message: "hello" }],
    [
      "a message in place of a field",
      "<13>1 2026-11-15T19:00:00Z gw [not data",
      { device: "gw", message: "[not data" },
    ],
    [
      "a device in place of the program",
      "<13>Nov 15 19:00:00 ap-7 0200000a0b0c,U6-Lite-6.7.54: hostapd[9]: hello",
      {
        device: "ap-7",
        device_mac: "02:00:00:0a:0b:0c",
        model: "U6-Lite-6.7.54",
        program: "hostapd",
        message: "hello",
      },
    ],
    ["a weekday before the time", "<13>Sun Nov 15 19:00:00 2026 gw app[12]: hello", { device: "gw", process_id: 12 }],
    ["a number before the time", "<189>123: Nov 15 19:00:00.123: %SYS: hello", { message: "%SYS: hello" }],
    [
      "the same with a name, a mark and a zone",
      "<189>45: core-1: *Nov 15 2026 19:00:00.123 CET: %SYS: hello",
      { device: "core-1", message: "%SYS: hello" },
    ],
    ["a colon before the time", "<189>:Nov 15 19:00:00.123 UTC: %SYS: hello", { message: "%SYS: hello" }],
    ["a year before the month", "<189>: 2026 Nov 15 19:00:00.123 UTC: %SYS: hello", { message: "%SYS: hello" }],
    [
      "a name before the time of a router",
      "<189>core-1: Nov 15 2026 19:00:00.123 UTC: %SYS: hello",
      { device: "core-1", message: "%SYS: hello" },
    ],
    [
      "a host with a colon before a code",
      "<189>Nov 15 19:00:00 core-1: %SYS: hello",
      { program: "core-1", message: "%SYS: hello" },
    ],
    [
      "the number and time of a router behind those of a relay",
      "<189>Nov 15 19:00:05 core-1 585917: Nov 15 19:00:00.123: %SYS: hello",
      { device: "core-1", message: "%SYS: hello" },
    ],
    [
      "two numbers before the time",
      "<189>45: core-1: 46: Nov 15 2026 19:00:00.123 UTC: %SYS: hello",
      { device: "core-1", message: "%SYS: hello" },
    ],
    [
      "a colon and a name before the time",
      "<189>: core-1: Nov 15 2026 19:00:00.123 UTC: %SYS: hello",
      { device: "core-1", message: "%SYS: hello" },
    ],
    ["a zone after the time", "<189>Nov 15 19:00:00.123 UTC: %SYS: hello", { message: "%SYS: hello" }],
    ["a host named like a zone", "<13>Nov 15 19:00:00 UTC app: hello", { device: "UTC", program: "app" }],
    ["a number before anything else", "<13>123: hello", { program: "123", message: "hello" }],
    ["no header: the device is the sender", "hello", { device: "192.0.2.1", message: "hello" }],
  ])("%s", (_, line, expected) => {
    const event = read(line);
    expect(event).toMatchObject({ type: "unparsed", source: "network", class: "network" });
    expect(event.raw).toMatchObject({ ...expected, line });
  });

  test.each([
    "<134>1 2026-11-15T10:00:00Z gw5 ",
    "<134>1 2026-11-15T10:00:00Z gw5 app ",
    "<134>1 2026-11-15T10:00:00Z gw5 - - ",
    "<134>1 2026-11-15T10:00:00Z gw5 - - - ",
    "<134>1 2026-11-15T10:00:00 .000Z gw5 ",
    "<134>2026-11-15T10:00:00 .000Z gw5 ",
    "<999>1 2026-11-15T10:00:00Z gw5 ",
    "<>Nov 15 10:00:00 gw5 ",
    "Nov 15 10:00:00 2026 gw5 ",
    "<134>Nov 15 10:00:00\tgw5\t",
  ])("CEF after %j", (before) => {
    for (const beginning of ["CEF:0|", "CEF: 0|", "0|"]) {
      expect(timeOf(`${before}${beginning}Ubiquiti|UniFi Network|7|1|Threat Detected|7|src=1.2.3.4`)).toBe(
        "2026-11-15T10:00:00.000Z",
      );
      expect(read(`${before}${beginning}Ubiquiti|UniFi Network|7|1|Threat Detected|7|src=1.2.3.4`)).toMatchObject({
        type: "ids_alert",
        severity: "high",
        raw: { device: "gw5", src_ip: "1.2.3.4" },
      });
    }
  });

  test("the time of the header counts if the message has none", () => {
    expect(timeOf("<13>Nov 15 19:00:00 gw app: hello")).toBe("2026-11-15T19:00:00.000Z");
    expect(timeOf("<13>2026-11-15 T19:00:00+02:00 gw app: hello")).toBe("2026-11-15T17:00:00.000Z");
    expect(timeOf("<13>2026-11-15T19:00:00 .123Z gw app: hello")).toBe("2026-11-15T19:00:00.123Z");
    expect(timeOf("<13>Nov 15 19:00:00 gw app: hello")).toBe("2026-11-15T19:00:00.000Z");
    expect(timeOf("<13>Nov 15 19:00:00 2024 gw app: hello")).toBe("2024-11-15T19:00:00.000Z");
    expect(timeOf("<13>Sun Nov 15 19:00:00 2026 gw app: hello")).toBe("2026-11-15T19:00:00.000Z");
    expect(timeOf("<189>123: Nov 15 19:00:00.123: %SYS: hello")).toBe("2026-11-15T19:00:00.123Z");
    expect(timeOf("hello")).toBeNull();
  });

  test("a zone after the time of a router counts", () => {
    const inBerlin = (line: string) => onlyEvent(readLine(line, { ...CONTEXT, timezone: "Europe/Berlin" })).timestampMs;
    const noon = Date.parse("2026-11-15T12:00:00Z");
    expect(inBerlin("<189>45: *Nov 15 2026 12:00:00 UTC: %SYS: hello")).toBe(noon);
    expect(inBerlin("<189>Nov 15 12:00:00 UTC: %SYS: hello")).toBe(noon);
    expect(inBerlin("<189>45: Nov 15 13:00:00 CET: %SYS: hello")).toBe(noon);
    expect(inBerlin("<189>45: Nov 15 13:00:00: %SYS: hello")).toBe(noon);
  });

  test.each([
    ["<8>x", "critical"],
    ["<10>x", "high"],
    ["<11>x", "medium"],
    ["<12>x", "low"],
    ["<14>x", "info"],
    ["x", "info"],
  ])("the severity of %s is %s", (line, severity) => expect(read(line).severity).toBe(severity));

  test.each(["", "   ", "<13>"])("%j has no message", (line) => {
    const reading = readLine(line, CONTEXT);
    expect(line.trim() === "" ? reading.kind : onlyEvent(reading).type).toBe(
      line.trim() === "" ? "nothing" : "unparsed",
    );
  });
});
