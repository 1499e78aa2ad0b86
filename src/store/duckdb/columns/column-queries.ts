import type { AggregationResult } from "../../../model/aggregation.ts";
import type { Condition } from "../../../model/condition.ts";
import type { SearchQuery, TimeRange } from "../../../model/query.ts";
import type { ListPlace } from "../../sqlite/journal/list-position.ts";
import { aggregate, totalOf, type SqlValue } from "./aggregate.ts";
import { afterSql, orderBySql, orderOf, type RowOrder } from "./order-by.ts";
import type { ColumnQuery, WhereClause } from "./query-runner.ts";
import { QueryRefused } from "../../ports/store-errors.ts";
import { and, TRUE, type Parameters } from "./sql.ts";

// The queries that the columns answer. Their results are positions of events: the journal has the events themselves.

/** Up to this many rows, memtables and disk are queried separately. */
const SEPARATE_ROWS_MAX = 1000;
/** Types that a sample covers, those with the most events first. */
const STRATA_MAX = 200;
/** Arrivals that a sample is taken from, the last ones. */
const SAMPLED_ROWS_MAX = 5_000_000;

export function rangeSql({ fromMs, toMs }: TimeRange): string {
  return and([fromMs === undefined ? "TRUE" : `ts >= ${fromMs}`, toMs === undefined ? "TRUE" : `ts < ${toMs}`]);
}

const toPosition = ([ts, seq]: unknown[]): ListPlace => ({ ts: Number(ts), seq: Number(seq) });

/**
 * Counts matching rows. Rows on disk change only when a segment arrives, a day is removed or a row is amended, so that their
 * count is cached for each condition; only the memtables are counted every time.
 */
export async function countMatches(
  { run, snapshot, columns: { diskCounts } }: ColumnQuery,
  { sql: where, parameters, isCacheable }: WhereClause,
): Promise<number> {
  const countIn = async (from: string): Promise<number> => {
    const [[total]] = (await run(`SELECT count(*) FROM ${from} WHERE ${where}`, parameters)) as [[bigint]];
    return Number(total);
  };
  const { sql, values } = parameters.finalise(where);
  const key = JSON.stringify([snapshot.diskVersion, sql, values]);
  let onDisk = diskCounts.get(key);
  if (onDisk === undefined) {
    onDisk = await countIn(snapshot.disk);
    if (isCacheable) diskCounts.set(key, onDisk);
  }
  return snapshot.memtables === undefined ? onDisk : onDisk + (await countIn(snapshot.memtables));
}

/** The newest matches below a cursor. Those in memtables are mostly newer than every row on disk, which is then not read. */
export async function newestMatches(
  { run, snapshot }: ColumnQuery,
  { sql: where, parameters }: WhereClause,
  after: ListPlace | undefined,
  offset: number,
  limit: number,
): Promise<ListPlace[]> {
  const below = after ? `(ts < ${after.ts} OR (ts = ${after.ts} AND seq < ${after.seq}))` : "TRUE";
  // DuckDB skips row groups by a plain bound on one column.
  const bound = after ? `ts <= ${after.ts}` : "TRUE";
  const select = async (from: string, rows: string, floor = "TRUE"): Promise<ListPlace[]> => {
    const matches = and([bound, below, floor, where]);
    const sql = `SELECT ts, seq FROM ${from} WHERE ${matches} ORDER BY ts DESC, seq DESC LIMIT ${rows}`;
    return (await run(sql, parameters)).map(toPosition);
  };
  const needed = offset + limit;
  if (snapshot.memtables === undefined || needed > SEPARATE_ROWS_MAX)
    return select(snapshot.from, `${limit} OFFSET ${offset}`);
  const inMemory = await select(snapshot.memtables, `${needed}`);
  const oldest = inMemory.length === needed ? inMemory.at(-1)?.ts : undefined;
  if (oldest !== undefined && oldest > snapshot.diskLatest) return inMemory.slice(offset);
  const onDisk = await select(snapshot.disk, `${needed}`, oldest === undefined ? "TRUE" : `ts >= ${oldest}`);
  return [...inMemory, ...onDisk].sort((a, b) => b.ts - a.ts || b.seq - a.seq).slice(offset, needed);
}

/** One match more than the limit, if there is one: it shows that there is a next page. */
export async function searchMatches(
  query: ColumnQuery,
  search: SearchQuery,
  after: ListPlace | undefined,
): Promise<{ total: number; places: ListPlace[]; aggregations: Record<string, AggregationResult> }> {
  const { run, snapshot, columns, platform } = query;
  const where = await query.where(search.condition, rangeSql(search));
  const { parameters } = where;
  const matching = `(SELECT * FROM ${snapshot.from} WHERE ${where.sql})`;
  const { irregularBits } = columns.follower;
  const { fieldColumn } = snapshot;
  const rows = { sql: matching, parameters, platform, irregularBits, fieldColumn };
  const aggregations = await aggregate(search.aggs, rows, run);
  const total = totalOf(search.aggs, aggregations) ?? (await countMatches(query, where));
  const places: ListPlace[] = [];
  if (search.limit > 0) {
    const ordered = parameters.copy();
    const order = orderOf(search.sort, platform, ordered);
    const below = after ? afterSql(order, await keysOf(order, after, query, ordered), ordered) : TRUE;
    const sql = `SELECT ts, seq FROM ${order.rows(matching)} WHERE ${below} ORDER BY ${orderBySql(order)}`;
    places.push(...(await run(`${sql} LIMIT ${search.limit + 1}`, ordered)).map(toPosition));
  }
  return { total, places, aggregations };
}

/** The values of an order's keys in the row of a cursor. */
async function keysOf(
  order: RowOrder,
  { ts, seq }: ListPlace,
  { run, snapshot }: ColumnQuery,
  parameters: Parameters,
): Promise<readonly SqlValue[]> {
  const row = `(SELECT * FROM ${snapshot.from} WHERE ts = ${ts} AND seq = ${seq})`;
  const [values] = await run(
    `SELECT ${order.keys.map(({ sql }) => sql).join(", ")} FROM ${order.rows(row)}`,
    parameters,
  );
  if (!values) throw new QueryRefused("after", "is not the id of a stored event");
  return values;
}

/** Matches of one kind, of which the places are a sample. */
export interface Stratum {
  readonly total: number;
  readonly places: readonly ListPlace[];
}

/**
 * A sample of the newest matches of each type, or all matches if they are few. If they are very many, those that arrived
 * last stand for all, so that the cost has a limit.
 */
export async function sampleByType(
  query: ColumnQuery,
  where: WhereClause,
  eventsMax: number,
): Promise<{ total: number; strata: readonly Stratum[] }> {
  const { run, snapshot } = query;
  const total = await countMatches(query, where);
  if (total <= eventsMax) {
    return { total, strata: [{ total, places: await newestMatches(query, where, undefined, 0, eventsMax) }] };
  }
  const parameters = where.parameters.copy();
  let scope = where.sql;
  if (total > SAMPLED_ROWS_MAX) {
    const [[last]] = (await run(`SELECT max(seq) FROM ${snapshot.from} WHERE ${where.sql}`, parameters)) as [[bigint]];
    scope = and([`seq > ${Number(last) - SAMPLED_ROWS_MAX}`, where.sql]);
  }
  const counts = await run(
    `SELECT type, count(*) AS n, sum(count(*)) OVER () AS every FROM ${snapshot.from} WHERE ${scope}
     GROUP BY type ORDER BY n DESC, type LIMIT ${STRATA_MAX}`,
    parameters,
  );
  const perType = Math.max(1, Math.floor(eventsMax / counts.length));
  const types = counts.map(([type]) => parameters.bind(type as string)).join(", ");
  const sample = await run(
    `SELECT type, unnest(times), unnest(seqs) FROM
       (SELECT type, arg_max(ts, seq, ${perType}) AS times, max(seq, ${perType}) AS seqs FROM ${snapshot.from}
        WHERE ${and([scope, `type IN (${types})`])} GROUP BY type)`,
    parameters,
  );
  const places = Map.groupBy(sample, ([type]) => type as string);
  // Types are taken to be as frequent among all matches as among those in scope.
  const strata = counts.map(([type, n, every]) => ({
    total: (Number(n) * total) / Number(every),
    places: (places.get(type as string) ?? []).map(([, ts, seq]) => toPosition([ts, seq])),
  }));
  return { total, strata };
}

/** The next matches in order of time, of events up to a sequence number. */
export async function scanMatches(
  { run, where, snapshot }: ColumnQuery,
  condition: Condition,
  range: TimeRange,
  after: ListPlace | undefined,
  upTo: number,
  limit: number,
): Promise<ListPlace[]> {
  const above = after ? `ts >= ${after.ts} AND (ts > ${after.ts} OR seq > ${after.seq})` : "TRUE";
  const { sql, parameters } = await where(condition, and([above, `seq <= ${upTo}`, rangeSql(range)]));
  const select = `SELECT ts, seq FROM ${snapshot.from} WHERE ${sql} ORDER BY ts, seq LIMIT ${limit}`;
  return (await run(select, parameters)).map(toPosition);
}

/** The latest arrivals among the matches between two sequence numbers, latest first. */
export async function lastArrivals(
  { run, where, snapshot }: ColumnQuery,
  condition: Condition,
  after: number,
  upTo: number,
  limit: number,
): Promise<ListPlace[]> {
  const { sql, parameters } = await where(condition, `seq > ${after} AND seq <= ${upTo}`);
  const select = `SELECT ts, seq FROM ${snapshot.from} WHERE ${sql} ORDER BY seq DESC LIMIT ${limit}`;
  return (await run(select, parameters)).map(toPosition);
}
