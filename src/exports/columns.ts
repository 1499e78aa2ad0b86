import { WELL_KNOWN_FIELDS } from "../model/event.ts";

/** A column of an export: plain data, since the thread that writes rows is told by it what to write. */
export interface Column {
  readonly path: string;
  readonly type: "text" | "number";
}

/** The columns of an export whose request names none. An order that scripts rely on: new ones go before `raw`. */
export const DEFAULT_COLUMNS: readonly string[] = [
  "id",
  "timestamp",
  "type",
  "class",
  "source",
  "severity",
  ...Object.keys(WELL_KNOWN_FIELDS),
  "raw",
  "enrichment",
];

const NUMBERS = new Set(Object.entries(WELL_KNOWN_FIELDS).flatMap(([path, type]) => (type === "number" ? [path] : [])));

export function columnsOf(fields: readonly string[] | null): Column[] {
  return (fields ?? DEFAULT_COLUMNS).map((path) => ({ path, type: NUMBERS.has(path) ? "number" : "text" }));
}
