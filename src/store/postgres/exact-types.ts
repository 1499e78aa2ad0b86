import { types, type CustomTypesConfig } from "pg";

// How values of PostgreSQL become values of the language, without losing a digit. Documents are stored as text, because
// jsonb refuses some characters and rewrites numbers.

const BYTEA = 17;
const INT8 = 20;
const NUMERIC = 1700;

/** As in lib/exact-json.ts: a number if a double holds it exactly, else a bigint. */
function readInteger(text: string): number | bigint {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : BigInt(text);
}

/** Sums of bigint columns are numeric. A decimal stays text: a query that wants a double casts it. */
function readNumeric(text: string): number | bigint | string {
  return /^-?\d+$/.test(text) ? readInteger(text) : text;
}

function readBytes(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text.slice("\\x".length), "hex"));
}

const PARSERS: ReadonlyMap<number, (text: string) => unknown> = new Map<number, (text: string) => unknown>([
  [BYTEA, readBytes],
  [INT8, readInteger],
  [NUMERIC, readNumeric],
]);

export const EXACT_TYPES: CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") =>
    (format === "binary" ? undefined : PARSERS.get(oid)) ??
    types.getTypeParser(oid, format as "text")) as typeof types.getTypeParser,
};
