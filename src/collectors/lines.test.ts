import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CONTEXT } from "./context.fixture.ts";
import { readLine } from "./lines.ts";
import { CEF_LINES, EVE_RECORDS, FIREWALL_LINE } from "./samples.fixture.ts";

describe("whatever comes", () => {
  const seeds = [...CEF_LINES, FIREWALL_LINE, JSON.stringify(EVE_RECORDS.alert), '<13>1 - - - - - [a b="c"] x'];
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

  test("never a throw, and the line is in the event", () => {
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

  test("a megabyte of anything is read at once", () => {
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
  }, 20_000);
});
