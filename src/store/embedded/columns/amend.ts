import type { DuckDBConnection } from "@duckdb/node-api";
import { parseExact } from "../../../lib/exact-json.ts";
import type { Event } from "../../../model/event.ts";
import type { DayReader } from "../journal/day-file.ts";
import { appendRows } from "./chunk.ts";
import { CHUNK_ROWS, RowsPacker, type PackedRows } from "./rows.ts";
import { columnList, COLUMNS, HOT_FIELDS } from "./table.ts";

// Rows of events whose enrichment has grown. They are changed where they lie: a question that is under way finds each of
// them once, with what it had or with what it has.

/** Changes that are taken up at once. */
const AMENDMENTS_PER_TURN = CHUNK_ROWS;

/** The columns that hold something of the enrichment. */
const CHANGING = COLUMNS.map(({ name }) => name).filter(
  (name) =>
    name === "odd" ||
    name === "rest" ||
    HOT_FIELDS.some(({ column, path }) => column === name && path.startsWith("enrichment.")),
);

export interface AmendedRows {
  readonly rows: PackedRows;
  /** The number of the last change that they have. */
  readonly number: number;
}

/** The events, as they are now, that were changed after one number and up to another, some at a time. */
export function readAmended(reader: DayReader, after: number, upTo: number): AmendedRows {
  const numbers = reader
    .sql(
      `SELECT number, seq FROM amendments WHERE number > ? AND number <= ? ORDER BY number LIMIT ${AMENDMENTS_PER_TURN}`,
    )
    .all(after, upTo) as { number: number; seq: number }[];
  const select = reader.sql("SELECT ts, body FROM events WHERE seq = ?");
  const packer = new RowsPacker();
  for (const seq of new Set(numbers.map((amendment) => amendment.seq))) {
    const row = select.get(seq) as { ts: number; body: string } | undefined;
    if (row) packer.add(seq, row.ts, parseExact(row.body) as Event);
  }
  return { rows: packer.take(), number: numbers.length < AMENDMENTS_PER_TURN ? upTo : numbers.at(-1)!.number };
}

/** The rows lie in a table of their own for as long as the work takes: a thousand bound values cost more than the change. */
export async function withChanges(
  connection: DuckDBConnection,
  rows: PackedRows,
  work: () => Promise<void>,
): Promise<void> {
  await connection.run(`CREATE OR REPLACE TABLE ${CHANGES}(${columnList})`);
  const appender = await connection.createAppender("changes", "main", "tail");
  appendRows(appender, rows);
  appender.closeSync();
  await work();
  await connection.run(`DROP TABLE ${CHANGES}`);
}
const CHANGES = "tail.changes";

/** Changes the rows that the table has of them. */
export async function amendTable(connection: DuckDBConnection, table: string, rows: PackedRows): Promise<void> {
  await connection.run(
    `UPDATE ${table} AS kept SET ${CHANGING.map((name) => `${name} = changed.${name}`).join(", ")}
     FROM ${CHANGES} AS changed
     WHERE kept.seq = changed.seq AND kept.ts BETWEEN ${rows.earliestMs} AND ${rows.latestMs}`,
  );
}
