import { CLASSES, SEVERITIES, SOURCE_KINDS, WELL_KNOWN_FIELDS } from "../../../model/event.ts";

// The columns of an event. A well-known field has a column of its own, filled where the event has exactly one value of
// the expected type there. Where it has anything else, the field's bit in `odd` is set. Every value that is in
// no column of its own stands in `rest`: a flat JSON object whose keys say type and path, so that most tests on it
// are a search for a piece of text:
//   "s:raw.message":"text"  "n:raw.size":5  "b:raw.on":true  "m:raw.tags":["several",2]  "o:raw.inner":1 (an object)
//   "i:raw.id":{"i":"1019…"} (a whole number beyond 2^53: large-integer.ts)

export const CODED = { source: SOURCE_KINDS, severity: SEVERITIES, class: CLASSES } as const;

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

/** The bit of `odd` that says that `rest` would be too long for the columns: whoever asks for it reads the event itself. */
export const LARGE = 2 ** 30;

/** The bit of `odd` that says that `rest` has a whole number beyond 2^53. */
export const LARGE_INTEGERS = 2 ** 29;

const hotByPath = new Map(HOT_FIELDS.map((field) => [field.path, field]));

export function hotField(path: string): HotField | undefined {
  return hotByPath.get(path);
}

/** What a value is that stands in `rest`: a text, a number, a large integer, a boolean, several values, an object. */
export type RestType = "s" | "n" | "i" | "b" | "m" | "o";

/** Under which the values stand in `rest` whose own path is too long to be asked for. */
export const UNNAMED_PATH = "\0";

/** What stands before such a value of a path. */
export function restKey(type: RestType, path: string): string {
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

/** Rises with whatever `COLUMNS_FORM` does not show. Columns of an older version are not migrated but built anew. */
export const COLUMNS_VERSION = 1;

/** Changes with the columns: a file of another form is dropped and built anew from the journal. */
export const COLUMNS_FORM = `2 ${COLUMNS.map(({ name, type }) => `${name} ${type}`).join(", ")}`;

export const columnList = COLUMNS.map(({ name, type }) => `${name} ${type}`).join(", ");
