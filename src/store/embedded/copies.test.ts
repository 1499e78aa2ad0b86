import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { DuckDBInstance } from "@duckdb/node-api";
import { expect, onTestFinished, test } from "vitest";
import { COPIES_BYTES_AT_REST, forgetCopies, Readers } from "./copies.ts";

test("what was read from disk is forgotten and read again; what is in memory alone stays there", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tocsin-copies-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const scratch = join(folder, "scratch");
  const instance = await DuckDBInstance.create(join(folder, "file.duckdb"), {
    memory_limit: "384MiB",
    temp_directory: scratch,
  });
  onTestFinished(() => instance.closeSync());
  const connection = await instance.connect();
  const ask = async (sql: string) => (await connection.runAndReadAll(sql)).getRows()[0]!;
  const held = async () => Number((await ask("SELECT sum(memory_usage_bytes) / 1e6 FROM duckdb_memory()"))[0]);
  const rows = "SELECT sha256(range::VARCHAR) || md5(range::VARCHAR) AS text";
  await connection.run(`CREATE TABLE large AS ${rows} FROM range(1000000)`);
  await connection.run("CHECKPOINT");
  await connection.run("ATTACH ':memory:' AS tail");
  await connection.run(`CREATE TABLE tail.small AS ${rows} FROM range(100000)`);
  const readAll = () => ask("SELECT sum(hash(text)), (SELECT sum(hash(text)) FROM tail.small) FROM large");
  const [read, before] = [await readAll(), await held()];
  await forgetCopies(connection, "384MiB", before * 1e6);
  expect(await held(), "within the bound nothing is forgotten").toBe(before);
  await forgetCopies(connection, "384MiB", COPIES_BYTES_AT_REST);
  expect(await held()).toBeLessThan(before / 2);
  expect(existsSync(scratch), "it was moved elsewhere").toBe(false);
  expect(await readAll()).toEqual(read);
  expect(await ask("SELECT current_setting('memory_limit')")).toEqual(["384.0 MiB"]);
  const bound = 16 * 2 ** 20;
  await forgetCopies(connection, "384MiB", bound);
  const copies = await ask("SELECT sum(memory_usage_bytes)::DOUBLE FROM duckdb_memory() WHERE tag = 'BASE_TABLE'");
  expect(copies[0], "copies stay up to the bound").toBeLessThanOrEqual(bound);
  expect(copies[0]).toBeGreaterThan(bound / 2);
});

test("readers are gone once after each time that they have read, and not while one does", async () => {
  const readers = new Readers();
  expect([readers.areGoneFor(0), readers.areGoneFor(0)]).toEqual([true, false]);
  expect(readers.areGone).toBe(true);
  await readers.during(async () => {
    await Promise.resolve();
    expect([readers.areGone, readers.areGoneFor(0)]).toEqual([false, false]);
  });
  expect(readers.areGoneFor(60_000)).toBe(false);
  await sleep(20);
  expect([readers.areGoneFor(10), readers.areGoneFor(10)]).toEqual([true, false]);
  await expect(readers.during(() => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
  expect([readers.areGoneFor(0), readers.areGoneFor(0)]).toEqual([true, false]);
});
