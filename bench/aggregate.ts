import { DuckDBInstance } from "@duckdb/node-api";
import { MEMORY_LIMIT } from "../src/store/duckdb/columns/column-engine.ts";
import { columnsFile } from "../src/store/files/layout.ts";
import { timed, withServer, type Bench } from "./bench.ts";
import { ms, spreadOf, type Measurement } from "./figures.ts";

// Aggregations over the whole week through HTTP, compared with the same query on the column file directly.

const ROUNDS = 25;
const RATIO_MAX = 1.5;
const HOUR_MS = 3_600_000;

const AGGREGATIONS: Record<string, { agg: object; sql: (where: string) => string }> = {
  "terms on type": {
    agg: { terms: { field: "type" } },
    sql: (where) => `SELECT type, count(*) AS n FROM events WHERE ${where} GROUP BY 1 ORDER BY n DESC, 1 LIMIT 10`,
  },
  "terms on raw.src_ip": {
    agg: { terms: { field: "raw.src_ip" } },
    sql: (where) =>
      `SELECT "raw.src_ip", count(*) AS n FROM events WHERE ${where} AND "raw.src_ip" IS NOT NULL
       GROUP BY 1 ORDER BY n DESC, 1 LIMIT 10`,
  },
  "hourly histogram": {
    agg: { histogram: { field: "timestamp", interval: "1h" } },
    sql: (where) =>
      `SELECT ts - ts % ${HOUR_MS} AS hour, count(*) AS n FROM events WHERE ${where} GROUP BY 1 ORDER BY 1`,
  },
};

export async function aggregate({ dataset }: Bench): Promise<readonly Measurement[]> {
  const { folder, fromMs, toMs } = dataset;
  const time_range = { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() };
  const through = await withServer(folder, (server) =>
    timeEach((name) => {
      const aggs = { answer: AGGREGATIONS[name]!.agg };
      return server.post("/v1/events/search", { query: { time_range }, aggs, limit: 0 });
    }),
  );
  const raw = await rawTimes(columnsFile(folder), `ts >= ${fromMs} AND ts < ${toMs}`);
  return Object.keys(AGGREGATIONS).map((name) => {
    const [served, direct] = [through[name]!, raw[name]!];
    return {
      name: `${name} over 7 days`,
      result: `p50 ${ms(served.p50)}; p95 ${ms(served.p95)}`,
      baseline: `p50 ${ms(direct.p50)} with SQL on the column file`,
      ratio: served.p50 / direct.p50,
      target: `at most ${RATIO_MAX}`,
      met: served.p50 / direct.p50 <= RATIO_MAX,
      values: { served: served.p50, servedP95: served.p95, direct: direct.p50 },
    };
  });
}

/** Requires that the server has closed the file: only one process can open it. */
async function rawTimes(file: string, where: string) {
  const instance = await DuckDBInstance.create(file, {
    access_mode: "READ_ONLY",
    memory_limit: MEMORY_LIMIT,
    threads: "2",
    preserve_insertion_order: "false",
  });
  const connection = await instance.connect();
  try {
    return await timeEach((name) => connection.runAndReadAll(AGGREGATIONS[name]!.sql(where)));
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

async function timeEach(run: (name: string) => Promise<unknown>) {
  const spreads: Record<string, ReturnType<typeof spreadOf>> = {};
  for (const name of Object.keys(AGGREGATIONS)) {
    const took: number[] = [];
    for (let round = 0; round < ROUNDS; round++) took.push((await timed(() => run(name))).ms);
    spreads[name] = spreadOf(took);
  }
  return spreads;
}
