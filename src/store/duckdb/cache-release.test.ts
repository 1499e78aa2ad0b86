import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { DuckDBInstance } from "@duckdb/node-api";
import { expect, onTestFinished, test } from "vitest";
import { IDLE_CACHE_BYTES_MAX, releaseCache, ActiveReaders } from "./cache-release.ts";

test("cached blocks are released and read again; data in memory alone stays", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tocsin-cache-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const scratch = join(folder, "scratch");
  const instance = await DuckDBInstance.create(join(folder, "file.duckdb"), {
    memory_limit: "384MiB",
    temp_directory: scratch,
  });
  onTestFinished(() => instance.closeSync());
  const connection = await instance.connect();
  const query = async (sql: string) => (await connection.runAndReadAll(sql)).getRows()[0]!;
  const held = async () => Number((await query("SELECT sum(memory_usage_bytes) / 1e6 FROM duckdb_memory()"))[0]);
  const rows = "SELECT sha256(range::VARCHAR) || md5(range::VARCHAR) AS text";
  await connection.run(`CREATE TABLE large AS ${rows} FROM range(1000000)`);
  await connection.run("CHECKPOINT");
  await connection.run("ATTACH ':memory:' AS memtables");
  await connection.run(`CREATE TABLE memtables.small AS ${rows} FROM range(100000)`);
  const readAll = () => query("SELECT sum(hash(text)), (SELECT sum(hash(text)) FROM memtables.small) FROM large");
  const [read, before] = [await readAll(), await held()];
  await releaseCache(connection, "384MiB", before * 1e6);
  expect(await held(), "within the bound nothing is released").toBe(before);
  await releaseCache(connection, "384MiB", IDLE_CACHE_BYTES_MAX);
  expect(await held()).toBeLessThan(before / 2);
  expect(existsSync(scratch), "blocks were spilled").toBe(false);
  expect(await readAll()).toEqual(read);
  expect(await query("SELECT current_setting('memory_limit')")).toEqual(["384.0 MiB"]);
  const bound = 16 * 2 ** 20;
  await releaseCache(connection, "384MiB", bound);
  const cached = await query("SELECT sum(memory_usage_bytes)::DOUBLE FROM duckdb_memory() WHERE tag = 'BASE_TABLE'");
  expect(cached[0], "blocks stay cached up to the bound").toBeLessThanOrEqual(bound);
  expect(cached[0]).toBeGreaterThan(bound / 2);
});

test("readers become idle once after each period of reads, and not while one reads", async () => {
  const readers = new ActiveReaders();
  expect([readers.becameIdleFor(0), readers.becameIdleFor(0)]).toEqual([true, false]);
  expect(readers.isIdle).toBe(true);
  await readers.track(async () => {
    await Promise.resolve();
    expect([readers.isIdle, readers.becameIdleFor(0)]).toEqual([false, false]);
  });
  expect(readers.becameIdleFor(60_000)).toBe(false);
  await sleep(20);
  expect([readers.becameIdleFor(10), readers.becameIdleFor(10)]).toEqual([true, false]);
  await expect(readers.track(() => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
  expect([readers.becameIdleFor(0), readers.becameIdleFor(0)]).toEqual([true, false]);
});
