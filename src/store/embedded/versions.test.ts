import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { gunzipSync } from "node:zlib";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterEach, describe, expect, test } from "vitest";
import { NewerFile } from "../../lib/newer-file.ts";
import { ALWAYS } from "../../model/condition.ts";
import type { Store } from "../ports/store.ts";
import { COLUMNS_VERSION } from "../duckdb/columns/column-table.ts";
import { options } from "./embedded-store.fixture.ts";
import { openStore, rebuildColumns } from "../open-store.ts";
import { FLOW_DAY_MIGRATIONS } from "../duckdb/flows/flow-table.ts";
import { openKeyDatabase } from "../sqlite/key-database.ts";
import { migrate } from "../sqlite/migrations.ts";

const NOW = Date.UTC(2026, 5, 15, 12);
const folders: string[] = [];
const stores: Store[] = [];
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const newFolder = () => {
  const folder = mkdtempSync(join(tmpdir(), "tocsin-versions-"));
  folders.push(folder);
  return folder;
};

/** A folder as the last version without schema versions left it: 50 events of two days, 16 flows, a rule, an alert, a key. */
function unversionedFolder(): string {
  const folder = newFolder();
  const packed = readFileSync(new URL("./fixtures/version-0.json.gz", import.meta.url));
  const files = JSON.parse(gunzipSync(packed).toString()) as Record<string, string>;
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), Buffer.from(content, "base64"));
  }
  return folder;
}

const open = async (dataDir: string) => {
  const store = await openStore({ ...options(dataDir, () => NOW), platform: "site" });
  stores.push(store);
  return store;
};
const closeAll = async () => {
  for (const store of stores.splice(0)) await store.close();
};

const filesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => statSync(join(folder, name)).isFile())
    .sort();
const fingerprint = (folder: string) =>
  filesOf(folder).map((name) => {
    const path = join(folder, name);
    return [name, statSync(path).mtimeMs, createHash("sha256").update(readFileSync(path)).digest("hex")];
  });

const versionOf = (path: string) => {
  const db = new DatabaseSync(path, { readOnly: true });
  const { user_version } = db.prepare("PRAGMA user_version").get() as { user_version: number };
  db.close();
  return user_version;
};
const inDuck = async (path: string, sql: string) => {
  const instance = await DuckDBInstance.create(path);
  const connection = await instance.connect();
  const rows = (await connection.runAndReadAll(sql)).getRows();
  connection.closeSync();
  instance.closeSync();
  return rows;
};

test("a folder without schema versions is upgraded in place and keeps its content", async () => {
  const folder = unversionedFolder();
  expect(versionOf(join(folder, "events", "tocsin-events-2026.06.14.db"))).toBe(0);
  const store = await open(folder);
  expect(await store.events.count()).toBe(50);
  const found = await store.events.search({ condition: ALWAYS, sort: [], limit: 1, aggs: [] });
  expect(found.total).toBe(50);
  expect((await store.events.list({ search: "late" }, { mode: "page", page: 1, size: 5 })).total).toBe(1);
  expect(await store.flows.count()).toBe(16);
  expect((await store.rules.list()).map(({ name }) => name)).toEqual(["test.rule"]);
  expect((await store.alerts.totals({})).total).toBe(1);
  expect(await store.keys.find("key_1")).toMatchObject({ name: "fixture" });
  expect(await store.exports.get("exp_1")).toMatchObject({ status: "failed" });
  await closeAll();
  for (const name of filesOf(folder)) {
    const path = join(folder, name);
    if (name.endsWith(".duckdb")) {
      const newest = name.startsWith("flows/") ? FLOW_DAY_MIGRATIONS.length : COLUMNS_VERSION;
      expect([name, await inDuck(path, "SELECT version FROM schema_version")]).toEqual([name, [[newest]]]);
    } else if (name.endsWith(".db") && name !== "lock.db") expect([name, versionOf(path)]).not.toEqual([name, 0]);
  }
  // The upgraded folder opens again.
  const again = await open(folder);
  expect([await again.events.count(), await again.flows.count()]).toEqual([50, 16]);
});

test("a new folder has the newest versions from the start", async () => {
  const folder = newFolder();
  const store = await open(folder);
  await store.events.append([
    {
      draft: {
        type: "x",
        source: "custom",
        severity: "info",
        class: "audit",
        timestampMs: NOW,
        raw: {},
        enrichment: {},
      },
    },
  ]);
  await closeAll();
  const versions = filesOf(folder).filter((name) => name.endsWith(".db") && name !== "lock.db");
  expect(versions.map((name) => versionOf(join(folder, name)))).not.toContain(0);
  expect(versions).toHaveLength(4);
});

describe("a folder that a newer version has written to is refused with a reason and not changed", () => {
  const sqlite = (name: string) => (folder: string) => {
    const db = new DatabaseSync(join(folder, name));
    db.exec("PRAGMA user_version = 99");
    db.close();
  };
  const duck = (name: string) => async (folder: string) => {
    await inDuck(join(folder, name), "CREATE OR REPLACE TABLE schema_version AS SELECT 99 AS version");
  };
  const cases: [string, (folder: string) => unknown][] = [
    ...["keys.db", "state.db", "cases.db", "events/tocsin-events-2026.06.14.db"].map(
      (name): [string, (folder: string) => unknown] => [name, sqlite(name)],
    ),
    ...["flows/tocsin-flows-2026.06.14.duckdb", "columns/columns.duckdb"].map(
      (name): [string, (folder: string) => unknown] => [name, duck(name)],
    ),
  ];
  test.each(cases)("%s", async (name, makeNewer) => {
    const folder = unversionedFolder();
    await makeNewer(folder);
    const before = fingerprint(folder);
    for (const start of [
      () => open(folder),
      () => rebuildColumns({ ...options(folder), onProgress: () => undefined }),
    ]) {
      const refused: Error = await start().then(
        () => expect.unreachable(),
        (error: Error) => error,
      );
      expect(refused.message).toContain(join(folder, name));
      expect(refused.message).toMatch(/newer version of Tocsin.*version is 99.*Nothing was changed.*backup/s);
      expect(fingerprint(folder)).toEqual(before);
    }
  });

  test("also if only the write-ahead log has the newer version", async () => {
    const folder = unversionedFolder();
    const path = join(folder, "events", "tocsin-events-2026.06.14.db");
    const db = new DatabaseSync(path);
    db.exec("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = 99");
    // As a crash leaves it.
    const crashed = newFolder();
    cpSync(folder, crashed, { recursive: true, filter: (from) => !from.endsWith("-shm") });
    db.close();
    const before = fingerprint(crashed);
    await expect(open(crashed)).rejects.toThrow(NewerFile);
    expect(fingerprint(crashed)).toEqual(before);
  });

  test("the key database on its own is refused as well", async () => {
    const folder = unversionedFolder();
    sqlite("keys.db")(folder);
    await expect(openKeyDatabase(folder)).rejects.toThrow(NewerFile);
  });
});

describe("migrations", () => {
  const names = (db: DatabaseSync) =>
    (db.prepare("SELECT name FROM sqlite_schema ORDER BY name").all() as { name: string }[]).map(({ name }) => name);

  test("run in order, each once, from any version of the file", () => {
    const db = new DatabaseSync(":memory:");
    migrate(db, "x", ["CREATE TABLE a(n)"]);
    const steps = [
      "CREATE TABLE a(n)",
      "CREATE TABLE b(n)",
      (it: DatabaseSync) => it.exec("ALTER TABLE b RENAME TO c"),
    ];
    migrate(db, "x", steps);
    migrate(db, "x", steps);
    expect(names(db)).toEqual(["a", "c"]);
  });

  test("that fail leave the file as it was", () => {
    const db = new DatabaseSync(":memory:");
    migrate(db, "x", ["CREATE TABLE a(n)"]);
    expect(() => migrate(db, "x", ["", "CREATE TABLE b(n)", "CREATE TABLE a(n)"])).toThrow(/already exists/);
    expect(names(db)).toEqual(["a"]);
    migrate(db, "x", ["", "CREATE TABLE b(n)"]);
    expect(names(db)).toEqual(["a", "b"]);
  });
});
