import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CONTEXT, onlyEvent } from "./context.fixture.ts";
import { knownFormats } from "./known-formats.ts";

const LINE_FORMATS = knownFormats().all;
import { readLine } from "./read-line.ts";
import { CEF_LINES, EVE_RECORDS, FIREWALL_LINE } from "./samples.fixture.ts";

describe("any line", () => {
  const seeds = [
    ...LINE_FORMATS.map(({ example }) => example),
    ...CEF_LINES,
    FIREWALL_LINE,
    JSON.stringify(EVE_RECORDS.alert),
    '<13>1 - - - - - [a b="c"] x',
  ];
  const spoiled = fc
    .tuple(
      fc.constantFrom(...seeds),
      fc.array(
        fc.tuple(
          fc.nat(2000),
          fc.constantFrom("", "=", "\\", "|", " ", '"', "[", "]", "\u0000", "\ud800", "{", "<", "\ufeff", "key="),
        ),
        { maxLength: 12 },
      ),
      fc.nat(2000),
    )
    .map(([line, edits, end]) => {
      let text = line;
      for (const [at, put] of edits)
        text = text.slice(0, at % (text.length + 1)) + put + text.slice((at % (text.length + 1)) + 1);
      return end % 3 === 0 ? text.slice(0, end) : text;
    });

  test("is read without a throw and kept in its event", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ unit: "binary", maxLength: 300 }), fc.string({ maxLength: 300 }), spoiled),
        (line) => {
          const reading = readLine(line, CONTEXT);
          if (reading.kind !== "events") return;
          for (const event of reading.events) {
            expect(event.raw["line"]).toBe(line.toWellFormed());
            expect(event.type).toMatch(/^[\p{L}\p{N}][\p{L}\p{N}_.:/ -]{0,127}$/u);
            expect(JSON.stringify(event.raw).isWellFormed()).toBe(true);
            expect(Object.getPrototypeOf(event.raw)).toBe(Object.prototype);
          }
        },
      ),
      { numRuns: 2000 },
    );
  });

  test("of a megabyte is read without delay", () => {
    const fill = (unit: string) => unit.repeat(Math.ceil(1_000_000 / unit.length));
    const hostile = [
      " a=",
      "a=",
      "=",
      "\\=",
      "\\",
      '"',
      ' a="',
      " aaaaaaaa=b",
      "|",
      "[",
      "[a ",
      '[a b="',
      "IN=SRC=",
      "x",
      " ",
      "\u0000",
    ];
    for (const unit of hostile) {
      for (const before of [
        "",
        "CEF:0|M|P|1|1|n|5|",
        "<13>1 - - - - - ",
        "<4>Nov 15 20:00:00 gw sshd[1]: Failed ",
        "<4>Nov 15 20:00:00 gw dhcpd: DHCPACK ",
      ]) {
        expect(readLine(before + fill(unit), CONTEXT).kind).not.toBe("refused");
      }
    }
  });
});

describe("JSON in syslog", () => {
  const read = (program: string, record: object) =>
    readLine(`<13>Nov 15 20:00:00 gw ${program}: ${JSON.stringify(record)}`, CONTEXT);

  test("of another program with an event_type is kept and is not a threat", () => {
    for (const record of [
      { event_type: "stats", pages: 7 },
      { event_type: "stats", timestamp: "2026-11-15T20:00:00Z", stats: { pages: 7 } },
      { event_type: "alert", text: "low paper" },
      { event_type: "alert", timestamp: "2026-11-15T20:00:00Z", text: "low paper" },
    ]) {
      const event = onlyEvent(read("printer[1]", record));
      expect(event).toMatchObject({ type: "log_line", raw: { program: "printer", event_type: record.event_type } });
    }
  });

  test("is EVE if Suricata wrote it, or if it looks like EVE", () => {
    expect(onlyEvent(read("suricata[7]", { event_type: "alert", alert: { severity: 1 } })).type).toBe("ids_alert");
    expect(onlyEvent(read("sensor", EVE_RECORDS.alert)).type).toBe("ids_alert");
    expect(read("sensor", EVE_RECORDS.flow).kind).toBe("flows");
    expect(read("suricata", EVE_RECORDS.stats)).toEqual({ kind: "nothing", format: "eve" });
  });
});

describe("text that a stranger typed never passes for a device's report", () => {
  const read = (line: string) => onlyEvent(readLine(line, CONTEXT));
  const names = [
    "CEF:0|a|UniFi Network|1|1|WiFi Client Connected|0|",
    "CEF: 0|a|UniFi Protect|1|1|Tamper|10|a=1",
    "IN= OUT= SRC=1.1.1.1 DST=2.2.2.2",
    "[WAN_LOCAL-A-1] IN=eth0 OUT= SRC=1.1.1.1",
    "x rogue dhcp server",
    '{"event_type":"alert","alert":{"severity":1}}',
    "a kernel: IN=eth0 OUT= SRC=1.1.1.1",
    "0|a|UniFi Network|1|1|Threat Detected|10|src=1.1.1.1",
    ...LINE_FORMATS.map(({ example }) => example),
  ];

  test.each([
    "<38>Nov 15 20:00:00 gw sshd[99]: ",
    "<38>Nov 15 20:00:00 gw gw sshd[99]: ",
    "<38>Nov 15 20:00:00 gw gw.example sshd[99]: ",
    "<38>Nov 15 20:00:00 sshd[99]: ",
    "<38>gw sshd[99]: ",
    "sshd: ",
    "<38>2026-11-15T20:00:00Z gw sshd-session[99]: ",
    "<38>1 2026-11-15T20:00:00Z gw sshd 99 - - ",
    "<38>1 2026-11-15T20:00:00Z gw - - - - sshd[99]: ",
    "<38>1 2026-11-15T20:00:00Z gw sshd[99]: ",
    "<38>1 - gw sshd[99]: ",
    '<38>("U7PG2,0200000a0b0c,v4.3.13") sshd[99]: ',
  ])("as the user of a login attempt: %s", (before) => {
    for (const name of names) {
      const line = `${before}Failed password for invalid user ${name} from 203.0.113.9 port 22 ssh2`;
      expect(read(line)).toMatchObject({
        type: "login_failure",
        raw: { user: name.trim(), src_ip: "203.0.113.9", service: "ssh", line },
      });
      expect(read(line).raw["program"]).toMatch(/^sshd/);
      expect(read(`${before}banner exchange: ${name}`).type).toBe("unparsed");
    }
  });

  test.each(["dnsmasq-dhcp[7]", "dnsmasq[7]", "dhcpd", "kea-dhcp4"])("as the client name of a lease: %s", (program) => {
    for (const name of [...names, "rogue-dhcp"]) {
      const line = `<30>Nov 15 20:00:00 gw ${program}: DHCPACK(br0) 10.9.5.44 02:00:00:77:88:99 ${name}`;
      expect(read(line)).toMatchObject({ type: "dhcp_lease", raw: { src_ip: "10.9.5.44" } });
      expect(read(`<30>Nov 15 20:00:00 gw ${program}: 1 client provides name: ${name}`).type).toBe("unparsed");
    }
  });

  test.each([
    "<30>Nov 15 20:00:00 gw su: FAILED SU (to root) ",
    "<30>Nov 15 20:00:00 gw login[4]: FAILED LOGIN 1 FROM tty1 FOR '",
    '<30>("U7PG2,0200000a0b0c,v4.3.13") hostapd: ath0: STA ',
    '<30>Nov 15 20:00:00 gw nginx: 192.0.2.9 - - "GET /',
    "<30>Nov 15 20:00:00 ap-7 0200000a0b0c,U6-Lite-6.7.54: hostapd[9]: ",
    "<189>45: *Nov 15 20:00:00.123 UTC: %SEC_LOGIN-4-LOGIN_FAILED: Login failed [user: ",
  ])("as part of another program's message: %s", (before) => {
    const types = ["unparsed", "cisco_ios"];
    for (const name of names.slice(0, 4)) expect(types).toContain(read(`${before}was ${name} it`).type);
  });

  test.each([
    ["relay says CEF:0|M|UniFi Network|1|1|Internet Down|8|a=1", "wan_link_down"],
    ["<13>Nov 15 20:00:00 gw relay: CEF:0|M|UniFi Network|1|1|Internet Down|8|a=1", "wan_link_down"],
    ["<4>Nov 15 20:00:00 gw DROP all IN=eth0 OUT= SRC=192.0.2.1 DST=192.0.2.2", "firewall_blocked"],
    ["<4>Nov 15 20:00:00 gw gw.example kernel: [1.2] [UFW BLOCK] IN=eth0 OUT= SRC=192.0.2.1", "firewall_blocked"],
    ['<4>Nov 15 20:00:00 gw [LAN-D-1] DESCR="our: a=b {" IN=eth0 OUT= SRC=192.0.2.1', "firewall_blocked"],
    ["<4>Nov 15 20:00:00 gw ulogd[3]: DROP IN=eth0 OUT= SRC=192.0.2.1", "firewall_blocked"],
  ])("while prefixes that devices add are skipped: %s", (line, type) => expect(read(line).type).toBe(type));
});
