import { rmSync } from "node:fs";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { makeFolder } from "../../lib/folder.ts";
import { endingProcess, Thread } from "../../lib/thread.ts";
import { StoreUnavailable } from "../ports/store-errors.ts";
import type { Store } from "../ports/store.ts";
import type { ColumnsApi, ColumnsData } from "../duckdb/columns/columns-thread.ts";
import { openCaseDatabase } from "../sqlite/cases/case-database.ts";
import { readPosition } from "../sqlite/cases/rule-tables.ts";
import { ColumnFeed } from "./column-feed.ts";
import { readEventId } from "../files/event-id.ts";
import { EmbeddedEvents } from "./embedded-events.ts";
import { goneAmong } from "../files/file-identity.ts";
import { FileWatch } from "./file-watch.ts";
import { FlowDatabase } from "../duckdb/flows/flow-database.ts";
import { Journal } from "../sqlite/journal/journal.ts";
import { removeEmptyLogs } from "../sqlite/journal/day-file.ts";
import { KeyDatabase } from "../sqlite/key-database.ts";
import {
  casesFile,
  columnsFile,
  eventsFolder,
  isMissing,
  keysFile,
  otherPrefixes,
  type Layout,
} from "../files/layout.ts";
import { lockDataFolder, type Lock } from "./lock.ts";
import { refuseNewerFiles } from "./newer-files.ts";
import { Manifest } from "../sqlite/manifest.ts";
import { PlatformWord } from "./platform-word.ts";
import { DiskSpaceProbe } from "./disk-space-probe.ts";
import { StateDatabase, type Used } from "../sqlite/state-database.ts";

// The embedded store: everything in one data folder, held by one process.

export interface EmbeddedOptions {
  readonly dataDir: string;
  readonly platform: string;
  readonly indexPrefix: string;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now?: () => number;
  readonly tailRowsMax?: number;
  readonly restMs?: number;
  /** How often files are looked at that nobody writes to; tests do not wait. */
  readonly watchMs?: number;
}

const DROPPED =
  "the columns were damaged, of an older form or not what the journal has; they are being built anew from it";

interface StoreParts {
  readonly journal: Journal;
  readonly columns: Thread<ColumnsApi>;
  readonly news: ColumnFeed;
  readonly state: StateDatabase;
  readonly manifest: Manifest;
  /** Why the columns were dropped at the start, if they were. */
  readonly dropped: string | undefined;
}

export async function openEmbedded(options: EmbeddedOptions): Promise<Store> {
  const { dataDir, log } = options;
  const opened = new Opened();
  try {
    const { lock, flows } = await takeFolder(options, opened);
    const parts = await openParts(options, opened);
    const { journal, columns, news, state, manifest } = parts;
    const { platform, indexPrefix, registry, now = Date.now } = options;
    const word = new PlatformWord(state, platform);
    const room = new DiskSpaceProbe(dataDir, () => journal.lastId, now);
    const events = new EmbeddedEvents({ journal, columns, news, state, manifest, word, room });
    await word.agree(dataDir, events);
    const lost = journal.lastId === null ? [] : lostFiles(dataDir);
    for (const path of lost) log.warn({ path }, LOST);
    const keys = new KeyDatabase(dataDir, { wereLost: lost.includes(keysFile(dataDir)) });
    opened.add(() => keys.close());
    const cases = await openCaseDatabase({ dataDir, registry, now });
    opened.add(() => cases.close());
    await flows.open(manifest);
    const watch = new FileWatch({
      look: async () => [
        ...goneAmong([lock.identity]),
        ...keys.goneFiles,
        ...state.goneFiles,
        ...(await Promise.all([journal.goneFiles(), cases.goneFiles(), flows.goneFiles()])).flat(),
      ],
      registry,
      log,
      everyMs: options.watchMs,
    });
    opened.add(() => watch.close());
    const others = otherPrefixes({ dataDir, indexPrefix });
    if (others.length > 0) log.warn({ index_prefix: indexPrefix, others }, OTHER_PREFIXES);
    let { dropped } = parts;
    const askStatus = patient(() => columns.call("status"));
    const status = async () => {
      const found = await askStatus();
      if (found.dropped !== dropped) log.warn({ reason: found.dropped }, DROPPED);
      dropped = found.dropped;
      return found;
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
      help: "Events since the start that are too large for the columns: questions read them from the journal",
      registers: [registry],
      async collect() {
        this.set((await status()).oversized);
      },
    });
    new Counter({
      name: "tocsin_questions_refused_total",
      help: "Questions about events, alerts or flows that were refused because too many others were under way",
      registers: [registry],
      async collect() {
        this.reset();
        this.inc((await status()).refused + journal.queries.refused + flows.refused + cases.refused);
      },
    });
    new Gauge({
      name: "tocsin_engine_memory_bytes",
      help: "Memory that each column engine holds by its own account: what it has read, tables in memory, work in progress",
      labelNames: ["engine"],
      registers: [registry],
      async collect() {
        this.reset();
        // An engine that is damaged or closing has no figure; the other metrics have theirs.
        const engines = { columns: columns.call("memory"), flows: flows.memory() };
        await Promise.allSettled(
          Object.entries(engines).map(async ([engine, bytes]) => this.set({ engine }, await bytes)),
        );
      },
    });
    return {
      events,
      alerts: cases.alerts,
      rules: word.around(cases.rules),
      detection: cases.detection,
      notifications: cases.notifications,
      analysis: cases.analysis,
      flows,
      keys,
      exports: state.exports,
      reputations: state.reputations,
      retention: {
        notes: async () => state.retention,
        save: async (notes) => state.saveRetention(notes),
        due: (kind, beforeMs) =>
          kind === "alerts" ? cases.dueAlerts(beforeMs) : Promise.resolve(manifest.rowsBefore(kind, beforeMs)),
      },
      missing: async (kind, { fromMs, toMs } = {}) => manifest.missing(kind, fromMs, toMs),
      check: async () => {
        // Side by side: on a machine without idle cores, every thread that is asked answers late.
        const parts = [journal.check(), cases.check(), flows.check(), room.check(), watch.check()];
        const [{ flushFailure }] = await Promise.all([status(), ...parts]);
        if (flushFailure) throw new StoreUnavailable("disk_full", `the columns cannot be written: ${flushFailure}`);
      },
      close: () => opened.close(),
    };
  } catch (error) {
    await opened.abandon(log);
    throw error;
  }
}

/** Locks the folder and makes sure that no newer version has written there. Until then nothing in it is changed. */
async function takeFolder(options: EmbeddedOptions, opened: Opened): Promise<{ lock: Lock; flows: FlowDatabase }> {
  const { dataDir, indexPrefix, restMs, log, now = Date.now } = options;
  makeFolder(dataDir);
  const lock = lockDataFolder(dataDir);
  opened.add(() => lock.close());
  refuseNewerFiles(dataDir);
  const flows = new FlowDatabase({ dataDir, indexPrefix, idleMs: restMs, log, now });
  opened.add(() => flows.close());
  await flows.refuseNewer();
  lock.sign();
  makeFolder(eventsFolder(dataDir));
  return { lock, flows };
}

/** How long readiness and metrics wait for the columns, whose thread may be in the middle of a question. */
const STATUS_MS_MAX = 500;

/** Asks anew each time, and gives what was said last where the answer takes long. */
function patient<Value>(ask: () => Promise<Value>): () => Promise<Value> {
  let last: Value | undefined;
  return async () => {
    const asked = ask().then((value) => (last = value));
    if (last === undefined) return asked;
    const { promise: late, resolve } = Promise.withResolvers<Value>();
    const timer = setTimeout(() => resolve(last!), STATUS_MS_MAX);
    try {
      return await Promise.race([asked, late]);
    } finally {
      clearTimeout(timer);
    }
  };
}

/** What has been opened so far, and how it is closed: a store that does not open leaves nothing behind that keeps the process. */
class Opened {
  readonly #closers: (() => unknown)[] = [];

  add(close: () => unknown): void {
    this.#closers.push(close);
  }

  /** The last first. What fails to close must not keep the others open: the first failure is told once all were tried. */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (let close = this.#closers.pop(); close; close = this.#closers.pop()) {
      try {
        await close();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  /** For a store that did not open: why it did not is what is told. */
  async abandon(log: Logger): Promise<void> {
    await this.close().catch((error: unknown) => log.warn({ err: error }, "not closed cleanly"));
  }
}

const LOST = "the data folder has events, and this file is missing or empty: what it held is gone, it begins anew";

/** Whatever put events into the folder has made these files. */
function lostFiles(dataDir: string): string[] {
  return [casesFile(dataDir), keysFile(dataDir)].filter(isMissing);
}

const OTHER_PREFIXES =
  "the data folder has events or flows under another index_prefix: they are kept, and neither shown nor removed";

async function openParts(options: EmbeddedOptions, opened: Opened): Promise<StoreParts> {
  const { dataDir, platform, indexPrefix, tailRowsMax, restMs, registry, log, now = Date.now } = options;
  const layout: Layout = { dataDir, indexPrefix };
  const state = new StateDatabase(layout);
  opened.add(() => state.close());
  const manifest = new Manifest({ state, registry, log, now });
  opened.add(() => manifest.close());
  const columns = new Thread<ColumnsApi>(
    new URL("../duckdb/columns/columns-thread.ts", import.meta.url),
    { ...layout, platform, memtableRowsMax: tailRowsMax, idleMs: restMs } satisfies ColumnsData,
    endingProcess("the thread of the columns"),
  );
  const news = new ColumnFeed(columns);
  let isOpen = false;
  opened.add(async () => {
    if (isOpen) await writeOut(columns, news, log);
    await columns.end();
    if (isOpen) removeEmptyLogs(layout);
  });
  const journal = await Journal.open({
    layout,
    registry,
    now,
    used: usedSoFar(state, dataDir),
    onCommit: (day, events) => {
      manifest.added("events", day, events.length);
      news.add(day, events);
    },
    onAmend: (day, lastAmendment) => news.amended(day, lastAmendment),
  });
  opened.add(() => journal.close());
  manifest.settle("events", new Map(journal.dayEnds.map(({ day, rows }) => [day, rows])));
  const { dropped, lost } = await columns.call("open", journal.dayEnds);
  // The columns do not know prefixes: what they have of another one is not lost.
  if (otherPrefixes(layout).length === 0) for (const [day, rows] of lost) manifest.noteLoss("events", day, rows);
  isOpen = true;
  if (dropped) log.warn({ reason: dropped }, DROPPED);
  return { journal, columns, news, state, manifest, dropped };
}

/** Numbers also go on above what detection has looked at: it would take new events for some that it has seen. */
function usedSoFar({ used }: StateDatabase, dataDir: string): Used {
  const position = readPosition(dataDir);
  const seen = position === null ? undefined : readEventId(position);
  if (!seen) return used;
  return { seq: Math.max(used.seq, seen.seq), arrivedMs: Math.max(used.arrivedMs, seen.arrivedMs) };
}

async function writeOut(columns: Thread<ColumnsApi>, news: ColumnFeed, log: Logger): Promise<void> {
  try {
    news.tell();
    await columns.call("close");
  } catch (error) {
    // The journal has everything: the columns read what they lack at the next start.
    log.warn({ err: error }, "the columns could not be written out; they will catch up from the journal");
  }
}

/** Drops the columns and reads them anew from the journal. */
export async function rebuildColumns(
  options: EmbeddedOptions & { onProgress: (done: number, total: number) => void },
): Promise<number> {
  const { dataDir, log, onProgress } = options;
  const opened = new Opened();
  try {
    await takeFolder(options, opened);
    for (const suffix of ["", ".wal"]) rmSync(columnsFile(dataDir) + suffix, { force: true });
    const { journal, columns } = await openParts(options, opened);
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
