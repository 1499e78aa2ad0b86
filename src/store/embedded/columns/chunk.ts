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
import duckdb from "@duckdb/node-bindings";
import { COLUMNS, type Cell, type ColumnType } from "./table.ts";

// Hands rows to the engine a vector at a time. The binding's own way costs about half a microsecond for every null
// and every short text; here a column's nulls, numbers and texts up to 12 bytes are one copy of memory each.

export const CHUNK_ROWS = 2048;

const TYPES: Record<ColumnType, DuckDBType> = { BIGINT, DOUBLE, INTEGER, UTINYINT, VARCHAR };
const types = COLUMNS.map(({ type }) => TYPES[type]);
/** A text of up to this many bytes stands in the vector itself: its length, then its bytes. */
const INLINE_BYTES = 12;
const TEXT_SLOT_BYTES = 16;

type Numbers = Float64Array | BigInt64Array | Int32Array | Uint8Array;

interface Buffers {
  readonly data: Numbers;
  readonly valid: Uint8Array;
}

const buffers: Buffers[] = COLUMNS.map(({ type }) => ({
  data:
    type === "DOUBLE"
      ? new Float64Array(CHUNK_ROWS)
      : type === "BIGINT"
        ? new BigInt64Array(CHUNK_ROWS)
        : type === "INTEGER"
          ? new Int32Array(CHUNK_ROWS)
          : new Uint8Array(type === "VARCHAR" ? CHUNK_ROWS * TEXT_SLOT_BYTES : CHUNK_ROWS),
  valid: new Uint8Array(CHUNK_ROWS / 8),
}));

/** Appends rows, at most CHUNK_ROWS of them. */
export function appendRows(appender: DuckDBAppender, rows: readonly Cell[][]): void {
  const chunk = DuckDBDataChunk.create(types, rows.length);
  for (let column = 0; column < COLUMNS.length; column++) {
    const vector = duckdb.data_chunk_get_vector(chunk.chunk, column);
    const { data, valid } = buffers[column]!;
    if (COLUMNS[column]!.type === "VARCHAR") fillTexts(vector, rows, column, data as Uint8Array, valid);
    else {
      fillNumbers(rows, column, data, valid);
      copy(vector, data, (data.BYTES_PER_ELEMENT ?? 1) * rows.length);
    }
    copyValidity(vector, valid, rows.length);
  }
  appender.appendDataChunk(chunk);
}

function fillNumbers(rows: readonly Cell[][], column: number, data: Numbers, valid: Uint8Array): void {
  valid.fill(0xff);
  for (let row = 0; row < rows.length; row++) {
    const cell = rows[row]![column]!;
    if (cell === null) valid[row >> 3]! &= ~(1 << (row & 7));
    else if (data instanceof BigInt64Array) data[row] = BigInt(cell);
    else data[row] = cell as number;
  }
}

function fillTexts(
  vector: duckdb.Vector,
  rows: readonly Cell[][],
  column: number,
  data: Uint8Array,
  valid: Uint8Array,
): void {
  valid.fill(0xff);
  const long: number[] = [];
  for (let row = 0; row < rows.length; row++) {
    const cell = rows[row]![column] as string | null;
    if (cell === null) valid[row >> 3]! &= ~(1 << (row & 7));
    else if (cell.length > INLINE_BYTES || !writeInline(cell, data, row * TEXT_SLOT_BYTES)) long.push(row);
  }
  copy(vector, data, rows.length * TEXT_SLOT_BYTES);
  for (const row of long) duckdb.vector_assign_string_element(vector, row, rows[row]![column] as string);
}

/** False when the text is not plain ASCII. */
function writeInline(text: string, data: Uint8Array, at: number): boolean {
  for (let i = 0; i < INLINE_BYTES; i++) {
    const code = i < text.length ? text.charCodeAt(i) : 0;
    if (code > 127) return false;
    data[at + 4 + i] = code;
  }
  data[at] = text.length;
  data[at + 1] = data[at + 2] = data[at + 3] = 0;
  return true;
}

function copy(vector: duckdb.Vector, data: Numbers, bytes: number): void {
  duckdb.copy_data_to_vector(vector, 0, data.buffer as ArrayBuffer, data.byteOffset, bytes);
}

function copyValidity(vector: duckdb.Vector, valid: Uint8Array, rows: number): void {
  duckdb.vector_ensure_validity_writable(vector);
  duckdb.copy_data_to_vector_validity(
    vector,
    0,
    valid.buffer as ArrayBuffer,
    valid.byteOffset,
    Math.ceil(rows / 64) * 8,
  );
}
