import type { DuckDBConnection } from "@duckdb/node-api";
import { parseExact } from "../../../lib/exact-json.ts";
import type { Event } from "../../../model/event.ts";
import type { DayReader } from "../../sqlite/journal/day-file.ts";
import { appendRows } from "./append-rows.ts";
import { VECTOR_ROWS } from "../vectors/vector-layout.ts";
import { RowPacker, type PackedRows } from "./packed-rows.ts";
import { COLUMN_LIST, COLUMNS, HOT_FIELDS } from "./column-table.ts";

// Amends the rows of events whose enrichment has grown. Rows are updated in place: a running query sees each of them once,
// in its old or its new form.

/** Amendments that are applied at once. */
const AMENDMENTS_PER_BATCH = VECTOR_ROWS;

const CHANGES = "memtables.changes";

/** The columns that hold part of the enrichment. */
const AMENDED_COLUMNS = COLUMNS.map(({ name }) => name).filter(
  (name) =>
    name === "odd" ||
    name === "rest" ||
    HOT_FIELDS.some(({ column, path }) => column === name && path.startsWith("enrichment.")),
);

export interface AmendedRows {
  readonly rows: PackedRows;
  /** The number of their last amendment. */
  readonly number: number;
}

/** Reads the events, in their current form, of the next amendments between two numbers. */
export function readAmended(reader: DayReader, after: number, upTo: number): AmendedRows {
  const numbers = reader
    .sql(
      `SELECT number, seq FROM amendments WHERE number > ? AND number <= ? ORDER BY number LIMIT ${AMENDMENTS_PER_BATCH}`,
    )
    .all(after, upTo) as { number: number; seq: number }[];
  const select = reader.sql("SELECT ts, body FROM events WHERE seq = ?");
  const packer = new RowPacker();
  for (const seq of new Set(numbers.map((amendment) => amendment.seq))) {
    const row = select.get(seq) as { ts: number; body: string } | undefined;
    if (row) packer.add(seq, row.ts, parseExact(row.body) as Event);
  }
  return { rows: packer.take(), number: numbers.length < AMENDMENTS_PER_BATCH ? upTo : numbers.at(-1)!.number };
}

/** Stages the rows in a table while `work` runs: a thousand bound values would cost more than the update. */
export async function withStagedChanges(
  connection: DuckDBConnection,
  rows: PackedRows,
  work: () => Promise<void>,
): Promise<void> {
  await connection.run(`CREATE OR REPLACE TABLE ${CHANGES}(${COLUMN_LIST})`);
  const appender = await connection.createAppender("changes", "main", "memtables");
  appendRows(appender, rows);
  appender.closeSync();
  await work();
  await connection.run(`DROP TABLE ${CHANGES}`);
}

/** Updates the rows of a table that have staged changes, and forgets what these columns say about them. */
export async function amendTable(
  connection: DuckDBConnection,
  table: string,
  rows: PackedRows,
  forgotten: readonly string[],
): Promise<void> {
  const changes = [
    ...AMENDED_COLUMNS.map((name) => `${name} = changed.${name}`),
    ...forgotten.map((name) => `${name} = NULL`),
  ];
  await connection.run(
    `UPDATE ${table} AS old SET ${changes.join(", ")}
     FROM ${CHANGES} AS changed
     WHERE old.seq = changed.seq AND old.ts BETWEEN ${rows.earliestMs} AND ${rows.latestMs}`,
  );
}
