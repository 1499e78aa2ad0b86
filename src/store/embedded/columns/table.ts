import {
  CLASSES,
  SEVERITIES,
  SOURCE_KINDS,
  sourceKind,
  WELL_KNOWN_FIELDS,
  type Event,
  type JsonObject,
} from "../../../model/event.ts";
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

export const TS = 1;
const FIRST_HOT = 6;
export const ODD = FIRST_HOT + HOT_FIELDS.length;
const REST = ODD + 1;

/** Well-known fields that stand directly in `raw`, by their key. */
const hotByRawKey = new Map(
  HOT_FIELDS.flatMap(({ path }, index) =>
    path.split(".").length === 2 && path.startsWith("raw.") ? [[path.slice(4), index] as const] : [],
  ),
);

const BLANK: readonly Cell[] = COLUMNS.map(({ name }) => (name === "odd" ? 0 : null));

type Columned = Pick<Event, "type" | "source" | "severity" | "class" | "raw" | "enrichment">;

/** An event's cells, in the order of COLUMNS. */
export function toCells(seq: number, ts: number, event: Columned): Cell[] {
  const cells = BLANK.slice();
  cells[0] = seq;
  cells[1] = ts;
  cells[2] = SOURCE_KINDS.indexOf(sourceKind(event.source));
  cells[3] = SEVERITIES.indexOf(event.severity);
  cells[4] = CLASSES.indexOf(event.class);
  cells[5] = event.type;
  let rest = "";
  // Most of an event is scalars directly in `raw`, whose paths nothing else can have.
  let inner: JsonObject | undefined;
  for (const key of Object.keys(event.raw)) {
    const value = event.raw[key]!;
    const type = typeof value;
    if ((type === "object" && value !== null) || key.includes(".")) {
      inner ??= Object.create(null) as JsonObject;
      inner[key] = value;
    } else if (value !== null) {
      const hot = hotByRawKey.get(key);
      if (hot !== undefined && type === HOT_FIELDS[hot]!.type) cells[FIRST_HOT + hot] = value as Cell;
      else {
        if (hot !== undefined) (cells[ODD] as number) |= HOT_FIELDS[hot]!.bit;
        rest +=
          (rest === "" ? "{" : ",") + rawKey(type, key) + (type === "string" ? JSON.stringify(value) : String(value));
      }
    }
  }
  if (inner || hasKeys(event.enrichment)) rest = addInner(cells, rest, inner, event);
  if (rest !== "") cells[REST] = `${rest}}`;
  return cells;
}

function hasKeys(object: JsonObject): boolean {
  for (const _ in object) return true;
  return false;
}

const RAW_KEYS_MAX = 10_000;
const rawKeys: Record<"string" | "number" | "boolean", Map<string, string>> = {
  string: new Map(),
  number: new Map(),
  boolean: new Map(),
};

/** `"s:raw.message":`, made once for each key that events keep having. */
function rawKey(type: string, key: string): string {
  const known = rawKeys[type as keyof typeof rawKeys];
  let text = known.get(key);
  if (text === undefined) {
    text = `${JSON.stringify(`${type[0]}:raw.${key}`)}:`;
    if (known.size < RAW_KEYS_MAX) known.set(key, text);
  }
  return text;
}

/** Whatever is nested: several values may come together under one path. */
function addInner(cells: Cell[], before: string, inner: JsonObject | undefined, event: Columned): string {
  let values = new Map<string, FieldValue | FieldValue[]>();
  const visit = (path: string, value: FieldValue) => {
    const known = values.get(path);
    if (known === undefined) values.set(path, value);
    else if (Array.isArray(known)) known.push(value);
    else values.set(path, [known, value]);
  };
  visitFields({ raw: inner ?? {}, enrichment: event.enrichment }, visit);
  let rest = before;
  // A key with a dot may lead to the same path as a scalar that has its place already: then everything goes the long way.
  if (inner && Object.keys(inner).some((key) => key.includes("."))) {
    values = new Map();
    visitFields(event, visit);
    cells.fill(null, FIRST_HOT);
    cells[ODD] = 0;
    rest = "";
  }
  for (const [path, value] of values) {
    if (path === "raw" || path === "enrichment") continue;
    const hot = hotByPath.get(path);
    if (hot !== undefined && typeof value === HOT_FIELDS[hot]!.type) {
      cells[FIRST_HOT + hot] = value as Cell;
      continue;
    }
    if (hot !== undefined) (cells[ODD] as number) |= HOT_FIELDS[hot]!.bit;
    rest += rest === "" ? "{" : ",";
    if (Array.isArray(value)) {
      const plain = value.map((item) => (item === OBJECT ? null : item));
      rest += `${JSON.stringify(`m:${path}`)}:${JSON.stringify(plain)}`;
    } else if (value === OBJECT) rest += `${JSON.stringify(`o:${path}`)}:1`;
    else rest += `${JSON.stringify(`${(typeof value)[0]}:${path}`)}:${JSON.stringify(value)}`;
  }
  return rest;
}
