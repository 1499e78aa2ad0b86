import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pino from "pino";
import { Registry } from "prom-client";
import { afterEach, describe, expect, test } from "vitest";
import { DAY_MS, startOfDay } from "../../../lib/time.ts";
import { Thread } from "../../../lib/thread.ts";
import { makeFolder } from "../../../lib/folder.ts";
import type { Store } from "../../ports/store.ts";
import { openStore } from "../../open-store.ts";
import { dayFile, eventsFolder, type Layout } from "../../files/layout.ts";
import { openDayForWriting, WordsMerger } from "./day-file.ts";
import type { CheckpointerApi } from "./checkpointer-thread.ts";
import { WriteAheadLogs } from "./write-ahead-logs.ts";
import type { WriterApi } from "./journal-writer-thread.ts";

const today = startOfDay(Date.now());
const folders: string[] = [];
const stores: Store[] = [];
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newLayout(): Layout {
  const dataDir = mkdtempSync(join(tmpdir(), "tocsin-day-"));
  folders.push(dataDir);
  makeFolder(eventsFolder(dataDir));
  return { dataDir, indexPrefix: "tocsin" };
}

async function open(layout: Layout): Promise<Store> {
  const registry = new Registry();
  const store = await openStore({ ...layout, platform: "platform", registry, log: pino({ level: "silent" }) });
  stores.push(store);
  return store;
}

/** An event of that day that contains the word "pad". */
const event = (day: number) => ({
  draft: {
    type: "x",
    source: "custom",
    severity: "info",
    class: "security",
    timestampMs: day + 1000,
    raw: { note: "pad" },
    enrichment: {},
  } as const,
});

const page = { mode: "page", page: 1, size: 10 } as const;

/** The number of events that each engine finds. */
async function totalsOf(store: Store): Promise<number[]> {
  const filters = [{}, { search: "pad" }, { search: '"pad"' }, { type: "x" }];
  const totals = await Promise.all(filters.map(async (filter) => (await store.events.list(filter, page)).total));
  return [...totals, await store.events.count()];
}

// The tables that an older version, which created them one by one, could leave behind when it was killed.
const STAGES = [
  "CREATE TABLE events(seq INTEGER PRIMARY KEY, ts INTEGER NOT NULL, body TEXT NOT NULL, token TEXT) STRICT",
  "CREATE INDEX events_ts ON events(ts)",
  "CREATE TABLE blocks(block INTEGER PRIMARY KEY, min_ts INTEGER NOT NULL, max_ts INTEGER NOT NULL, rows INTEGER NOT NULL) STRICT",
  "CREATE TABLE amendments(number INTEGER PRIMARY KEY, seq INTEGER NOT NULL) STRICT",
];

describe("a day file that was never completed", () => {
  test.each([0, 1, 2, 3, 4])(
    "with the first %i statements run is a day without events and accepts its first one",
    async (stages) => {
      const layout = newLayout();
      const half = new DatabaseSync(dayFile(layout, today - DAY_MS));
      half.exec("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL");
      for (const sql of STAGES.slice(0, stages)) half.exec(sql);
      half.close();
      const store = await open(layout);
      await store.events.append([event(today)]);
      expect(await totalsOf(store)).toEqual([1, 1, 1, 1, 1]);
      await store.events.append([event(today - DAY_MS)]);
      expect(await totalsOf(store)).toEqual([2, 2, 2, 2, 2]);
    },
  );

  test("without a byte is a day without events as well", async () => {
    const layout = newLayout();
    new DatabaseSync(dayFile(layout, today)).close();
    const store = await open(layout);
    expect(await totalsOf(store)).toEqual([0, 0, 0, 0, 0]);
    await store.events.append([event(today)]);
    expect(await totalsOf(store)).toEqual([1, 1, 1, 1, 1]);
  });
});

const LOG_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;

/** The number of commits in a write-ahead log. The last frame of a commit has the size of the file, the others have 0. */
function commitsIn(log: Buffer): number {
  const frameBytes = FRAME_HEADER_BYTES + log.readUInt32BE(8);
  let commits = 0;
  for (let at = LOG_HEADER_BYTES; at + frameBytes <= log.length; at += frameBytes) {
    if (log.readUInt32BE(at + 4) > 0) commits++;
  }
  return commits;
}

test("a checkpoint of a file that another connection holds is counted as failed and retried in the next turn", async () => {
  const layout = newLayout();
  const fill = () => {
    const db = openDayForWriting(layout, today);
    db.exec("INSERT INTO events(ts, body) VALUES (1, '{}')");
    return db;
  };
  fill().close();
  const failed = Promise.withResolvers<void>();
  const onDeath = (error: Error) => failed.reject(error);
  const urlOf = (file: string) => new URL(file, import.meta.url);
  const writer = new Thread<WriterApi>(urlOf("./journal-writer-thread.ts"), layout, onDeath);
  let failures = 0;
  const logs = new WriteAheadLogs(
    layout,
    writer,
    () => new Thread<CheckpointerApi>(urlOf("./checkpointer-thread.ts"), layout, onDeath),
    () => {
      failures++;
      failed.resolve();
    },
  );
  const holder = new DatabaseSync(dayFile(layout, today));
  holder.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT");
  logs.grew(today, 10_000);
  logs.checkpointIfDue();
  await failed.promise;
  holder.close();
  // An open connection keeps the log from being removed.
  const db = fill();
  const movedPages = () => (db.prepare("PRAGMA wal_checkpoint(NOOP)").get() as { checkpointed: number }).checkpointed;
  expect(movedPages()).toBe(0);
  // The failed turn ends only now.
  await new Promise(setImmediate);
  logs.grew(today, 10_000);
  logs.checkpointIfDue();
  await logs.close();
  expect(movedPages()).toBeGreaterThan(0);
  expect(failures).toBe(1);
  db.close();
  await writer.end();
});

test("a day file gets all its tables in one commit, so that a killed process leaves all of them or none", () => {
  const layout = newLayout();
  const db = openDayForWriting(layout, today);
  const tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all() as { name: string }[];
  expect(tables.map(({ name }) => name)).toEqual(expect.arrayContaining(["events", "blocks", "amendments", "words"]));
  expect(commitsIn(readFileSync(`${dayFile(layout, today)}-wal`))).toBe(1);
  db.close();
});

describe("the full-text index of a day", () => {
  const segmentsOf = (db: DatabaseSync) =>
    (db.prepare("SELECT count(DISTINCT segid) AS count FROM words_idx").get() as { count: number }).count;
  const commitGroups = (db: DatabaseSync, from: number, count: number) => {
    const insert = db.prepare("INSERT INTO words(rowid, text) VALUES (?, ?)");
    for (let row = from; row < from + count; row++) insert.run(row, `word${row} pad`);
  };

  test("is not merged by commits themselves, even in a file with older settings", () => {
    const layout = newLayout();
    let db = openDayForWriting(layout, today);
    commitGroups(db, 1, 20);
    expect(segmentsOf(db)).toBe(20);
    db.exec("INSERT INTO words(words, rank) VALUES ('crisismerge', 16), ('automerge', 4); PRAGMA user_version = 0");
    db.close();
    db = openDayForWriting(layout, today);
    commitGroups(db, 21, 20);
    expect(segmentsOf(db)).toBe(40);
    db.close();
  });

  test("is merged a little with each group, which bounds the number of segments", () => {
    const db = openDayForWriting(newLayout(), today);
    const merger = new WordsMerger(db);
    const segmentCounts: number[] = [];
    for (let group = 0; group < 1000; group++) {
      db.exec("BEGIN");
      commitGroups(db, group * 5 + 1, 5);
      merger.run(["x".repeat(500)]);
      db.exec("COMMIT");
      segmentCounts.push(segmentsOf(db));
    }
    expect(Math.max(...segmentCounts)).toBeLessThan(64);
    const total = db.prepare("SELECT count(*) AS count FROM words WHERE words MATCH 'pad'").get();
    expect(total).toEqual({ count: 5000 });
    db.close();
  });
});
