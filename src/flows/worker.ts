import { setImmediate as nextTurn } from "node:timers/promises";
import { workerData } from "node:worker_threads";
import { Decoder } from "../collectors/decoder.ts";
import { TemplateFile } from "../collectors/netflow/template-file.ts";
import type { ReadFlow } from "../collectors/reading.ts";
import { RingReader, type RingMemory } from "../collectors/ring.ts";
import {
  lateWords,
  type Drops,
  type ExporterTotals,
  type ExporterStatus,
  type WindowsStatus,
} from "../collectors/status.ts";
import { serveThread } from "../lib/thread.ts";
import { Turns } from "../lib/turns.ts";
import type { FlowRows } from "../model/flow.ts";
import { JOURNAL_FILE_BYTES_MAX, WindowJournal } from "./journal.ts";
import { NO_SUMMARIES, Summaries, type RaisedEvent, type SummarySettings } from "./summary.ts";
import type { FlowTable } from "./table.ts";
import { Windows, type WindowSettings } from "./windows.ts";

// The thread that decodes and adds up: datagrams out of the ring, closed windows to whoever asks for them.

export interface FlowsThreadData {
  readonly ring: RingMemory;
  readonly journalFolder: string;
  readonly journalMs: number;
  /** Where templates are kept over a restart. */
  readonly templatesFile: string;
  readonly platform: string;
  readonly clockSkewMaxMs: number;
  readonly windows: WindowSettings;
  readonly summary: SummarySettings | null;
  /** Tells this start from every other. */
  readonly run: string;
}

/** Part of a closed window, on its way to the store. */
export interface WindowPart {
  readonly batchId: string;
  readonly rows: FlowRows;
  readonly events: readonly RaisedEvent[];
  /** Busy hosts that there are no events for, since there are too many. */
  readonly hostsLeft: number;
  /** What went wrong meanwhile, for the log. */
  readonly troubles: readonly string[];
}

export interface ThreadStatus {
  readonly exporters: ExporterStatus[];
  readonly drops: Drops;
  readonly totals: ExporterTotals;
  readonly windows: WindowsStatus;
}

const PART_ROWS_MAX = 65_536;
/** Datagrams between two looks at what else there is to do. */
const TURN_DATAGRAMS = 256;
const TICK_MS = 1000;
const TROUBLES_MAX = 100;

const data = workerData as FlowsThreadData;
const ring = new RingReader(data.ring);
const journal = new WindowJournal(data.journalFolder, { onTrouble: note });
const decoder = new Decoder({
  clockSkewMaxMs: data.clockSkewMaxMs,
  take: (batch) => windows.add(batch, Date.now()),
});
const templates = new TemplateFile(data.templatesFile, decoder);
const windows = new Windows(
  data.windows,
  {
    addressBytes: (index) => decoder.exporter(index).addressBytes,
    tooLate: (index) => {
      decoder.exporter(index).dropLate(lateWords(data.windows.lateMaxMs), Date.now());
    },
    taken: (index, nowMs) => {
      decoder.exporter(index).lastTakenMs = nowMs;
    },
  },
  data.run,
  (table) => void inOrder(() => settle(table)),
);

const { lateMaxMs, graceMs, rowsMax } = data.windows;
const summaries = data.summary
  ? new Summaries(data.summary, { reachMs: lateMaxMs + graceMs, entriesMax: rowsMax }, data.platform)
  : undefined;

const troubles: string[] = [];
/** Closed windows, oldest first, with how far each is stored. */
const ready: { readonly table: FlowTable; stored: number }[] = [];
/** How far the part reaches that was given and is not said to be stored yet. */
let given: number | undefined;
let writtenRows = 0;
let asking: ((part: WindowPart | null) => void) | undefined;
let stopping = false;
let draining: Promise<void> | undefined;
const journalTurns = new Turns();
let journalFailures = 0;
let ticks = 0;

/** The journal is written by one at a time. */
function inOrder(work: () => Promise<void>): Promise<void> {
  return journalTurns.take(work).catch((error: unknown) => {
    note((error as Error).message);
  });
}

function note(what: string): void {
  journalFailures++;
  const trouble = `the journal of flow windows: ${what}`;
  if (troubles.length < TROUBLES_MAX && !troubles.includes(trouble)) troubles.push(trouble);
}

/** A closed window may be given away once it is written: only then has it the same parts after a crash. */
async function settle(table: FlowTable): Promise<void> {
  try {
    await journal.write(table, true);
  } finally {
    ready.push({ table, stored: 0 });
    answer();
  }
}

/** The store has the table. Its file stays for as long as a restart would need it to go on with the summaries. */
async function release(table: FlowTable): Promise<void> {
  if (!summaries) return journal.remove(table);
  await journal.keep(table);
  await journal.removeStored(summaries.oldestMinute);
}

function answer(): void {
  const next = ready[0];
  if (!asking || (!next && !stopping)) return;
  const resolve = asking;
  asking = undefined;
  resolve(next ? partOf(next.table, next.stored) : null);
}

function partOf(table: FlowTable, from: number): WindowPart {
  const to = Math.min(table.count, from + PART_ROWS_MAX);
  given = to;
  const summary = (from === 0 && summaries?.take(table, Date.now())) || { events: [], left: 0 };
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
    while (ring.read(TURN_DATAGRAMS, (...datagram) => decoder.decode(...datagram)) > 0) {
      decoder.flush();
      await nextTurn();
    }
  } while (!ring.sleeps());
}

function tick(): void {
  const nowMs = Date.now();
  ticks++;
  decoder.expire(nowMs);
  windows.closeDue(nowMs);
  void inOrder(() => templates.saveIfDue(nowMs));
  if (ticks % Math.max(1, Math.round(data.journalMs / TICK_MS)) !== 0) return;
  for (const table of windows.tables()) {
    if (journal.sizeOf(table) > JOURNAL_FILE_BYTES_MAX) windows.closeEarly(table);
    else void inOrder(() => journal.write(table, false));
  }
}

async function flush(): Promise<void> {
  await draining;
  windows.closeAll();
  await journalTurns.settled();
}

const api = {
  /** Takes up what the last run left; gives how many rows that are, and what could not be read. */
  async start(): Promise<{ rows: number; troubles: readonly string[] }> {
    const trouble = await templates.load();
    if (trouble !== undefined) troubles.push(trouble);
    let rows = 0;
    for await (const table of journal.recoverStored()) summaries?.restore(table, Date.now());
    await journal.removeStored(summaries?.oldestMinute ?? Infinity);
    for await (const { table, closed } of journal.recover()) {
      windows.readmit(table);
      rows += table.count;
      if (closed) ready.push({ table, stored: 0 });
      else await inOrder(() => settle(table));
    }
    setInterval(tick, TICK_MS);
    return { rows, troubles: troubles.splice(0) };
  },
  /** Called when something came into the ring while nothing was being read. */
  drain(): Promise<void> {
    draining = (draining ?? Promise.resolve()).then(drain);
    return draining;
  },
  /** The next part of a closed window, as soon as there is one; null once all is given after a stop. */
  take(): Promise<WindowPart | null> {
    return new Promise((resolve) => {
      asking = resolve;
      answer();
    });
  },
  /** What was given last is stored. */
  async stored(): Promise<void> {
    const oldest = ready[0]!;
    const rows = given! - oldest.stored;
    oldest.stored = given!;
    windows.stored(rows);
    writtenRows += rows;
    if (oldest.stored < oldest.table.count) return;
    ready.shift();
    await inOrder(() => release(oldest.table));
  },
  flush,
  /** Nothing more will come: everything is closed, and whoever takes is told when that was all. */
  async stop(): Promise<void> {
    await flush();
    stopping = true;
    answer();
  },
  /** Lets go of the journal; what is not stored is taken up by the next start. */
  async end(): Promise<void> {
    await inOrder(() => templates.save(Date.now()));
    await journalTurns.settled();
    await journal.close();
  },
  /** Flows that were not told of in packets. */
  add(flows: readonly ReadFlow[], address: string): void {
    decoder.tell(flows, address, Date.now());
    decoder.flush();
  },
  meet(address: string): void {
    decoder.meet(address, Date.now());
  },
  status(connected: readonly string[]): ThreadStatus {
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

export type FlowsThreadApi = typeof api;

serveThread(api);
