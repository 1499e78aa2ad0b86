import { mkdirSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { workerData } from "node:worker_threads";
import {
  DuckDBInstance,
  DuckDBScalarFunction,
  UBIGINT,
  VARCHAR,
  type DuckDBConnection,
  type DuckDBValue,
} from "@duckdb/node-api";
import { formatAddress } from "../../../lib/ip.ts";
import { memoryShare } from "../../../lib/memory.ts";
import { serveThread } from "../../../lib/thread.ts";
import { DAY_MS, startOfDay } from "../../../lib/time.ts";
import { SerialQueue } from "../../../lib/serial-queue.ts";
import { FLOW_WINDOW_MS, type FlowRows } from "../../../model/flow.ts";
import type {
  Flow,
  FlowFilter,
  FlowOrder,
  TalkersQuery,
  Timeseries,
  TimeseriesQuery,
  Traffic,
} from "../../../model/flow-query.ts";
import { QueryRefused } from "../../ports/store-errors.ts";
import { QueryLanes, type Lane } from "../../queries/query-lanes.ts";
import {
  IDLE_CACHE_BYTES_MAX,
  CACHE_BYTES_MAX,
  memoryUsedBytes,
  releaseCache,
  ActiveReaders,
} from "../cache-release.ts";
import type { GoneFile } from "../../files/file-identity.ts";
import { flowsFolder, flowsScratch, type Layout } from "../../files/layout.ts";
import { QueriesInFlight, type NumberedContext } from "../../queries/queries-in-flight.ts";
import { refuseNewerDuckFiles } from "../newer-duckdb-files.ts";
import { pageBySize, pageByTime, sumsRowsOf, type FlowQuery } from "./flow-queries.ts";
import { ADDRESS_FUNCTION, countSql, groupingsOf, spanSql, toFlow } from "./flow-sql.ts";
import { MIXED, moveStagedSql, stageRows } from "./flow-table.ts";
import { timeseries, topGroups, withoutCells, type RunFlowSql } from "./traffic-sums.ts";
import { FlowDays, type FlowDay, type FlowDayFiles } from "./flow-days.ts";
import { interruptOn } from "../interrupt.ts";

// The thread that owns the flows. It writes them and answers queries. It has an engine of its own, so that event searches and
// flow queries do not compete for memory or threads.

export interface FlowThreadOptions extends Layout {
  /** Time without a query after which cached blocks are released; tests set it short. */
  readonly idleMs?: number | undefined;
  /** Memory for the places of matches in a list that is sorted by size; tests set little. */
  readonly placesBytesMax?: number | undefined;
}

const MEBIBYTE = 2 ** 20;
/** Above this limit DuckDB spills to temporary files. A day may have millions of address pairs. */
const MEMORY_LIMIT_BYTES = memoryShare({ min: 64 * MEBIBYTE, max: 1024 * MEBIBYTE });
const MEMORY_LIMIT = `${MEMORY_LIMIT_BYTES} bytes`;
/** A list sorted by size may keep this share of it. */
const PLACES_SHARE = 1 / 16;
const THREADS_MAX = 4;
/** A query that runs longer is stopped. */
const QUERY_MS_MAX = 30_000;
/** Each open day takes a file handle. */
const DAYS_PER_QUERY_MAX = 800;
const PROTOCOLS = 256;
const IDLE_MS = 5000;

const {
  idleMs = IDLE_MS,
  placesBytesMax = MEMORY_LIMIT_BYTES * PLACES_SHARE,
  ...layout
} = workerData as FlowThreadOptions;

/** Days that were opened or appended to, with their rows, and days that could not be read, since the last call. */
export interface FlowDayReports {
  readonly days: readonly (readonly [day: number, rows: number])[];
  readonly damages: readonly { readonly day: number; readonly reason: string }[];
}

interface OpenFlowEngine {
  readonly instance: DuckDBInstance;
  readonly writer: DuckDBConnection;
  readonly flowDays: FlowDays;
  readonly idle: DuckDBConnection[];
}

let engine: Promise<OpenFlowEngine> | undefined;
/** Reports that have not been taken yet. */
const rowsByDay = new Map<number, number>();
const damages: { day: number; reason: string }[] = [];

function takeReports(): FlowDayReports {
  const reports = { days: [...rowsByDay], damages: damages.splice(0) };
  rowsByDay.clear();
  return reports;
}

const files: FlowDayFiles = new Map();
/** Serialises changes. */
const changes = new SerialQueue();
const running = new Set<Promise<unknown>>();
const inFlight = new QueriesInFlight();
const lanes = new QueryLanes();
/** A list of the newest flows is quick up to this row. */
const QUICK_ROWS_MAX = 1000;
const readers = new ActiveReaders();
let releaseTimer: NodeJS.Timeout | undefined;
/** The current cache release; queries wait for it. */
let release: Promise<void> = Promise.resolve();

async function openFlowEngine(): Promise<OpenFlowEngine> {
  const { dataDir } = layout;
  rmSync(flowsScratch(dataDir), { recursive: true, force: true });
  mkdirSync(flowsScratch(dataDir), { recursive: true });
  const instance = await DuckDBInstance.create(":memory:", {
    memory_limit: MEMORY_LIMIT,
    temp_directory: flowsScratch(dataDir),
    threads: String(Math.min(THREADS_MAX, availableParallelism())),
    // This thread decides when to checkpoint a day; on its own DuckDB does it within a commit.
    checkpoint_threshold: "1TB",
    storage_compatibility_version: "latest",
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "false",
  });
  const writer = await instance.connect();
  writer.registerScalarFunction(
    DuckDBScalarFunction.create({
      name: ADDRESS_FUNCTION,
      parameterTypes: [UBIGINT, UBIGINT],
      returnType: VARCHAR,
      mainFunction: (_info, input, output) => {
        const [high, low] = [input.getColumnVector(0), input.getColumnVector(1)];
        for (let row = 0; row < input.rowCount; row++) {
          const address = ((high.getItem(row) as bigint) << 64n) | (low.getItem(row) as bigint);
          output.setItem(row, formatAddress(address) as DuckDBValue);
        }
        output.flush();
      },
    }),
  );
  const flowDays = new FlowDays(layout, writer, files, {
    opened: (day, rows) => void rowsByDay.set(day, rows),
    damage: (day, reason) => void damages.push({ day, reason }),
  });
  return { instance, writer, flowDays, idle: [] };
}

/** Runs `work`; replaces an engine after a failure that it cannot recover from. Everything acknowledged is in the files. */
async function withEngine<T>(work: (engine: OpenFlowEngine) => Promise<T>): Promise<T> {
  engine ??= openFlowEngine();
  const current = engine;
  current.catch(() => {
    if (engine === current) engine = undefined;
  });
  try {
    return await work(await current);
  } catch (error) {
    if (error instanceof Error && /invalidated|FATAL/i.test(error.message) && engine === current) {
      engine = undefined;
      (await current).instance.closeSync();
    }
    throw error;
  }
}

function change<T>(work: (engine: OpenFlowEngine) => Promise<T>): Promise<T> {
  return changes.take(() => withEngine(work));
}

async function append({ writer, flowDays }: OpenFlowEngine, rows: FlowRows, batchId: string): Promise<void> {
  const days = new Set<number>();
  for (let row = 0; row < rows.count; row++) days.add(startOfDay(rows.windowStart[row]! + FLOW_WINDOW_MS));
  await stageRows(writer, rows);
  for (const day of [...days].sort((a, b) => a - b)) {
    const flowDay = await flowDays.openOrCreate(day);
    await flowDays.commit(flowDay, () => appendDay(writer, flowDay, batchId, rows.nat !== null));
  }
  flowDays.syncFolder();
  await writer.run("DROP TABLE staged");
}

/** Appends the rows and the batch id in one transaction. False if the day has the batch already. */
async function appendDay(
  writer: DuckDBConnection,
  flowDay: FlowDay,
  batchId: string,
  hasNat: boolean,
): Promise<boolean> {
  const { name, day, lastSeq } = flowDay;
  const known = await writer.runAndReadAll(`SELECT 1 FROM ${name}.batches WHERE id = $1`, [batchId]);
  if (known.currentRowCount > 0) return false;
  await writer.run("BEGIN TRANSACTION");
  let added = 0;
  try {
    const move = {
      database: name,
      fromMs: day,
      toMs: day + DAY_MS,
      isBackwards: flowDay.batchesInLog % 2 === 1,
      hasNat,
    };
    const four = await writer.run(moveStagedSql("four", { ...move, lastSeq }));
    const six = await writer.run(moveStagedSql("six", { ...move, lastSeq: lastSeq + four.rowsChanged }));
    added = four.rowsChanged + six.rowsChanged;
    if (six.rowsChanged > 0 && !flowDay.isMixed) {
      const mixed = await writer.runAndReadAll(`FROM ${name}.six WHERE seq > ${lastSeq} AND ${MIXED} LIMIT 1`);
      flowDay.isMixed = mixed.currentRowCount > 0;
    }
    await writer.run(`INSERT INTO ${name}.batches VALUES ($1)`, [batchId]);
    await writer.run("COMMIT");
  } catch (error) {
    // A commit that failed has been rolled back already.
    await writer.run("ROLLBACK").catch(() => undefined);
    throw error;
  }
  flowDay.lastSeq += added;
  rowsByDay.set(day, flowDay.lastSeq);
  flowDay.batchesInLog++;
  flowDay.rowsInLog += added;
  flowDay.appendedAt = performance.now();
  return true;
}

/** Runs in the background: the rows are safe in the logs of their days, and the next batch retries a failure. */
async function checkpointDays({ flowDays }: OpenFlowEngine): Promise<void> {
  for (const flowDay of await flowDays.openDays()) await flowDays.checkpoint(flowDay, false);
}

/** Skipped while changes are pending, which queries do not wait for. The next query meets damage again. */
function releaseCaches(): void {
  if (changes.waiting > 0 || !readers.isIdle) return;
  const keptBytes = readers.becameIdleFor(idleMs) ? IDLE_CACHE_BYTES_MAX : CACHE_BYTES_MAX;
  release = change(({ writer }) => releaseCache(writer, MEMORY_LIMIT, keptBytes)).catch(() => undefined);
}

/** Runs a query on everything that is stored when it starts. */
function runInLane<T>(
  { number, client }: NumberedContext,
  filter: FlowFilter,
  answer: (query: FlowQuery) => Promise<T>,
  lane: Lane = "heavy",
): Promise<T> {
  return readers.track(() =>
    inFlight.during(number, async (stop) => {
      await release;
      return lanes.take({ name: client, lane }, stop.signal, () => {
        const outcome = withEngine((current) => runQuery(current, stop, filter, answer));
        running.add(outcome);
        return outcome.finally(() => running.delete(outcome));
      });
    }),
  );
}

async function runQuery<T>(
  { instance, flowDays, idle }: OpenFlowEngine,
  stop: AbortController,
  filter: FlowFilter,
  answer: (query: FlowQuery) => Promise<T>,
): Promise<T> {
  const { signal } = stop;
  const inRange = await flowDays.inRange(filter.fromMs, filter.toMs);
  if (inRange.length > DAYS_PER_QUERY_MAX)
    throw new QueryRefused("from", `covers more than ${DAYS_PER_QUERY_MAX} days of flows: narrow the time range`);
  const connection = idle.pop() ?? (await instance.connect());
  const timer = setTimeout(() => stop.abort(flowQueryTimedOut()), QUERY_MS_MAX);
  const stopInterrupts = interruptOn(signal, connection);
  const run: RunFlowSql = async (sql) => {
    signal.throwIfAborted();
    return (await connection.runAndReadAll(sql)).getRows() as unknown[][];
  };
  try {
    // The total and the page see the same rows.
    await connection.run("BEGIN TRANSACTION READ ONLY");
    const result = await answer({ run, flowDays: inRange, filter, placesBytesMax });
    await connection.run("COMMIT");
    stopInterrupts();
    idle.push(connection);
    return result;
  } catch (error) {
    stopInterrupts();
    connection.closeSync();
    throw signal.aborted ? signal.reason : error;
  } finally {
    clearTimeout(timer);
  }
}

function flowQueryTimedOut(): QueryRefused {
  return new QueryRefused("from", `took longer than ${QUERY_MS_MAX / 1000} s: narrow the time range`);
}

const api = {
  /** Runs before anything in the folder is changed. */
  refuseNewer(): Promise<void> {
    return refuseNewerDuckFiles(layout.dataDir);
  },

  /** Creates the current day and returns the days that existed; those are opened when a query needs them. */
  open(nowMs: number): Promise<readonly number[]> {
    mkdirSync(flowsFolder(layout.dataDir), { recursive: true });
    releaseTimer = setInterval(releaseCaches, idleMs).unref();
    return change(async ({ flowDays }) => {
      const days = flowDays.daysBefore(Infinity);
      await flowDays.openOrCreate(startOfDay(nowMs));
      return days;
    });
  },

  memory(): Promise<number> {
    return change(({ instance }) => memoryUsedBytes(instance));
  },

  async append(rows: FlowRows, batchId: string): Promise<void> {
    await change((current) => append(current, rows, batchId));
    void change(checkpointDays).catch(() => undefined);
  },

  takeReports,

  list(
    context: NumberedContext,
    filter: FlowFilter,
    order: FlowOrder,
    offset: number,
    limit: number,
  ): Promise<{ total: number; flows: readonly Flow[] }> {
    const isByTime = order.sort === "timestamp";
    // The newest flows are at the end of a day, in a few narrow columns. Deep pages and other sorts read everything.
    const lane = isByTime && offset + limit <= QUICK_ROWS_MAX ? "quick" : "heavy";
    const answer = async (query: FlowQuery) => {
      if (query.flowDays.length === 0) return { total: 0, flows: [] };
      return (isByTime ? pageByTime : pageBySize)(query, order, offset, limit);
    };
    return runInLane(context, filter, answer, lane);
  },

  /** Days that have rows, with their number. */
  days(): Promise<readonly (readonly [day: number, rows: number])[]> {
    return withEngine(async ({ flowDays }) =>
      (await flowDays.inRange()).flatMap(({ day, lastSeq }) => (lastSeq > 0 ? [[day, lastSeq] as const] : [])),
    );
  },

  /** The rows of a day after one sequence number and up to another. */
  span(day: number, after: number, upTo: number): Promise<readonly Flow[]> {
    return change(async ({ writer, flowDays }) => {
      const [flowDay] = await flowDays.inRange(day, day + 1);
      if (!flowDay) return [];
      const found = await writer.runAndReadAll(spanSql(flowDay, after, upTo));
      return (found.getRows() as unknown[][]).map(toFlow);
    });
  },

  topTalkers(context: NumberedContext, { filter, dimension, by, limit }: TalkersQuery): Promise<Traffic[]> {
    return runInLane(context, filter, async (query) => {
      if (query.flowDays.length === 0) return [];
      const groupings = groupingsOf(dimension, query.flowDays);
      return (await topGroups(query.run, sumsRowsOf(query), groupings, by, limit)).map(withoutCells);
    });
  },

  protocols(context: NumberedContext, filter: FlowFilter): Promise<Traffic[]> {
    return runInLane(context, filter, async (query) => {
      if (query.flowDays.length === 0) return [];
      const groupings = groupingsOf("protocol", query.flowDays);
      return (await topGroups(query.run, sumsRowsOf(query), groupings, "bytes", PROTOCOLS)).map(withoutCells);
    });
  },

  timeseries(context: NumberedContext, request: TimeseriesQuery): Promise<Timeseries> {
    return runInLane(context, request.filter, async (query) => {
      // Without a day there is nothing to select from, but the points are returned.
      const run: RunFlowSql = query.flowDays.length === 0 ? async () => [] : query.run;
      const groupings = request.split === undefined ? [] : groupingsOf(request.split, query.flowDays);
      const { timestamps, series } = await timeseries(run, sumsRowsOf(query), groupings, request);
      return {
        timestamps,
        series: series.map(({ key, bytes, packets, flowCount }) => ({ key, bytes, packets, flowCount })),
      };
    });
  },

  removeBefore(ms: number): Promise<{ days: number; flows: number }> {
    return change(async ({ flowDays, writer }) => {
      const removed = { days: 0, flows: 0 };
      for (const day of flowDays.daysBefore(ms)) {
        const flowDay = await flowDays.retire(day);
        if (!flowDay) continue;
        const [[rows]] = (await writer.runAndReadAll(countSql([flowDay], {}))).getRows() as [[bigint]];
        // Queries that started before may still read it.
        await Promise.allSettled(running);
        await flowDays.drop(flowDay);
        removed.days++;
        removed.flows += Number(rows);
      }
      return removed;
    });
  },

  count(context: NumberedContext): Promise<number> {
    return runInLane(context, {}, async ({ run, flowDays }) => {
      if (flowDays.length === 0) return 0;
      const [[rows]] = (await run(countSql(flowDays, {}))) as [[bigint]];
      return Number(rows);
    });
  },

  gone(): Promise<GoneFile[]> {
    return withEngine(({ flowDays }) => flowDays.goneFiles());
  },

  check(): Promise<void> {
    return withEngine(async ({ instance, idle }) => {
      const connection = idle.pop() ?? (await instance.connect());
      await connection.run("SELECT 1");
      idle.push(connection);
    });
  },

  cancel(number: number): void {
    inFlight.cancel(number);
  },

  /** Checkpoints all days and closes their files. */
  async close(): Promise<void> {
    clearInterval(releaseTimer);
    inFlight.cancelAll();
    // Includes queries that wait for the cache release or for a slot: they would use a closed engine.
    await readers.whenIdle();
    await release;
    await change(async ({ instance, flowDays, idle, writer }) => {
      for (const flowDay of await flowDays.openDays()) await flowDays.checkpoint(flowDay, true);
      for (const connection of [...idle, writer]) connection.closeSync();
      instance.closeSync();
    });
  },
};

export type FlowThreadApi = typeof api;

serveThread(api);
