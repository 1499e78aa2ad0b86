import { z } from "zod";
import { BESIDE_OTHERS } from "../lib/fault.ts";
import { pathFault } from "./field.ts";
import { querySchema, type TimeRange } from "./query.ts";
import { boundSchema, refuseBackwards } from "./time-bound.ts";
import type { Condition } from "./condition.ts";

export const EXPORT_FORMATS = ["csv", "json", "ndjson", "parquet"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];
const EXPORT_STATUSES = ["pending", "running", "completed", "failed"] as const;
type ExportStatus = (typeof EXPORT_STATUSES)[number];
export const EXPORT_FIELDS_MAX = 100;

export const exportRequestSchema = z
  .strictObject({
    format: z.enum(EXPORT_FORMATS),
    time_range: z
      .strictObject({ from: boundSchema, to: boundSchema })
      .superRefine(refuseBackwards, BESIDE_OTHERS)
      .describe("`from` inclusive, `to` exclusive; also relative, such as `now-24h`"),
    query: querySchema.optional(),
    fields: z
      .array(
        z.string().superRefine((path, context) => {
          const fault = pathFault(path);
          if (fault) context.addIssue({ code: "custom", message: fault });
        }),
      )
      .min(1)
      .max(EXPORT_FIELDS_MAX)
      .refine((fields) => new Set(fields).size === fields.length, "names a field twice")
      .optional()
      .describe("fields to export, in this order; default: all"),
  })
  .meta({ id: "ExportRequest" });

export type ExportSubject = "events" | "alerts";

/** The events to export. Plain data: it is stored with the export, which may resume after a restart. */
export interface ExportQuery extends TimeRange {
  /** Absent in older records. */
  readonly subject?: "events" | undefined;
  readonly condition: Condition;
  readonly fields: readonly string[] | null;
}

/** The alerts to export. */
export interface AlertExportQuery {
  readonly subject: "alerts";
  /** An AlertFilter of the store. */
  readonly filter: object;
  readonly fields: readonly string[] | null;
}

export interface ExportJob {
  readonly id: string;
  readonly status: ExportStatus;
  readonly format: ExportFormat;
  readonly question: ExportQuery | AlertExportQuery;
  readonly rowCount: number | null;
  /** The name of the file, if it is not that of the id and the format. */
  readonly file?: string | undefined;
  readonly sizeBytes: number | null;
  readonly createdAt: number;
  readonly completedAt: number | null;
  readonly expiresAt: number;
  readonly error: string | null;
  /** Id of the key that requested it; null in older records. */
  readonly owner: string | null;
}

export function subjectOf({ question }: Pick<ExportJob, "question">): ExportSubject {
  return question.subject ?? "events";
}

/** Converts newline-separated JSON in one file into Parquet in another. */
export interface ParquetTask {
  readonly from: string;
  readonly to: string;
  readonly columns: readonly string[];
  /** The size of the longest line. */
  readonly rowBytesMax: number;
}

export const exportSchema = z
  .object({
    id: z.string(),
    status: z.enum(EXPORT_STATUSES),
    format: z.enum(EXPORT_FORMATS),
    row_count: z.int().nullable(),
    size_bytes: z.int().nullable(),
    created_at: z.string(),
    completed_at: z.string().nullable(),
    expires_at: z.string(),
    download_url: z.string().describe("relative to the base URL; available once the status is completed"),
    error: z.string().nullable(),
  })
  .meta({ id: "Export" });
