import { CLASSES, SEVERITIES, SOURCE_KINDS, sourceKind, WELL_KNOWN_FIELDS, type Event } from "../../../model/event.ts";
import { OBJECT, visitFields, type FieldValue } from "../../../model/field.ts";

// The columns of an event. A well-known field has a column of its own, filled where the event has exactly one value of
// the expected type there. Where it has anything else, the field's bit in `odd` is set. Every value that is in
// no column of its own stands in `rest`: a flat JSON object whose keys say type and path, so that most tests on it
// are a search for a piece of text:
//   "s:raw.message":"text"  "n:raw.size":5  "b:raw.on":true  "m:raw.tags":["several",2]  "o:raw.inner":1 (an object)

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
if (HOT_FIELDS.length > 31) throw new Error("odd is an INTEGER: it has no bit left for another well-known field");

const hotByPath = new Map(HOT_FIELDS.map((field, index) => [field.path, index]));

export function hotField(path: string): HotField | undefined {
  const index = hotByPath.get(path);
  return index === undefined ? undefined : HOT_FIELDS[index];
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

/** Changes with the columns: a file of another form is dropped and built anew from the journal. */
export const COLUMNS_FORM = `1 ${COLUMNS.map(({ name, type }) => `${name} ${type}`).join(", ")}`;

export const columnList = COLUMNS.map(({ name, type }) => `${name} ${type}`).join(", ");

export type Cell = string | number | null;

/** An event's cells, in the order of COLUMNS. */
export function toCells(seq: number, ts: number, event: Event): Cell[] {
  const cells: Cell[] = [
    seq,
    ts,
    SOURCE_KINDS.indexOf(sourceKind(event.source)),
    SEVERITIES.indexOf(event.severity),
    CLASSES.indexOf(event.class),
    event.type,
  ];
  const values = new Map<string, FieldValue | FieldValue[]>();
  visitFields(event, (path, value) => {
    const before = values.get(path);
    if (before === undefined) values.set(path, value);
    else if (Array.isArray(before)) before.push(value);
    else values.set(path, [before, value]);
  });
  let odd = 0;
  for (const field of HOT_FIELDS) {
    const value = values.get(field.path);
    if (value === undefined) cells.push(null);
    else if (typeof value === field.type) {
      cells.push(value as Cell);
      values.delete(field.path);
    } else {
      cells.push(null);
      odd += field.bit;
    }
  }
  cells.push(odd, restOf(values));
  return cells;
}

function restOf(values: Map<string, FieldValue | FieldValue[]>): string | null {
  let text = "";
  for (const [path, value] of values) {
    if (path === "raw" || path === "enrichment") continue;
    text += text === "" ? "{" : ",";
    if (Array.isArray(value)) {
      const plain = value.map((item) => (item === OBJECT ? null : item));
      text += `${JSON.stringify(`m:${path}`)}:${JSON.stringify(plain)}`;
    } else if (value === OBJECT) text += `${JSON.stringify(`o:${path}`)}:1`;
    else text += `${JSON.stringify(`${(typeof value)[0]}:${path}`)}:${JSON.stringify(value)}`;
  }
  return text === "" ? null : `${text}}`;
}
