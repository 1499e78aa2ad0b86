import { CLASSES, SEVERITIES, SOURCE_KINDS, WELL_KNOWN_FIELDS } from "../../../model/event.ts";

// The columns of an event. Each well-known field has a column of its own, which has a value if the event has exactly one
// value of the expected type there. Otherwise the field is irregular: its bit in the `odd` column is set. All values without
// a column of their own are extra: they are in the `rest` column, a flat JSON object. Its keys have type and path, so that
// most tests on it are a text search:
//   "s:raw.message":"text"  "n:raw.size":5  "b:raw.on":true  "m:raw.tags":["several",2]  "o:raw.inner":1 (an object)
//   "i:raw.id":{"i":"1019…"} (an integer beyond 2^53: large-integer.ts)

export const ENUM_COLUMNS = { source: SOURCE_KINDS, severity: SEVERITIES, class: CLASSES } as const;

export interface HotField {
  readonly path: string;
  readonly column: string;
  readonly type: "string" | "number";
  readonly bit: number;
}

export const HOT_FIELDS: readonly HotField[] = Object.entries(WELL_KNOWN_FIELDS).map(([path, type], i) => ({
  path,
  column: `"${path}"`,
  type,
  bit: 2 ** i,
}));
if (HOT_FIELDS.length > 29) throw new Error("odd is an INTEGER: it has no bit left for another well-known field");

/** The bit of `odd` for an oversized event: its `rest` would be too long, so that queries read the event itself. */
export const OVERSIZED = 2 ** 30;

/** The bit of `odd` for an integer beyond 2^53 in `rest`. */
export const LARGE_INTEGERS = 2 ** 29;

const hotByPath = new Map(HOT_FIELDS.map((field) => [field.path, field]));

export function hotField(path: string): HotField | undefined {
  return hotByPath.get(path);
}

/** The type of a value in `rest`: string, number, large integer, boolean, several values, object. */
export type ExtraType = "s" | "n" | "i" | "b" | "m" | "o";

/** The path, in `rest`, of all values whose own path is too long for a query. */
export const UNNAMED_PATH = "\0";

/** The JSON text that precedes a value of this type and path in `rest`. */
export function extraKey(type: ExtraType, path: string): string {
  return `${JSON.stringify(`${type}:${path}`)}:`;
}

export type ColumnType = "BIGINT" | "UTINYINT" | "INTEGER" | "DOUBLE" | "VARCHAR";

export const COLUMNS: readonly { readonly name: string; readonly type: ColumnType }[] = [
  { name: "seq", type: "BIGINT" },
  { name: "ts", type: "BIGINT" },
  { name: "source", type: "UTINYINT" },
  { name: "severity", type: "UTINYINT" },
  { name: "class", type: "UTINYINT" },
  { name: "type", type: "VARCHAR" },
  ...HOT_FIELDS.map(({ column, type }) => ({
    name: column,
    type: type === "string" ? ("VARCHAR" as const) : ("DOUBLE" as const),
  })),
  { name: "odd", type: "INTEGER" },
  { name: "rest", type: "VARCHAR" },
];

/**
 * The version of everything that COLUMNS_FORMAT does not show. 2: entities; those of an older file are counted after the start.
 * 3: columns of fields that were aggregated (field-columns.ts), of which an older file has none.
 */
export const COLUMNS_VERSION = 3;
export const ENTITIES_VERSION = 2;

/** The columns as text. A file with another format is dropped and rebuilt from the journal. */
export const COLUMNS_FORMAT = `2 ${COLUMNS.map(({ name, type }) => `${name} ${type}`).join(", ")}`;

export const COLUMN_LIST = COLUMNS.map(({ name, type }) => `${name} ${type}`).join(", ");
