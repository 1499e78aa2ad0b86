import { describe, expect, test } from "vitest";
import { CONTEXT, eventsOf } from "../context.fixture.ts";
import { readLine } from "../read-line.ts";
import { UNPARSED_TYPE } from "../reading.ts";

const read = (line: string) => eventsOf(readLine(line, CONTEXT));
const OUT =
  "Call 7,00000193A5BC0001_7,00:00:31,2026/11/15 10:00:00,2026/11/15 10:00:04,2026/11/15 10:00:35,TerminatedBySrc,Ext.101,+449005550100,101,10000,00449005550100,,,,,,0.12,,Chain: Ext.101;+449005550100;";

describe("a call record of 3CX", () => {
  test("is the start and the end of a call", () => {
    const [start, end, ...more] = read(OUT);
    expect(more).toEqual([]);
    expect(start).toMatchObject({
      type: "call_started",
      source: "talk",
      timestampMs: Date.parse("2026-11-15T10:00:00Z"),
      raw: { from: "101", to: "00449005550100", direction: "out", call: "00000193A5BC0001_7", line: OUT },
    });
    expect(end).toMatchObject({
      type: "call_ended",
      timestampMs: Date.parse("2026-11-15T10:00:35Z"),
      raw: { duration_s: 31, reason: "TerminatedBySrc", bill_cost: "0.12", line: OUT },
    });
  });

  test.each([
    ["Ext.101", "+12025550100", "2026/11/15 10:00:04", ["call_started", "call_ended"], "out"],
    ["Ext.101", "+12025550100", "", ["call_started", "call_ended"], "out"],
    ["+12025550100", "Ext.101", "2026/11/15 10:00:04", ["call_started", "call_ended"], "in"],
    ["+12025550100", "Ext.101", "", ["call_missed"], "in"],
    ["Ext.102", "Ext.101", "2026/11/15 10:00:04", ["call_started", "call_ended"], undefined],
    ["+12025550100", "+12025550101", "2026/11/15 10:00:04", ["call_started", "call_ended"], undefined],
  ])("from %s to %s, answered at %j", (from, to, answered, types, direction) => {
    const events = read(
      `Call 8,id,00:00:31,2026/11/15 10:00:00,${answered},2026/11/15 10:00:35,TerminatedByDst,${from},${to},1,2,,,,`,
    );
    expect(events.map(({ type }) => type)).toEqual(types);
    for (const { raw } of events) expect(raw["direction"]).toBe(direction);
  });

  test.each([
    "Call 8,id",
    "Call waiting,a,b,c,d,e,f,g,h,i,j,k,l",
    "Call 8,id,1,never,,2026/11/15 10:00:35,x,Ext.1,Ext.2,1,2,2",
    `<13>Nov 15 10:00:00 pbx shop: ${OUT}`,
  ])("is not %s", (line) => {
    expect(read(line).map(({ type }) => type)).toEqual([UNPARSED_TYPE]);
  });
});
