import { z } from "zod";
import {
  EXPORTS_KEPT_PER_KEY_MAX,
  EXPORTS_PER_KEY_MAX,
  EXPORTS_WAITING_MAX,
  TooManyExports,
  type Exporter,
} from "../exports/exporter.ts";
import type { Store } from "../store/store.ts";
import { marked } from "./incomplete.ts";
import { BESIDE_OTHERS } from "../lib/fault.ts";
import { formatTime } from "../lib/time.ts";
import { exportRequestSchema, exportSchema, type ExportJob, type ExportQuestion } from "../model/export.ts";
import type { ApiKey } from "../model/key.ts";
import { toCondition } from "../model/query.ts";
import { data, endpoint, type Endpoint } from "./endpoint.ts";
import { Problem } from "./problems.ts";
import { sourceFaults } from "./sources.ts";

const DOWNLOAD_RETRY_SECONDS = 2;

const EXPORT_EXAMPLE = {
  id: "exp_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
  status: "pending",
  format: "csv",
  row_count: null,
  size_bytes: null,
  created_at: "2026-11-15T08:30:00.000Z",
  completed_at: null,
  expires_at: "2026-11-16T08:30:00.000Z",
  download_url: "/v1/events/exports/exp_019a84f2c0d17a3e8b5d4e6f7a8b9c0d/download",
  error: null,
};

const idParams = z.object({ id: z.string() });

export function exportEndpoints(
  exporter: Exporter,
  store: Pick<Store, "missing">,
  sources: readonly string[],
): Endpoint[] {
  const find = (id: string): ExportJob => {
    const job = exporter.get(id);
    if (!job) throw new Problem("not_found", `there is no export ${id}; exports are kept for 24 hours`);
    return job;
  };
  const create: Exporter["create"] = (request) => {
    try {
      return exporter.create(request);
    } catch (error) {
      if (!(error instanceof TooManyExports)) throw error;
      const headers = { "Retry-After": String(error.retryAfterSeconds) };
      throw new Problem("rate_limited", error.message, { headers });
    }
  };
  return [
    endpoint({
      method: "POST",
      path: "/v1/events/export",
      operationId: "exportEvents",
      tag: "Exports",
      summary: "Export events to a file",
      about:
        "Answers at once; the file is written in the background and kept for 24 hours. At most " +
        `${EXPORTS_WAITING_MAX} wait: one more is a 503. A key may have ${EXPORTS_PER_KEY_MAX} that are not done and ` +
        `${EXPORTS_KEPT_PER_KEY_MAX} in all: one more is a 429. Keys take turns.`,
      scopes: ["events:read"],
      body: exportRequestSchema.superRefine(
        ({ query }, context) => sourceFaults(query, sources, context),
        BESIDE_OTHERS,
      ),
      example: {
        format: "csv",
        time_range: { from: "2026-11-08T00:00:00Z", to: "2026-11-15T00:00:00Z" },
        query: { bool: { must: [{ field: "severity", in: ["critical", "high"] }] } },
        fields: ["timestamp", "type", "severity", "raw.src_ip"],
      },
      answers: { 201: { about: "the export", data: exportSchema, example: EXPORT_EXAMPLE } },
      headers: { 201: ["Location"] },
      handle: ({ body, key }) => {
        const job = create({ format: body.format, question: toQuestion(body), owner: key.id });
        const answer = data(exportView(job), 201, { Location: `/v1/events/exports/${job.id}` });
        return marked(answer, store, "events", job.question);
      },
    }),
    endpoint({
      method: "GET",
      path: "/v1/events/exports/:id",
      operationId: "getExport",
      tag: "Exports",
      summary: "How far an export is",
      scopes: ["events:read"],
      params: idParams,
      answers: { 200: { about: "the export", data: exportSchema, example: EXPORT_EXAMPLE } },
      problems: ["not_found"],
      handle: ({ params }) => {
        const job = find(params.id);
        return marked(data(exportView(job)), store, "events", job.question);
      },
      headers: { 200: ["X-Tocsin-Incomplete"] },
    }),
    endpoint({
      method: "DELETE",
      path: "/v1/events/exports/:id",
      operationId: "cancelExport",
      tag: "Exports",
      summary: "Cancel an export, or remove it",
      about:
        "By the key that asked for it, or by one that has `keys:manage` as well. An export from before keys were recorded may be " +
        "removed by any key that may read it.",
      scopes: ["events:read"],
      params: idParams,
      answers: {
        200: {
          about: "it is gone",
          data: z.object({ id: z.string(), deleted: z.literal(true) }),
          example: { id: EXPORT_EXAMPLE.id, deleted: true },
        },
      },
      problems: ["not_found"],
      handle: ({ params, key }) => {
        const { id, owner } = find(params.id);
        requireOwner(owner, key);
        exporter.cancel(id);
        return data({ id, deleted: true });
      },
    }),
    endpoint({
      method: "GET",
      path: "/v1/events/exports/:id/download",
      operationId: "downloadExport",
      tag: "Exports",
      summary: "The file of a completed export",
      about: "For any key that may read events, whoever asked for the export: it holds nothing else.",
      scopes: ["events:read"],
      params: idParams,
      answers: {
        200: {
          about: "the file",
          content: {
            "text/csv": z.string(),
            "application/json": z.array(z.looseObject({})),
            "application/x-ndjson": z.string(),
            "application/vnd.apache.parquet": z.string().meta({ format: "binary" }),
          },
        },
      },
      problems: ["not_found"],
      headers: { 200: ["Content-Disposition"], 404: ["Retry-After"] },
      handle: async ({ params }) => {
        const { id } = find(params.id);
        const download = await exporter.openDownload(id);
        // Asked for again: that its file is gone may only have been seen now.
        if (!download) throw notReady(find(id));
        return {
          kind: "stream",
          stream: download.stream,
          headers: {
            "Content-Type": download.mediaType,
            "Content-Length": String(download.sizeBytes),
            "Content-Disposition": `attachment; filename="${download.fileName}"`,
          },
        };
      },
    }),
  ];
}

function requireOwner(owner: string | null, key: ApiKey): void {
  if (owner === null || owner === key.id || key.scopes.includes("keys:manage")) return;
  throw new Problem("forbidden", "the export is another key's: that key removes it, or one with the scope keys:manage");
}

function notReady({ id, status, error }: ExportJob): Problem {
  if (status === "failed") {
    const reason = error === null ? "" : ` (${error})`;
    return new Problem("not_found", `the export ${id} has failed: there is no file${reason}`);
  }
  return new Problem("not_found", `the export ${id} is not completed yet (${status}): try again later`, {
    headers: { "Retry-After": String(DOWNLOAD_RETRY_SECONDS) },
  });
}

/** The range of the export and the one inside its query both hold. */
function toQuestion({ time_range, query, fields }: z.infer<typeof exportRequestSchema>): ExportQuestion {
  const fromMs = Math.max(time_range.from, query?.time_range?.from ?? time_range.from);
  const toMs = Math.min(time_range.to, query?.time_range?.to ?? time_range.to);
  return { condition: toCondition(query?.bool), fromMs, toMs: Math.max(fromMs, toMs), fields: fields ?? null };
}

function exportView(job: ExportJob): z.infer<typeof exportSchema> {
  return {
    id: job.id,
    status: job.status,
    format: job.format,
    row_count: job.rowCount,
    size_bytes: job.sizeBytes,
    created_at: formatTime(job.createdAt),
    completed_at: job.completedAt === null ? null : formatTime(job.completedAt),
    expires_at: formatTime(job.expiresAt),
    download_url: `/v1/events/exports/${job.id}/download`,
    error: job.error,
  };
}
