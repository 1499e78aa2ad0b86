import { existsSync } from "node:fs";
import { copyFile, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { startOfDay } from "../src/lib/time.ts";
import { openDayForWriting, WordsMerger } from "../src/store/sqlite/journal/day-file.ts";
import { dayFile, eventsFolder } from "../src/store/files/layout.ts";
import { eventWords } from "../src/store/search/indexed-words.ts";
import { timed, watchMemory, withServer, type Bench, type Serving } from "./bench.ts";
import { benchEvents, INDEX_PREFIX } from "./dataset.ts";
import { DATA_FOLDER, median, megabytes, ms, perSecond, type Measurement } from "./figures.ts";
import { startLoad, type LoadReport } from "./load.ts";

// Durable batches through HTTP, compared with plain SQLite inserts of the same rows into the journal's tables.

export const BATCH_SIZE = 500;
export const CONNECTIONS = 2;
const WARM_UP_MS = 5000;
const DURATION_MS = 30_000;
const TURNS = 3;
const TURN_WARM_UP_MS = 2000;
const TURN_MS = 10_000;
const STALL_MS_MAX = 250;
const SHARE_MIN = 0.5;
const MEMORY_MAX = 1.2e9;
const JOURNAL_ROWS = 50_000;
const JOURNAL_MS = 8000;
const CHECKPOINT_PAGES = 1000;

export async function ingest(bench: Bench): Promise<readonly Measurement[]> {
  const folder = await bench.writable();
  const before = await rawJournal(folder);
  const { report, visible, most } = await withServer(folder, async (server) => {
    const memory = watchMemory(server.pid);
    const total = async () =>
      (await server.get<{ pagination: { total: number } }>("/v1/events?per_page=1")).pagination.total;
    const totalBefore = await total();
    const report = await startLoad({
      port: server.port,
      key: server.key,
      connections: CONNECTIONS,
      warmUpMs: WARM_UP_MS,
      durationMs: DURATION_MS,
      work: { kind: "batch", size: BATCH_SIZE },
    }).report;
    const last = await timed(total);
    return { report, visible: { rows: last.value - totalBefore, ms: last.ms }, most: memory.stop() };
  });
  const after = await rawJournal(folder);
  refuseLoss(report, visible.rows);

  const baseline = (before + after) / 2;
  const ratio = report.eventsPerSecond / baseline;
  const stalls = report.stalls.length;
  return [
    {
      name: `durable batches of ${BATCH_SIZE} through HTTP, ${CONNECTIONS} connections`,
      result: perSecond(report.eventsPerSecond),
      baseline: `${perSecond(baseline)} straight into the journal's tables`,
      ratio,
      target: `at least ${SHARE_MIN}`,
      met: ratio >= SHARE_MIN,
      values: { eventsPerSecond: report.eventsPerSecond, baselineBefore: before, baselineAfter: after },
    },
    {
      name: "slowest response to a batch",
      result: `${ms(report.responses.max)}; p99 ${ms(report.responses.p99)}; ${stalls} above ${STALL_MS_MAX} ms`,
      target: `none above ${STALL_MS_MAX} ms`,
      met: report.responses.max <= STALL_MS_MAX,
      values: { ...report.responses, stalls },
    },
    {
      name: "memory under that load",
      result: `${megabytes(most.total)} (${megabytes(most.own)} without file pages)`,
      target: `at most ${megabytes(MEMORY_MAX)}`,
      met: most.total <= MEMORY_MAX,
      values: { ...most, firstTotalMs: visible.ms },
    },
  ];
}

/** Median rates of the same load under different conditions, alternating. `arrange` sets one up and returns its clean-up. */
export async function ingestInTurns<Kind extends string>(
  server: Serving,
  kinds: readonly Kind[],
  arrange: (kind: Kind) => Promise<() => void>,
): Promise<Record<Kind, number>> {
  const rates = kinds.map((): number[] => []);
  for (let turn = 0; turn < TURNS; turn++) {
    for (const [i, kind] of kinds.entries()) {
      const end = await arrange(kind);
      const { report } = startLoad({
        port: server.port,
        key: server.key,
        connections: CONNECTIONS,
        warmUpMs: TURN_WARM_UP_MS,
        durationMs: TURN_MS,
        work: { kind: "batch", size: BATCH_SIZE },
      });
      rates[i]!.push((await report).eventsPerSecond);
      end();
    }
  }
  return Object.fromEntries(kinds.map((kind, i) => [kind, median(rates[i]!)])) as Record<Kind, number>;
}

/** Throws unless a total queried right afterwards includes every acknowledged event. */
function refuseLoss(report: LoadReport, visibleRows: number): void {
  const refused = Object.entries(report.refused).map(([status, count]) => `${count} times ${status}`);
  if (refused.length > 0) process.stderr.write(`the server refused: ${refused.join(", ")}\n`);
  if (visibleRows < report.events) {
    throw new Error(`${report.events} events were acknowledged, but only ${visibleRows} more are visible`);
  }
}

/** Rows per second that SQLite inserts with the journal's schema and settings, into a day of the same size. */
async function rawJournal(folder: string): Promise<number> {
  const scratch = join(DATA_FOLDER, "raw-journal");
  const layout = { dataDir: scratch, indexPrefix: INDEX_PREFIX };
  const day = startOfDay(Date.now());
  await rm(scratch, { recursive: true, force: true });
  await mkdir(eventsFolder(scratch), { recursive: true });
  const today = dayFile({ dataDir: folder, indexPrefix: INDEX_PREFIX }, day);
  if (existsSync(today)) await copyFile(today, dayFile(layout, day));

  const toMs = Date.now();
  const drafts = benchEvents({ seed: 7, fromMs: toMs - 3_600_000, toMs, count: JOURNAL_ROWS });
  const rows = Array.from(drafts, (draft) => ({
    body: JSON.stringify(draft),
    words: eventWords(draft, draft.timestampMs).text,
  }));

  const db = openDayForWriting(layout, day);
  db.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  const insertEvent = db.prepare("INSERT INTO events(seq, ts, body, token) VALUES (?, ?, ?, NULL)");
  const insertWords = db.prepare("INSERT INTO words(rowid, text) VALUES (?, ?)");
  const merger = new WordsMerger(db);
  let { seq } = db.prepare("SELECT coalesce(max(seq), 0) AS seq FROM events").get() as { seq: number };
  const first = seq;
  const startedAt = performance.now();
  while (performance.now() - startedAt < JOURNAL_MS) {
    db.exec("BEGIN IMMEDIATE");
    const group: string[] = [];
    for (let n = 0; n < BATCH_SIZE; n++) {
      const { body, words } = rows[++seq % rows.length]!;
      insertEvent.run(seq, toMs + n, body);
      insertWords.run(seq, words);
      group.push(words);
    }
    merger.run(group);
    db.exec("COMMIT");
  }
  const rate = (seq - first) / ((performance.now() - startedAt) / 1000);
  db.close();
  await rm(scratch, { recursive: true, force: true });
  return rate;
}
