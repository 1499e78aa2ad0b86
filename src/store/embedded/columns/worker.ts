import { rmSync } from "node:fs";
import { join } from "node:path";
import { workerData } from "node:worker_threads";
import type { DuckDBConnection } from "@duckdb/node-api";
import { LRUCache } from "lru-cache";
import { parseExact } from "../../../lib/exact-json.ts";
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
import { interruptOn, UnderWay, type NumberedAsking as Asking } from "../under-way.ts";
import { aggregate, totalOf, type RunSql } from "./aggregate.ts";
import { boundedWhere } from "./bounded.ts";
import { isQuick } from "./cost.ts";
import { MEMORY_LIMIT, openEngine, rowsOf, tookTooLong, whyFailed, type Engine } from "./engine.ts";
import { Follower, type CommittedRows, type DayEnd } from "./follower.ts";
import { Lanes, type Lane } from "./lanes.ts";
import { orderedSql } from "./order.ts";
import { writeParquet } from "./parquet.ts";
import { Patterns } from "./patterns.ts";
import { Projections, type ProjectedRows } from "./projection.ts";
import { isTerse } from "./size.ts";
import { and, Parameters } from "./sql.ts";
import { TAIL_ROWS_MAX, type Snapshot } from "./tails.ts";

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
const underWay = new UnderWay();
const lanes = new Lanes();
let tables = 0;
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
  mostNs.clear();
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
  return row && (parseExact((row as { body: string }).body) as Event);
}

interface Question {
  readonly run: RunSql;
  readonly snapshot: Snapshot;
  /** SQL for a condition on the rows within this SQL, and the values that go with it. */
  readonly where: (condition: Condition, within: string) => Promise<Where>;
}

interface Where {
  readonly sql: string;
  readonly parameters: Parameters;
  /** The same condition has the same SQL the next time. */
  readonly isLasting: boolean;
}

/** Runs a question on a snapshot that has everything the journal had when it was put. */
function ask<T>({ number, asker }: Asking, lane: Lane, answer: (question: Question) => Promise<T>): Promise<T> {
  return readers.during(() =>
    underWay.during(number, (stop) => lanes.take({ name: asker, lane }, stop.signal, () => askNow(stop, answer))),
  );
}

async function askNow<T>(stop: AbortController, answer: (question: Question) => Promise<T>): Promise<T> {
  await ready.catch(() => undefined);
  if (broken !== undefined) mend(broken, engine);
  const current = engine;
  try {
    return await askOnce(stop, answer);
  } catch (error) {
    if (!isDamage(error)) throw error;
    mend(error instanceof Error ? error.message : String(error), current);
    return await askOnce(stop, answer);
  }
}

async function askOnce<T>(stop: AbortController, answer: (question: Question) => Promise<T>): Promise<T> {
  const { signal } = stop;
  await ready;
  await follower.catchUp();
  refuseAtTheEnd();
  const owner = engine;
  const connection = idle.pop() ?? (await engine.instance.connect());
  const snapshot = follower.tails.snapshot();
  const made: string[] = [];
  const timer = setTimeout(() => stop.abort(tookTooLong(QUESTION_MS_MAX)), QUESTION_MS_MAX);
  const leave = interruptOn(signal, connection);
  try {
    const run: Question["run"] = (text, parameters) => {
      signal.throwIfAborted();
      const { sql, values } = parameters.settle(text);
      return rowsOf(connection, sql, values);
    };
    const where: Question["where"] = async (condition, within) => {
      const foreignPatterns = await patterns.refusedOf([condition], connection);
      const facts = { foreignPatterns, oddBits: follower.oddBits, isTerse: isTerse([condition]) };
      const parameters = new Parameters(facts, snapshot.lots);
      const sql = await boundedWhere(condition, within, {
        platform: settings.platform,
        parameters,
        rows: snapshot.from,
        run,
        mostNs: (nsSql) => mostNsOf(nsSql, run, snapshot),
        newTable: () => made[made.push(nextTable()) - 1]!,
      });
      return { sql, parameters, isLasting: made.length === 0 };
    };
    return await answer({ run, snapshot, where });
  } catch (error) {
    throw signal.aborted ? signal.reason : whyFailed(error, lanes.running === 1);
  } finally {
    clearTimeout(timer);
    leave();
    for (const table of made) await connection.run(`DROP TABLE IF EXISTS ${table}`);
    snapshot.release();
    if (owner === engine) idle.push(connection);
  }
}

/** For matches of a question, beside the tails. */
function nextTable(): string {
  return `tail.matches${++tables}`;
}

const MOST_NS_MAX = 500;
const mostNs = new LRUCache<string, number>({ max: MOST_NS_MAX });

/** The most that any row costs. Rows on disk seldom change, so that theirs is mostly known. */
async function mostNsOf(nsSql: string, run: RunSql, snapshot: Snapshot): Promise<number> {
  const mostIn = async (from: string): Promise<number> => {
    const [[most]] = (await run(`SELECT max(${nsSql}) FROM ${from}`, new Parameters(undefined, snapshot.lots))) as [
      [number | null],
    ];
    return Number(most);
  };
  const question = `${snapshot.diskState} ${nsSql}`;
  let onDisk = mostNs.get(question);
  if (onDisk === undefined) {
    onDisk = await mostIn(snapshot.disk);
    mostNs.set(question, onDisk);
  }
  return snapshot.tails === undefined ? onDisk : Math.max(onDisk, await mostIn(snapshot.tails));
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
  const made: string[] = [];
  const newTable = () => made[made.push(nextTable()) - 1]!;
  const release = async () => {
    for (const table of made) await connections[0].run(`DROP TABLE IF EXISTS ${table}`);
    snapshot.release();
    for (const connection of connections) connection.closeSync();
  };
  const { lots } = snapshot;
  const { platform } = settings;
  return { connections, rows, lots, patterns, platform, oddBits: follower.oddBits, newTable, release };
});

function rangeSql({ fromMs, toMs }: TimeRange): string {
  return and([fromMs === undefined ? "TRUE" : `ts >= ${fromMs}`, toMs === undefined ? "TRUE" : `ts < ${toMs}`]);
}

const COUNTS_MAX = 2000;
const counts = new LRUCache<string, number>({ max: COUNTS_MAX });

/**
 * How many rows match. What is on disk changes only when a lot comes or a day goes, so that its part is counted once for
 * a condition; only the newest rows, in memory, are counted each time.
 */
async function count({ run, snapshot }: Question, { sql: where, parameters, isLasting }: Where): Promise<number> {
  const countIn = async (from: string): Promise<number> => {
    const [[total]] = (await run(`SELECT count(*) FROM ${from} WHERE ${where}`, parameters)) as [[bigint]];
    return Number(total);
  };
  const { sql, values } = parameters.settle(where);
  const question = JSON.stringify([snapshot.diskState, sql, values]);
  let onDisk = counts.get(question);
  if (onDisk === undefined) {
    onDisk = await countIn(snapshot.disk);
    if (isLasting) counts.set(question, onDisk);
  }
  return snapshot.tails === undefined ? onDisk : onDisk + (await countIn(snapshot.tails));
}

function laneOf(condition: Condition): Lane {
  return isQuick(condition) ? "quick" : "heavy";
}

const toPlace = ([ts, seq]: unknown[]): ListPlace => ({ ts: Number(ts), seq: Number(seq) });

/** Up to here it is cheap to fetch the rows in memory and those on disk apart. */
const APART_ROWS_MAX = 1000;

/** The newest matches below a place. Those in memory are mostly newer than anything on disk, which then is left alone. */
async function newest(
  { run, snapshot }: Question,
  { sql: where, parameters }: Where,
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
  async open(days: readonly DayEnd[]): Promise<{ dropped: string | undefined; lost: Follower["lost"] }> {
    dayEnds = [...days];
    await start();
    flushTimer = setInterval(() => {
      ready.then(() => follower.tails.flush()).catch(() => undefined);
    }, FLUSH_MS);
    restTimer = setInterval(releaseCopies, restMs);
    scheduleFollow();
    return { dropped, lost: follower.lost };
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

  status(): {
    lag: number;
    large: number;
    refused: number;
    moveFailure: string | undefined;
    dropped: string | undefined;
  } {
    const { lag, rowsLarge: large, tails } = follower;
    return { lag, large, refused: lanes.refused, moveFailure: tails.moveFailure?.message, dropped };
  },

  memory(): Promise<number> {
    return measuring.take(async () => {
      await ready;
      refuseAtTheEnd();
      return engineMemory(engine.instance);
    });
  },

  count(asking: Asking, condition: Condition, range: TimeRange): Promise<number> {
    return ask(asking, laneOf(condition), async (question) =>
      count(question, await question.where(condition, rangeSql(range))),
    );
  },

  /** The list's page: its total, and where its rows lie. */
  list(
    asking: Asking,
    condition: Condition,
    range: TimeRange,
    after: ListPlace | undefined,
    offset: number,
    limit: number,
  ): Promise<{ total: number; places: ListPlace[] }> {
    return ask(asking, laneOf(condition), async (question) => {
      const where = await question.where(condition, rangeSql(range));
      const total = await count(question, where);
      return { total, places: await newest(question, where, after, offset, limit) };
    });
  },

  search(
    asking: Asking,
    query: SearchQuery,
  ): Promise<{ total: number; places: ListPlace[]; aggregations: Record<string, AggregationResult> }> {
    const lane = query.aggs.length > 0 || query.sort.length > 0 ? "heavy" : laneOf(query.condition);
    return ask(asking, lane, async (question) => {
      const { run, snapshot } = question;
      const where = await question.where(query.condition, rangeSql(query));
      const { parameters } = where;
      const matching = `(SELECT * FROM ${snapshot.from} WHERE ${where.sql})`;
      const { oddBits } = follower;
      const base = { sql: matching, parameters, platform: settings.platform, oddBits };
      const aggregations = await aggregate(query.aggs, base, run);
      const total = totalOf(query.aggs, aggregations) ?? (await count(question, where));
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
    asking: Asking,
    condition: Condition,
    range: TimeRange,
    after: ListPlace | undefined,
    upTo: number,
    limit: number,
  ): Promise<ListPlace[]> {
    return ask(asking, "heavy", async ({ run, where, snapshot }) => {
      const above = after ? `ts >= ${after.ts} AND (ts > ${after.ts} OR seq > ${after.seq})` : "TRUE";
      const { sql, parameters } = await where(condition, and([above, `seq <= ${upTo}`, rangeSql(range)]));
      const rows = await run(
        `SELECT ts, seq FROM ${snapshot.from} WHERE ${sql} ORDER BY ts, seq LIMIT ${limit}`,
        parameters,
      );
      return rows.map(toPlace);
    });
  },

  /** The next places in falling order of arrival, between two sequence numbers. */
  lastArrivals(asking: Asking, condition: Condition, after: number, upTo: number, limit: number): Promise<ListPlace[]> {
    return ask(asking, "heavy", async ({ run, where, snapshot }) => {
      const { sql, parameters } = await where(condition, `seq > ${after} AND seq <= ${upTo}`);
      const rows = await run(
        `SELECT ts, seq FROM ${snapshot.from} WHERE ${sql} ORDER BY seq DESC LIMIT ${limit}`,
        parameters,
      );
      return rows.map(toPlace);
    });
  },

  /** Whoever asked has gone: the question stops, or does not begin. */
  cancel(number: number): void {
    underWay.cancel(number);
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

  /** Takes as long as it takes; it is cancelled with its export. */
  toParquet({ number }: Asking, task: ParquetTask): Promise<void> {
    return underWay.during(number, ({ signal }) =>
      conversions.take(() => {
        refuseAtTheEnd();
        return writeParquet(task, join(columnsScratch(settings.dataDir), "parquet"), signal);
      }),
    );
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
    underWay.cancelAll();
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
