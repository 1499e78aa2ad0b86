import {
  DuckDBDataChunk,
  type DuckDBAppender,
  type DuckDBType,
  BIGINT,
  DOUBLE,
  INTEGER,
  UTINYINT,
  VARCHAR,
} from "@duckdb/node-api";
import { validityBytes } from "../vectors/vector-layout.ts";
import { vectorsOf, writeText, writeValidity, writeValues } from "../vectors/vector-memory.ts";
import { COLUMNS, type ColumnType } from "./column-table.ts";
import { COLUMN_BYTES, type PackedRows } from "./packed-rows.ts";

const TYPES: Record<ColumnType, DuckDBType> = { BIGINT, DOUBLE, INTEGER, UTINYINT, VARCHAR };
const types = COLUMNS.map(({ type }) => TYPES[type]);

/** Appends rows one vector at a time: nulls, numbers and short texts of a column are one copy each. */
export function appendRows(appender: DuckDBAppender, { length, fixed, longTexts, texts }: PackedRows): void {
  const chunk = DuckDBDataChunk.create(types, length);
  const validity = validityBytes(length);
  const vectors = vectorsOf(chunk);
  let at = 0;
  for (const [column, vector] of vectors.entries()) {
    const bytes = COLUMN_BYTES[COLUMNS[column]!.type] * length;
    writeValues(vector, fixed, at, bytes);
    writeValidity(vector, fixed, at + bytes, length);
    at += bytes + validity;
  }
  let from = 0;
  for (let i = 0; i < longTexts.length; i += 3) {
    const end = longTexts[i + 2]!;
    writeText(vectors[longTexts[i]!]!, longTexts[i + 1]!, texts.subarray(from, end));
    from = end;
  }
  appender.appendDataChunk(chunk);
}
