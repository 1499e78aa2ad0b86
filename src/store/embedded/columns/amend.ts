import type { DuckDBConnection, DuckDBValue } from "@duckdb/node-api";
import type { Event } from "../../../model/event.ts";
import type { DayReader } from "../journal/day-file.ts";
import { COLUMNS, HOT_FIELDS, SEQ, toCells, TS, type Cell } from "./table.ts";

// Rows of events whose enrichment has grown. They are changed where they lie: a question that is under way finds each of
// them once, with what it had or with what it has.

/** Changes that are taken up in one statement. */
const AMENDMENTS_PER_STATEMENT = 500;

/** The columns that hold something of the enrichment. */
const CHANGING = COLUMNS.flatMap(({ name, type }, place) =>
  name === "odd" ||
  name === "rest" ||
  HOT_FIELDS.some(({ column, path }) => column === name && path.startsWith("enrichment."))
    ? [{ name, type, place }]
    : [],
);

export interface AmendedRows {
  readonly rows: readonly Cell[][];
  /** The number of the last change that they have. */
  readonly number: number;
}

/** The events, as they are now, that were changed after one number and up to another, some at a time. */
export function readAmended(reader: DayReader, after: number, upTo: number): AmendedRows {
  const numbers = reader
    .sql(
      `SELECT number, seq FROM amendments WHERE number > ? AND number <= ? ORDER BY number LIMIT ${AMENDMENTS_PER_STATEMENT}`,
    )
    .all(after, upTo) as { number: number; seq: number }[];
  const select = reader.sql("SELECT ts, body FROM events WHERE seq = ?");
  const rows = [...new Set(numbers.map(({ seq }) => seq))].flatMap((seq) => {
    const row = select.get(seq) as { ts: number; body: string } | undefined;
    return row ? [toCells(seq, row.ts, JSON.parse(row.body) as Event)] : [];
  });
  return { rows, number: numbers.length < AMENDMENTS_PER_STATEMENT ? upTo : numbers.at(-1)!.number };
}

/** Changes the rows that the table has of them. */
export async function amendTable(connection: DuckDBConnection, table: string, rows: readonly Cell[][]): Promise<void> {
  if (rows.length === 0) return;
  const values: DuckDBValue[] = [];
  const bind = (cell: Cell, type: string) => `CAST($${values.push(cell)} AS ${type})`;
  const tuples = rows.map(
    (row) =>
      `(${[bind(row[SEQ]!, "BIGINT"), ...CHANGING.map(({ type, place }) => bind(row[place]!, type))].join(", ")})`,
  );
  const times = rows.map((row) => row[TS] as number);
  const names = CHANGING.map((_, i) => `v${i}`);
  await connection.run(
    `UPDATE ${table} AS kept SET ${CHANGING.map(({ name }, i) => `${name} = changed.v${i}`).join(", ")}
     FROM (VALUES ${tuples.join(", ")}) AS changed(seq, ${names.join(", ")})
     WHERE kept.seq = changed.seq AND kept.ts BETWEEN ${Math.min(...times)} AND ${Math.max(...times)}`,
    values,
  );
}
