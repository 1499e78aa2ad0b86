import { DuckDBInstance } from "@duckdb/node-api";
import { expect, test } from "vitest";
import { eachText } from "./chunk-reader.ts";
import { TextNumbers } from "./text-numbers.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Has texts numbered, so many together, and says what each number stood for when it was given. */
function numberAll(numbers: TextNumbers, texts: readonly string[], together: number): number[] {
  const meaning = new Map<number, string>();
  return texts.map((text, i) => {
    if (i % together === 0) numbers.expect(together);
    const bytes = encoder.encode(`..${text}..`);
    const { last } = numbers;
    const number = numbers.of(bytes, 2, bytes.length - 4);
    if (number > last) meaning.set(number, text);
    if (meaning.get(number) !== text) throw new Error(`${number} is ${meaning.get(number)}, not ${text}`);
    return number;
  });
}

test("a text that comes again has the number that it had", () => {
  const texts = ["a", "", "b", "a", "", "ab", "a\u0000", "é", "a long text, longer than others", "b"];
  const numbers = numberAll(new TextNumbers(), texts, texts.length);
  expect(numbers).toEqual([1, 2, 3, 1, 2, 4, 5, 6, 7, 3]);
});

test("more different texts than are remembered begin anew, and none is taken for another", () => {
  const numbers = new TextNumbers();
  const texts = Array.from({ length: 400_000 }, (_, i) => `10.0.${i % 200_000}`);
  const given = numberAll(numbers, texts, 10_000);
  expect(given.reduce((most, number) => Math.max(most, number))).toBe(150_000);
});

test("texts that are too large to be remembered have a number each time", () => {
  const large = "x".repeat(9_000_000);
  const numbers = new TextNumbers();
  expect(numberAll(numbers, [`${large}1`, `${large}2`, "small", `${large}1`, `${large}2`], 10)).toEqual([
    1, 2, 3, 1, 4,
  ]);
  // The large one leaves less than half: with the next texts everything begins anew.
  expect(numberAll(numbers, ["small"], 10)).toEqual([1]);
});

test("texts are read from the engine's memory as they are stored", async () => {
  const kinds = [
    "",
    "short",
    "twelve bytes",
    "thirteen byte",
    "\uFEFFmarked",
    "ümläüte überall",
    "x".repeat(70_000),
    null,
  ];
  const texts = Array.from({ length: 5000 }, (_, i) =>
    kinds[i % 8] === null ? null : `${kinds[i % 8]}${i % 3 ? i : ""}`,
  );
  const instance = await DuckDBInstance.create(":memory:");
  try {
    const connection = await instance.connect();
    await connection.run("CREATE TABLE kept(i INTEGER, text VARCHAR)");
    const appender = await connection.createAppender("kept");
    for (const [i, text] of texts.entries()) {
      appender.appendInteger(i);
      if (text === null) appender.appendNull();
      else appender.appendVarchar(text);
      appender.endRow();
    }
    appender.closeSync();
    for (const order of ["i", "i DESC"]) {
      const result = await connection.stream(`SELECT text FROM kept ORDER BY ${order}`);
      const found: (string | null)[] = [];
      for (let chunk = await result.fetchChunk(); chunk && chunk.rowCount > 0; chunk = await result.fetchChunk()) {
        const read = Array.from<unknown, string | null>({ length: chunk.rowCount }, () => null);
        eachText(chunk, 0, (row, bytes, from, length) => {
          read[row] = decoder.decode(bytes.subarray(from, from + length));
        });
        // The memory is there for as long as the chunk is in use.
        found.push(...read.slice(0, chunk.rowCount));
      }
      expect(found).toEqual(order === "i" ? texts : texts.toReversed());
    }
  } finally {
    instance.closeSync();
  }
});
