// The memory layout of a DuckDB vector: constants only, so that threads without DuckDB can prepare vectors too.
// vector-memory.test.ts fails when a DuckDB upgrade changes the layout.

/** Rows of a full vector. */
export const VECTOR_ROWS = 2048;

/**
 * A text slot holds the length of a text, then either its bytes, if it is short, or its first four bytes and a pointer
 * to all of them.
 */
export const TEXT_SLOT_BYTES = 16;
export const TEXT_LENGTH_BYTES = 4;
export const TEXT_POINTER_OFFSET = 8;
/** The longest text, in bytes, that is stored in its slot. */
export const INLINE_TEXT_BYTES_MAX = 12;

/** The bytes of a validity mask, which has one bit per row and consists of 64-bit words. */
export function validityBytes(rows: number): number {
  return Math.ceil(rows / 64) * 8;
}
