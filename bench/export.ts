import { setTimeout as sleep } from "node:timers/promises";
import { timed, memoryOf, watchMemory, withServer, type Bench, type Memory, type Serving } from "./bench.ts";
import type { Dataset } from "./dataset.ts";
import { megabytes, perSecond, type Measurement } from "./figures.ts";

// Export of a million events as CSV: speed and additional memory.

const ROWS = 1_000_000;
const GROWTH_MAX = 100e6;
const SETTLE_MS = 5000;
const POLL_MS = 50;
const FIRST_EXPORT_MS = 60_000;

interface Job {
  data: {
    id: string;
    status: string;
    row_count: number;
    size_bytes: number;
    download_url: string;
    error: string | null;
  };
}

export async function exportCsv({ dataset }: Bench): Promise<readonly Measurement[]> {
  return withServer(dataset.folder, async (server) => {
    const to = await timeOfRow(server, dataset);
    // Excludes memory that the first export allocates permanently.
    const from = new Date(dataset.fromMs).toISOString();
    await runExport(server, { from, to: new Date(dataset.fromMs + FIRST_EXPORT_MS).toISOString() });
    await sleep(SETTLE_MS);
    const before = memoryOf(server.pid);
    const memory = watchMemory(server.pid);
    const run = await timed(() => runExport(server, { from, to }));
    const written = memory.stop();
    const { data } = run.value;

    const downloadMemory = watchMemory(server.pid);
    const download = await timed(() => fetchAll(server, data.download_url));
    const most = downloadMemory.stop();
    if (download.value !== data.size_bytes) throw new Error(`fetched ${download.value} of ${data.size_bytes} bytes`);

    const rate = data.row_count / (run.ms / 1000);
    return [
      growthOf(`an export of ${data.row_count.toLocaleString("en")} events as CSV`, before, written),
      growthOf("that export and its download", before, {
        total: Math.max(written.total, most.total),
        own: Math.max(written.own, most.own),
      }),
      {
        name: "rate of that export",
        result: `${perSecond(rate)}; download ${megabytes(data.size_bytes / (download.ms / 1000))}/s`,
        target: "at least 50,000/s",
        met: rate >= 50_000,
        values: { rowsPerSecond: rate, sizeBytes: data.size_bytes, downloadMs: download.ms },
      },
    ];
  });
}

function growthOf(what: string, before: Memory, most: Memory): Measurement {
  const growth = most.total - before.total;
  const ownGrowth = most.own - before.own;
  return {
    name: `memory growth during ${what}`,
    result: `${megabytes(growth)} (${megabytes(ownGrowth)} without file pages)`,
    baseline: `${megabytes(before.total)} before`,
    target: `under ${megabytes(GROWTH_MAX)}`,
    met: growth < GROWTH_MAX,
    values: { growth, ownGrowth, before: before.total },
  };
}

/** The full hour with about a million events before it. */
async function timeOfRow(server: Serving, { toMs }: Dataset): Promise<string> {
  interface Hours {
    data: { aggregations: { hours: { buckets: { key: string; count: number }[] } } };
  }
  const aggs = { hours: { histogram: { field: "timestamp", interval: "1h" } } };
  const { data } = await server.post<Hours>("/v1/events/search", { query: {}, aggs, limit: 0 });
  let rows = 0;
  for (const { key, count } of data.aggregations.hours.buckets) {
    if (rows >= ROWS) return key;
    rows += count;
  }
  return new Date(toMs).toISOString();
}

async function runExport(server: Serving, range: { from: string; to: string }): Promise<Job> {
  let job = await server.post<Job>("/v1/events/export", { format: "csv", time_range: range });
  while (job.data.status !== "completed") {
    if (job.data.status === "failed") throw new Error(`the export failed: ${job.data.error}`);
    await sleep(POLL_MS);
    job = await server.get<Job>(`/v1/events/exports/${job.data.id}`);
  }
  return job;
}

async function fetchAll({ address, key }: Serving, path: string): Promise<number> {
  const response = await fetch(address + path, { headers: { authorization: `Bearer ${key}` } });
  if (!response.ok || !response.body) throw new Error(`${path}: ${response.status}`);
  let bytes = 0;
  for await (const chunk of response.body) bytes += chunk.length;
  return bytes;
}
