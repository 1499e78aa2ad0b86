import { createLruCache } from "../../../lib/lru.ts";
import { splitColumns } from "../described/columns.ts";
import { commonName } from "./common-names.ts";

// Lines of CSV behind a line with the names of their columns, from the same program.

const TABLES_MAX = 1000;
const COLUMNS_MIN = 3;
const COLUMNS_MAX = 128;
/** Column names that must be common ones, so that a sentence with commas is not taken for names. */
const COMMON_MIN = 2;
const COLUMN_NAME = /^[A-Za-z_@][\w .@()/-]{0,63}$/;
const SEPARATORS = [",", ";", "\t", "|"] as const;

interface CsvTable {
  readonly separator: string;
  readonly names: readonly string[];
}

export type CsvLine =
  | { readonly kind: "names" }
  | { readonly kind: "row"; readonly pairs: (readonly [string, string])[] };

/** The column names that each program of each sender has told. */
export class CsvTables {
  readonly #tables = createLruCache<string, CsvTable>(TABLES_MAX);

  /** Undefined if the message is neither a line of names nor a row below one. */
  read(key: string, message: string): CsvLine | undefined {
    const table = this.#tables.get(key);
    if (table !== undefined) {
      const cells = splitColumns(message, 0, table.separator);
      if (cells.length === table.names.length && cells.some((cell, index) => cell !== table.names[index])) {
        return { kind: "row", pairs: table.names.map((name, index) => [name, cells[index]!] as const) };
      }
    }
    const names = tableOf(message);
    if (names === undefined) return undefined;
    this.#tables.set(key, names);
    return { kind: "names" };
  }
}

function tableOf(message: string): CsvTable | undefined {
  for (const separator of SEPARATORS) {
    if (!message.includes(separator)) continue;
    const names = splitColumns(message, 0, separator).map((name) => name.trim());
    if (names.length < COLUMNS_MIN || names.length > COLUMNS_MAX || new Set(names).size < names.length) continue;
    if (!names.every((name) => COLUMN_NAME.test(name))) continue;
    if (names.filter((name) => commonName(name) !== null).length >= COMMON_MIN) return { separator, names };
  }
  return undefined;
}
