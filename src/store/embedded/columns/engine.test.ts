import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { expect, onTestFinished, test } from "vitest";
import { QuestionRefused, StoreUnavailable } from "../../store.ts";
import { columnsScratch } from "../layout.ts";
import { forgetCopies, ofMemory, openEngine, rowsOf } from "./engine.ts";

async function failureOf(sql: string): Promise<unknown> {
  const instance = await DuckDBInstance.create(":memory:", { memory_limit: "16MB", temp_directory: "", threads: "1" });
  const connection = await instance.connect();
  const failure = await rowsOf(connection, sql).then(
    () => undefined,
    (error: unknown) => error,
  );
  connection.closeSync();
  instance.closeSync();
  return failure;
}

test("a question that takes more memory than there is, is refused with what to do; beside others it may be asked again", async () => {
  const failure = await failureOf(
    "SELECT repeat(range::VARCHAR, 10000) AS k, count(*) AS n FROM range(5000) GROUP BY k ORDER BY n DESC, k LIMIT 10",
  );
  const alone = ofMemory(failure, true);
  expect(alone).toBeInstanceOf(QuestionRefused);
  expect(alone).toMatchObject({ field: "query", message: expect.stringMatching(/memory.*narrow the time range/) });
  const beside = ofMemory(failure, false);
  expect(beside).toBeInstanceOf(StoreUnavailable);
  expect(beside).toMatchObject({ reason: "queue_full" });
});

test("what fails for another reason stays what it is", async () => {
  const failure = await failureOf("SELECT nothing");
  expect(failure).toBeInstanceOf(Error);
  expect(ofMemory(failure, true)).toBe(failure);
});

test("what was read from disk is forgotten and read again; what is in memory alone stays there", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "tocsin-engine-"));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  const onDropped = (reason: string) => expect.unreachable(reason);
  const engine = await openEngine(dataDir, { onDropped, readEvent: () => undefined });
  onTestFinished(() => engine.instance.closeSync());
  const { connection } = engine;
  const ask = async (sql: string) => (await rowsOf(connection, sql))[0]!.map(Number);
  const held = async () => (await ask("SELECT sum(memory_usage_bytes) / 1e6 FROM duckdb_memory()"))[0]!;
  const rows = "SELECT sha256(range::VARCHAR) || md5(range::VARCHAR) AS text";
  await connection.run(`CREATE TABLE large AS ${rows} FROM range(1000000)`);
  await connection.run("CHECKPOINT");
  await connection.run(`CREATE TABLE tail.t1 AS ${rows} FROM range(100000)`);
  const readAll = () => ask("SELECT sum(hash(text)), (SELECT sum(hash(text)) FROM tail.t1) FROM large");
  const [read, before] = [await readAll(), await held()];
  await forgetCopies(engine);
  expect(await held()).toBeLessThan(before / 2);
  // Not by moving it elsewhere.
  expect(readdirSync(columnsScratch(dataDir))).toEqual([]);
  expect(await readAll()).toEqual(read);
  expect(await rowsOf(connection, "SELECT current_setting('memory_limit')")).toEqual([["366.2 MiB"]]);
});
