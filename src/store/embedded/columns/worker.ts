import { rmSync } from "node:fs";
import { join } from "node:path";
import { workerData } from "node:worker_threads";
import type { DuckDBConnection } from "@duckdb/node-api";
import { LRUCache } from "lru-cache";
import { serveThread } from "../../../lib/thread.ts";
import { startOfDay } from "../../../lib/time.ts";
import { Turns } from "../../../lib/turns.ts";
import type { Condition } from "../../../model/condition.ts";
import type { Event } from "../../../model/event.ts";
import type { AggregationResult, SearchQuery, TimeRange } from "../../../model/query.ts";
import { StoreUnavailable, type ParquetTask, type Projection } from "../../store.ts";
import { COPIES_BYTES_AT_REST, COPIES_BYTES_MAX, engineMemory, forgetCopies, Readers } from "../copies.ts";
import { DayReaders } from "../journal/day-file.ts";
import type { ListPlace } from "../journal/list-place.ts";
import { columnsFile, columnsScratch, type Layout } from "../layout.ts";
import { aggregate, totalOf, type RunSql } from "./aggregate.ts";
import { MEMORY_LIMIT, ofMemory, openEngine, rowsOf, tookTooLong, type Engine } from "./engine.ts";
import { Follower, type CommittedRows, type DayEnd } from "./follower.ts";
import { orderedSql } from "./order.ts";
import { writeParquet } from "./parquet.ts";
import { Patterns } from "./patterns.ts";
import { Projections, type ProjectedRows } from "./projection.ts";
import { and, Parameters } from "./sql.ts";
import { TAIL_ROWS_MAX, type Snapshot } from "./tails.ts";
import { conditionSql } from "./where.ts";

// The thread that owns the columns: it follows the journal and answers questions.

export interface ColumnsData extends Layout {
  readonly platform: string;
  /** Rows that are kept in memory before they go to disk; tests want few. */
  readonly tailRowsMax?: number | undefined;
  /** How long nobody must have asked anything until what was read for it is forgotten; tests do not wait. */
  readonly restMs?: number | undefined;
}

/** A question that runs longer is stopped. */
const QUESTION_MS_MAX = 30_000;
const QUESTIONS_AT_ONCE_MAX = 4;
const QUESTIONS_WAITING_MAX = 200;
const FOLLOW_MS = 100;
/** A tail that nothing is added to still moves to disk, so that little is left to read after a crash. */
const FLUSH_MS = 60_000;
const REST_MS = 5000;

const settings = workerData as ColumnsData;
const restMs = settings.restMs ?? REST_MS;
const journal = new DayReaders(settings);
let engine: Engine;
let follower: Follower;
let idle: DuckDBConnection[] = [];
/** Those that are being asked. */
const asked = new Set<DuckDBConnection>();
const waiting: (() => void)[] = [];
let busy = 0;
let followTimer: NodeJS.Timeout | undefined;
let flushTimer: NodeJS.Timeout | undefined;
let restTimer: NodeJS.Timeout | undefined;
/** But for projections that have begun. */
const readers = new Readers();
/** Not among the readers: being measured is no reason to keep what was read. */
const measuring = new Turns();
/** They have an engine of their own. */
const conversions = new Turns();
let ready: Promise<void> = Promise.resolve();
let dropped: string | undefined;
let dayEnds: DayEnd[] = [];

/** Why the columns must be built anew, until they are. */
let broken: string | undefined;
let isOpen = false;
let isClosing = false;

async function start(): Promise<void> {
  engine = await openEngine(settings.dataDir, { onDropped: (reason) => void (dropped = reason), readEvent });
  isOpen = true;
  follower = await Follower.start(engine, journal, dayEnds, settings.tailRowsMax);
  // What was committed while it started was told to the one before.
  follower.note(dayEnds.map(({ day, lastSeq }) => ({ day, firstSeq: lastSeq, lastSeq, rows: 0, packed: undefined })));
  for (const { day, lastAmendment } of dayEnds) follower.noteAmended(day, lastAmendment);
  if (follower.differing.length > 0) dropped = `${follower.differing.length} days had not the rows of the journal`;
}

/** The file turned out to be damaged: drop it, and read the journal again. */
async function startAnew(reason: string): Promise<void> {
  dropped = broken = reason;
  idle = [];
  counts.clear();
  if (isOpen) engine.instance.closeSync();
  isOpen = false;
  for (const suffix of ["", ".wal"]) rmSync(columnsFile(settings.dataDir) + suffix, { force: true });
  await start();
  broken = undefined;
}

/**
 * Several questions may meet the same damage: the first of them has it mended for all. What could not be mended, for want of
 * room, say, is tried again by the next question.
 */
function mend(reason: string, damaged: Engine): void {
  ready = ready
    .catch(() => undefined)
    .then(() => (broken !== undefined || engine === damaged ? startAnew(reason) : undefined));
}

function isDamage(error: unknown): boolean {
  const text = error instanceof Error ? error.message : String(error);
  return /corrupt|checksum|invalidated|Serialization Error|FATAL|INTERNAL Error|IO Error: Could not read/i.test(text);
}

function scheduleFollow(): void {
  followTimer ??= setTimeout(() => {
    followTimer = undefined;
    // A failure is counted by its lag, met again by the next question, and tried again with the next events.
    ready.then(() => follower.catchUp()).catch(() => undefined);
  }, FOLLOW_MS);
}

function releaseCopies(): void {
  // What could not be mended waits for a question: nobody listens here.
  if (broken !== undefined || projections.size > 0 || follower.tails.areMoving || !readers.areGone) return;
  const kept = readers.areGoneFor(restMs) ? COPIES_BYTES_AT_REST : COPIES_BYTES_MAX;
  const release = () => forgetCopies(engine.connection, MEMORY_LIMIT, kept);
  // Whoever comes meanwhile waits, as for everything that makes it ready. Damage is met again by the next question.
  ready = ready.then(() => follower.alone(release).catch(() => undefined));
}

function readEvent(timestampMs: number, seq: number): Event | undefined {
  const row = journal.get(startOfDay(timestampMs))?.sql("SELECT body FROM events WHERE seq = ?").get(seq);
  return row && (JSON.parse((row as { body: string }).body) as Event);
}

interface Question {
  readonly run: RunSql;
  /** For the SQL of these conditions. */
  readonly parametersFor: (...conditions: Condition[]) => Promise<Parameters>;
  readonly snapshot: Snapshot;
}

/** Runs a question on a snapshot that has everything the journal had when it was put. */
function ask<T>(answer: (question: Question) => Promise<T>): Promise<T> {
  return readers.during(() => askInTurn(answer));
}

async function askInTurn<T>(answer: (question: Question) => Promise<T>): Promise<T> {
  if (waiting.length >= QUESTIONS_WAITING_MAX)
    throw new StoreUnavailable("queue_full", "too many questions are waiting");
  if (busy >= QUESTIONS_AT_ONCE_MAX) await new Promise<void>((resolve) => waiting.push(resolve));
  busy++;
  try {
    await ready.catch(() => undefined);
    if (broken !== undefined) mend(broken, engine);
    const current = engine;
    try {
      return await askOnce(answer);
    } catch (error) {
      if (!isDamage(error)) throw error;
      mend(error instanceof Error ? error.message : String(error), current);
      return await askOnce(answer);
    }
  } finally {
    busy--;
    waiting.shift()?.();
  }
}

async function askOnce<T>(answer: (question: Question) => Promise<T>): Promise<T> {
  await ready;
  await follower.catchUp();
  refuseAtTheEnd();
  const owner = engine;
  const connection = idle.pop() ?? (await engine.instance.connect());
  const snapshot = follower.tails.snapshot();
  let timer: NodeJS.Timeout | undefined;
  let late = false;
  asked.add(connection);
  try {
    timer = setTimeout(() => {
      late = true;
      connection.interrupt();
    }, QUESTION_MS_MAX);
    const run: Question["run"] = (text, parameters) => {
      const { sql, values } = parameters.settle(text);
      return rowsOf(connection, sql, values);
    };
    const parametersFor = async (...conditions: Condition[]) =>
      new Parameters(
        { foreignPatterns: await patterns.refusedOf(conditions, connection), oddBits: follower.oddBits },
        snapshot.lots,
      );
    return await answer({ run, parametersFor, snapshot });
  } catch (error) {
    throw late ? tookTooLong(QUESTION_MS_MAX) : ofMemory(error, busy === 1);
  } finally {
    clearTimeout(timer);
    asked.delete(connection);
    snapshot.release();
    if (owner === engine) idle.push(connection);
  }
}

function refuseAtTheEnd(): void {
  if (isClosing) throw new StoreUnavailable("closed", "the store is being closed");
}

const patterns = new Patterns();

/** Slices of time in which a projection looks at the rows, in lots. */
const PROJECTION_LOTS = 2;
const projectionLimits = {
  msMax: QUESTION_MS_MAX,
  sliceRows: PROJECTION_LOTS * (settings.tailRowsMax ?? TAIL_ROWS_MAX),
};

const projections = new Projections(projectionLimits, async ({ fromMs, toMs }) => {
  await ready;
  await follower.catchUp();
  const { instance } = engine;
  const connections = [await instance.connect(), await instance.connect()] as const;
  const snapshot = follower.tails.snapshot();
  const rows = `(SELECT * FROM ${snapshot.from} WHERE ${rangeSql({ fromMs, toMs })})`;
  const release = () => {
    snapshot.release();
    for (const connection of connections) connection.closeSync();
  };
  const { lots } = snapshot;
  return { connections, rows, lots, patterns, platform: settings.platform, oddBits: follower.oddBits, release };
});

function rangeSql({ fromMs, toMs }: TimeRange): string {
  return and([fromMs === undefined ? "TRUE" : `ts >= ${fromMs}`, toMs === undefined ? "TRUE" : `ts < ${toMs}`]);
}

function whereSql(condition: Condition, range: TimeRange, parameters: Parameters): string {
  return and([rangeSql(range), conditionSql(condition, settings.platform, parameters)]);
}

const COUNTS_MAX = 2000;
const counts = new LRUCache<string, number>({ max: COUNTS_MAX });

/**
 * How many rows match. What is on disk changes only when a lot comes or a day goes, so that its part is counted once for
 * a condition; only the newest rows, in memory, are counted each time.
 */
async function count({ run, snapshot }: Question, where: string, parameters: Parameters): Promise<number> {
  const countIn = async (from: string): Promise<number> => {
    const [[total]] = (await run(`SELECT count(*) FROM ${from} WHERE ${where}`, parameters)) as [[bigint]];
    return Number(total);
  };
  const { sql, values } = parameters.settle(where);
  const question = JSON.stringify([snapshot.diskState, sql, values]);
  let onDisk = counts.get(question);
  if (onDisk === undefined) {
    onDisk = await countIn(snapshot.disk);
    counts.set(question, onDisk);
  }
  return snapshot.tails === undefined ? onDisk : onDisk + (await countIn(snapshot.tails));
}

const toPlace = ([ts, seq]: unknown[]): ListPlace => ({ ts: Number(ts), seq: Number(seq) });

/** Up to here it is cheap to fetch the rows in memory and those on disk apart. */
const APART_ROWS_MAX = 1000;

/** The newest matches below a place. Those in memory are mostly newer than anything on disk, which then is left alone. */
async function newest(
  { run, snapshot }: Question,
  where: string,
  parameters: Parameters,
  after: ListPlace | undefined,
  offset: number,
  limit: number,
): Promise<ListPlace[]> {
  const below = after ? `(ts < ${after.ts} OR (ts = ${after.ts} AND seq < ${after.seq}))` : "TRUE";
  // A cursor's bound also stands alone, where the engine can skip whole parts of the table by it.
  const bound = after ? `ts <= ${after.ts}` : "TRUE";
  const select = async (from: string, rows: string, floor = "TRUE"): Promise<ListPlace[]> => {
    const matches = and([bound, below, floor, where]);
    const sql = `SELECT ts, seq FROM ${from} WHERE ${matches} ORDER BY ts DESC, seq DESC LIMIT ${rows}`;
    return (await run(sql, parameters)).map(toPlace);
  };
  const wanted = offset + limit;
  if (snapshot.tails === undefined || wanted > APART_ROWS_MAX)
    return select(snapshot.from, `${limit} OFFSET ${offset}`);
  const inMemory = await select(snapshot.tails, `${wanted}`);
  const least = inMemory.length === wanted ? inMemory.at(-1)?.ts : undefined;
  if (least !== undefined && least > snapshot.diskLatest) return inMemory.slice(offset);
  const onDisk = await select(snapshot.disk, `${wanted}`, least === undefined ? "TRUE" : `ts >= ${least}`);
  return [...inMemory, ...onDisk].sort((a, b) => b.ts - a.ts || b.seq - a.seq).slice(offset, wanted);
}

const api = {
  /** Opens the columns and begins to read what they lack; questions wait until it is in. */
  async open(days: readonly DayEnd[]): Promise<{ dropped: string | undefined }> {
    dayEnds = [...days];
    await start();
    flushTimer = setInterval(() => {
      ready.then(() => follower.tails.flush()).catch(() => undefined);
    }, FLUSH_MS);
    restTimer = setInterval(releaseCopies, restMs);
    scheduleFollow();
    return { dropped };
  },

  committed(committed: readonly CommittedRows[]): void {
    for (const { day, lastSeq, rows } of committed) {
      const known = dayEnds.findIndex((end) => end.day === day);
      if (known >= 0) dayEnds[known] = { ...dayEnds[known]!, lastSeq, rows: dayEnds[known]!.rows + rows };
      else dayEnds.push({ day, rows, lastSeq, lastAmendment: 0 });
    }
    follower.note(committed);
    scheduleFollow();
  },

  /** Events of the day that the journal had committed were changed there. */
  amended(day: number, lastAmendment: number): void {
    const known = dayEnds.findIndex((end) => end.day === day);
    if (known >= 0) dayEnds[known] = { ...dayEnds[known]!, lastAmendment };
    follower.noteAmended(day, lastAmendment);
    scheduleFollow();
  },

  status(): { lag: number; large: number; moveFailure: string | undefined; dropped: string | undefined } {
    return { lag: follower.lag, large: follower.rowsLarge, moveFailure: follower.tails.moveFailure?.message, dropped };
  },

  memory(): Promise<number> {
    return measuring.take(async () => {
      await ready;
      refuseAtTheEnd();
      return engineMemory(engine.instance);
    });
  },

  count(condition: Condition, range: TimeRange): Promise<number> {
    return ask(async (question) => {
      const parameters = await question.parametersFor(condition);
      return count(question, whereSql(condition, range, parameters), parameters);
    });
  },

  /** The list's page: its total, and where its rows lie. */
  list(
    condition: Condition,
    range: TimeRange,
    after: ListPlace | undefined,
    offset: number,
    limit: number,
  ): Promise<{ total: number; places: ListPlace[] }> {
    return ask(async (question) => {
      const parameters = await question.parametersFor(condition);
      const where = whereSql(condition, range, parameters);
      const total = await count(question, where, parameters);
      return { total, places: await newest(question, where, parameters, after, offset, limit) };
    });
  },

  search(
    query: SearchQuery,
  ): Promise<{ total: number; places: ListPlace[]; aggregations: Record<string, AggregationResult> }> {
    return ask(async (question) => {
      const { run, snapshot } = question;
      const parameters = await question.parametersFor(query.condition);
      const where = whereSql(query.condition, query, parameters);
      const matching = `(SELECT * FROM ${snapshot.from} WHERE ${where})`;
      const { oddBits } = follower;
      const base = { sql: matching, parameters, platform: settings.platform, oddBits };
      const aggregations = await aggregate(query.aggs, base, run);
      const total = totalOf(query.aggs, aggregations) ?? (await count(question, where, parameters));
      const places: ListPlace[] = [];
      if (query.limit > 0) {
        const ordered = parameters.copy();
        const rows = orderedSql(matching, query.sort, settings.platform, ordered);
        places.push(...(await run(`SELECT ts, seq FROM ${rows} LIMIT ${query.limit}`, ordered)).map(toPlace));
      }
      return { total, places, aggregations };
    });
  },

  /** The next places in rising order, of events up to a sequence number. */
  scan(
    condition: Condition,
    range: TimeRange,
    after: ListPlace | undefined,
    upTo: number,
    limit: number,
  ): Promise<ListPlace[]> {
    return ask(async ({ run, parametersFor, snapshot }) => {
      const parameters = await parametersFor(condition);
      const where = whereSql(condition, range, parameters);
      const above = after ? `ts >= ${after.ts} AND (ts > ${after.ts} OR seq > ${after.seq})` : "TRUE";
      const rows = await run(
        `SELECT ts, seq FROM ${snapshot.from} WHERE ${and([above, `seq <= ${upTo}`, where])} ORDER BY ts, seq LIMIT ${limit}`,
        parameters,
      );
      return rows.map(toPlace);
    });
  },

  /** The next places in falling order of arrival, between two sequence numbers. */
  lastArrivals(condition: Condition, after: number, upTo: number, limit: number): Promise<ListPlace[]> {
    return ask(async ({ run, parametersFor, snapshot }) => {
      const parameters = await parametersFor(condition);
      const where = and([`seq > ${after}`, `seq <= ${upTo}`, whereSql(condition, {}, parameters)]);
      const rows = await run(
        `SELECT ts, seq FROM ${snapshot.from} WHERE ${where} ORDER BY seq DESC LIMIT ${limit}`,
        parameters,
      );
      return rows.map(toPlace);
    });
  },

  /** Begins to hand over rows; whoever asked numbers it, and ends it in every case. */
  async beginProjection(number: number, question: Projection & TimeRange): Promise<void> {
    refuseAtTheEnd();
    await readers.during(() => projections.begin(number, question));
  },

  async projectedRows(number: number): Promise<ProjectedRows> {
    refuseAtTheEnd();
    return projections.rows(number);
  },

  async endProjection(number: number): Promise<void> {
    await projections.end(number);
  },

  toParquet(task: ParquetTask): Promise<void> {
    return conversions.take(() => {
      refuseAtTheEnd();
      return writeParquet(task, join(columnsScratch(settings.dataDir), "parquet"));
    });
  },

  async removeDay(day: number): Promise<void> {
    await ready;
    dayEnds = dayEnds.filter((end) => end.day !== day);
    await follower.removeDay(day);
  },

  /** Reads everything that is missing; tells how many rows came in between calls. */
  async catchUp(): Promise<void> {
    await ready;
    await follower.catchUp();
  },

  rowsRead(): number {
    return follower.rowsRead;
  },

  async close(): Promise<void> {
    clearTimeout(followTimer);
    clearInterval(flushTimer);
    clearInterval(restTimer);
    // Whoever asked may have gone; an engine that is closed under a question takes the process with it.
    isClosing = true;
    for (const connection of asked) connection.interrupt();
    await projections.endAll();
    await readers.haveGone();
    await Promise.all([measuring.settled(), conversions.settled()]);
    await ready;
    await follower.catchUp();
    await follower.tails.flush();
    await follower.tails.checkpoint();
    for (const connection of idle) connection.closeSync();
    engine.connection.closeSync();
    engine.instance.closeSync();
    journal.closeAll();
  },
};

export type ColumnsApi = typeof api;

serveThread(api);
