import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { expect, onTestFinished, test } from "vitest";
import { writeParquet } from "./write-parquet.ts";

test("any number of rows of a megabyte become Parquet in less memory than they take", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tocsin-parquet-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [from, to, scratch] = ["rows.ndjson", "rows.parquet", "scratch"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const rows = 450;
  const file = openSync(from, "w");
  for (let n = 0; n < rows; n++) writeSync(file, `${JSON.stringify({ id: `e${n}`, text: `${n} `.repeat(200_000) })}\n`);
  closeSync(file);
  await writeParquet(
    { from, to, columns: ["id", "text"], rowBytesMax: 2 ** 20 },
    scratch,
    new AbortController().signal,
  );
  const instance = await DuckDBInstance.create(":memory:");
  onTestFinished(() => instance.closeSync());
  const connection = await instance.connect();
  const found = await connection.runAndReadAll(
    `SELECT count(*)::INTEGER, count(DISTINCT id)::INTEGER, sum(length(text))::DOUBLE FROM '${to}'`,
  );
  const characters = Array.from({ length: rows }, (_, n) => `${n} `.length * 200_000).reduce((a, b) => a + b, 0);
  expect(found.getRows()).toEqual([[rows, rows, characters]]);
});
