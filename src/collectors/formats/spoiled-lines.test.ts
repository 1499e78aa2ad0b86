import * as fc from "fast-check";
import { expect, test } from "vitest";
import { CONTEXT } from "./context.fixture.ts";
import { readShipped } from "./described/shipped.ts";
import { knownFormats } from "./known-formats.ts";
import { readLine } from "./read-line.ts";

// Lines of every format with characters lost, added and exchanged.

const LINES = [
  ...knownFormats().all.map(({ example }) => example),
  ...readShipped().flatMap(({ tests }) => tests.map(({ line }) => line)),
];

const spoiled = fc
  .record({
    line: fc.constantFrom(...LINES),
    other: fc.constantFrom(...LINES),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    cut: fc.nat(20),
    text: fc.oneof(
      fc.string({ unit: "binary", maxLength: 12 }),
      fc.constantFrom(
        '"',
        "'",
        "]",
        "[",
        "}",
        "{",
        "=",
        "\\",
        "\t",
        "|",
        ": ",
        "; ",
        "__proto__",
        "constructor",
        "<",
        "&#x",
      ),
    ),
    isJoined: fc.boolean(),
  })
  .map(({ line, other, at, cut, text, isJoined }) => {
    const start = Math.floor(at * line.length);
    return line.slice(0, start) + text + (isJoined ? other : line).slice(start + cut);
  });

test("a spoiled line is read without an exception and keeps its text", () => {
  fc.assert(
    fc.property(spoiled, (line) => {
      const reading = readLine(line, CONTEXT);
      expect(reading.kind).not.toBe("refused");
      if (reading.kind !== "events") return;
      for (const { raw, type } of reading.events) {
        expect(raw["line"]).toBe(line.toWellFormed());
        expect(type).not.toBe("");
      }
    }),
    { numRuns: 5000 },
  );
});

test("a long line is read", () => {
  for (const line of LINES) {
    for (const unit of [" from ", '", "', "] [", "a=", ": ", "\\", "{", "<a>"]) {
      const long = line.slice(0, Math.ceil(line.length / 2)) + unit.repeat(2000);
      expect(readLine(long, CONTEXT).kind).not.toBe("refused");
    }
  }
});
