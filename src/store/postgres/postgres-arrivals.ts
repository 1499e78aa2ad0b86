import type { ArrivalLog, ArrivalRow, ShardPosition } from "../ports/arrival-log.ts";
import type { PostgresDatabase, PostgresQueries } from "./postgres-database.ts";
import { requireEpoch } from "./postgres-leases.ts";
import type { PostgresListener } from "./postgres-listener.ts";

// Removed rows never return: the head keeps the number and the time of the last one.

export const POSTGRES_ARRIVALS_SCHEMA = `
CREATE TABLE arrivals(row_number int8 PRIMARY KEY, at_ms int8 NOT NULL, index_name text NOT NULL, incarnation text NOT NULL,
  shard int4 NOT NULL, first_number int8 NOT NULL, last_number int8 NOT NULL);
CREATE INDEX arrivals_by_time ON arrivals(at_ms, row_number);
CREATE TABLE arrival_positions(incarnation text NOT NULL, shard int4 NOT NULL, index_name text NOT NULL, next_number int8 NOT NULL,
  PRIMARY KEY (incarnation, shard));
CREATE TABLE arrival_head(only_row bool PRIMARY KEY CHECK (only_row), row_number int8 NOT NULL, at_ms int8 NOT NULL,
  index_name text NOT NULL, incarnation text NOT NULL, shard int4 NOT NULL, first_number int8 NOT NULL, last_number int8 NOT NULL);
`;

const COLUMNS = `row_number AS row, at_ms AS "atMs", index_name AS index, incarnation, shard, first_number AS first, last_number AS last`;
const CHANNEL = "tocsin_arrivals";
/** Rows that one statement writes. */
const ROWS_WRITTEN = 5000;

export function postgresArrivals(database: PostgresDatabase, listener: PostgresListener): ArrivalLog {
  const one = async (text: string, values: readonly number[] = []) =>
    (await database.query<ArrivalRow>(text, values))[0] ?? null;
  return {
    rows: (from, limit) =>
      database.query<ArrivalRow>(
        `SELECT ${COLUMNS} FROM arrivals WHERE row_number >= $1 ORDER BY row_number LIMIT $2`,
        [from, limit],
      ),
    rowsBack: (upTo, limit) =>
      database.query<ArrivalRow>(
        `SELECT ${COLUMNS} FROM arrivals WHERE row_number <= $1 ORDER BY row_number DESC LIMIT $2`,
        [upTo, limit],
      ),
    head: () => one(`SELECT ${COLUMNS} FROM arrival_head`),
    lastBefore: (ms) =>
      one(`SELECT ${COLUMNS} FROM arrivals WHERE at_ms < $1 ORDER BY at_ms DESC, row_number DESC LIMIT 1`, [ms]),
    positions: () =>
      database.query<ShardPosition>(
        "SELECT index_name AS index, incarnation, shard, next_number AS next FROM arrival_positions",
      ),
    add: (fence, atMs, ranges, positions) =>
      database.transact(async (transaction) => {
        await requireEpoch(transaction, fence);
        await savePositions(transaction, positions);
        if (ranges.length > 0) {
          const [head] = await transaction.query<{ row: number; atMs: number }>(
            'SELECT row_number AS row, at_ms AS "atMs" FROM arrival_head FOR UPDATE',
          );
          await transaction.run(
            `INSERT INTO arrivals(row_number, at_ms, index_name, incarnation, shard, first_number, last_number)
             SELECT $1::int8 + nth, $2::int8, index_name, incarnation, shard, first_number, last_number
             FROM unnest($3::text[], $4::text[], $5::int4[], $6::int8[], $7::int8[]) WITH ORDINALITY
               AS added(index_name, incarnation, shard, first_number, last_number, nth)`,
            [
              head?.row ?? 0,
              Math.max(head?.atMs ?? 0, atMs),
              ranges.map(({ index }) => index),
              ranges.map(({ incarnation }) => incarnation),
              ranges.map(({ shard }) => shard),
              ranges.map(({ first }) => first),
              ranges.map(({ last }) => last),
            ],
          );
          await saveHead(transaction);
        }
        await transaction.query("SELECT pg_notify($1, 'added')", [CHANNEL]);
      }),
    replace: (rows, positions) =>
      database.transact(async (transaction) => {
        for (const name of ["arrivals", "arrival_positions", "arrival_head"])
          await transaction.run(`DELETE FROM ${name}`);
        for (let at = 0; at < rows.length; at += ROWS_WRITTEN) {
          const given = rows.slice(at, at + ROWS_WRITTEN);
          await transaction.run(
            `INSERT INTO arrivals(row_number, at_ms, index_name, incarnation, shard, first_number, last_number)
             SELECT "row", "atMs", index, incarnation, shard, first, last FROM json_to_recordset($1::json)
               AS given("row" int8, "atMs" int8, index text, incarnation text, shard int4, first int8, last int8)`,
            [JSON.stringify(given)],
          );
        }
        await savePositions(transaction, positions);
        await saveHead(transaction);
      }),
    lastOf: async (incarnation) => {
      const [last] = await database.query<{ atMs: number | null }>(
        'SELECT max(at_ms) AS "atMs" FROM arrivals WHERE incarnation = $1',
        [incarnation],
      );
      return last?.atMs ?? null;
    },
    rename: (fence, from, to) =>
      database.transact(async (transaction) => {
        await requireEpoch(transaction, fence);
        for (const table of ["arrivals", "arrival_positions", "arrival_head"])
          await transaction.run(`UPDATE ${table} SET incarnation = $2 WHERE incarnation = $1`, [from, to]);
      }),
    prune: (fence, beforeMs, incarnations) =>
      database.transact(async (transaction) => {
        await requireEpoch(transaction, fence);
        await transaction.run("DELETE FROM arrivals WHERE at_ms < $1", [beforeMs]);
        await transaction.run("DELETE FROM arrival_positions WHERE NOT incarnation = ANY($1::text[])", [incarnations]);
      }),
    request: async () => {
      await database.query("SELECT pg_notify($1, 'requested')", [CHANNEL]);
    },
    listen: (what, notify) =>
      listener.on(CHANNEL, (payload) => {
        if (payload === what) notify();
      }),
  };
}

async function savePositions(transaction: PostgresQueries, positions: readonly ShardPosition[]): Promise<void> {
  await transaction.run(
    `INSERT INTO arrival_positions(index_name, incarnation, shard, next_number)
     SELECT * FROM unnest($1::text[], $2::text[], $3::int4[], $4::int8[])
     ON CONFLICT (incarnation, shard) DO UPDATE SET next_number = excluded.next_number`,
    [
      positions.map(({ index }) => index),
      positions.map(({ incarnation }) => incarnation),
      positions.map(({ shard }) => shard),
      positions.map(({ next }) => next),
    ],
  );
}

/** Remembers the last row, which may be removed later. */
async function saveHead(transaction: PostgresQueries): Promise<void> {
  await transaction.run("DELETE FROM arrival_head");
  await transaction.run(
    `INSERT INTO arrival_head(only_row, row_number, at_ms, index_name, incarnation, shard, first_number, last_number)
     SELECT true, row_number, at_ms, index_name, incarnation, shard, first_number, last_number
     FROM arrivals ORDER BY row_number DESC LIMIT 1`,
  );
}
