import { workerData } from "node:worker_threads";
import { serveThread } from "../../../lib/thread.ts";
import type { Condition } from "../../../model/condition.ts";
import type { EntityMatches, EntityQuery } from "../../../model/entity-query.ts";
import type { SearchQuery, TimeRange } from "../../../model/query.ts";
import type { Projection } from "../../ports/projection.ts";
import type { NumberedContext } from "../../queries/queries-in-flight.ts";
import type { ListPlace } from "../../sqlite/journal/list-position.ts";
import {
  openColumnDatabase,
  type ColumnDatabase,
  type ColumnDatabaseOptions,
  type ColumnStatus,
} from "./column-database.ts";
import {
  countMatches,
  lastArrivals,
  newestMatches,
  rangeSql,
  sampleByType,
  scanMatches,
  searchMatches,
} from "./column-queries.ts";
import { searchEntities } from "./entity-search.ts";
import { isQuick } from "./condition-cost.ts";
import type { CommittedRows, JournalFollower } from "./journal-follower.ts";
import { MEMTABLE_ROWS_MAX } from "./memtables.ts";
import { Projections, type ProjectedRows, type ProjectionScope } from "./column-projection.ts";
import type { Lane } from "../../queries/query-lanes.ts";
import { QUERY_MS_MAX, QueryRunner } from "./query-runner.ts";
import type { DayEnd } from "../../sqlite/journal/journal-days.ts";

// The thread that owns the columns. It follows the journal and answers queries.

export type ColumnsData = ColumnDatabaseOptions;

/** Memtables' worth of rows in one time slice of a projection. */
const SLICE_MEMTABLES = 2;

const options = workerData as ColumnsData;
let database: ColumnDatabase;
let runner: QueryRunner;
const projections = new Projections(
  { msMax: QUERY_MS_MAX, sliceRows: SLICE_MEMTABLES * (options.memtableRowsMax ?? MEMTABLE_ROWS_MAX) },
  openProjectionScope,
);

async function openProjectionScope(range: TimeRange): Promise<ProjectionScope> {
  const { engine, follower } = await database.caughtUp();
  const connections = [await engine.instance.connect(), await engine.instance.connect()] as const;
  const snapshot = follower.memtables.snapshot();
  const matchTables: string[] = [];
  return {
    connections,
    rows: `(SELECT * FROM ${snapshot.from} WHERE ${rangeSql(range)})`,
    segments: snapshot.segments,
    patterns: runner.patterns,
    platform: options.platform,
    irregularBits: follower.irregularBits,
    newTable: () => matchTables[matchTables.push(database.newMatchTable()) - 1]!,
    release: async () => {
      for (const table of matchTables) await connections[0].run(`DROP TABLE IF EXISTS ${table}`);
      snapshot.release();
      for (const connection of connections) connection.closeSync();
    },
  };
}

function laneOf(condition: Condition): Lane {
  return isQuick(condition) ? "quick" : "heavy";
}

const api = {
  async open(days: readonly DayEnd[]): Promise<{ dropped: string | undefined; lost: JournalFollower["lost"] }> {
    database = await openColumnDatabase(options, days, () => projections.size === 0);
    runner = new QueryRunner(database);
    return { dropped: database.status.dropped, lost: database.lost };
  },

  committed(committed: readonly CommittedRows[]): void {
    database.noteCommitted(committed);
  },

  amended(day: number, lastAmendment: number): void {
    database.noteAmended(day, lastAmendment);
  },

  /** `refused` counts queries that were refused because of too many others. */
  status(): ColumnStatus & { refused: number } {
    return { ...database.status, refused: runner.lanes.refused };
  },

  memory(): Promise<number> {
    return database.memoryBytes();
  },

  count(context: NumberedContext, condition: Condition, range: TimeRange): Promise<number> {
    return runner.run(context, laneOf(condition), async (query) =>
      countMatches(query, await query.where(condition, rangeSql(range))),
    );
  },

  /** One page of a list: the total, and the positions of its events. */
  list(
    context: NumberedContext,
    condition: Condition,
    range: TimeRange,
    after: ListPlace | undefined,
    offset: number,
    limit: number,
  ): Promise<{ total: number; places: ListPlace[] }> {
    return runner.run(context, laneOf(condition), async (query) => {
      const where = await query.where(condition, rangeSql(range));
      const total = await countMatches(query, where);
      return { total, places: await newestMatches(query, where, after, offset, limit) };
    });
  },

  search(
    context: NumberedContext,
    search: SearchQuery,
    after: ListPlace | undefined,
  ): ReturnType<typeof searchMatches> {
    const lane = search.aggs.length > 0 || search.sort.length > 0 ? "heavy" : laneOf(search.condition);
    return runner.run(context, lane, (query) => searchMatches(query, search, after));
  },

  sample(
    context: NumberedContext,
    condition: Condition,
    range: TimeRange,
    eventsMax: number,
  ): ReturnType<typeof sampleByType> {
    return runner.run(context, "heavy", async (query) =>
      sampleByType(query, await query.where(condition, rangeSql(range)), eventsMax),
    );
  },

  entities(context: NumberedContext, query: EntityQuery): Promise<EntityMatches> {
    return runner.run(context, "quick", (running) => searchEntities(running, query));
  },

  scan(
    context: NumberedContext,
    condition: Condition,
    range: TimeRange,
    after: ListPlace | undefined,
    upTo: number,
    limit: number,
  ): Promise<ListPlace[]> {
    return runner.run(context, "heavy", (query) => scanMatches(query, condition, range, after, upTo, limit));
  },

  lastArrivals(
    context: NumberedContext,
    condition: Condition,
    after: number,
    upTo: number,
    limit: number,
  ): Promise<ListPlace[]> {
    return runner.run(context, "heavy", (query) => lastArrivals(query, condition, after, upTo, limit));
  },

  /** The client is gone: stops the query, or removes it from its queue. */
  cancel(number: number): void {
    runner.inFlight.cancel(number);
  },

  /** Starts a projection under the caller's number. The caller ends it in every case. */
  async beginProjection(number: number, projection: Projection & TimeRange): Promise<void> {
    database.throwIfClosing();
    await database.readers.track(() => projections.begin(number, projection));
  },

  async projectedRows(number: number): Promise<ProjectedRows> {
    database.throwIfClosing();
    return projections.rows(number);
  },

  async endProjection(number: number): Promise<void> {
    await projections.end(number);
  },

  async removeDay(day: number): Promise<void> {
    await database.removeDay(day);
  },

  async catchUp(): Promise<void> {
    await database.caughtUp();
  },

  /** Rows that came from the journal since the start: the progress of `catchUp`. */
  rowsRead(): number {
    return database.rowsRead;
  },

  async close(): Promise<void> {
    database.beginClose();
    // Clients may be gone, their queries still run.
    runner.inFlight.cancelAll();
    await projections.endAll();
    await database.readers.whenIdle();
    await database.close();
  },
};

export type ColumnsApi = typeof api;

serveThread(api);
