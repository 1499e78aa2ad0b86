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
import { Turns } from "../../../lib/turns.ts";
import { FLOW_WINDOW_MS, type FlowRows } from "../../../model/flow.ts";
import type {
  Flow,
  FlowFilter,
  FlowOrder,
  TalkersQuestion,
  Timeseries,
  TimeseriesQuestion,
  Traffic,
} from "../../../model/flow-question.ts";
import { QuestionRefused } from "../../store.ts";
import { Lanes } from "../columns/lanes.ts";
import { COPIES_BYTES_AT_REST, COPIES_BYTES_MAX, engineMemory, forgetCopies, Readers } from "../copies.ts";
import type { GoneFile } from "../file-identity.ts";
import { flowsFolder, flowsScratch, type Layout } from "../layout.ts";
import { interruptOn, UnderWay, type NumberedAsking } from "../under-way.ts";
import { refuseNewerDuckFiles } from "./newer.ts";
import { ADDRESS_FUNCTION, countSql, groupingsOf, pageSql, rowsSql, toFlow } from "./question.ts";
import { MIXED, moveStagedSql, stageRows } from "./table.ts";
import { timeseries, topGroups, withoutCells, type RowsOf, type Run } from "./traffic.ts";
import { Units, type Unit, type UnitFiles } from "./units.ts";

// The thread that owns the flows: it writes them and answers questions. Its engine is one of its own, so that neither a
// search in events nor a question about flows waits for the other's memory or threads.

export interface FlowsData extends Layout {
  /** How long nobody must have asked anything until what was read for it is forgotten; tests do not wait. */
  readonly restMs?: number | undefined;
}

/** Beyond it the engine goes on in files. A day's pairs of addresses may be millions. */
const MEBIBYTE = 2 ** 20;
const MEMORY_LIMIT = `${memoryShare({ min: 64 * MEBIBYTE, max: 1024 * MEBIBYTE })} bytes`;
const THREADS_MAX = 4;
/** A question that runs longer is stopped. */
const QUESTION_MS_MAX = 30_000;
/** Each open unit takes a handle of the system. */
const UNITS_IN_QUESTION_MAX = 800;
const PROTOCOLS = 256;
const REST_MS = 5000;

const { restMs = REST_MS, ...layout } = workerData as FlowsData;

interface Engine {
  readonly instance: DuckDBInstance;
  readonly writer: DuckDBConnection;
  readonly units: Units;
  readonly idle: DuckDBConnection[];
}

let engine: Promise<Engine> | undefined;
/** For whoever asks next: days that were opened or written to with their rows, and those that cannot be read. */
export interface FlowsNews {
  readonly days: readonly (readonly [day: number, rows: number])[];
  readonly damages: readonly { readonly day: number; readonly words: string }[];
}
const opened = new Map<number, number>();
const damages: { day: number; words: string }[] = [];

function takeNews(): FlowsNews {
  const news = { days: [...opened], damages: damages.splice(0) };
  opened.clear();
  return news;
}
const files: UnitFiles = new Map();
/** One change after the other. */
const changes = new Turns();
const running = new Set<Promise<unknown>>();
const underWay = new UnderWay();
const lanes = new Lanes();
const readers = new Readers();
let restTimer: NodeJS.Timeout | undefined;
/** Questions wait for it. */
let rest: Promise<void> = Promise.resolve();

async function openEngine(): Promise<Engine> {
  const { dataDir } = layout;
  rmSync(flowsScratch(dataDir), { recursive: true, force: true });
  mkdirSync(flowsScratch(dataDir), { recursive: true });
  const instance = await DuckDBInstance.create(":memory:", {
    memory_limit: MEMORY_LIMIT,
    temp_directory: flowsScratch(dataDir),
    threads: String(Math.min(THREADS_MAX, availableParallelism())),
    // When a unit is written out is decided here; on its own the engine does it within a commit.
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
  const units = new Units(layout, writer, files, {
    opened: (day, rows) => void opened.set(day, rows),
    damage: (day, words) => void damages.push({ day, words }),
  });
  return { instance, writer, units, idle: [] };
}

/** An engine that met a failure it cannot recover from is replaced: what it had promised is in the files. */
async function withEngine<T>(work: (engine: Engine) => Promise<T>): Promise<T> {
  engine ??= openEngine();
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

function change<T>(work: (engine: Engine) => Promise<T>): Promise<T> {
  return changes.take(() => withEngine(work));
}

async function append({ writer, units }: Engine, rows: FlowRows, batchId: string): Promise<void> {
  const days = new Set<number>();
  for (let row = 0; row < rows.count; row++) days.add(startOfDay(rows.windowStart[row]! + FLOW_WINDOW_MS));
  await stageRows(writer, rows);
  for (const day of [...days].sort((a, b) => a - b)) {
    const unit = await units.of(day);
    await units.during(unit, () => appendDay(writer, unit, batchId, rows.nat !== null));
  }
  units.sync();
  await writer.run("DROP TABLE staged");
}

/** Rows and the batch's id are in the unit together or not at all. False where it has them already. */
async function appendDay(writer: DuckDBConnection, unit: Unit, batchId: string, hasNat: boolean): Promise<boolean> {
  const { name, day, lastSeq } = unit;
  const known = await writer.runAndReadAll(`SELECT 1 FROM ${name}.batches WHERE id = $1`, [batchId]);
  if (known.currentRowCount > 0) return false;
  await writer.run("BEGIN TRANSACTION");
  let added = 0;
  try {
    const move = { unit: name, fromMs: day, toMs: day + DAY_MS, isBackwards: unit.unwritten % 2 === 1, hasNat };
    const four = await writer.run(moveStagedSql("four", { ...move, lastSeq }));
    const six = await writer.run(moveStagedSql("six", { ...move, lastSeq: lastSeq + four.rowsChanged }));
    added = four.rowsChanged + six.rowsChanged;
    if (six.rowsChanged > 0 && !unit.isMixed) {
      const mixed = await writer.runAndReadAll(`FROM ${name}.six WHERE seq > ${lastSeq} AND ${MIXED} LIMIT 1`);
      unit.isMixed = mixed.currentRowCount > 0;
    }
    await writer.run(`INSERT INTO ${name}.batches VALUES ($1)`, [batchId]);
    await writer.run("COMMIT");
  } catch (error) {
    // A commit that failed has been rolled back already.
    await writer.run("ROLLBACK").catch(() => undefined);
    throw error;
  }
  unit.lastSeq += added;
  opened.set(day, unit.lastSeq);
  unit.unwritten++;
  unit.unwrittenRows += added;
  unit.appendedAt = performance.now();
  return true;
}

/** Nobody waits for it: the rows are safe in the units' logs, and what fails is tried again with the next batch. */
async function writeUnits({ units }: Engine): Promise<void> {
  for (const unit of await units.opened()) await units.write(unit, false);
}

interface Question {
  readonly run: Run;
  readonly units: readonly Unit[];
  readonly filter: FlowFilter;
}

/** Not behind changes, which questions do not wait for. What fails for damage fails for the next question as well. */
function releaseCopies(): void {
  if (changes.waiting > 0 || !readers.areGone) return;
  const kept = readers.areGoneFor(restMs) ? COPIES_BYTES_AT_REST : COPIES_BYTES_MAX;
  rest = change(({ writer }) => forgetCopies(writer, MEMORY_LIMIT, kept)).catch(() => undefined);
}

/** Runs a question on what is stored when it is put. */
function ask<T>(
  { number, asker }: NumberedAsking,
  filter: FlowFilter,
  answer: (question: Question) => Promise<T>,
): Promise<T> {
  return readers.during(() =>
    underWay.during(number, async (stop) => {
      await rest;
      return lanes.take({ name: asker, lane: "heavy" }, stop.signal, () => {
        const asked = withEngine((current) => askNow(current, stop, filter, answer));
        running.add(asked);
        return asked.finally(() => running.delete(asked));
      });
    }),
  );
}

async function askNow<T>(
  { instance, units, idle }: Engine,
  stop: AbortController,
  filter: FlowFilter,
  answer: (question: Question) => Promise<T>,
): Promise<T> {
  const { signal } = stop;
  const concerned = await units.within(filter.fromMs, filter.toMs);
  if (concerned.length > UNITS_IN_QUESTION_MAX)
    throw new QuestionRefused("from", `reaches over more than ${UNITS_IN_QUESTION_MAX} days of flows: narrow it`);
  const connection = idle.pop() ?? (await instance.connect());
  const timer = setTimeout(() => stop.abort(tookTooLong()), QUESTION_MS_MAX);
  const leave = interruptOn(signal, connection);
  const run: Run = async (sql) => {
    signal.throwIfAborted();
    return (await connection.runAndReadAll(sql)).getRows() as unknown[][];
  };
  try {
    // A total and its page belong together: both see the same rows.
    await connection.run("BEGIN TRANSACTION READ ONLY");
    const answered = await answer({ run, units: concerned, filter });
    await connection.run("COMMIT");
    leave();
    idle.push(connection);
    return answered;
  } catch (error) {
    leave();
    connection.closeSync();
    throw signal.aborted ? signal.reason : error;
  } finally {
    clearTimeout(timer);
  }
}

function tookTooLong(): QuestionRefused {
  return new QuestionRefused("from", `took longer than ${QUESTION_MS_MAX / 1000} s: narrow the time range`);
}

const sumsRowsOf =
  ({ units, filter }: Question): RowsOf =>
  ({ columns, families }) =>
    rowsSql(units, filter, [...columns, "ts", "bytes", "packets"], families);

/** By time, days stand one after the other: only those that the page lies in are read. */
async function pageByTime({ run, units, filter }: Question, order: FlowOrder, offset: number, limit: number) {
  const counting = units.map((unit, nth) => `SELECT ${nth}, (${countSql([unit], filter)})`);
  const counts = units.map(() => 0);
  for (const [nth, matching] of await run(counting.join(" UNION ALL "))) counts[Number(nth)] = Number(matching);
  const total = counts.reduce((sum, matching) => sum + matching, 0);
  const flows: Flow[] = [];
  let skip = offset;
  for (const nth of order.descending ? [...units.keys()].reverse() : units.keys()) {
    const take = Math.min(limit - flows.length, counts[nth]! - skip);
    if (take > 0) {
      const found = await run(pageSql([units[nth]!], filter, order, skip, take));
      flows.push(...found.map(toFlow));
    }
    skip = Math.max(0, skip - counts[nth]!);
    if (flows.length === limit) break;
  }
  return { total, flows };
}

async function pageBySize({ run, units, filter }: Question, order: FlowOrder, offset: number, limit: number) {
  const [[count]] = (await run(countSql(units, filter))) as [[bigint]];
  const total = Number(count);
  if (offset >= total) return { total, flows: [] };
  const found = await run(pageSql(units, filter, order, offset, limit));
  return { total, flows: found.map(toFlow) };
}

const api = {
  /** Before anything in the folder is touched. */
  refuseNewer(): Promise<void> {
    return refuseNewerDuckFiles(layout.dataDir);
  },

  /** Makes the unit of the day that it is; the others, whose days it gives, are opened when they are asked for. */
  open(nowMs: number): Promise<readonly number[]> {
    mkdirSync(flowsFolder(layout.dataDir), { recursive: true });
    restTimer = setInterval(releaseCopies, restMs).unref();
    return change(async ({ units }) => {
      const days = units.before(Infinity);
      await units.of(startOfDay(nowMs));
      return days;
    });
  },

  memory(): Promise<number> {
    return change(({ instance }) => engineMemory(instance));
  },

  async append(rows: FlowRows, batchId: string): Promise<void> {
    await change((current) => append(current, rows, batchId));
    void change(writeUnits).catch(() => undefined);
  },

  news: takeNews,

  list(
    asking: NumberedAsking,
    filter: FlowFilter,
    order: FlowOrder,
    offset: number,
    limit: number,
  ): Promise<{ total: number; flows: readonly Flow[] }> {
    return ask(asking, filter, async (question) => {
      if (question.units.length === 0) return { total: 0, flows: [] };
      const page = order.sort === "timestamp" ? pageByTime : pageBySize;
      return page(question, order, offset, limit);
    });
  },

  topTalkers(asking: NumberedAsking, { filter, dimension, by, limit }: TalkersQuestion): Promise<Traffic[]> {
    return ask(asking, filter, async (question) => {
      if (question.units.length === 0) return [];
      const groupings = groupingsOf(dimension, question.units);
      return (await topGroups(question.run, sumsRowsOf(question), groupings, by, limit)).map(withoutCells);
    });
  },

  protocols(asking: NumberedAsking, filter: FlowFilter): Promise<Traffic[]> {
    return ask(asking, filter, async (question) => {
      if (question.units.length === 0) return [];
      const groupings = groupingsOf("protocol", question.units);
      return (await topGroups(question.run, sumsRowsOf(question), groupings, "bytes", PROTOCOLS)).map(withoutCells);
    });
  },

  timeseries(asking: NumberedAsking, question: TimeseriesQuestion): Promise<Timeseries> {
    return ask(asking, question.filter, async (asked) => {
      // Without a unit there is nothing to select from, and the points are still to be told.
      const run: Run = asked.units.length === 0 ? async () => [] : asked.run;
      const groupings = question.split === undefined ? [] : groupingsOf(question.split, asked.units);
      const { timestamps, series } = await timeseries(run, sumsRowsOf(asked), groupings, question);
      return {
        timestamps,
        series: series.map(({ key, bytes, packets, flowCount }) => ({ key, bytes, packets, flowCount })),
      };
    });
  },

  removeBefore(ms: number): Promise<{ days: number; flows: number }> {
    return change(async ({ units, writer }) => {
      const removed = { days: 0, flows: 0 };
      for (const day of units.before(ms)) {
        const unit = await units.take(day);
        if (!unit) continue;
        const [[rows]] = (await writer.runAndReadAll(countSql([unit], {}))).getRows() as [[bigint]];
        // Questions that found it before may still read it.
        await Promise.allSettled(running);
        await units.drop(unit);
        removed.days++;
        removed.flows += Number(rows);
      }
      return removed;
    });
  },

  count(asking: NumberedAsking): Promise<number> {
    return ask(asking, {}, async ({ run, units }) => {
      if (units.length === 0) return 0;
      const [[rows]] = (await run(countSql(units, {}))) as [[bigint]];
      return Number(rows);
    });
  },

  gone(): Promise<GoneFile[]> {
    return withEngine(({ units }) => units.gone());
  },

  check(): Promise<void> {
    return withEngine(async ({ instance }) => {
      const connection = await instance.connect();
      await connection.run("SELECT 1");
      connection.closeSync();
    });
  },

  cancel(number: number): void {
    underWay.cancel(number);
  },

  /** Brings everything into the columns of its unit and lets go of the files. */
  async close(): Promise<void> {
    clearInterval(restTimer);
    underWay.cancelAll();
    // Those that wait for the rest, or for their turn, as well: they would ask an engine that is closed.
    await readers.haveGone();
    await rest;
    await change(async ({ instance, units, idle, writer }) => {
      for (const unit of await units.opened()) await units.write(unit, true);
      for (const connection of [...idle, writer]) connection.closeSync();
      instance.closeSync();
    });
  },
};

export type FlowsApi = typeof api;

serveThread(api);
