import { parseExact } from "../lib/exact-json.ts";
import type { JsonObject, JsonValue } from "../model/event.ts";
import type { ExportFormat } from "../model/export.ts";
import type { ExportColumn } from "./export-columns.ts";
import { pathReader } from "./path-reader.ts";

// The media type and file layout of each export format. The writer thread loads this file, so it imports as little as
// possible: every thread holds its own copy of the modules it loads.

interface FormatWriter {
  readonly mediaType: string;
  readonly extension: string;
  layout(columns: ColumnSelection): FileLayout;
}

interface ColumnSelection {
  /** True if the request names its fields. Otherwise json and ndjson contain whole events or alerts. */
  readonly named: boolean;
  readonly columns: readonly ExportColumn[];
}

/** A file consists of the header, the rows with separators between them, and the footer. */
interface FileLayout {
  readonly header: string;
  readonly separator: string;
  readonly footer: string;
  /** Formats the row of one event or alert, given as JSON text. */
  row(event: string): string;
}

export const FORMATS: Record<ExportFormat, FormatWriter> = {
  csv: { mediaType: "text/csv; charset=utf-8; header=present", extension: "csv", layout: csvLayout },
  json: { mediaType: "application/json; charset=utf-8", extension: "json", layout: jsonLayout },
  ndjson: { mediaType: "application/x-ndjson; charset=utf-8", extension: "ndjson", layout: ndjsonLayout },
  // JSON lines with one key per column, which the store then converts to Parquet.
  parquet: {
    mediaType: "application/vnd.apache.parquet",
    extension: "parquet",
    layout: parquetLayout,
  },
};

function jsonLayout(columns: ColumnSelection): FileLayout {
  return { header: "[", separator: ",\n", footer: "]\n", row: jsonRow(columns) };
}

function ndjsonLayout(columns: ColumnSelection): FileLayout {
  const row = jsonRow(columns);
  return { header: "", separator: "", footer: "", row: (event) => `${row(event)}\n` };
}

/** The event as stored or, if fields are named, an object with only these paths as keys. */
function jsonRow({ named, columns }: ColumnSelection): (event: string) => string {
  if (!named) return (event) => event;
  const cells = columns.map(({ path }) => ({ key: `${JSON.stringify(path)}:`, read: pathReader(path) }));
  return (text) => {
    const event = parseExact(text) as JsonObject;
    let row = "{";
    for (const { key, read } of cells) {
      if (row.length > 1) row += ",";
      row += key + JSON.stringify(read(event) ?? null);
    }
    return `${row}}`;
  };
}

/** Each column has one type: a numeric column takes only numbers, any other column takes the value as text. */
function parquetLayout({ columns }: ColumnSelection): FileLayout {
  const cells = columns.map(({ path, type }) => ({ key: path, read: pathReader(path), isNumber: type === "number" }));
  return {
    header: "",
    separator: "",
    footer: "",
    row: (text) => {
      const event = parseExact(text) as JsonObject;
      const row: JsonObject = {};
      for (const { key, read, isNumber } of cells) {
        const value = read(event);
        if (value === undefined || value === null) row[key] = null;
        else if (isNumber) row[key] = typeof value === "number" || typeof value === "bigint" ? value : null;
        else row[key] = textOf(value);
      }
      return `${JSON.stringify(row)}\n`;
    },
  };
}

function csvLayout({ columns }: ColumnSelection): FileLayout {
  const readers = columns.map(({ path }) => pathReader(path));
  return {
    header: `${columns.map(({ path }) => quote(path)).join(",")}\r\n`,
    separator: "",
    footer: "",
    row: (text) => {
      const event = parseExact(text) as JsonObject;
      const cells: string[] = [];
      for (const read of readers) cells.push(csvCell(read(event)));
      return `${cells.join(",")}\r\n`;
    },
  };
}

// Matches most cells: no formula start and no character that needs quotes.
const PLAIN_CELL = /^[A-Za-z0-9_./:][^",;\t\r\n]*$/;

function csvCell(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return String(value);
  const text = textOf(value);
  return PLAIN_CELL.test(text) ? text : quote(neutraliseFormula(text));
}

function textOf(value: JsonValue): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object") return String(value);
  return Array.isArray(value) ? value.map(textOf).join("; ") : JSON.stringify(value);
}

// Spreadsheets run a cell as a formula if it starts with one of these characters or its full-width form.
const FORMULA_START = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/** A leading apostrophe makes a spreadsheet treat the cell as text. */
function neutraliseFormula(text: string): string {
  return FORMULA_START.test(text) ? `'${text}` : text;
}

// Stricter than RFC 4180: some spreadsheets also split at semicolons and tabs.
const NEEDS_QUOTES = /[",;\t\r\n]/;
const QUOTE = /"/g;

function quote(text: string): string {
  return NEEDS_QUOTES.test(text) ? `"${text.replace(QUOTE, '""')}"` : text;
}
