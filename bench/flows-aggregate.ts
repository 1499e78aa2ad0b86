import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { Registry } from "prom-client";
import { FlowDecoder } from "../src/collectors/flows/flow-decoder.ts";
import { WindowJournal } from "../src/flows/window-journal.ts";
import { HostSummaries } from "../src/flows/host-summaries.ts";
import type { WindowTable } from "../src/flows/window-table.ts";
import { FlowWindows } from "../src/flows/flow-windows.ts";
import { openStore } from "../src/store/open-store.ts";
import { INDEX_PREFIX, PLATFORM } from "./dataset.ts";
import { megabytes, perSecond, type Measurement } from "./figures.ts";
import { v5Packet } from "./flow-packets.ts";
import { threadSeconds } from "./flows-decode.ts";

// A minute of a busy site: decoded, aggregated, written to the journal every five seconds, summarised by host, and stored.
// "One core" is the CPU time of the thread that does all of this except storing.

const TUPLES = 200_000;
const RECORDS = 2_000_000;
const PER_SECOND_MIN = 400_000;
const JOURNAL_WRITES = 12;
const PART_ROWS = 65_536;
const OPEN_TUPLES = 500_000;
const MEMORY_MAX = 250e6;
const SUMMARY = { peersMin: 30, portsMin: 30, bytesMin: 100_000_000 };
const BATCH_PACKETS = 256;

export async function flowsAggregate(): Promise<readonly Measurement[]> {
  return [await aggregateRate(), memoryOfTuples()];
}

function open(rowsMax: number): { decoder: FlowDecoder; windows: FlowWindows; closed: WindowTable[] } {
  const closed: WindowTable[] = [];
  const decoder = new FlowDecoder({ clockSkewMaxMs: 60_000, take: (batch) => windows.add(batch, Date.now()) });
  const windows: FlowWindows = new FlowWindows(
    { graceMs: 15_000, lateMaxMs: 3_600_000, rowsMax },
    {
      addressBytes: (index) => decoder.exporter(index).addressBytes,
      tooLate: () => undefined,
      accepted: (index, nowMs) => {
        decoder.exporter(index).lastAcceptedMs = nowMs;
      },
    },
    `bench${process.pid}`,
    (table) => void closed.push(table),
  );
  return { decoder, windows, closed };
}

async function aggregateRate(): Promise<Measurement> {
  const folder = await mkdtemp(join(tmpdir(), "tocsin-aggregate-"));
  const store = await openStore({
    dataDir: folder,
    platform: PLATFORM,
    indexPrefix: INDEX_PREFIX,
    registry: new Registry(),
    log: pino({ level: "warn" }),
  });
  const journal = new WindowJournal(join(folder, "windows"));
  const { decoder, windows, closed } = open(1_000_000);
  const summaries = new HostSummaries(SUMMARY, { lookbackMs: 3_600_000, entriesMax: 1_000_000 }, PLATFORM);
  const seconds = Math.floor(Date.now() / 60_000) * 60;
  const packets = Array.from({ length: Math.ceil(TUPLES / 30) }, (_, index) => v5Packet(index * 30, seconds, TUPLES));
  const views = packets.map((packet) => new DataView(packet.buffer));

  const startedAt = threadSeconds();
  const startedMs = performance.now();
  const all = Math.ceil(RECORDS / 30);
  for (let index = 0; index < all; index++) {
    const view = views[index % views.length]!;
    decoder.decode(view, 0, view.byteLength, "192.0.2.1", Date.now());
    if (index % BATCH_PACKETS === 0) decoder.flush();
    if (index % Math.floor(all / JOURNAL_WRITES) === 0)
      for (const table of windows.tables()) await journal.write(table, false);
  }
  decoder.flush();
  windows.closeAll();
  let rows = 0;
  for (const table of closed) {
    await journal.write(table, true);
    summaries.summarise(table, Date.now());
    for (let from = 0; from < table.count; from += PART_ROWS) {
      const part = table.rows(from, Math.min(table.count, from + PART_ROWS));
      await store.flows.append(part, `${table.id}.${from}`);
      rows += part.count;
    }
    await journal.remove(table);
  }
  const busy = threadSeconds() - startedAt;
  const elapsed = (performance.now() - startedMs) / 1000;
  const stored = await store.flows.count();
  await store.close();
  await rm(folder, { recursive: true, force: true });
  if (rows !== stored || rows < TUPLES) throw new Error(`${stored} of ${rows} rows are stored`);
  return {
    name: `decode, aggregate and store ${TUPLES.toLocaleString("en")} tuples, one core`,
    result: `${perSecond(RECORDS / busy)} (${perSecond(RECORDS / elapsed)} wall clock, including the store)`,
    target: `at least ${perSecond(PER_SECOND_MIN)}`,
    met: RECORDS / busy >= PER_SECOND_MIN,
    values: { recordsPerSecond: RECORDS / busy, byTheClock: RECORDS / elapsed, rows },
  };
}

/** Runs in a separate process: memory left by other benches would distort the result. */
function memoryOfTuples(): Measurement {
  const output = execFileSync(process.execPath, [import.meta.filename], { encoding: "utf8" });
  const { grown, tables, openTuples } = JSON.parse(output) as { grown: number; tables: number; openTuples: number };
  return {
    name: `memory at ${openTuples.toLocaleString("en")} open tuples`,
    result: `${megabytes(grown)} more than without them (${megabytes(tables)} in tables)`,
    target: `at most ${megabytes(MEMORY_MAX)}`,
    met: openTuples >= OPEN_TUPLES && grown <= MEMORY_MAX,
    values: { grown, tables, openTuples },
  };
}

function fill(): { grown: number; tables: number; openTuples: number } {
  const { decoder, windows } = open(10 * OPEN_TUPLES);
  const seconds = Math.floor(Date.now() / 1000);
  const before = process.memoryUsage().rss;
  for (let from = 0; from < OPEN_TUPLES; from += 30) {
    const packet = v5Packet(from, seconds, OPEN_TUPLES);
    decoder.decode(new DataView(packet.buffer), 0, packet.length, "192.0.2.1", Date.now());
  }
  decoder.flush();
  const { rss, arrayBuffers } = process.memoryUsage();
  return { grown: rss - before, tables: arrayBuffers, openTuples: windows.openRows };
}

if (process.argv[1] === import.meta.filename) process.stdout.write(JSON.stringify(fill()));
