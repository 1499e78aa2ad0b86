import { randomBytes } from "node:crypto";
import {
  closeSync,
  cpSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { DuckDBInstance } from "@duckdb/node-api";
import pino from "pino";
import { afterEach, describe, expect, test } from "vitest";
import { DAY_MS, startOfDay } from "../../lib/time.ts";
import { ALWAYS } from "../../model/condition.ts";
import type { EventDraft } from "../../model/event.ts";
import { createKey, revokeKey, rotateKey } from "../../model/key.ts";
import { plainRule } from "../../model/rule.fixture.ts";
import type { Store } from "../ports/store.ts";
import { options } from "./embedded-store.fixture.ts";
import { openStore, rebuildColumns } from "../open-store.ts";
import { readEventId } from "../files/event-id.ts";
import { openKeyDatabase } from "../sqlite/key-database.ts";
import { casesFile, columnsFile, dayFile, eventsFolder, keysFile, stateFile } from "../files/layout.ts";
import { DataFolderInUse } from "./lock.ts";
import { PlatformChanged } from "./platform-word.ts";

describe("the data folder", () => {
  const folders: string[] = [];
  const stores: Store[] = [];
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close();
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  });

  const newFolder = () => {
    const folder = mkdtempSync(join(tmpdir(), "tocsin-folder-"));
    folders.push(folder);
    return folder;
  };
  const open = async (dataDir: string) => {
    const store = await openStore(options(dataDir));
    stores.push(store);
    return store;
  };
  const close = async (store: Store) => {
    stores.splice(stores.indexOf(store), 1);
    await store.close();
  };
  const newLog = () => {
    const lines: string[] = [];
    return { lines, log: pino({ level: "warn" }, { write: (line: string) => void lines.push(line) }) };
  };
  const drafts = (count: number, day = startOfDay(Date.now())): { draft: EventDraft }[] =>
    Array.from({ length: count }, (_, i) => ({
      draft: {
        type: i % 2 === 0 ? "even" : "odd",
        source: "custom",
        severity: "info",
        class: "security",
        timestampMs: day + i,
        raw: { n: i, user: `user${i % 7}` },
        enrichment: {},
      },
    }));
  const totals = async (store: Store) => {
    const even = await store.events.list({ type: "even" }, { mode: "page", page: 1, size: 1 });
    const users = await store.events.search({
      condition: ALWAYS,
      sort: [],
      limit: 0,
      aggs: [{ name: "users", aggregation: { kind: "cardinality", field: "raw.user" } }],
    });
    return { even: even.total, all: users.total, ...users.aggregations };
  };

  test("a query in flight when the store closes is answered or refused, and nothing crashes", async () => {
    const dataDir = newFolder();
    for (let round = 0; round < 4; round++) {
      const store = await openStore(options(dataDir));
      if (round === 0) await store.events.append(drafts(5000));
      const query = { condition: ALWAYS, sort: [{ field: "raw.user", descending: false }], limit: 5, aggs: [] };
      const answers = Array.from({ length: 10 }, () => store.events.search(query).then(({ total }) => total, String));
      await store.close();
      for (const answer of await Promise.all(answers))
        expect([5000, expect.stringMatching(/^(\w+)?Error|^Store/)]).toContainEqual(answer);
    }
    expect((await totals(await open(dataDir))).all).toBe(5000);
  });

  test("columns that cannot be rebuilt now are rebuilt at the next query that can", async () => {
    const dataDir = newFolder();
    const first = await open(dataDir);
    // More rows than memory holds.
    const large = () =>
      drafts(1000).map(({ draft }) => ({ draft: { ...draft, raw: { text: randomBytes(1000).toString("hex") } } }));
    for (let i = 0; i < 8; i++) await first.events.append(large());
    await close(first);
    const store = await open(dataDir);
    const path = columnsFile(dataDir);
    const bytes = statSync(path).size;
    const file = openSync(path, "r+");
    writeSync(file, Buffer.alloc(bytes - 24_576, 0x5a), 0, bytes - 24_576, 24_576);
    closeSync(file);
    // A folder in its place, so that no file can be created.
    renameSync(path, `${path}.away`);
    mkdirSync(join(path, "in the way"), { recursive: true });
    const sorted = () =>
      store.events.search({ condition: ALWAYS, sort: [{ field: "raw.text", descending: false }], limit: 5, aggs: [] });
    await expect(sorted()).rejects.toThrow();
    // Much longer than the engine keeps its cache.
    await sleep(200);
    await expect(sorted()).rejects.toThrow();
    rmSync(path, { recursive: true });
    expect((await sorted()).total).toBe(8000);
  });
  const expected = (count: number) => ({ even: Math.ceil(count / 2), all: count, users: { value: 7 } });

  test("sequence numbers continue above detection's position, even if the events are gone", async () => {
    const folder = newFolder();
    let store = await open(folder);
    const [, last] = await store.events.append(drafts(2));
    const detected = { upTo: last!.id, matches: [], seen: [] };
    await store.alerts.commit({ alerts: [], timeline: [], detected });
    await close(store);
    rmSync(dayFile({ dataDir: folder, indexPrefix: "tocsin" }, startOfDay(Date.now())));
    store = await open(folder);
    const [next] = await store.events.append(drafts(1));
    expect(readEventId(next!.id)!.seq).toBeGreaterThan(readEventId(last!.id)!.seq);
    const arrived: string[] = [];
    const stop = new AbortController();
    for await (const chunk of store.events.arrivals(last!.id, stop.signal)) {
      arrived.push(...chunk.map(({ id }) => id));
      stop.abort();
    }
    expect(arrived).toEqual([next!.id]);
  });

  const openAs = async (dataDir: string, platform: string) => {
    const store = await openStore({ ...options(dataDir), platform });
    stores.push(store);
    return store;
  };
  const ofSource = (source: string) => drafts(1).map(({ draft }) => ({ draft: { ...draft, source } }));

  test("accepts another platform word while no event or rule uses the first", async () => {
    const dataDir = newFolder();
    let store = await openAs(dataDir, "one");
    await store.events.append(ofSource("custom"));
    await close(store);
    store = await openAs(dataDir, "two");
    await store.events.append(ofSource("two_network"));
    await close(store);
    await expect(openAs(dataDir, "one")).rejects.toThrow(PlatformChanged);
    expect(await (await openAs(dataDir, "two")).events.count()).toBe(2);
  });

  test("keeps the platform word that a rule uses", async () => {
    const dataDir = newFolder();
    const store = await openAs(dataDir, "one");
    await store.rules.put(plainRule({ source: "any" }));
    await close(store);
    const other = await openAs(dataDir, "two");
    await other.rules.put(plainRule({ id: "rule_2", name: "test.two", source: "two_access" }));
    await close(other);
    await expect(openAs(dataDir, "one")).rejects.toThrow(/platform word is two, not one/);
  });

  test("of a version that did not store the platform word takes it from the newest event", async () => {
    const dataDir = newFolder();
    const store = await openAs(dataDir, "old");
    await store.events.append(ofSource("old_talk"));
    await close(store);
    const state = new DatabaseSync(stateFile(dataDir));
    state.exec("DROP TABLE words; DROP TABLE days; DROP TABLE lists; DROP TABLE list_entries; PRAGMA user_version = 0");
    state.close();
    await expect(openAs(dataDir, "new")).rejects.toThrow(/platform word is old, not new/);
    await openAs(dataDir, "old");
  });

  test("has no write-ahead log with content after the store closes", async () => {
    const dataDir = newFolder();
    const store = await open(dataDir);
    await store.events.append(drafts(2000));
    expect(await totals(store)).toEqual(expected(2000));
    const log = `${dayFile({ dataDir, indexPrefix: "tocsin" }, startOfDay(Date.now()))}-wal`;
    expect(statSync(log).size).toBeGreaterThan(100_000);
    await close(store);
    expect(statSync(log, { throwIfNoEntry: false })?.size ?? 0).toBe(0);
  });

  test("keeps amendments when the columns are rebuilt", async () => {
    const dataDir = newFolder();
    let store = await open(dataDir);
    const stored = await store.events.append(drafts(700));
    const enrichment = { abuse_ipdb: { score: 80 } };
    await store.events.amend(stored.slice(0, 400).map(({ id }) => ({ id, enrichment })));
    const scored = async () => {
      const aggregation = { kind: "stats", field: "enrichment.abuse_ipdb.score" } as const;
      const aggs = [{ name: "scores", aggregation }];
      return (await store.events.search({ condition: ALWAYS, sort: [], limit: 0, aggs })).aggregations["scores"];
    };
    expect(await scored()).toMatchObject({ sum: 32_000 });
    await close(store);
    await rebuildColumns({ ...options(dataDir), onProgress: () => undefined });
    store = await open(dataDir);
    expect(await scored()).toMatchObject({ sum: 32_000 });
  });

  test("of a version without amendments opens as it is and accepts amendments", async () => {
    const dataDir = newFolder();
    let store = await open(dataDir);
    const [first] = await store.events.append(drafts(3));
    await close(store);
    const day = new DatabaseSync(dayFile({ dataDir, indexPrefix: "tocsin" }, startOfDay(Date.now())));
    day.exec("DROP TABLE amendments; PRAGMA user_version = 0");
    day.close();
    store = await open(dataDir);
    expect(await store.events.get(first!.id)).toBe(first!.text);
    await store.events.amend([{ id: first!.id, enrichment: { lists: ["late"] } }]);
    const condition = {
      kind: "test",
      field: "enrichment.lists",
      operator: "equals",
      value: "late",
      ignoreCase: false,
    } as const;
    expect((await store.events.search({ condition, sort: [], limit: 5, aggs: [] })).total).toBe(1);
  });

  test("with columns older or newer than the journal's amendments follows the journal", async () => {
    const dataDir = newFolder();
    let store = await open(dataDir);
    const stored = await store.events.append(drafts(700));
    const amend = (count: number, score: number) =>
      store.events.amend(stored.slice(0, count).map(({ id }) => ({ id, enrichment: { abuse_ipdb: { score } } })));
    const sum = async () => {
      const aggs = [{ name: "scores", aggregation: { kind: "stats", field: "enrichment.abuse_ipdb.score" } as const }];
      const { aggregations } = await store.events.search({ condition: ALWAYS, sort: [], limit: 0, aggs });
      return (aggregations["scores"] as { sum: number }).sum;
    };
    await amend(650, 1);
    await close(store);
    const before = newFolder();
    cpSync(dataDir, before, { recursive: true });
    store = await open(dataDir);
    await amend(700, 2);
    expect(await sum()).toBe(1400);
    await close(store);
    const [columns, events] = [join("columns", "columns.duckdb"), "events"];
    cpSync(join(dataDir, columns), join(before, "after.duckdb"));
    // Old columns with the current journal.
    cpSync(join(before, columns), join(dataDir, columns));
    store = await open(dataDir);
    expect(await sum()).toBe(1400);
    await close(store);
    // The old journal with current columns.
    cpSync(join(before, "after.duckdb"), join(dataDir, columns));
    cpSync(join(before, events), join(dataDir, events), { recursive: true });
    store = await open(dataDir);
    expect(await sum()).toBe(650);
    await amend(650, 5);
    expect(await sum()).toBe(3250);
  });

  test("logs and keeps events under another prefix", async () => {
    const folder = newFolder();
    const store = await open(folder);
    await store.events.append(drafts(3));
    await close(store);
    const { lines, log } = newLog();
    const other = await openStore({ ...options(folder), indexPrefix: "other", log });
    stores.push(other);
    expect(await other.events.count()).toBe(0);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ index_prefix: "other", others: ["tocsin"] }]);
    await close(other);
    expect(await (await open(folder)).events.count()).toBe(3);
  });

  test("is locked by one store at a time and released when it closes", async () => {
    const folder = newFolder();
    const store = await open(folder);
    await expect(openStore(options(folder))).rejects.toThrow(DataFolderInUse);
    await expect(openStore(options(folder))).rejects.toThrow(String(process.pid));
    await close(store);
    await open(folder);
  });

  test("the next look-up sees keys changed by another process", async () => {
    const folder = newFolder();
    const store = await open(folder);
    const other = await openKeyDatabase(folder);
    const key = {
      id: "key_9",
      name: "other",
      scopes: ["events:read" as const],
      plan: "starter" as const,
      createdAt: 1,
      expiresAt: null,
      revokedAt: null,
      secretHash: new Uint8Array(32),
      previous: [],
    };
    await other.put(key);
    await new Promise(setImmediate);
    expect(await store.keys.find("key_9")).toEqual(key);
    await other.put({ ...key, revokedAt: 2 });
    // Like the next request, in a later turn of the event loop.
    await new Promise(setImmediate);
    expect((await store.keys.find("key_9"))?.revokedAt).toBe(2);
    other.close();
  });

  test("a key that another process revokes stays revoked when it is rotated at the same moment", async () => {
    const folder = newFolder();
    const store = await open(folder);
    const other = await openKeyDatabase(folder);
    const { key } = createKey({ name: "ci", scopes: ["events:read"], plan: "pro", expiresAt: null, now: 1 });
    await store.keys.put(key);
    expect((await store.keys.find(key.id))?.revokedAt).toBeNull();
    await other.change(key.id, (current) => revokeKey(current, 2));
    // In the same turn of the event loop, while the look-up above is still cached.
    const rotated = await store.keys.change(key.id, (current) => rotateKey(current, { graceMs: 0, now: 3 }).key);
    expect(rotated?.revokedAt).toBe(2);
    expect((await store.keys.find(key.id))?.revokedAt).toBe(2);
    other.close();
  });

  test("columns that were deleted, truncated or overwritten are rebuilt from the journal", async () => {
    const folder = newFolder();
    let store = await open(folder);
    await store.events.append(drafts(2000));
    await close(store);
    const path = columnsFile(folder);
    const overwrite = (from: number, length: number) => {
      const file = openSync(path, "r+");
      writeSync(file, Buffer.alloc(length, 0x5a), 0, length, from);
      closeSync(file);
    };
    const damages: (() => void)[] = [
      () => rmSync(path),
      () => {
        const file = openSync(path, "r+");
        ftruncateSync(file, Math.floor(statSync(path).size / 2));
        closeSync(file);
      },
      () => overwrite(0, 4096),
      () => overwrite(16_384, statSync(path).size - 16_384),
    ];
    for (const damage of damages) {
      damage();
      store = await open(folder);
      expect(await totals(store)).toEqual(expected(2000));
      await close(store);
    }
  });

  test("a day whose events are missing or duplicated in the columns is read again at the start", async () => {
    const folder = newFolder();
    let store = await open(folder);
    await store.events.append([...drafts(1000), ...drafts(1000, startOfDay(Date.now()) - DAY_MS)]);
    await close(store);
    const damages = [
      "DELETE FROM events WHERE seq BETWEEN 300 AND 310",
      "INSERT INTO events SELECT * FROM events WHERE seq BETWEEN 1300 AND 1310",
    ];
    for (const damage of damages) {
      const instance = await DuckDBInstance.create(columnsFile(folder));
      const connection = await instance.connect();
      expect(Number((await connection.run(damage)).rowsChanged)).toBe(11);
      instance.closeSync();
      store = await open(folder);
      expect(await totals(store)).toEqual(expected(2000));
      await close(store);
    }
  });

  test("columns ahead of a torn journal go back with it", async () => {
    const folder = newFolder();
    const day = startOfDay(Date.now()) - DAY_MS;
    let store = await open(folder);
    await store.events.append(drafts(1000, day));
    await close(store);
    // As if the end of the journal was lost after the columns read it.
    rmSync(dayFile({ dataDir: folder, indexPrefix: "tocsin" }, day));
    store = await open(folder);
    expect(await totals(store)).toEqual({ even: 0, all: 0, users: { value: 0 } });
    await store.events.append(drafts(50, day));
    expect(await totals(store)).toEqual(expected(50));
  });

  test("a rebuild reads everything again and reports its progress", async () => {
    const folder = newFolder();
    let store = await open(folder);
    await store.events.append(drafts(3000));
    await store.events.append(drafts(500, startOfDay(Date.now()) - 3 * DAY_MS));
    const before = await totals(store);
    await close(store);
    const progress: number[] = [];
    const rows = await rebuildColumns({ ...options(folder), onProgress: (done, total) => progress.push(done / total) });
    expect(rows).toBe(3500);
    expect(progress.at(-1)).toBe(1);
    store = await open(folder);
    expect(await totals(store)).toEqual(before);
  });

  test("columns of large events are rebuilt in parts, with each event once", async () => {
    const folder = newFolder();
    const store = await open(folder);
    const text = "x".repeat(900_000);
    const large = drafts(20).map(({ draft }) => ({ draft: { ...draft, raw: { ...draft.raw, text } } }));
    await store.events.append(large);
    await close(store);
    rmSync(columnsFile(folder));
    expect(await totals(await open(folder))).toEqual(expected(20));
  });

  test("lists and totals stay correct while rows move from memory to disk", async () => {
    const store = await open(newFolder());
    let appended = 0;
    const writing = new AbortController();
    const reading = (async () => {
      while (!writing.signal.aborted) {
        const known = appended;
        const { all } = await totals(store);
        expect(all).toBeGreaterThanOrEqual(known);
      }
    })();
    for (let i = 0; i < 40; i++) {
      await store.events.append(drafts(250));
      appended += 250;
    }
    writing.abort();
    await reading;
    expect(await totals(store)).toEqual(expected(appended));
  });

  test("leaves no write-ahead log after a clean stop", async () => {
    const folder = newFolder();
    const store = await open(folder);
    await store.events.append(drafts(100));
    await totals(store);
    await close(store);
    expect(existsSync(`${dayFile({ dataDir: folder, indexPrefix: "tocsin" }, startOfDay(Date.now()))}-wal`)).toBe(
      false,
    );
    expect(existsSync(`${columnsFile(folder)}.wal`)).toBe(false);
    // Nor one of a day that was only read.
    const again = await open(folder);
    await totals(again);
    await again.events.list({ search: "user1" }, { mode: "page", page: 1, size: 1 });
    await close(again);
    expect(readdirSync(eventsFolder(folder))).toHaveLength(1);
  });

  test("with events but without rules or keys logs which file is missing or empty", async () => {
    const folder = newFolder();
    const store = await open(folder);
    await store.events.append(drafts(3));
    await close(store);
    const { lines, log } = newLog();
    const openLogged = async () => {
      stores.push(await openStore({ ...options(folder), log }));
      await close(stores.at(-1)!);
      return lines.splice(0).map((line) => (JSON.parse(line) as { path: string }).path);
    };
    expect(await openLogged()).toEqual([]);
    rmSync(casesFile(folder));
    truncateSync(keysFile(folder));
    expect(await openLogged()).toEqual([casesFile(folder), keysFile(folder)]);
    expect(await openLogged()).toEqual([]);
  });
});
