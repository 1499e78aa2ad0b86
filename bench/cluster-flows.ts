import { rm } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { Registry } from "prom-client";
import { DAY_MS } from "../src/lib/time.ts";
import { FLOW_WINDOW_MS, type FlowRows } from "../src/model/flow.ts";
import { dailyIndexName } from "../src/store/opensearch/daily-index.ts";
import { FlowDocuments } from "../src/store/opensearch/flow-documents.ts";
import { OpenSearchClient } from "../src/store/opensearch/opensearch-client.ts";
import { openOpenSearchFlows, type OpenSearchFlows } from "../src/store/opensearch/opensearch-flows.ts";
import { startOpenSearch } from "../test/cluster/opensearch.ts";
import { timed } from "./bench.ts";
import { cellsOf, DATA_FOLDER, ms, spreadOf, type Measurement } from "./figures.ts";
import { benchFlows } from "./flow-rows.ts";

// Flows in a real OpenSearch: what the service adds to the plain request that asks or stores the same. The two alternate, so that
// other load on the machine affects both. BENCH_FLOWS is the number of rows.

const ROWS = Number(process.env["BENCH_FLOWS"] ?? 5_000_000);
const MINUTES = 24 * 60;
const SEED = 20_261_117;
const ROUNDS = 9;
const HEAP_MB = 2048;
const BULK_DOCUMENTS = 5000;
/** Rows of the comparison of writes, and minutes that they are spread over. */
const WRITTEN_MINUTES = 20;
const WRITTEN_PER_MINUTE = 10_000;
const HOUR_MS = 3_600_000;
const PORT = 3389;
const OVERHEAD_MAX = 1.3;
const EXACT_OVERHEAD_MAX = 2;
const INGEST_MIN = 0.8;
const OURS = "bench";
const PLAIN = "plain";
/** The middle of the data is midnight: a day of flows lies in two indices. */
const FROM = Date.UTC(2026, 10, 16, 12);
const TO = FROM + DAY_MS + 1;

interface Question {
  readonly name: string;
  readonly ask: (flows: OpenSearchFlows, fromMs: number) => Promise<unknown>;
  /** The same as one plain search; that of top talkers is inexact. */
  readonly body: (fromMs: number) => object;
  readonly ratioMax: number;
}

const range = (fromMs: number, ...more: object[]) => ({
  bool: { filter: [{ range: { timestamp: { gte: fromMs, lt: TO } } }, ...more] },
});
const SUMS = { bytes: { sum: { field: "bytes" } }, packets: { sum: { field: "packets" } } };

const talkers = (
  span: string,
  lengthMs: number,
  dimension: "src" | "pair",
  field: string,
  ratioMax: number,
): Question => ({
  name: `top talkers by ${dimension}, ${span}`,
  ask: (flows, fromMs) =>
    flows.topTalkers({
      filter: { fromMs: TO - lengthMs + (fromMs - FROM), toMs: TO },
      dimension,
      by: "bytes",
      limit: 20,
    }),
  body: (fromMs) => ({
    size: 0,
    track_total_hits: false,
    query: range(TO - lengthMs + (fromMs - FROM)),
    aggs: { x: { terms: { field, size: 20, order: { bytes: "desc" } }, aggs: SUMS } },
  }),
  ratioMax,
});

const QUESTIONS: readonly Question[] = [
  {
    name: "list by bytes with a port filter and total, 24 h",
    ask: (flows, fromMs) => flows.list({ fromMs, toMs: TO, port: PORT }, { sort: "bytes", descending: true }, 0, 50),
    body: (fromMs) => ({
      size: 50,
      track_total_hits: true,
      sort: [{ bytes: "desc" }, { timestamp: "desc" }],
      query: range(fromMs, { bool: { should: [{ term: { src_port: PORT } }, { term: { dst_port: PORT } }] } }),
    }),
    ratioMax: OVERHEAD_MAX,
  },
  {
    name: "time series, 24 h by 15 minutes",
    ask: (flows, fromMs) =>
      flows.timeseries({ filter: { fromMs, toMs: TO }, intervalMs: 900_000, by: "bytes", limit: 5 }),
    body: (fromMs) => ({
      size: 0,
      track_total_hits: false,
      query: range(fromMs),
      aggs: { x: { date_histogram: { field: "timestamp", fixed_interval: "900000ms" }, aggs: SUMS } },
    }),
    ratioMax: OVERHEAD_MAX,
  },
  {
    name: "protocols, 24 h",
    ask: (flows, fromMs) => flows.protocols({ fromMs, toMs: TO }),
    body: (fromMs) => ({
      size: 0,
      track_total_hits: false,
      query: range(fromMs),
      aggs: { x: { terms: { field: "protocol", size: 256 }, aggs: SUMS } },
    }),
    ratioMax: OVERHEAD_MAX,
  },
  talkers("1 h", HOUR_MS, "src", "src_ip", OVERHEAD_MAX),
  talkers("24 h", DAY_MS, "src", "src_ip", EXACT_OVERHEAD_MAX),
  talkers("24 h", DAY_MS, "pair", "pair", EXACT_OVERHEAD_MAX),
];

export async function clusterFlows(): Promise<readonly Measurement[]> {
  const folder = join(DATA_FOLDER, "opensearch");
  await rm(folder, { recursive: true, force: true });
  const cluster = await startOpenSearch({ folder, heapMb: HEAP_MB, isLongRunning: true });
  const url = cluster.urls[0]!;
  const client = new OpenSearchClient({ addresses: [url] }, new Registry());
  try {
    const open = (indexPrefix: string) =>
      openOpenSearchFlows({ client, indexPrefix, shards: 1, replicas: 0, log: pino({ level: "warn" }) });
    const flows = await open(OURS);
    // The comparison writes to indices of its own, from the same template.
    await open(PLAIN);
    const measurements = [await compareWrites(flows, url)];
    process.stderr.write(`${cellsOf(measurements[0]!).join("  ")}\n`);
    await flows.removeBefore(Infinity);
    let batch = 0;
    for (const rows of benchFlows(SEED, FROM - FLOW_WINDOW_MS, MINUTES, Math.ceil(ROWS / MINUTES)))
      await flows.append(rows, `bench-${batch++}`);
    for (const question of QUESTIONS) {
      measurements.push(await compareQuestion(question, flows, url));
      process.stderr.write(`${cellsOf(measurements.at(-1)!).join("  ")}\n`);
    }
    return measurements;
  } finally {
    await client.close();
    await cluster.kill();
    await rm(folder, { recursive: true, force: true });
  }
}

async function compareWrites(flows: OpenSearchFlows, url: string): Promise<Measurement> {
  let [ours, plain] = [0, 0];
  let minute = 0;
  for (const rows of benchFlows(SEED + 1, FROM, WRITTEN_MINUTES, WRITTEN_PER_MINUTE)) {
    const batchId = `write-${minute++}`;
    const lines = linesOf(rows, batchId);
    const writePlain = async () => void (plain += (await timed(() => writeLines(url, lines))).ms);
    const writeOurs = async () => void (ours += (await timed(() => flows.append(rows, batchId))).ms);
    for (const write of minute % 2 === 0 ? [writePlain, writeOurs] : [writeOurs, writePlain]) await write();
  }
  const rows = WRITTEN_MINUTES * WRITTEN_PER_MINUTE;
  const rate = (spentMs: number) => (rows / spentMs) * 1000;
  const shown = (spentMs: number) => `${Math.round(rate(spentMs)).toLocaleString("en")} rows/s`;
  const ratio = rate(ours) / rate(plain);
  return {
    name: "flows in, until they are visible",
    result: shown(ours),
    baseline: `${shown(plain)} with plain bulk requests of the same documents`,
    ratio,
    target: `at least ${INGEST_MIN}`,
    met: ratio >= INGEST_MIN,
    values: { ours: rate(ours), plain: rate(plain) },
  };
}

function linesOf(rows: FlowRows, batchId: string): string[] {
  const documents = new FlowDocuments(rows, batchId);
  const chunks: string[] = [];
  for (let from = 0; from < rows.count; from += BULK_DOCUMENTS) {
    const lines = Array.from({ length: Math.min(BULK_DOCUMENTS, rows.count - from) }, (_, nth) => {
      const row = from + nth;
      const index = dailyIndexName(`${PLAIN}-flows`, documents.timestamp(row));
      return `{"create":{"_index":"${index}","_id":"${documents.id(row)}"}}\n${documents.text(row)}\n`;
    });
    chunks.push(lines.join(""));
  }
  return chunks;
}

async function post(url: string, path: string, body: string, type = "application/json"): Promise<void> {
  const answer = await fetch(`${url}${path}`, { method: "POST", body, headers: { "content-type": type } });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  JSON.parse(text);
}

async function writeLines(url: string, chunks: readonly string[]): Promise<void> {
  await Promise.all(chunks.map((chunk) => post(url, "/_bulk", chunk, "application/x-ndjson")));
  await post(url, `/${PLAIN}-flows-*/_refresh`, "");
}

async function compareQuestion(
  { name, ask, body, ratioMax }: Question,
  flows: OpenSearchFlows,
  url: string,
): Promise<Measurement> {
  const served: number[] = [];
  const direct: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    // A question that was asked before would be answered from a cache.
    const fromMs = FROM + round * 1000;
    served.push((await timed(() => ask(flows, fromMs))).ms);
    const text = JSON.stringify(body(fromMs));
    direct.push((await timed(() => post(url, `/${OURS}-flows-2*/_search`, text))).ms);
  }
  // Without the first round, which reads the files.
  const [ours, plain] = [spreadOf(served.slice(1)), spreadOf(direct.slice(1))];
  const ratio = ours.p50 / plain.p50;
  return {
    name: `${name}, ${ROWS.toLocaleString("en")} rows`,
    result: `p50 ${ms(ours.p50)}; p95 ${ms(ours.p95)}`,
    baseline: `p50 ${ms(plain.p50)} as one plain search`,
    ratio,
    target: `at most ${ratioMax}`,
    met: ratio <= ratioMax,
    values: { served: ours.p50, servedP95: ours.p95, direct: plain.p50 },
  };
}
