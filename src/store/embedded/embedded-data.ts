import { rmSync } from "node:fs";
import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import { OpenedParts } from "../../lib/opened-parts.ts";
import { makeFolder } from "../../lib/folder.ts";
import { endingProcess, Thread } from "../../lib/thread.ts";
import { StoreUnavailable } from "../ports/store-errors.ts";
import type { DataPart } from "../ports/store.ts";
import type { ColumnsApi, ColumnsData } from "../duckdb/columns/columns-thread.ts";
import { readPosition } from "../sqlite/cases/rule-tables.ts";
import { ColumnFeed } from "./column-feed.ts";
import { readEventId } from "../files/event-id.ts";
import { EmbeddedEvents } from "./embedded-events.ts";
import { goneAmong, type GoneFile } from "../files/file-identity.ts";
import { openFlowDatabase, type FlowDatabase } from "../duckdb/flows/flow-database.ts";
import { openJournal, type Journal } from "../sqlite/journal/journal.ts";
import { removeEmptyLogs } from "../sqlite/journal/day-file.ts";
import { columnsFile, eventsFolder, otherPrefixes, type Layout } from "../files/layout.ts";
import { lockDataFolder, type Lock } from "./lock.ts";
import { refuseNewerFiles } from "./newer-files.ts";
import { rollBackHotJournals } from "../sqlite/hot-journals.ts";
import { Manifest } from "../sqlite/manifest.ts";
import { folderPlace, folderWord, PlatformWord } from "./platform-word.ts";
import { StorageSpaceGauge } from "./storage-space.ts";
import { DiskSpaceProbe } from "./disk-space-probe.ts";
import { openStateDatabase, type StateDatabase, type Used } from "../sqlite/state-database.ts";

// Events and flows in the data folder, which one process holds.

export interface EmbeddedOptions {
  readonly dataDir: string;
  readonly platform: string;
  readonly indexPrefix: string;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now?: () => number;
  readonly tailRowsMax?: number;
  readonly restMs?: number;
  /** How often idle files are checked; tests do not wait. */
  readonly watchMs?: number;
}

const DROPPED =
  "the columns are damaged, of an older version or inconsistent with the journal; they are being rebuilt from it";

interface StoreParts {
  readonly journal: Journal;
  readonly columns: Thread<ColumnsApi>;
  readonly feed: ColumnFeed;
  readonly state: StateDatabase;
  readonly manifest: Manifest;
  /** Why the columns were dropped at the start, if they were. */
  readonly dropped: string | undefined;
}

export interface EmbeddedData extends DataPart {
  readonly state: StateDatabase;
  readonly platformWord: PlatformWord;
  /** Queries refused because there were too many others. */
  readonly refused: () => Promise<number>;
  /** False while the folder has no events. */
  readonly hasEvents: boolean;
  /** Begins with flows, once everything else is open. */
  start(): Promise<void>;
  goneFiles(): Promise<readonly GoneFile[]>;
}

/** `position` reads where detection is in the journal. */
export async function openEmbeddedData(
  options: EmbeddedOptions,
  opened: OpenedParts,
  position: () => Promise<string | null>,
): Promise<EmbeddedData> {
  const { dataDir, log } = options;
  const { lock, flows } = await takeFolderOfData(options, opened);
  const parts = await openParts(options, opened, position);
  const { journal, columns, feed, state, manifest } = parts;
  const { platform, indexPrefix, registry, now = Date.now } = options;
  const platformWord = new PlatformWord(folderWord(state), folderPlace(dataDir), platform);
  const space = new StorageSpaceGauge(dataDir);
  const diskSpace = new DiskSpaceProbe(dataDir, () => journal.lastId, now);
  const events = new EmbeddedEvents({ journal, columns, feed, state, manifest, platformWord, diskSpace });
  await platformWord.agree(events);
  const otherPrefixesFound = otherPrefixes({ dataDir, indexPrefix });
  if (otherPrefixesFound.length > 0)
    log.warn({ index_prefix: indexPrefix, others: otherPrefixesFound }, OTHER_PREFIXES);
  let { dropped } = parts;
  const readStatus = withTimeout(() => columns.call("status"));
  const status = async () => {
    const current = await readStatus();
    if (current.dropped !== dropped) log.warn({ reason: current.dropped }, DROPPED);
    dropped = current.dropped;
    return current;
  };
  new Gauge({
    name: "tocsin_columns_lag_events",
    help: "Events that the journal has and the columns have not read yet",
    registers: [registry],
    async collect() {
      this.set((await status()).lag);
    },
  });
  new Gauge({
    name: "tocsin_columns_large_events",
    help: "Events since the start that are too large for the columns; queries read them from the journal",
    registers: [registry],
    async collect() {
      this.set((await status()).oversized);
    },
  });
  new Gauge({
    name: "tocsin_columns_field_columns",
    help: "Fields without a column of their own that were given one because they were aggregated",
    registers: [registry],
    async collect() {
      this.set((await status()).fieldColumns);
    },
  });
  new Gauge({
    name: "tocsin_engine_memory_bytes",
    help: "Memory that each column engine reports for its cache, tables in memory and work in progress",
    labelNames: ["engine"],
    registers: [registry],
    async collect() {
      this.reset();
      // A damaged or closing engine has no figure; that must not fail the scrape.
      const engines = { columns: columns.call("memory"), flows: flows.memory() };
      await Promise.allSettled(
        Object.entries(engines).map(async ([engine, bytes]) => this.set({ engine }, await bytes)),
      );
    },
  });
  return {
    events,
    flows,
    state,
    platformWord,
    refused: async () => (await status()).refused + journal.queries.refused + flows.refused,
    hasEvents: journal.lastId !== null,
    start: () => flows.start(manifest),
    rowsBefore: async (kind, beforeMs) => manifest.rowsBefore(kind, beforeMs),
    space: () => space.measure(),
    missing: async (kind, { fromMs, toMs } = {}) => manifest.missing(kind, fromMs, toMs),
    goneFiles: async () => [
      ...goneAmong([lock.identity]),
      ...state.goneFiles,
      ...(await Promise.all([journal.goneFiles(), flows.goneFiles()])).flat(),
    ],
    check: async () => {
      // In parallel: on a busy machine every thread answers late.
      const [{ flushFailure }] = await Promise.all([status(), journal.check(), flows.check(), diskSpace.check()]);
      if (flushFailure) throw new StoreUnavailable("disk_full", `the columns cannot be written: ${flushFailure}`);
    },
  };
}

/** Locks the folder and checks that no newer version has written there. Changes nothing in it. */
export function takeFolder(dataDir: string, opened: OpenedParts): Lock {
  makeFolder(dataDir);
  const lock = lockDataFolder(dataDir);
  opened.add(() => lock.close());
  refuseNewerFiles(dataDir);
  return lock;
}

/** Locks the folder, and opens the flows in it: only they know whether a newer version has written them. */
async function takeFolderOfData(
  options: EmbeddedOptions,
  opened: OpenedParts,
): Promise<{ lock: Lock; flows: FlowDatabase }> {
  const { dataDir, indexPrefix, restMs, log, now = Date.now } = options;
  const lock = takeFolder(dataDir, opened);
  const flows = await openFlowDatabase({ dataDir, indexPrefix, idleMs: restMs, log, now });
  opened.add(() => flows.close());
  lock.sign();
  makeFolder(eventsFolder(dataDir));
  rollBackHotJournals(dataDir);
  return { lock, flows };
}

/** How long readiness and metrics wait for the columns, whose thread may be in the middle of a query. */
const STATUS_MS_MAX = 500;

/** Reads the value each time, and returns the last one if that takes too long. */
function withTimeout<Value>(read: () => Promise<Value>): () => Promise<Value> {
  let last: Value | undefined;
  return async () => {
    const answer = read().then((value) => (last = value));
    if (last === undefined) return answer;
    const { promise: late, resolve } = Promise.withResolvers<Value>();
    const timer = setTimeout(() => resolve(last!), STATUS_MS_MAX);
    try {
      return await Promise.race([answer, late]);
    } finally {
      clearTimeout(timer);
    }
  };
}

const OTHER_PREFIXES =
  "the data folder has events or flows under another index_prefix: they are neither shown nor removed";

async function openParts(
  options: EmbeddedOptions,
  opened: OpenedParts,
  position: () => Promise<string | null>,
): Promise<StoreParts> {
  const { dataDir, platform, indexPrefix, tailRowsMax, restMs, registry, log, now = Date.now } = options;
  const layout: Layout = { dataDir, indexPrefix };
  const state = await openStateDatabase(layout);
  opened.add(() => state.close());
  const manifest = new Manifest({ state, registry, log, now });
  opened.add(() => manifest.close());
  const columns = new Thread<ColumnsApi>(
    new URL("../duckdb/columns/columns-thread.ts", import.meta.url),
    { ...layout, platform, memtableRowsMax: tailRowsMax, idleMs: restMs } satisfies ColumnsData,
    endingProcess("the thread of the columns"),
  );
  const feed = new ColumnFeed(columns);
  let isOpen = false;
  opened.add(async () => {
    if (isOpen) await flushColumns(columns, feed, log);
    await columns.end();
    if (isOpen) removeEmptyLogs(layout);
  });
  const journal = await openJournal({
    layout,
    registry,
    now,
    used: usedSoFar(state, await position()),
    onCommit: (day, events) => {
      manifest.added("events", day, events.length);
      feed.add(day, events);
    },
    onAmend: (day, lastAmendment) => feed.amended(day, lastAmendment),
  });
  opened.add(() => journal.close());
  manifest.settle("events", new Map(journal.dayEnds.map(({ day, rows }) => [day, rows])));
  const { dropped, lost } = await columns.call("open", journal.dayEnds);
  // The columns do not store prefixes: rows of another prefix are not lost.
  if (otherPrefixes(layout).length === 0) for (const [day, rows] of lost) manifest.noteLoss("events", day, rows);
  isOpen = true;
  if (dropped) log.warn({ reason: dropped }, DROPPED);
  return { journal, columns, feed, state, manifest, dropped };
}

/** Sequence numbers continue above detection's position too; otherwise it would skip new events as already seen. */
function usedSoFar({ used }: StateDatabase, position: string | null): Used {
  const seen = position === null ? undefined : readEventId(position);
  if (!seen) return used;
  return { seq: Math.max(used.seq, seen.seq), arrivedMs: Math.max(used.arrivedMs, seen.arrivedMs) };
}

async function flushColumns(columns: Thread<ColumnsApi>, feed: ColumnFeed, log: Logger): Promise<void> {
  try {
    feed.send();
    await columns.call("close");
  } catch (error) {
    // Nothing is lost: the columns read the missing rows from the journal at the next start.
    log.warn({ err: error }, "the columns could not be flushed; they will catch up from the journal at the next start");
  }
}

/** Drops the columns and rebuilds them from the journal. Returns the number of events. */
export async function rebuildColumns(options: ColumnsProgress): Promise<number> {
  const { dataDir, log } = options;
  const opened = new OpenedParts();
  try {
    await takeFolderOfData(options, opened);
    for (const suffix of ["", ".wal"]) rmSync(columnsFile(dataDir) + suffix, { force: true });
    const total = await fillColumns(options);
    await opened.close();
    return total;
  } catch (error) {
    await opened.abandon(log);
    throw error;
  }
}

export interface ColumnsProgress extends EmbeddedOptions {
  readonly onProgress: (done: number, total: number) => void;
}

/** Brings the columns up to date with the journal, in a folder that the caller holds. Returns the number of events. */
export async function fillColumns(options: ColumnsProgress): Promise<number> {
  const { dataDir, log, onProgress } = options;
  const opened = new OpenedParts();
  try {
    const { journal, columns } = await openParts(options, opened, async () => readPosition(dataDir));
    const total = journal.count();
    const report = async () => onProgress(await columns.call("rowsRead"), total);
    const timer = setInterval(() => {
      void report();
    }, 200);
    try {
      await columns.call("catchUp");
    } finally {
      clearInterval(timer);
    }
    await opened.close();
    onProgress(total, total);
    return total;
  } catch (error) {
    await opened.abandon(log);
    throw error;
  }
}
