import type { Scalar } from "../../../model/condition.ts";
import { QuestionRefused } from "../../store.ts";
import type { Parameters } from "./sql.ts";
import { hotField } from "./table.ts";
import { TextNumbers } from "./text-numbers.ts";
import { codedNames, isCoded, restValuesSql } from "./where.ts";

// How the values of a field come out of a projection.

/** The values of a field, for each row. */
export type ProjectedColumn =
  /** A number for each row, which `values` names, here or in an earlier part; 0 is no value. */
  | { readonly kind: "codes"; readonly codes: Int32Array; readonly values: [code: number, values: Scalar[]][] }
  /** Not a number is no value. */
  | { readonly kind: "numbers"; readonly numbers: Float64Array }
  | { readonly kind: "times" }
  | { readonly kind: "none" };

interface ChunkColumns {
  doubles(column: number): Float64Array;
  integers(column: number): Int32Array;
  texts(column: number, show: (row: number, bytes: Uint8Array, from: number, length: number) => void): void;
}

/** The columns of a projection's SQL that are about one field, and how they are read. */
export interface FieldColumn {
  readonly given: readonly string[];
  /** For the next part, of so many rows. */
  start(rows: number): ProjectedColumn;
  /** Puts a chunk in, from this row on. */
  read(into: ProjectedColumn, at: number, chunk: ChunkColumns): void;
}

export function fieldColumn(field: string, platform: string, parameters: Parameters): FieldColumn {
  if (field === "id") throw new QuestionRefused("query", "every id is different");
  if (field === "raw" || field === "enrichment") return { given: [], start: () => ({ kind: "none" }), read: () => {} };
  if (field === "timestamp") return { given: [], start: () => ({ kind: "times" }), read: () => {} };
  if (isCoded(field)) return codedColumn(field, platform);
  if (field === "type") return numberedColumn("type", (text) => [text]);
  const hot = hotField(field);
  if (!hot) return numberedColumn(restValuesSql(field, parameters), fromJson);
  if ((parameters.facts.oddBits & hot.bit) !== 0) {
    const odd = `CASE WHEN (odd & ${hot.bit}) <> 0 THEN ${restValuesSql(field, parameters)} END`;
    return numberedColumn(`coalesce(to_json(${hot.column}), ${odd})`, fromJson);
  }
  return hot.type === "string" ? numberedColumn(hot.column, (text) => [text]) : numberColumn(hot.column);
}

function codedColumn(field: "source" | "severity" | "class", platform: string): FieldColumn {
  const names = codedNames(field, platform);
  return {
    given: [`CAST(${field} AS INTEGER) + 1`],
    start: (rows) => ({
      kind: "codes",
      codes: new Int32Array(rows),
      values: names.map((name, code) => [code + 1, [name]]),
    }),
    read: (into, at, chunk) => {
      if (into.kind === "codes") into.codes.set(chunk.integers(0), at);
    },
  };
}

function numberColumn(column: string): FieldColumn {
  return {
    given: [`coalesce(${column}, CAST('NaN' AS DOUBLE))`],
    start: (rows) => ({ kind: "numbers", numbers: new Float64Array(rows) }),
    read: (into, at, chunk) => {
      if (into.kind === "numbers") into.numbers.set(chunk.doubles(0), at);
    },
  };
}

/** Texts are numbered, so that each crosses over once, or seldom, and rows are numbers alone. */
function numberedColumn(sql: string, parse: (text: string) => Scalar[]): FieldColumn {
  const numbers = new TextNumbers();
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return {
    given: [`CAST(${sql} AS VARCHAR)`],
    start: (rows) => {
      numbers.expect(rows);
      return { kind: "codes", codes: new Int32Array(rows), values: [] };
    },
    read: (into, at, chunk) => {
      if (into.kind !== "codes") return;
      const { codes, values } = into;
      chunk.texts(0, (row, bytes, from, length) => {
        const { last } = numbers;
        const code = numbers.of(bytes, from, length);
        codes[at + row] = code;
        if (code > last) values.push([code, parse(decoder.decode(bytes.subarray(from, from + length)))]);
      });
    },
  };
}

/** A value, or the different ones of a list; an object in a list is null there, and no value. */
function fromJson(json: string): Scalar[] {
  const value = JSON.parse(json) as Scalar | (Scalar | null)[];
  return Array.isArray(value) ? [...new Set(value.filter((item) => item !== null))] : [value];
}
