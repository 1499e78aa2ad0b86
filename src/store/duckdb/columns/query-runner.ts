import type { Condition } from "../../../model/condition.ts";
import { QueriesInFlight, type NumberedContext } from "../../queries/queries-in-flight.ts";
import type { RunSql } from "./aggregate.ts";
import { boundedWhere } from "./bounded-where.ts";
import type { ColumnDatabase, OpenColumns } from "./column-database.ts";
import { explainFailure, queryRows, queryTimedOut } from "./column-engine.ts";
import type { Snapshot } from "./memtables.ts";
import { QueryLanes, type Lane } from "../../queries/query-lanes.ts";
import { Parameters } from "./sql.ts";
import { isTerse } from "./sql-size.ts";
import { UnsupportedPatterns } from "./unsupported-patterns.ts";
import { interruptOn } from "../interrupt.ts";

// Runs queries on the columns: each waits for its lane, reads one snapshot, and ends on cancellation or timeout.

/** A query that runs longer is stopped. */
export const QUERY_MS_MAX = 30_000;

/** A query that is running. */
export interface ColumnQuery {
  readonly platform: string;
  readonly run: RunSql;
  readonly snapshot: Snapshot;
  readonly columns: OpenColumns;
  /** Compiles a condition on the rows that match `rangeSql`. */
  readonly where: (condition: Condition, rangeSql: string) => Promise<WhereClause>;
}

export interface WhereClause {
  readonly sql: string;
  readonly parameters: Parameters;
  /** The condition compiles to the same SQL again: no table of matches is involved. */
  readonly isCacheable: boolean;
}

export class QueryRunner {
  readonly inFlight = new QueriesInFlight();
  readonly lanes = new QueryLanes();
  readonly patterns = new UnsupportedPatterns();
  readonly #database: ColumnDatabase;

  constructor(database: ColumnDatabase) {
    this.#database = database;
  }

  /** Runs a query on a snapshot that has everything the journal had when the query arrived. */
  run<T>({ number, client }: NumberedContext, lane: Lane, answer: (query: ColumnQuery) => Promise<T>): Promise<T> {
    return this.#database.readers.track(() =>
      this.inFlight.during(number, (stop) =>
        this.lanes.take({ name: client, lane }, stop.signal, () =>
          this.#database.withRepair(() => this.#runOnce(stop, answer)),
        ),
      ),
    );
  }

  async #runOnce<T>(stop: AbortController, answer: (query: ColumnQuery) => Promise<T>): Promise<T> {
    const { signal } = stop;
    const database = this.#database;
    const columns = await database.caughtUp();
    database.throwIfClosing();
    const { engine, follower, idleConnections } = columns;
    const connection = idleConnections.pop() ?? (await engine.instance.connect());
    const snapshot = follower.memtables.snapshot();
    const matchTables: string[] = [];
    const timer = setTimeout(() => stop.abort(queryTimedOut(QUERY_MS_MAX)), QUERY_MS_MAX);
    const stopInterrupting = interruptOn(signal, connection);
    const { platform } = database.options;
    try {
      const run: RunSql = (text, parameters) => {
        signal.throwIfAborted();
        const { sql, values } = parameters.finalise(text);
        return queryRows(connection, sql, values);
      };
      const where: ColumnQuery["where"] = async (condition, rangeSql) => {
        const unsupportedPatterns = await this.patterns.among([condition], connection);
        const context = { unsupportedPatterns, irregularBits: follower.irregularBits, isTerse: isTerse([condition]) };
        const parameters = new Parameters(context, snapshot.segments);
        const sql = await boundedWhere(condition, rangeSql, {
          platform,
          parameters,
          rows: snapshot.from,
          run,
          mostNs: (nsSql) => highestCost(nsSql, { run, snapshot, columns }),
          newTable: () => matchTables[matchTables.push(database.newMatchTable()) - 1]!,
        });
        return { sql, parameters, isCacheable: matchTables.length === 0 };
      };
      return await answer({ platform, run, snapshot, columns, where });
    } catch (error) {
      throw signal.aborted ? signal.reason : explainFailure(error, this.lanes.running === 1);
    } finally {
      clearTimeout(timer);
      stopInterrupting();
      for (const table of matchTables) await connection.run(`DROP TABLE IF EXISTS ${table}`);
      snapshot.release();
      if (database.current === columns) idleConnections.push(connection);
    }
  }
}

/** The cost of the most expensive row. Rows on disk seldom change, so that their maximum is cached. */
async function highestCost(
  nsSql: string,
  { run, snapshot, columns: { diskCosts } }: Pick<ColumnQuery, "run" | "snapshot" | "columns">,
): Promise<number> {
  const highestIn = async (from: string): Promise<number> => {
    const parameters = new Parameters(undefined, snapshot.segments);
    const [[highest]] = (await run(`SELECT max(${nsSql}) FROM ${from}`, parameters)) as [[number | null]];
    return Number(highest);
  };
  const key = `${snapshot.diskVersion} ${nsSql}`;
  let onDisk = diskCosts.get(key);
  if (onDisk === undefined) {
    onDisk = await highestIn(snapshot.disk);
    diskCosts.set(key, onDisk);
  }
  return snapshot.memtables === undefined ? onDisk : Math.max(onDisk, await highestIn(snapshot.memtables));
}
