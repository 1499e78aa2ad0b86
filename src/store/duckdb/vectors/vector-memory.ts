import type { DuckDBDataChunk } from "@duckdb/node-api";
import duckdb from "@duckdb/node-bindings";
import {
  INLINE_TEXT_BYTES_MAX,
  TEXT_LENGTH_BYTES,
  TEXT_POINTER_OFFSET,
  TEXT_SLOT_BYTES,
  validityBytes,
} from "./vector-layout.ts";

// Direct access to the memory of DuckDB vectors. This is the only file that uses the low-level binding: the public API
// takes a quarter of a microsecond to read a value and half a microsecond to write a null or a short text.
//
// The readers return views of DuckDB's own memory. A view is valid for as long as its chunk, which the caller must keep.

const WORD_BYTES = Uint32Array.BYTES_PER_ELEMENT;
const SLOT_WORDS = TEXT_SLOT_BYTES / WORD_BYTES;
const POINTER_WORD = TEXT_POINTER_OFFSET / WORD_BYTES;

/** Reads a DOUBLE column without nulls. */
export function doublesOf(chunk: DuckDBDataChunk, column: number): Float64Array {
  const { buffer, byteOffset } = bytesOf(chunk, column, Float64Array.BYTES_PER_ELEMENT);
  return new Float64Array(buffer, byteOffset, chunk.rowCount);
}

/** Reads an INTEGER column without nulls. */
export function integersOf(chunk: DuckDBDataChunk, column: number): Int32Array {
  const { buffer, byteOffset } = bytesOf(chunk, column, Int32Array.BYTES_PER_ELEMENT);
  return new Int32Array(buffer, byteOffset, chunk.rowCount);
}

function bytesOf(chunk: DuckDBDataChunk, column: number, bytesPerValue: number): Uint8Array {
  return duckdb.vector_get_data(vectorOf(chunk, column), chunk.rowCount * bytesPerValue);
}

function vectorOf(chunk: DuckDBDataChunk, column: number) {
  return duckdb.data_chunk_get_vector(chunk.chunk, column);
}

/** Calls `visit` with the UTF-8 bytes of each text of a VARCHAR column that is not null. */
export function eachText(
  chunk: DuckDBDataChunk,
  column: number,
  visit: (row: number, bytes: Uint8Array, from: number, length: number) => void,
): void {
  const { rowCount } = chunk;
  const vector = vectorOf(chunk, column);
  // DuckDB returns no mask when every row has a value.
  const valid = duckdb.vector_get_validity(vector, validityBytes(rowCount)) as Uint8Array | null;
  const data = duckdb.vector_get_data(vector, rowCount * TEXT_SLOT_BYTES);
  const words = new Uint32Array(data.buffer, data.byteOffset, rowCount * SLOT_WORDS);
  const isNull = (row: number) => valid !== null && (valid[row >> 3]! & (1 << (row & 7))) === 0;
  const lengthOf = (row: number) => words[row * SLOT_WORDS]!;
  const pointerOf = (row: number) =>
    words[row * SLOT_WORDS + POINTER_WORD + 1]! * 2 ** 32 + words[row * SLOT_WORDS + POINTER_WORD]!;
  // Long texts are mostly adjacent in memory, so that one view covers a run of them.
  let run = data;
  let runStart = 0;
  let runEnd = 0;
  for (let row = 0; row < rowCount; row++) {
    if (isNull(row)) continue;
    const length = lengthOf(row);
    if (length <= INLINE_TEXT_BYTES_MAX) {
      visit(row, data, row * TEXT_SLOT_BYTES + TEXT_LENGTH_BYTES, length);
      continue;
    }
    const pointer = pointerOf(row);
    if (pointer < runStart || pointer + length > runEnd) {
      runStart = pointer;
      runEnd = pointer + length;
      for (let next = row + 1; next < rowCount; next++) {
        if (isNull(next) || lengthOf(next) <= INLINE_TEXT_BYTES_MAX) continue;
        if (pointerOf(next) !== runEnd) break;
        runEnd += lengthOf(next);
      }
      const pointerAt = data.byteOffset + row * TEXT_SLOT_BYTES + TEXT_POINTER_OFFSET;
      run = duckdb.get_data_from_pointer(data.buffer as ArrayBuffer, pointerAt, runEnd - runStart);
    }
    visit(row, run, pointer - runStart, length);
  }
}

/** A handle of a column's vector; valid for as long as its chunk. */
type Vector = ReturnType<typeof vectorOf>;

/** The vectors of a chunk that is about to be written. */
export function vectorsOf(chunk: DuckDBDataChunk): Vector[] {
  return Array.from({ length: chunk.columnCount }, (_, column) => vectorOf(chunk, column));
}

/** Copies values from a buffer that has the layout of the vector. */
export function writeValues(vector: Vector, source: ArrayBuffer, from: number, bytes: number): void {
  duckdb.copy_data_to_vector(vector, 0, source, from, bytes);
}

/** Copies a validity mask: a set bit for each row that has a value. */
export function writeValidity(vector: Vector, source: ArrayBuffer, from: number, rows: number): void {
  duckdb.vector_ensure_validity_writable(vector);
  duckdb.copy_data_to_vector_validity(vector, 0, source, from, validityBytes(rows));
}

/** Writes one text of any length. */
export function writeText(vector: Vector, row: number, utf8: Uint8Array): void {
  duckdb.vector_assign_string_element_len(vector, row, utf8);
}
