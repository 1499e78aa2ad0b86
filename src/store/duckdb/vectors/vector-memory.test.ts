import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  BIGINT,
  DOUBLE,
  DuckDBDataChunk,
  DuckDBInstance,
  INTEGER,
  UTINYINT,
  VARCHAR,
  type DuckDBConnection,
} from "@duckdb/node-api";
import { expect, onTestFinished, test } from "vitest";
import {
  INLINE_TEXT_BYTES_MAX,
  TEXT_LENGTH_BYTES,
  TEXT_SLOT_BYTES,
  validityBytes,
  VECTOR_ROWS,
} from "./vector-layout.ts";
import { doublesOf, eachText, integersOf, vectorsOf, writeText, writeValidity, writeValues } from "./vector-memory.ts";

// The reader is compared with values that the public API wrote, the writer with values that the public API reads: an
// upgrade of @duckdb/node-bindings that changes the layout of a vector fails here.

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

async function connect(): Promise<DuckDBConnection> {
  const instance = await DuckDBInstance.create(":memory:");
  onTestFinished(() => instance.closeSync());
  return instance.connect();
}

async function eachChunk(connection: DuckDBConnection, sql: string, visit: (chunk: DuckDBDataChunk) => void) {
  const result = await connection.stream(sql);
  const rowCounts: number[] = [];
  for (let chunk = await result.fetchChunk(); chunk && chunk.rowCount > 0; chunk = await result.fetchChunk()) {
    rowCounts.push(chunk.rowCount);
    visit(chunk);
  }
  return rowCounts;
}

const TEXTS = [
  "",
  "short",
  "twelve bytes",
  "thirteen byte",
  "\uFEFFmarked",
  "ümläüte überall",
  "x".repeat(70_000),
  null,
] as const;

test("texts are read from DuckDB's memory as they are stored", async () => {
  const texts = Array.from({ length: 5000 }, (_, i) => {
    const text = TEXTS[i % TEXTS.length]!;
    return text === null ? null : `${text}${i % 3 ? i : ""}`;
  });
  const connection = await connect();
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
    const found: (string | null)[] = [];
    await eachChunk(connection, `SELECT text FROM kept ORDER BY ${order}`, (chunk) => {
      const read = Array.from<unknown, string | null>({ length: chunk.rowCount }, () => null);
      eachText(chunk, 0, (row, bytes, from, length) => {
        read[row] = decoder.decode(bytes.subarray(from, from + length));
      });
      // The slice keeps the chunk, and with it the memory, in use until here.
      found.push(...read.slice(0, chunk.rowCount));
    });
    expect(found).toEqual(order === "i" ? texts : texts.toReversed());
  }
});

test("numbers are read from DuckDB's memory as they are stored, in vectors of the known size", async () => {
  const connection = await connect();
  const rows = 2 * VECTOR_ROWS + 7;
  const found: [number, number][] = [];
  const sql = `SELECT (range - 3)::INTEGER, (range / 7)::DOUBLE FROM range(${rows}) ORDER BY range`;
  const rowCounts = await eachChunk(connection, sql, (chunk) => {
    const [integers, doubles] = [integersOf(chunk, 0), doublesOf(chunk, 1)];
    for (let row = 0; row < chunk.rowCount; row++) found.push([integers[row]!, doubles[row]!]);
  });
  expect(Math.max(...rowCounts)).toBe(VECTOR_ROWS);
  expect(found).toEqual(Array.from({ length: rows }, (_, i) => [i - 3, i / 7]));
});

test("vectors that are written to DuckDB's memory are read back by the public API", async () => {
  const connection = await connect();
  await connection.run("CREATE TABLE kept(big BIGINT, small UTINYINT, whole INTEGER, double DOUBLE, text VARCHAR)");
  const rows = Array.from({ length: VECTOR_ROWS }, (_, i) =>
    i % 5 === 4
      ? null
      : { big: BigInt(i) - 2n ** 40n, small: i & 255, whole: 3 - i, double: i / 3, text: TEXTS[i % 7]! },
  );
  const values = [
    BigInt64Array.from(rows, (row) => row?.big ?? 0n),
    Uint8Array.from(rows, (row) => row?.small ?? 0),
    Int32Array.from(rows, (row) => row?.whole ?? 0),
    Float64Array.from(rows, (row) => row?.double ?? 0),
    new Uint8Array(VECTOR_ROWS * TEXT_SLOT_BYTES),
  ];
  const slots = values.at(-1) as Uint8Array;
  const validity = new Uint8Array(validityBytes(VECTOR_ROWS));
  const longTexts: [row: number, utf8: Uint8Array][] = [];
  for (const [i, row] of rows.entries()) {
    if (row === null) continue;
    validity[i >> 3]! |= 1 << (i & 7);
    const utf8 = encoder.encode(row.text);
    if (utf8.length > INLINE_TEXT_BYTES_MAX) longTexts.push([i, utf8]);
    else {
      slots[i * TEXT_SLOT_BYTES] = utf8.length;
      slots.set(utf8, i * TEXT_SLOT_BYTES + TEXT_LENGTH_BYTES);
    }
  }
  const chunk = DuckDBDataChunk.create([BIGINT, UTINYINT, INTEGER, DOUBLE, VARCHAR], VECTOR_ROWS);
  const vectors = vectorsOf(chunk);
  for (const [column, { buffer, byteLength }] of values.entries()) {
    writeValues(vectors[column]!, buffer, 0, byteLength);
    writeValidity(vectors[column]!, validity.buffer, 0, VECTOR_ROWS);
  }
  for (const [row, utf8] of longTexts) writeText(vectors[4]!, row, utf8);
  const appender = await connection.createAppender("kept");
  appender.appendDataChunk(chunk);
  appender.closeSync();
  // As hexadecimal digits: the public API drops a byte order mark.
  const found = (await connection.runAndReadAll("SELECT * REPLACE (hex(text) AS text) FROM kept")).getRows();
  const hex = (text: string) => Buffer.from(text).toString("hex").toUpperCase();
  expect(found).toEqual(
    rows.map((row) =>
      row === null ? [null, null, null, null, null] : [row.big, row.small, row.whole, row.double, hex(row.text)],
    ),
  );
});

test("no other file uses the low-level binding", () => {
  const root = join(import.meta.dirname, "..", "..", "..");
  const users = globSync("**/*.ts", { cwd: root }).filter((file) =>
    /from "@duckdb\/node-bindings"/.test(readFileSync(join(root, file), "utf8")),
  );
  expect(users, "add what is missing to vector-memory.ts").toEqual(["store/duckdb/vectors/vector-memory.ts"]);
});
