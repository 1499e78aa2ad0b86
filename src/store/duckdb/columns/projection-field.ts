import { formatTime } from "../../../lib/time.ts";
import type { Scalar } from "../../../model/condition.ts";
import type { JsonValue } from "../../../model/event.ts";
import { QueryRefused } from "../../ports/store-errors.ts";
import { decodeValue } from "./large-integer.ts";
import type { Parameters } from "./sql.ts";
import { hotField } from "./column-table.ts";
import { TextDictionary } from "./text-dictionary.ts";
import { enumNames, isEnumColumn, oversizedValuesSql, extraValuesSql } from "./where.ts";

// The values of a field in a projection.

/** The values of a field: a number for each row, and the values of numbers that are new. */
export interface NumberedColumn {
  readonly numbers: Int32Array;
  readonly newValues: [number: number, values: Scalar[]][];
}

interface ChunkColumns {
  doubles(column: number): Float64Array;
  integers(column: number): Int32Array;
  texts(column: number, visit: (row: number, bytes: Uint8Array, from: number, length: number) => void): void;
}

/** The columns of a projection's SQL for one field, and their reader. */
export interface FieldColumn {
  readonly select: readonly string[];
  /** Starts the column of the next batch, which has at most this many rows. */
  start(rows: number): NumberedColumn;
  /** Adds a chunk, starting at this row, and returns the number of characters of its new values. */
  read(into: NumberedColumn, at: number, chunk: ChunkColumns): number;
}

export function fieldColumn(field: string, platform: string, parameters: Parameters): FieldColumn {
  if (field === "id") throw new QueryRefused("query", "every id is different");
  if (field === "raw" || field === "enrichment") return { select: [], start: emptyColumn, read: () => 0 };
  if (field === "timestamp") return numberColumn("ts", formatTime);
  if (isEnumColumn(field)) return enumColumn(field, platform);
  if (field === "type") return textColumn("type", (text) => [text]);
  const hot = hotField(field);
  if (!hot) return textColumn(extraOrOversizedSql(field, parameters), fromJson);
  if ((parameters.context.irregularBits & hot.bit) !== 0) {
    const irregular = `CASE WHEN (odd & ${hot.bit}) <> 0 THEN ${extraOrOversizedSql(field, parameters)} END`;
    return textColumn(`coalesce(to_json(${hot.column}), ${irregular})`, fromJson);
  }
  return hot.type === "string" ? textColumn(hot.column, (text) => [text]) : numberColumn(hot.column, (value) => value);
}

/** The values of a field without a column of their own. */
function extraOrOversizedSql(field: string, parameters: Parameters): string {
  const inExtra = extraValuesSql(field, parameters);
  const oversized = oversizedValuesSql(field, parameters);
  return oversized === undefined ? inExtra : `coalesce(${inExtra}, ${oversized})`;
}

function emptyColumn(rows: number): NumberedColumn {
  return { numbers: new Int32Array(rows), newValues: [] };
}

function enumColumn(field: "source" | "severity" | "class", platform: string): FieldColumn {
  let notSent: NumberedColumn["newValues"] = enumNames(field, platform).map((name, code) => [code + 1, [name]]);
  return {
    select: [`CAST(${field} AS INTEGER) + 1`],
    start: (rows) => {
      const column = { numbers: new Int32Array(rows), newValues: notSent };
      notSent = [];
      return column;
    },
    read: ({ numbers }, at, chunk) => {
      numbers.set(chunk.integers(0), at);
      return 0;
    },
  };
}

/** The cost of a new value for the receiver, in characters, in addition to its own length. */
const NEW_VALUE_CHARACTERS = 200;

/** Past this many distinct numbers, numbering starts over. */
const DISTINCT_NUMBERS_MAX = 150_000;

function numberColumn(column: string, toValue: (value: number) => Scalar): FieldColumn {
  const known = new Map<number, number>();
  return {
    select: [`coalesce(CAST(${column} AS DOUBLE), CAST('NaN' AS DOUBLE))`],
    start: (rows) => {
      if (known.size + rows > DISTINCT_NUMBERS_MAX) known.clear();
      return emptyColumn(rows);
    },
    read: ({ numbers, newValues }, at, chunk) => {
      const newBefore = newValues.length;
      const doubles = chunk.doubles(0);
      for (let row = 0; row < doubles.length; row++) {
        const value = doubles[row]!;
        if (Number.isNaN(value)) continue;
        let number = known.get(value);
        if (number === undefined) {
          number = known.size + 1;
          known.set(value, number);
          newValues.push([number, [toValue(value)]]);
        }
        numbers[at + row] = number;
      }
      return (newValues.length - newBefore) * NEW_VALUE_CHARACTERS;
    },
  };
}

/** A column of texts, each of which crosses between threads once, or seldom. */
function textColumn(sql: string, parse: (text: string) => Scalar[]): FieldColumn {
  const known = new TextDictionary();
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return {
    select: [`CAST(${sql} AS VARCHAR)`],
    start: (rows) => {
      known.reserve(rows);
      return emptyColumn(rows);
    },
    read: ({ numbers, newValues }, at, chunk) => {
      let characters = 0;
      chunk.texts(0, (row, bytes, from, length) => {
        const { last } = known;
        const number = known.numberOf(bytes, from, length);
        numbers[at + row] = number;
        if (number <= last) return;
        newValues.push([number, parse(decoder.decode(bytes.subarray(from, from + length)))]);
        characters += NEW_VALUE_CHARACTERS + length;
      });
      return characters;
    },
  };
}

/** A value, or the distinct values of a list without its objects, which are null. */
function fromJson(json: string): Scalar[] {
  const value = decodeValue(JSON.parse(json) as JsonValue)!;
  return Array.isArray(value) ? [...new Set(value.filter((item) => item !== null))] : [value];
}
