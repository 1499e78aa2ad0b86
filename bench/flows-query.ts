import { cp, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DuckDBInstance, type DuckDBConnection } from "@duckdb/node-api";
import { pino } from "pino";
import { Registry } from "prom-client";
import { FLOW_WINDOW_MS } from "../src/model/flow.ts";
import { flowsFolder } from "../src/store/files/layout.ts";
import { openStore } from "../src/store/open-store.ts";
import { timed, withServer } from "./bench.ts";
import { INDEX_PREFIX, PLATFORM } from "./dataset.ts";
import { cellsOf, DATA_FOLDER, ms, spreadOf, type Measurement } from "./figures.ts";
import { benchFlows } from "./flow-rows.ts";

// Queries over a day of flows through HTTP, compared with the same queries as SQL on a copy of the same files. The two
// alternate, so that other load on the machine affects both.

const ROWS = 10_000_000;
const MINUTES = 24 * 60;
const PER_MINUTE = Math.ceil(ROWS / MINUTES);
const SEED = 20_261_115;
const ROUNDS = 5;
const HOUR_MS = 3_600_000;
const TALKERS_RATIO_MAX = 1.3;
const LIST_RATIO_MAX = 1.5;
const HOUR_MS_MAX = 150;
const BYTES_PER_ROW_MAX = 25;
const PORT = 3389;

interface FlowData {
  readonly folder: string;
  /** End of the last window. */
  readonly toMs: number;
  readonly bytes: number;
  readonly rows: number;
}

async function prepare(): Promise<FlowData> {
  const folder = join(DATA_FOLDER, `flows-${ROWS}`);
  const facts = `${folder}.json`;
  const known = await readFile(facts, "utf8").catch(() => undefined);
  if (known) return JSON.parse(known) as FlowData;
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const lastEnd = Math.floor(Date.now() / FLOW_WINDOW_MS) * FLOW_WINDOW_MS;
  const store = await openStore({
    dataDir: folder,
    platform: PLATFORM,
    indexPrefix: INDEX_PREFIX,
    registry: new Registry(),
    log: pino({ level: "warn" }),
  });
  let batch = 0;
  for (const rows of benchFlows(SEED, lastEnd - MINUTES * FLOW_WINDOW_MS, MINUTES, PER_MINUTE))
    await store.flows.append(rows, `bench-${batch++}`);
  const rows = await store.flows.count();
  await store.close();
  const bytes = (await Promise.all((await unitFiles(folder)).map((file) => stat(file)))).reduce(
    (sum, { size }) => sum + size,
    0,
  );
  const data: FlowData = { folder, toMs: lastEnd + 1, bytes, rows };
  await writeFile(facts, JSON.stringify(data));
  return data;
}

async function unitFiles(folder: string): Promise<string[]> {
  const names = await readdir(flowsFolder(folder));
  return names.filter((name) => name.endsWith(".duckdb")).map((name) => join(flowsFolder(folder), name));
}

interface Pair {
  readonly name: string;
  readonly path: string;
  readonly sql: readonly string[];
  readonly ratioMax: number;
  readonly msMax?: number;
}

/** IPv4 rows and the others, each as a table over all units. */
interface Tables {
  readonly four: string;
  readonly six: string;
}

const COLUMNS = {
  src: { four: "src", six: "src_high, src_low" },
  dst: { four: "dst", six: "dst_high, dst_low" },
  pair: { four: "(src::UBIGINT << 32) | dst", six: "src_high, src_low, dst_high, dst_low" },
} as const;

function pairs({ four, six }: Tables, toMs: number): Pair[] {
  const spans = { "1 h": HOUR_MS, "24 h": 24 * HOUR_MS };
  const talkers = Object.entries(spans).flatMap(([span, length]) =>
    Object.entries(COLUMNS).map(([dimension, columns]): Pair => {
      const fromMs = toMs - length;
      const sqlOf = (list: string, table: string) =>
        `SELECT ${list}, sum(bytes) AS b, sum(packets), count(*) FROM ${table}
         WHERE ts >= ${fromMs} AND ts < ${toMs} GROUP BY ALL ORDER BY b DESC LIMIT 20`;
      return {
        name: `top talkers by ${dimension}, ${span}`,
        path: `/api/v1/flows/top-talkers?dim=${dimension}&from=${fromMs}&to=${toMs}`,
        sql: [sqlOf(columns.four, four), sqlOf(columns.six, six)],
        ratioMax: TALKERS_RATIO_MAX,
        ...(length === HOUR_MS && { msMax: HOUR_MS_MAX }),
      };
    }),
  );
  const where = `ts >= ${toMs - 24 * HOUR_MS} AND ts < ${toMs} AND (src_port = ${PORT} OR dst_port = ${PORT})`;
  const listSql = (table: string) => [
    `SELECT count(*) FROM ${table} WHERE ${where}`,
    `SELECT * FROM ${table} WHERE ${where} ORDER BY bytes DESC LIMIT 50`,
  ];
  return [
    {
      name: "list by bytes with a port filter and total, 24 h",
      path: `/api/v1/flows?sort=bytes&port=${PORT}&from=${toMs - 24 * HOUR_MS}&to=${toMs}`,
      sql: [...listSql(four), ...listSql(six)],
      ratioMax: LIST_RATIO_MAX,
    },
    ...talkers,
  ];
}

export async function flowsQuery(): Promise<readonly Measurement[]> {
  const data = await prepare();
  const copies = `${data.folder}-copy`;
  await rm(copies, { recursive: true, force: true });
  await cp(flowsFolder(data.folder), copies, { recursive: true });
  const instance = await DuckDBInstance.create(":memory:", { threads: "2" });
  const connection = await instance.connect();
  try {
    const queries = pairs(await attachAll(connection, copies), data.toMs);
    const measurements: Measurement[] = [bytesPerRow(data)];
    await withServer(data.folder, async (server) => {
      for (const pair of queries) {
        const served: number[] = [];
        const direct: number[] = [];
        for (let round = 0; round <= ROUNDS; round++) {
          const through = await timed(() => server.get(pair.path));
          const raw = await timed(async () => {
            for (const sql of pair.sql) await connection.runAndReadAll(sql);
          });
          // Excludes the first round, which reads the files.
          if (round === 0) continue;
          served.push(through.ms);
          direct.push(raw.ms);
        }
        measurements.push(measurementOf(pair, spreadOf(served), spreadOf(direct)));
        process.stderr.write(`${cellsOf(measurements.at(-1)!).join("  ")}\n`);
      }
    });
    return measurements;
  } finally {
    connection.closeSync();
    instance.closeSync();
    await rm(copies, { recursive: true, force: true });
  }
}

async function attachAll(connection: DuckDBConnection, folder: string): Promise<Tables> {
  const aliases: string[] = [];
  for (const name of (await readdir(folder)).filter((file) => file.endsWith(".duckdb"))) {
    const alias = `unit${aliases.length}`;
    await connection.run(`ATTACH '${join(folder, name)}' AS ${alias} (READ_ONLY)`);
    aliases.push(alias);
  }
  const tableOf = (family: string) => `(${aliases.map((alias) => `FROM ${alias}.${family}`).join(" UNION ALL ")})`;
  return { four: tableOf("four"), six: tableOf("six") };
}

function bytesPerRow({ bytes, rows }: FlowData): Measurement {
  const each = bytes / rows;
  return {
    name: `bytes on disk per row, ${rows.toLocaleString("en")} rows`,
    result: `${each.toFixed(1)} bytes`,
    target: `at most ${BYTES_PER_ROW_MAX}`,
    met: each <= BYTES_PER_ROW_MAX,
    values: { bytesPerRow: each },
  };
}

function measurementOf(
  { name, ratioMax, msMax = Infinity }: Pair,
  served: ReturnType<typeof spreadOf>,
  direct: ReturnType<typeof spreadOf>,
): Measurement {
  const ratio = served.p50 / direct.p50;
  return {
    name: name,
    result: `p50 ${ms(served.p50)}; p95 ${ms(served.p95)}`,
    baseline: `p50 ${ms(direct.p50)} with SQL on the same files`,
    ratio,
    target: `at most ${ratioMax}${msMax === Infinity ? "" : `, under ${msMax} ms`}`,
    met: ratio <= ratioMax && served.p50 < msMax,
    values: { served: served.p50, servedP95: served.p95, direct: direct.p50 },
  };
}
