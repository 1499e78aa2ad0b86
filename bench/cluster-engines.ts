import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { Registry } from "prom-client";
import { DAY_MS } from "../src/lib/time.ts";
import { FLOW_WINDOW_MS } from "../src/model/flow.ts";
import { OpenSearchClient } from "../src/store/opensearch/opensearch-client.ts";
import { openStore } from "../src/store/open-store.ts";
import type { Store } from "../src/store/ports/store.ts";
import { startOpenSearch } from "../test/cluster/opensearch.ts";
import { startPostgres } from "../test/cluster/postgres.ts";
import { benchEvents, PLATFORM } from "./dataset.ts";
import { DATA_FOLDER } from "./figures.ts";
import { benchFlows } from "./flow-rows.ts";

// The same events and flows in an embedded store and in OpenSearch, both open in this process. They are built once.

export const PREFIX = "bench";
const SEED = 20_261_118;
const DAYS = 7;
const FLOW_MINUTES = 24 * 60;
const BATCHES_MIN = 24;
const BATCH_ROWS = 3000;
const APPEND_EVENTS = 1000;
const APPENDS_AHEAD = 3;
const HEAP_MB = 2048;
/** The last of the events. The middle of the day of flows is midnight, so that they lie in two indices. */
const END = Date.UTC(2026, 10, 17, 12);

export interface ClusterSizes {
  readonly events: number;
  readonly flows: number;
}

export interface BenchEngines extends ClusterSizes {
  readonly embedded: Store;
  readonly cluster: Store;
  /** For plain requests; the stores use clients like it. */
  readonly client: OpenSearchClient;
  /** From inclusive, to exclusive. */
  readonly eventsFrom: number;
  readonly flowsFrom: number;
  readonly to: number;
}

export async function withEngines<T>(sizes: ClusterSizes, work: (engines: BenchEngines) => Promise<T>): Promise<T> {
  const folder = join(DATA_FOLDER, `cluster-${sizes.events}-${sizes.flows}`);
  const facts = `${folder}.json`;
  const isBuilt = (await readFile(facts, "utf8").catch(() => undefined)) !== undefined;
  if (!isBuilt) await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const server = await startOpenSearch({ folder: join(folder, "opensearch"), heapMb: HEAP_MB, isLongRunning: true });
  const postgres = await startPostgres();
  const client = new OpenSearchClient({ addresses: server.urls, timeoutSeconds: 300 }, new Registry());
  const stores: Store[] = [];
  try {
    const shared = { platform: PLATFORM, indexPrefix: PREFIX, log: pino({ level: "warn" }) };
    const dataDir = join(folder, "embedded");
    const embedded = await openStore({ ...shared, dataDir, registry: new Registry() });
    stores.push(embedded);
    const cluster = await openStore({
      ...shared,
      dataDir: join(folder, "node"),
      registry: new Registry(),
      postgres: {
        url: postgres.url("postgres"),
        passwordFile: null,
        tls: "off",
        tlsCa: null,
        tlsCertificate: null,
        tlsKey: null,
        poolMax: 5,
        connectSeconds: 20,
        statementSeconds: 60,
      },
      opensearch: { addresses: server.urls, shards: 1, replicas: 0, timeoutSeconds: 300 },
    });
    stores.push(cluster);
    const to = END;
    const engines: BenchEngines = {
      ...sizes,
      embedded,
      cluster,
      client,
      eventsFrom: to - DAYS * DAY_MS,
      flowsFrom: to - FLOW_MINUTES * FLOW_WINDOW_MS,
      to: to + 1,
    };
    if (!isBuilt) {
      await fill(engines);
      await writeFile(facts, JSON.stringify(sizes));
    }
    await client.send(
      { operation: "bench" },
      { method: "GET", path: "/_cluster/health", query: { wait_for_status: "green", timeout: "300s" } },
    );
    return await work(engines);
  } finally {
    for (const store of stores) await store.close();
    await client.close();
    await server.kill();
    await postgres.end();
  }
}

async function fill(engines: BenchEngines): Promise<void> {
  const { events, flows, eventsFrom, flowsFrom, to, client } = engines;
  for (const name of ["embedded", "cluster"] as const) {
    const store = engines[name];
    const startedAt = performance.now();
    const ahead: Promise<unknown>[] = [];
    const send = async (work: Promise<unknown>) => {
      ahead.push(work);
      if (ahead.length >= APPENDS_AHEAD) await ahead.shift();
    };
    let chunk = [];
    for (const draft of benchEvents({ seed: SEED, fromMs: eventsFrom, toMs: to - 1, count: events })) {
      chunk.push({ draft });
      if (chunk.length < APPEND_EVENTS) continue;
      await send(store.events.append(chunk));
      chunk = [];
    }
    if (chunk.length > 0) await send(store.events.append(chunk));
    await Promise.all(ahead);
    const eventsAt = performance.now();
    // A batch is what a minute brings; small runs have fewer batches, not smaller ones.
    const batches = Math.min(FLOW_MINUTES, Math.max(BATCHES_MIN, Math.ceil(flows / BATCH_ROWS)));
    const minutes = FLOW_MINUTES / batches;
    for (let batch = 0; batch < batches; batch++) {
      const start = flowsFrom + (Math.floor(batch * minutes) - 1) * FLOW_WINDOW_MS;
      for (const rows of benchFlows(SEED + batch, start, 1, Math.ceil(flows / batches)))
        await store.flows.append(rows, `bench-${batch}`);
    }
    const seconds = (ms: number) => `${Math.round(ms / 1000)} s`;
    const spent = [seconds(eventsAt - startedAt), seconds(performance.now() - eventsAt)];
    process.stderr.write(`${name}: ${events} events in ${spent[0]}, ${flows} flows in ${spent[1]}\n`);
  }
  // Days that are full are merged by and by; a question should not depend on how far that is.
  await client.send(
    { operation: "bench" },
    { method: "POST", path: `/${PREFIX}-*/_forcemerge`, query: { max_num_segments: 5 }, timeoutMs: 900_000 },
  );
}
