import { ALERT_EXPORT_COLUMNS, NUMERIC_ALERT_FIELDS } from "../model/alert-export.ts";
import { WELL_KNOWN_FIELDS } from "../model/event.ts";
import type { ExportSubject } from "../model/export.ts";

/** A column of an export. Plain data, because it is passed to the writer thread. */
export interface ExportColumn {
  readonly path: string;
  readonly type: "text" | "number";
}

/** The columns of an export of events whose request names none. Scripts rely on the order; new columns go before `raw`. */
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

const COLUMNS = {
  events: { names: DEFAULT_COLUMNS, numeric: NUMERIC_FIELDS },
  alerts: { names: ALERT_EXPORT_COLUMNS, numeric: NUMERIC_ALERT_FIELDS },
} as const satisfies Record<ExportSubject, { names: readonly string[]; numeric: ReadonlySet<string> }>;

export function columnsOf(fields: readonly string[] | null, subject: ExportSubject = "events"): ExportColumn[] {
  const { names, numeric } = COLUMNS[subject];
  return (fields ?? names).map((path) => ({ path, type: numeric.has(path) ? "number" : "text" }));
}
