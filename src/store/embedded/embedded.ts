import { rmSync } from "node:fs";
import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import { makeFolder } from "../../lib/folder.ts";
import { Thread } from "../../lib/thread.ts";
import { StoreUnavailable, type ExportStore, type Store } from "../store.ts";
import type { ColumnsApi, ColumnsData } from "./columns/worker.ts";
import { Cases } from "./cases/cases.ts";
import { CommitNews } from "./commit-news.ts";
import { EmbeddedEvents } from "./events.ts";
import { Flows } from "./flows/flows.ts";
import { Journal } from "./journal/journal.ts";
import { Keys } from "./keys.ts";
import { columnsFile, eventsFolder, exportsFolder, otherPrefixes, type Layout } from "./layout.ts";
import { lockDataFolder } from "./lock.ts";
import { PlatformWord } from "./platform-word.ts";
import { Room } from "./room.ts";
import { State } from "./state.ts";
import { searchFault, searchIn } from "./text-search.ts";

// The embedded store: everything in one data folder, held by one process.

export interface EmbeddedOptions {
  readonly dataDir: string;
  readonly platform: string;
  readonly indexPrefix: string;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now?: () => number;
  readonly tailRowsMax?: number;
}

const DROPPED =
  "the columns were damaged, of an older form or not what the journal has; they are being built anew from it";

interface Parts {
  readonly journal: Journal;
  readonly columns: Thread<ColumnsApi>;
  readonly news: CommitNews;
  readonly state: State;
  /** Why the columns were dropped at the start, if they were. */
  readonly dropped: string | undefined;
}

export async function openEmbedded(options: EmbeddedOptions): Promise<Store> {
  const { dataDir, log } = options;
  for (const folder of [eventsFolder(dataDir), exportsFolder(dataDir)]) makeFolder(folder);
  const lock = lockDataFolder(dataDir);
  try {
    const parts = await openParts(options);
    const { journal, columns, news, state } = parts;
    const { platform, indexPrefix, registry, now = Date.now } = options;
    const word = new PlatformWord(state, platform);
    const room = new Room(dataDir, () => journal.lastId, now);
    const events = new EmbeddedEvents({ journal, columns, news, state, word, room });
    await word.agree(dataDir, events).catch(async (error: unknown) => {
      await closeParts(parts, log);
      throw error;
    });
    const cases = await Cases.open({ dataDir, registry, now }).catch(async (error: unknown) => {
      await closeParts(parts, log);
      throw error;
    });
    const flows = await Flows.open({ dataDir, indexPrefix, log, now }).catch(async (error: unknown) => {
      await cases.close();
      await closeParts(parts, log);
      throw error;
    });
    const others = otherPrefixes({ dataDir, indexPrefix });
    if (others.length > 0) log.warn({ index_prefix: indexPrefix, others }, OTHER_PREFIXES);
    const keys = new Keys(dataDir);
    let { dropped } = parts;
    const status = async () => {
      const found = await columns.call("status");
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
    return {
      events,
      alerts: cases.alerts,
      rules: word.around(cases.rules),
      detection: cases.detection,
      notifications: cases.notifications,
      analysis: cases.analysis,
      flows,
      keys,
      exports: exportStore(dataDir, state, columns),
      reputations: state.reputations,
      searchFault,
      searchIn,
      check: async () => {
        await Promise.all([journal.check(), cases.check(), flows.check(), room.check()]);
        const { moveFailure } = await status();
        if (moveFailure) throw new StoreUnavailable("disk_full", `the columns cannot be written: ${moveFailure}`);
      },
      close: async () => {
        await flows.close();
        await cases.close();
        await closeParts(parts, log);
        keys.close();
        lock.close();
      },
    };
  } catch (error) {
    lock.close();
    throw error;
  }
}

const OTHER_PREFIXES =
  "the data folder has events or flows under another index_prefix: they are kept, and neither shown nor removed";

async function openParts(options: EmbeddedOptions): Promise<Parts> {
  const { dataDir, platform, indexPrefix, tailRowsMax, registry, log, now = Date.now } = options;
  const layout: Layout = { dataDir, indexPrefix };
  const state = new State(dataDir);
  const columns = new Thread<ColumnsApi>(
    new URL("./columns/worker.ts", import.meta.url),
    { ...layout, platform, tailRowsMax } satisfies ColumnsData,
    (error) =>
      queueMicrotask(() => {
        throw new Error("the thread of the columns died", { cause: error });
      }),
  );
  const news = new CommitNews(columns);
  const journal = await Journal.open({
    layout,
    registry,
    now,
    used: state.used,
    onCommit: (day, events) => news.add(day, events),
    onAmend: (day, lastAmendment) => news.amended(day, lastAmendment),
  });
  const { dropped } = await columns.call("open", journal.dayEnds);
  if (dropped) log.warn({ reason: dropped }, DROPPED);
  return { journal, columns, news, state, dropped };
}

async function closeParts({ journal, columns, news, state }: Parts, log: Logger): Promise<void> {
  await journal.close();
  try {
    news.tell();
    await columns.call("close");
  } catch (error) {
    // The journal has everything: the columns read what they lack at the next start.
    log.warn({ err: error }, "the columns could not be written out; they will catch up from the journal");
  }
  await columns.end();
  state.close();
}

function exportStore(dataDir: string, state: State, columns: Thread<ColumnsApi>): ExportStore {
  return {
    folder: exportsFolder(dataDir),
    list: () => state.exports(),
    get: (id) => state.findExport(id),
    put: (job) => state.putExport(job),
    remove: (id) => state.removeExport(id),
    toParquet: (from, to, names) => columns.call("toParquet", from, to, names),
  };
}

/** Drops the columns and reads them anew from the journal. */
export async function rebuildColumns(
  options: EmbeddedOptions & { onProgress: (done: number, total: number) => void },
): Promise<number> {
  const { dataDir, log, onProgress } = options;
  makeFolder(eventsFolder(dataDir));
  const lock = lockDataFolder(dataDir);
  try {
    for (const suffix of ["", ".wal"]) rmSync(columnsFile(dataDir) + suffix, { force: true });
    const parts = await openParts(options);
    const total = parts.journal.count();
    const report = async () => onProgress(await parts.columns.call("rowsRead"), total);
    const timer = setInterval(() => {
      void report();
    }, 200);
    try {
      await parts.columns.call("catchUp");
    } finally {
      clearInterval(timer);
    }
    await closeParts(parts, log);
    onProgress(total, total);
    return total;
  } finally {
    lock.close();
  }
}
