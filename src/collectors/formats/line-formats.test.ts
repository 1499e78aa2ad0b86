import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../model/event.ts";
import { CONTEXT, onlyEvent, readDetected } from "./context.fixture.ts";
import { INPUT_FORMATS } from "./detect-format.ts";
import type { LineFormat } from "./line-format.ts";
import { knownFormats } from "./known-formats.ts";

const LINE_FORMATS = knownFormats().all;
import { readLine } from "./read-line.ts";

// The contract of every line format. A new entry in the table is tested without an edit here.

const read = (line: string) => onlyEvent(readLine(line, CONTEXT));
const TIME = Date.parse("2026-11-15T10:00:00Z");

const HEADERS = [
  "<134>Nov 15 10:00:00 gw5 ",
  "<134>Nov 15 10:00:00 gw5 gw5 ",
  "<134>Nov 15 10:00:00\tgw5\t",
  "Nov 15 10:00:00 2026 gw5 ",
  "<134>2026-11-15T10:00:00 .000Z gw5 ",
  "<134>1 2026-11-15T10:00:00Z gw5 - - - - ",
  '<134>1 2026-11-15T10:00:00Z gw5 - - - [a@1 b="c"] ',
  "<13>Nov 15 10:00:05 relay-1 <134>Nov 15 10:00:00 gw5 ",
  "<46>Nov 15 10:00:05 relay-1 rsyslogd: <134>1 2026-11-15T10:00:00Z gw5 - - - - ",
];

/** RFC 5424 headers whose sender left out the fields after the host: the message starts where one should be. */
const SHORT_HEADERS = [
  "<134>1 2026-11-15T10:00:00Z gw5 ",
  "<134>1 2026-11-15T10:00:00Z gw5 app ",
  "<134>1 2026-11-15T10:00:00Z gw5 - - ",
  "<134>1 2026-11-15T10:00:00Z gw5 - - - ",
];

describe.each<LineFormat>(LINE_FORMATS)("$name", (format) => {
  const { name, example, ownHeader, programs, ownsPrograms, bare } = format;
  const { type, raw } = read(example);

  test("reads its example without a syslog header", () => {
    expect(type).not.toBe("unparsed");
    expect(raw["line"]).toBe(example);
  });

  test.each(HEADERS)("reads its example after %j", (header) => {
    const event = read(header + example);
    expect(event).toMatchObject({ type, timestampMs: TIME, raw: { device: "gw5", line: header + example } });
    for (const [field, value] of Object.entries(raw)) {
      if (!["device", "line"].includes(field)) expect(event.raw[field]).toEqual(value);
    }
  });

  test("is the only format that reads its example", () => {
    const others = LINE_FORMATS.filter((other: LineFormat) => other.name !== name && !other.ownsPrograms);
    for (const program of [null, ...(programs ?? [])]) {
      for (const other of others)
        expect(other.read({ program, message: example, whole: example }, CONTEXT)).toBeUndefined();
    }
  });

  test.skipIf(ownHeader === undefined)("has an own header that is not part of the syslog header", () => {
    expect(ownHeader).toMatch(/^\S+$/);
    expect(example).toMatch(new RegExp(`^${RegExp.escape(ownHeader!)}`));
    for (const header of SHORT_HEADERS) {
      expect(read(header + example)).toMatchObject({ type, timestampMs: TIME, raw: { device: "gw5" } });
    }
    expect(read(`relay says ${example}`).type).toBe(type);
    expect(read(`<13>Nov 15 10:00:00 gw5 shop: was ${example}`).type).toBe("unparsed");
  });

  test.skipIf(!ownsPrograms)("hides the lines of its programs from every other format", () => {
    for (const program of programs!) {
      for (const other of LINE_FORMATS) {
        expect(read(`<13>Nov 15 10:00:00 gw5 ${program}: banner ${other.example}`).type).toBe("unparsed");
      }
    }
  });

  test.skipIf(bare === undefined)("is detected by `tocsin parse` without syslog", () => {
    expect(INPUT_FORMATS).toContain(name);
    const object = JSON.parse(example) as JsonObject;
    expect(LINE_FORMATS.filter((other: LineFormat) => other.bare?.recognises(object))).toEqual([format]);
    expect(readDetected(example)).toEqual(bare!.read(example, CONTEXT));
  });
});

test("names and own headers are unique", () => {
  const names = LINE_FORMATS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  const headers = LINE_FORMATS.flatMap((format: LineFormat) => format.ownHeader ?? []);
  for (const header of headers) {
    expect(headers.filter((other) => other.startsWith(header) || header.startsWith(other))).toEqual([header]);
  }
});
