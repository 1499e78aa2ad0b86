import { setImmediate as nextTurn } from "node:timers/promises";
import { workerData } from "node:worker_threads";
import { FlowDecoder } from "../collectors/flows/flow-decoder.ts";
import { TemplateFile } from "../collectors/flows/netflow/template-file.ts";
import type { ParsedFlow } from "../collectors/formats/reading.ts";
import { RingReader, type RingMemory } from "../collectors/flows/packet-ring.ts";
import {
  lateMessage,
  type Drops,
  type ExporterTotals,
  type ExporterStatus,
  type WindowsStatus,
} from "../collectors/flows/flow-status.ts";
import { serveThread } from "../lib/thread.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import type { FlowRows } from "../model/flow.ts";
import { JOURNAL_FILE_BYTES_MAX, WindowJournal } from "./window-journal.ts";
import { NO_SUMMARIES, HostSummaries, type SummaryEvent, type SummarySettings } from "./host-summaries.ts";
import type { WindowTable } from "./window-table.ts";
import { FlowWindows, type FlowWindowSettings } from "./flow-windows.ts";

// The thread that decodes and aggregates: it reads datagrams from the ring and hands out closed windows on request.

export interface FlowPipelineThreadData {
  readonly ring: RingMemory;
  readonly journalFolder: string;
  readonly journalMs: number;
  /** Templates saved over a restart. */
  readonly templatesFile: string;
  readonly platform: string;
  readonly clockSkewMaxMs: number;
  readonly windows: FlowWindowSettings;
  readonly summary: SummarySettings | null;
  /** Unique to each start. */
  readonly run: string;
}

/** Part of a closed window, for the store. */
export interface WindowPart {
  readonly batchId: string;
  readonly rows: FlowRows;
  readonly events: readonly SummaryEvent[];
  /** Busy hosts without an event because there are too many. */
  readonly hostsLeft: number;
  /** Error messages since the last part, for the log. */
  readonly troubles: readonly string[];
}

export interface FlowThreadStatus {
  readonly exporters: ExporterStatus[];
  readonly drops: Drops;
  readonly totals: ExporterTotals;
  readonly windows: WindowsStatus;
}

const PART_ROWS_MAX = 65_536;
/** Datagrams decoded before the event loop gets a turn. */
const DATAGRAMS_PER_TURN = 256;
const TICK_MS = 1000;
const TROUBLES_MAX = 100;

const data = workerData as FlowPipelineThreadData;
const ring = new RingReader(data.ring);
const journal = new WindowJournal(data.journalFolder, { onTrouble: noteTrouble });
const decoder = new FlowDecoder({
  clockSkewMaxMs: data.clockSkewMaxMs,
  take: (batch) => windows.add(batch, Date.now()),
});
const templates = new TemplateFile(data.templatesFile, decoder);
const windows = new FlowWindows(
  data.windows,
  {
    addressBytes: (index) => decoder.exporter(index).addressBytes,
    tooLate: (index) => {
      decoder.exporter(index).dropLate(lateMessage(data.windows.lateMaxMs), Date.now());
    },
    accepted: (index, nowMs) => {
      decoder.exporter(index).lastAcceptedMs = nowMs;
    },
  },
  data.run,
  (table) => void enqueueJournal(() => queueClosed(table)),
);

const { lateMaxMs, graceMs, rowsMax } = data.windows;
const summaries = data.summary
  ? new HostSummaries(data.summary, { lookbackMs: lateMaxMs + graceMs, entriesMax: rowsMax }, data.platform)
  : undefined;

const troubles: string[] = [];
/** Closed windows, oldest first, with the number of rows stored of each. */
const ready: { readonly table: WindowTable; stored: number }[] = [];
/** The end of the part that was handed out and is not confirmed yet. */
let offeredEnd: number | undefined;
let writtenRows = 0;
let pendingTake: ((part: WindowPart | null) => void) | undefined;
let stopping = false;
let draining: Promise<void> | undefined;
const journalQueue = new SerialQueue();
let journalFailures = 0;
let ticks = 0;

/** Serialises writes to the journal. */
function enqueueJournal(work: () => Promise<void>): Promise<void> {
  return journalQueue.take(work).catch((error: unknown) => {
    noteTrouble((error as Error).message);
  });
}

function noteTrouble(message: string): void {
  journalFailures++;
  const trouble = `flow window journal: ${message}`;
  if (troubles.length < TROUBLES_MAX && !troubles.includes(trouble)) troubles.push(trouble);
}

/** A closed window is handed out only after it is written: otherwise its parts could differ after a crash. */
async function queueClosed(table: WindowTable): Promise<void> {
  try {
    await journal.write(table, true);
  } finally {
    ready.push({ table, stored: 0 });
    answerTake();
  }
}

/** Releases a stored table. Its file stays for as long as summaries need it after a restart. */
async function release(table: WindowTable): Promise<void> {
  if (!summaries) return journal.remove(table);
  await journal.keep(table);
  await journal.removeStored(summaries.oldestMinute);
}

function answerTake(): void {
  const next = ready[0];
  if (!pendingTake || (!next && !stopping)) return;
  const resolve = pendingTake;
  pendingTake = undefined;
  resolve(next ? partOf(next.table, next.stored) : null);
}

function partOf(table: WindowTable, from: number): WindowPart {
  const to = Math.min(table.count, from + PART_ROWS_MAX);
  offeredEnd = to;
  const summary = (from === 0 && summaries?.summarise(table, Date.now())) || { events: [], left: 0 };
  return {
    batchId: `${table.id}.${from}`,
    rows: table.rows(from, to),
    events: summary.events,
    hostsLeft: summary.left,
    troubles: troubles.splice(0),
  };
}

async function drain(): Promise<void> {
  do {
    while (ring.read(DATAGRAMS_PER_TURN, (...datagram) => decoder.decode(...datagram)) > 0) {
      decoder.flush();
      await nextTurn();
    }
  } while (!ring.trySleep());
}

function tick(): void {
  const nowMs = Date.now();
  ticks++;
  decoder.expire(nowMs);
  windows.closeDue(nowMs);
  void enqueueJournal(() => templates.saveIfDue(nowMs));
  if (ticks % Math.max(1, Math.round(data.journalMs / TICK_MS)) !== 0) return;
  for (const table of windows.tables()) {
    if (journal.sizeOf(table) > JOURNAL_FILE_BYTES_MAX) windows.closeEarly(table);
    else void enqueueJournal(() => journal.write(table, false));
  }
}

async function flush(): Promise<void> {
  await draining;
  windows.closeAll();
  await journalQueue.settled();
}

const api = {
  /** Recovers the windows of the last run; returns the number of rows and the errors. */
  async start(): Promise<{ rows: number; troubles: readonly string[] }> {
    const trouble = await templates.load();
    if (trouble !== undefined) troubles.push(trouble);
    let rows = 0;
    for await (const table of journal.recoverStored()) summaries?.restore(table, Date.now());
    await journal.removeStored(summaries?.oldestMinute ?? Infinity);
    for await (const { table, closed } of journal.recover()) {
      windows.addRecovered(table);
      rows += table.count;
      if (closed) ready.push({ table, stored: 0 });
      else await enqueueJournal(() => queueClosed(table));
    }
    setInterval(tick, TICK_MS);
    return { rows, troubles: troubles.splice(0) };
  },
  /** Wakes the reader of the ring. */
  drain(): Promise<void> {
    draining = (draining ?? Promise.resolve()).then(drain);
    return draining;
  },
  /** Returns the next part of a closed window as soon as there is one; null after a stop, once all parts are stored. */
  take(): Promise<WindowPart | null> {
    return new Promise((resolve) => {
      pendingTake = resolve;
      answerTake();
    });
  },
  /** Confirms that the last part is stored. */
  async stored(): Promise<void> {
    const oldest = ready[0]!;
    const rows = offeredEnd! - oldest.stored;
    oldest.stored = offeredEnd!;
    windows.stored(rows);
    writtenRows += rows;
    if (oldest.stored < oldest.table.count) return;
    ready.shift();
    await enqueueJournal(() => release(oldest.table));
    oldest.table.free();
  },
  flush,
  /** Closes all windows; `take` returns null after the last part. */
  async stop(): Promise<void> {
    await flush();
    stopping = true;
    answerTake();
  },
  /** Closes the journal; the next start recovers windows that are not stored. */
  async end(): Promise<void> {
    await enqueueJournal(() => templates.save(Date.now()));
    await journalQueue.settled();
    await journal.close();
  },
  /** Adds flows that were not received as packets. */
  add(flows: readonly ParsedFlow[], address: string): void {
    decoder.addFlows(flows, address, Date.now());
    decoder.flush();
  },
  registerExporter(address: string): void {
    decoder.registerExporter(address, Date.now());
  },
  status(connected: readonly string[]): FlowThreadStatus {
    const { exporters, drops, totals } = decoder.status(Date.now(), new Set(connected));
    const { folded, late, earlyFlushes } = windows.counts;
    return {
      exporters,
      drops: drops as Drops,
      totals,
      windows: {
        openTuples: windows.openRows,
        waitingRows: windows.waitingRows,
        writtenRows,
        foldedRecords: folded,
        lateRecords: late,
        earlyFlushes,
        journalFailures,
        ...(summaries?.counts ?? NO_SUMMARIES),
      },
    };
  },
};

export type FlowPipelineThreadApi = typeof api;

serveThread(api);
