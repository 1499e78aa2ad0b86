import type { DuckDBDataChunk } from "@duckdb/node-api";
import duckdb from "@duckdb/node-bindings";

// Reads a vector of the engine as it lies in memory. The binding's own way costs a quarter of a microsecond for every
// value. What is given here is the engine's memory itself: it goes with the chunk, which the caller has to hold on to.

/** Of a column without nulls. */
export function doublesOf(chunk: DuckDBDataChunk, column: number): Float64Array {
  const { buffer, byteOffset } = bytesOf(chunk, column, Float64Array.BYTES_PER_ELEMENT);
  return new Float64Array(buffer, byteOffset, chunk.rowCount);
}

/** Of a column without nulls. */
export function integersOf(chunk: DuckDBDataChunk, column: number): Int32Array {
  const { buffer, byteOffset } = bytesOf(chunk, column, Int32Array.BYTES_PER_ELEMENT);
  return new Int32Array(buffer, byteOffset, chunk.rowCount);
}

function bytesOf(chunk: DuckDBDataChunk, column: number, bytesEach: number): Uint8Array {
  return duckdb.vector_get_data(duckdb.data_chunk_get_vector(chunk.chunk, column), chunk.rowCount * bytesEach);
}

/** A text in the engine's memory: its length, then either its bytes, or four of them and where all of them are. */
const TEXT_WORDS = 4;
const TEXT_BYTES = TEXT_WORDS * Uint32Array.BYTES_PER_ELEMENT;
const LENGTH_BYTES = 4;
const POINTER_AT = 8;
const SHORT_BYTES_MAX = 12;

/** Shows the bytes of each text that is not null, in UTF-8. */
export function eachText(
  chunk: DuckDBDataChunk,
  column: number,
  show: (row: number, bytes: Uint8Array, from: number, length: number) => void,
): void {
  const { rowCount } = chunk;
  const vector = duckdb.data_chunk_get_vector(chunk.chunk, column);
  // None where every row has a value.
  const valid = duckdb.vector_get_validity(vector, Math.ceil(rowCount / 64) * 8) as Uint8Array | null;
  const data = duckdb.vector_get_data(vector, rowCount * TEXT_BYTES);
  const words = new Uint32Array(data.buffer, data.byteOffset, rowCount * TEXT_WORDS);
  const isNull = (row: number) => valid !== null && (valid[row >> 3]! & (1 << (row & 7))) === 0;
  const lengthOf = (row: number) => words[row * TEXT_WORDS]!;
  const pointerOf = (row: number) => words[row * TEXT_WORDS + 3]! * 2 ** 32 + words[row * TEXT_WORDS + 2]!;
  // Long texts mostly lie one behind the other: then a single look at the memory is for all of them.
  let stretch = data;
  let stretchFrom = 0;
  let stretchTo = 0;
  for (let row = 0; row < rowCount; row++) {
    if (isNull(row)) continue;
    const length = lengthOf(row);
    if (length <= SHORT_BYTES_MAX) {
      show(row, data, row * TEXT_BYTES + LENGTH_BYTES, length);
      continue;
    }
    const pointer = pointerOf(row);
    if (pointer < stretchFrom || pointer + length > stretchTo) {
      stretchFrom = pointer;
      stretchTo = pointer + length;
      for (let next = row + 1; next < rowCount; next++) {
        if (isNull(next) || lengthOf(next) <= SHORT_BYTES_MAX) continue;
        if (pointerOf(next) !== stretchTo) break;
        stretchTo += lengthOf(next);
      }
      const pointerAt = data.byteOffset + row * TEXT_BYTES + POINTER_AT;
      stretch = duckdb.get_data_from_pointer(data.buffer as ArrayBuffer, pointerAt, stretchTo - stretchFrom);
    }
    show(row, stretch, pointer - stretchFrom, length);
  }
}
