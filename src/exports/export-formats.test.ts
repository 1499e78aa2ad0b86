import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Event, JsonObject } from "../model/event.ts";
import type { ExportFormat } from "../model/export.ts";
import { fieldReader, OBJECT } from "../model/field.ts";
import { columnsOf, DEFAULT_COLUMNS } from "./export-columns.ts";
import { readCsv } from "./csv-reader.fixture.ts";
import { FORMATS } from "./export-formats.ts";
import { pathReader } from "./path-reader.ts";

const event = (raw: JsonObject, enrichment: JsonObject = {}): Event => ({
  id: "evt_1",
  type: "login_failure",
  source: "custom",
  class: "security",
  severity: "low",
  timestamp: "2026-11-15T08:30:00.000Z",
  raw,
  enrichment,
});

function write(format: ExportFormat, fields: readonly string[] | null, events: readonly Event[]): string {
  const layout = FORMATS[format].layout({ named: fields !== null, columns: columnsOf(fields) });
  return layout.header + events.map((one) => layout.row(JSON.stringify(one))).join(layout.separator) + layout.footer;
}

const cellsOf = (value: JsonObject[string], field = "raw.a") =>
  readCsv(write("csv", [field], [event({ a: value })]))[1];

describe("csv", () => {
  it("has the same columns in the same order for every event", () => {
    const rows = readCsv(write("csv", null, [event({ user: "ada" }), event({ src_ip: "192.0.2.7", other: 1 })]));
    expect(rows[0]).toEqual(DEFAULT_COLUMNS);
    expect(rows.map((row) => row.length)).toEqual([29, 29, 29]);
    expect(rows[1]![DEFAULT_COLUMNS.indexOf("raw.user")]).toBe("ada");
    expect(rows[2]!.slice(-2)).toEqual(['{"src_ip":"192.0.2.7","other":1}', "{}"]);
  });

  it("ends every line with CRLF", () => {
    expect(write("csv", ["id", "raw.a"], [event({ a: 1 })])).toBe("id,raw.a\r\nevt_1,1\r\n");
  });

  it.each([
    ["=1+1", "'=1+1"],
    ["+49 30 1234", "'+49 30 1234"],
    ["-1", "'-1"],
    ["@SUM(A1)", "'@SUM(A1)"],
    ["\t=1", "'\t=1"],
    ["\r=1", "'\r=1"],
    ["\n=1", "'\n=1"],
    ["＝1+1", "'＝1+1"],
    ['=HYPERLINK("x";"y")', `'=HYPERLINK("x";"y")`],
  ])("prevents a spreadsheet from running %j", (text, cell) => {
    expect(cellsOf(text)).toEqual([cell]);
    expect(cellsOf([text, "b"])).toEqual([`${cell}; b`]);
  });

  it.each([
    [-5, "-5"],
    [0.25, "0.25"],
    [true, "true"],
    [null, ""],
    ["", ""],
    ["a=b", "a=b"],
    [["a", 2, null, ["c"]], "a; 2; c"],
    [{ b: "=1" }, '{"b":"=1"}'],
    ["Zürich 東京 🚨", "Zürich 東京 🚨"],
    ['say "hi", then\r\ngo', 'say "hi", then\r\ngo'],
  ])("writes %j as %j", (value, cell) => expect(cellsOf(value)).toEqual([cell]));

  it("any text is read back by a strict reader, and no cell starts a formula", () => {
    const text = fc.string({ unit: "binary", maxLength: 40 });
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text), { maxLength: 8 }), (pairs) => {
        const events = pairs.map(([a, b]) => event({ a, b }));
        const rows = readCsv(write("csv", ["raw.a", "raw.b", "raw"], events)).slice(1);
        expect(rows.length).toBe(pairs.length);
        for (const [at, row] of rows.entries()) {
          expect(JSON.parse(row[2]!)).toEqual(events[at]!.raw);
          for (const [column, original] of pairs[at]!.entries()) {
            expect([original, `'${original}`]).toContain(row[column]);
            expect(row[column]).not.toMatch(/^[=+\-@\t\r\n]/);
          }
        }
      }),
    );
  });
});

describe("json and ndjson", () => {
  const events = [event({ a: { b: [1, { c: 2 }] }, "x.y": 1, x: { y: 2 } }), event({})];

  it("contain events as stored", () => {
    expect(JSON.parse(write("json", null, events))).toEqual(events);
    const lines = write("ndjson", null, events).split("\n");
    expect(lines.pop()).toBe("");
    expect(lines.map((line) => JSON.parse(line))).toEqual(events);
  });

  it("contain only the named fields as keys, null if there is no value", () => {
    expect(JSON.parse(write("json", ["id", "raw.a.b", "raw.x.y", "raw.a", "raw.none"], events))).toEqual([
      { id: "evt_1", "raw.a.b": [1, { c: 2 }], "raw.x.y": [2, 1], "raw.a": { b: [1, { c: 2 }] }, "raw.none": null },
      { id: "evt_1", "raw.a.b": null, "raw.x.y": null, "raw.a": null, "raw.none": null },
    ]);
  });

  it("are valid without any events", () => {
    expect(JSON.parse(write("json", null, []))).toEqual([]);
    expect(write("ndjson", null, [])).toBe("");
    expect(readCsv(write("csv", null, []))).toEqual([DEFAULT_COLUMNS]);
  });
});

it("a column contains the values that a filter on the same path compares", () => {
  const key = fc.constantFrom("a", "b", "a.b");
  const { json } = fc.letrec<{ json: JsonObject[string] }>((tie) => ({
    json: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.constantFrom<JsonObject[string]>(null, 1, "x", true),
      fc.array(tie("json"), { maxLength: 3 }),
      fc.dictionary(key, tie("json"), { maxKeys: 3, noNullPrototype: true }),
    ),
  }));
  const path = fc
    .array(fc.constantFrom("a", "b"), { minLength: 1, maxLength: 3 })
    .map((parts) => `raw.${parts.join(".")}`);
  fc.assert(
    fc.property(fc.dictionary(key, json, { noNullPrototype: true }), path, (raw, field) => {
      const value = pathReader(field)({ ...event(raw) });
      const values = value === undefined ? [] : Array.isArray(value) ? value : [value];
      const comparable = values.map((one) => (typeof one === "object" ? OBJECT : one));
      expect(comparable).toEqual(fieldReader(field)(event(raw)));
    }),
    { numRuns: 2000 },
  );
});
