import { parseExact } from "../lib/exact-json.ts";
import type { Event, JsonObject, JsonValue } from "../model/event.ts";
import type { ExportFormat } from "../model/export.ts";
import type { Column } from "./columns.ts";
import { pathReader } from "./path.ts";

// How each format looks, in its file and on its way to the client. The writing thread loads this file: it imports no
// more than it needs, since every thread holds its own copy of what it has loaded.

interface Format {
  readonly mediaType: string;
  readonly extension: string;
  shape(columns: Columns): Shape;
}

interface Columns {
  /** Whether the request named its fields; json and ndjson give whole events where it did not. */
  readonly named: boolean;
  readonly columns: readonly Column[];
}

/** A file is the head, the rows with the separator between them, and the tail. */
interface Shape {
  readonly head: string;
  readonly separator: string;
  readonly tail: string;
  /** The row of one event, which comes as its JSON text. */
  row(event: string): string;
}

export const FORMATS: Record<ExportFormat, Format> = {
  csv: { mediaType: "text/csv; charset=utf-8; header=present", extension: "csv", shape: csvShape },
  json: { mediaType: "application/json; charset=utf-8", extension: "json", shape: jsonShape },
  ndjson: { mediaType: "application/x-ndjson; charset=utf-8", extension: "ndjson", shape: ndjsonShape },
  // Rows with one key a column, which the store then turns into Parquet.
  parquet: {
    mediaType: "application/vnd.apache.parquet",
    extension: "parquet",
    shape: parquetShape,
  },
};

function jsonShape(columns: Columns): Shape {
  return { head: "[", separator: ",\n", tail: "]\n", row: jsonRow(columns) };
}

function ndjsonShape(columns: Columns): Shape {
  const row = jsonRow(columns);
  return { head: "", separator: "", tail: "", row: (event) => `${row(event)}\n` };
}

/** The event as it is stored or, where fields are named, an object with just these paths as its keys. */
function jsonRow({ named, columns }: Columns): (event: string) => string {
  if (!named) return (event) => event;
  const cells = columns.map(({ path }) => ({ key: `${JSON.stringify(path)}:`, read: pathReader(path) }));
  return (text) => {
    const event = parseExact(text) as Event;
    let row = "{";
    for (const { key, read } of cells) {
      if (row.length > 1) row += ",";
      row += key + JSON.stringify(read(event) ?? null);
    }
    return `${row}}`;
  };
}

/** Each column has one type, whatever an event holds there: a number where one is expected, else the text of it. */
function parquetShape({ columns }: Columns): Shape {
  const cells = columns.map(({ path, type }) => ({ key: path, read: pathReader(path), isNumber: type === "number" }));
  return {
    head: "",
    separator: "",
    tail: "",
    row: (text) => {
      const event = parseExact(text) as Event;
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

function csvShape({ columns }: Columns): Shape {
  const readers = columns.map(({ path }) => pathReader(path));
  return {
    head: `${columns.map(({ path }) => quoted(path)).join(",")}\r\n`,
    separator: "",
    tail: "",
    row: (text) => {
      const event = parseExact(text) as Event;
      const cells: string[] = [];
      for (const read of readers) cells.push(csvCell(read(event)));
      return `${cells.join(",")}\r\n`;
    },
  };
}

// Most cells by far: they begin harmlessly and hold nothing that needs quotes.
const PLAIN_CELL = /^[A-Za-z0-9_./:][^",;\t\r\n]*$/;

function csvCell(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return String(value);
  const text = textOf(value);
  return PLAIN_CELL.test(text) ? text : quoted(neutralised(text));
}

function textOf(value: JsonValue): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object") return String(value);
  return Array.isArray(value) ? value.map(textOf).join("; ") : JSON.stringify(value);
}

// A spreadsheet runs a cell that begins with one of these, or with its full-width form, as a formula.
const FORMULA_START = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/** The apostrophe is how a spreadsheet is told that what follows is text. */
function neutralised(text: string): string {
  return FORMULA_START.test(text) ? `'${text}` : text;
}

// More than RFC 4180 asks for: some spreadsheets also split at semicolons and tabs.
const NEEDS_QUOTES = /[",;\t\r\n]/;
const QUOTE = /"/g;

function quoted(text: string): string {
  return NEEDS_QUOTES.test(text) ? `"${text.replace(QUOTE, '""')}"` : text;
}
