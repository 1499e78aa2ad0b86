import { expect, test } from "vitest";
import { readEntryLines, refusedLines } from "./entry-lines.ts";

test("each line is an entry, and a comment behind it is its note", () => {
  expect(
    readEntryLines(
      "# head\n192.0.2.7 # scanner\r\n\n 198.51.100.1 - 198.51.100.9\nbad.example.org ; seen twice\na-b.example",
    ),
  ).toEqual([
    { line: 2, value: "192.0.2.7", note: "scanner" },
    { line: 4, value: "198.51.100.1-198.51.100.9", note: null },
    { line: 5, value: "bad.example.org", note: "seen twice" },
    { line: 6, value: "a-b.example", note: null },
  ]);
});

test("what the service refuses is named by its line", () => {
  const lines = readEntryLines("192.0.2.7\n\n???");
  expect(refusedLines(lines, [{ field: "entries[1].value", message: "no" }])).toEqual([
    { line: 3, value: "???", message: "no" },
  ]);
  expect(refusedLines(lines, [{ field: "entries", message: "too many" }])).toEqual([]);
});
