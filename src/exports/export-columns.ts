import { WELL_KNOWN_FIELDS } from "../model/event.ts";

/** A column of an export. Plain data, because it is passed to the writer thread. */
export interface ExportColumn {
  readonly path: string;
  readonly type: "text" | "number";
}

/** The columns of an export whose request names none. Scripts rely on the order; new columns go before `raw`. */
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

const NUMERIC_FIELDS = new Set(
  Object.entries(WELL_KNOWN_FIELDS).flatMap(([path, type]) => (type === "number" ? [path] : [])),
);

export function columnsOf(fields: readonly string[] | null): ExportColumn[] {
  return (fields ?? DEFAULT_COLUMNS).map((path) => ({ path, type: NUMERIC_FIELDS.has(path) ? "number" : "text" }));
}
