import { formatTime } from "../../../lib/time.ts";
import type { Scalar } from "../../../model/condition.ts";
import type { JsonValue } from "../../../model/event.ts";
import { QuestionRefused } from "../../store.ts";
import { decodeValue } from "./large-integer.ts";
import type { Parameters } from "./sql.ts";
import { hotField } from "./table.ts";
import { TextNumbers } from "./text-numbers.ts";
import { codedNames, isCoded, largeValuesSql, restValuesSql } from "./where.ts";

// How the values of a field come out of a projection.

/** The values of a field: for each row a number, and what numbers that are new stand for. */
export interface NumberedColumn {
  readonly numbers: Int32Array;
  readonly told: [number: number, values: Scalar[]][];
}

interface ChunkColumns {
  doubles(column: number): Float64Array;
  integers(column: number): Int32Array;
  texts(column: number, show: (row: number, bytes: Uint8Array, from: number, length: number) => void): void;
}

/** The columns of a projection's SQL that are about one field, and how they are read. */
export interface FieldColumn {
  readonly given: readonly string[];
  /** For the next part, of so many rows. */
  start(rows: number): NumberedColumn;
  /** Puts a chunk in, from this row on, and says how many characters of values it tells. */
  read(into: NumberedColumn, at: number, chunk: ChunkColumns): number;
}

export function fieldColumn(field: string, platform: string, parameters: Parameters): FieldColumn {
  if (field === "id") throw new QuestionRefused("query", "every id is different");
  if (field === "raw" || field === "enrichment") return { given: [], start: emptyColumn, read: () => 0 };
  if (field === "timestamp") return numberColumn("ts", formatTime);
  if (isCoded(field)) return codedColumn(field, platform);
  if (field === "type") return textColumn("type", (text) => [text]);
  const hot = hotField(field);
  if (!hot) return textColumn(otherValuesSql(field, parameters), fromJson);
  if ((parameters.facts.oddBits & hot.bit) !== 0) {
    const odd = `CASE WHEN (odd & ${hot.bit}) <> 0 THEN ${otherValuesSql(field, parameters)} END`;
    return textColumn(`coalesce(to_json(${hot.column}), ${odd})`, fromJson);
  }
  return hot.type === "string" ? textColumn(hot.column, (text) => [text]) : numberColumn(hot.column, (value) => value);
}

/** Those that are in no column of their own. */
function otherValuesSql(field: string, parameters: Parameters): string {
  const inRest = restValuesSql(field, parameters);
  const large = largeValuesSql(field, parameters);
  return large === undefined ? inRest : `coalesce(${inRest}, ${large})`;
}

function emptyColumn(rows: number): NumberedColumn {
  return { numbers: new Int32Array(rows), told: [] };
}

function codedColumn(field: "source" | "severity" | "class", platform: string): FieldColumn {
  let untold: NumberedColumn["told"] = codedNames(field, platform).map((name, code) => [code + 1, [name]]);
  return {
    given: [`CAST(${field} AS INTEGER) + 1`],
    start: (rows) => {
      const column = { numbers: new Int32Array(rows), told: untold };
      untold = [];
      return column;
    },
    read: ({ numbers }, at, chunk) => {
      numbers.set(chunk.integers(0), at);
      return 0;
    },
  };
}

/** What a value that is told costs whoever hears of it, beside its own length. */
const TOLD_CHARACTERS = 200;

/** Different numbers beyond which they are counted anew. */
const DIFFERENT_MAX = 150_000;

function numberColumn(column: string, toValue: (value: number) => Scalar): FieldColumn {
  const known = new Map<number, number>();
  return {
    given: [`coalesce(CAST(${column} AS DOUBLE), CAST('NaN' AS DOUBLE))`],
    start: (rows) => {
      if (known.size + rows > DIFFERENT_MAX) known.clear();
      return emptyColumn(rows);
    },
    read: ({ numbers, told }, at, chunk) => {
      const toldBefore = told.length;
      const doubles = chunk.doubles(0);
      for (let row = 0; row < doubles.length; row++) {
        const value = doubles[row]!;
        if (Number.isNaN(value)) continue;
        let number = known.get(value);
        if (number === undefined) {
          number = known.size + 1;
          known.set(value, number);
          told.push([number, [toValue(value)]]);
        }
        numbers[at + row] = number;
      }
      return (told.length - toldBefore) * TOLD_CHARACTERS;
    },
  };
}

/** Each text crosses over once, or seldom. */
function textColumn(sql: string, parse: (text: string) => Scalar[]): FieldColumn {
  const known = new TextNumbers();
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return {
    given: [`CAST(${sql} AS VARCHAR)`],
    start: (rows) => {
      known.expect(rows);
      return emptyColumn(rows);
    },
    read: ({ numbers, told }, at, chunk) => {
      let characters = 0;
      chunk.texts(0, (row, bytes, from, length) => {
        const { last } = known;
        const number = known.of(bytes, from, length);
        numbers[at + row] = number;
        if (number <= last) return;
        told.push([number, parse(decoder.decode(bytes.subarray(from, from + length)))]);
        characters += TOLD_CHARACTERS + length;
      });
      return characters;
    },
  };
}

/** A value, or the different ones of a list; an object in a list is null there, and no value. */
function fromJson(json: string): Scalar[] {
  const value = decodeValue(JSON.parse(json) as JsonValue)!;
  return Array.isArray(value) ? [...new Set(value.filter((item) => item !== null))] : [value];
}
