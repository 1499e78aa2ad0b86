import type { Scalar } from "../../../model/condition.ts";
import { QuestionRefused } from "../../store.ts";
import { notNull } from "./sql.ts";
import type { Parameters } from "./sql.ts";
import { hotField } from "./table.ts";
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
  texts(column: number): { row: number; text: string }[];
}

/** The parts of a projection's SQL that are about one field, and how its columns are read. */
export interface FieldColumn {
  /** Columns of the matching rows. */
  readonly matched: readonly string[];
  /** A table of its different values with their numbers, and how rows find theirs. */
  readonly numbered: readonly string[];
  readonly joined: readonly string[];
  /** Columns of the answer. */
  readonly given: readonly string[];
  start(rows: number): ProjectedColumn;
  /** Puts a chunk in, from this row on. */
  read(into: ProjectedColumn, at: number, chunk: ChunkColumns): void;
}

const NOTHING = { matched: [], numbered: [], joined: [], given: [] } as const;

export function fieldColumn(field: string, index: number, platform: string, parameters: Parameters): FieldColumn {
  if (field === "id") throw new QuestionRefused("query", "every id is different");
  if (field === "raw" || field === "enrichment") return { ...NOTHING, start: () => ({ kind: "none" }), read: () => {} };
  if (field === "timestamp") return { ...NOTHING, start: () => ({ kind: "times" }), read: () => {} };
  if (isCoded(field)) return codedColumn(field, index, platform);
  if (field === "type") return numberedColumn("type", index, (text) => [text]);
  const hot = hotField(field);
  if (!hot) return numberedColumn(restValuesSql(field, parameters), index, fromJson);
  if ((parameters.facts.oddBits & hot.bit) !== 0) {
    const odd = `CASE WHEN (odd & ${hot.bit}) <> 0 THEN ${restValuesSql(field, parameters)} END`;
    return numberedColumn(`coalesce(to_json(${hot.column}), ${odd})`, index, fromJson);
  }
  return hot.type === "string" ? numberedColumn(hot.column, index, (text) => [text]) : numberColumn(hot.column, index);
}

function codedColumn(field: "source" | "severity" | "class", index: number, platform: string): FieldColumn {
  const names = codedNames(field, platform);
  return {
    ...NOTHING,
    matched: [`CAST(${field} AS INTEGER) + 1 AS v${index}`],
    given: [`v${index}`],
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

function numberColumn(column: string, index: number): FieldColumn {
  return {
    ...NOTHING,
    matched: [`coalesce(${column}, CAST('NaN' AS DOUBLE)) AS v${index}`],
    given: [`v${index}`],
    start: (rows) => ({ kind: "numbers", numbers: new Float64Array(rows) }),
    read: (into, at, chunk) => {
      if (into.kind === "numbers") into.numbers.set(chunk.doubles(0), at);
    },
  };
}

/** Each different text is given with the first row that has it. */
function numberedColumn(sql: string, index: number, parse: (text: string) => Scalar[]): FieldColumn {
  const [value, table] = [`v${index}`, `d${index}`];
  return {
    matched: [`CAST(${sql} AS VARCHAR) AS ${value}`],
    numbered: [
      `${table} AS MATERIALIZED (SELECT ${value}, first, CAST(row_number() OVER () AS INTEGER) AS code
         FROM (SELECT ${value}, min(place) AS first FROM m WHERE ${value} IS NOT NULL GROUP BY ${value}))`,
    ],
    joined: [`LEFT JOIN ${table} ON m.${value} = ${table}.${value}`],
    given: [`coalesce(${table}.code, 0)`, `CASE WHEN ${notNull(`m.place = ${table}.first`)} THEN m.${value} END`],
    start: (rows) => ({ kind: "codes", codes: new Int32Array(rows), values: [] }),
    read: (into, at, chunk) => {
      if (into.kind !== "codes") return;
      into.codes.set(chunk.integers(0), at);
      for (const { row, text } of chunk.texts(1)) into.values.push([into.codes[at + row]!, parse(text)]);
    },
  };
}

/** A value, or the different ones of a list; an object in a list is null there, and no value. */
function fromJson(json: string): Scalar[] {
  const value = JSON.parse(json) as Scalar | (Scalar | null)[];
  return Array.isArray(value) ? [...new Set(value.filter((item) => item !== null))] : [value];
}
