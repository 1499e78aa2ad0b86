import { z } from "zod";
import {
  EXPORTS_KEPT_PER_KEY_MAX,
  EXPORTS_UNFINISHED_PER_KEY_MAX,
  EXPORTS_QUEUED_MAX,
  TooManyExports,
  type ExportRunner,
} from "../exports/export-runner.ts";
import type { Store } from "../store/ports/store.ts";
import { markIncomplete } from "./incomplete-response.ts";
import { BESIDE_OTHERS } from "../lib/fault.ts";
import { formatTime } from "../lib/time.ts";
import { exportRequestSchema, exportSchema, type ExportJob, type ExportQuery } from "../model/export.ts";
import type { ApiKey } from "../model/key.ts";
import { toCondition } from "../model/query.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { data } from "./response.ts";
import { listPage, pagingParameters, positionOf, refuseMixedPaging } from "./paging.ts";
import { invalid, Problem } from "./problems.ts";
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

const EXPORT_ID = /^exp_[0-9a-f]{32}$/;
const idParams = z.object({ id: z.string() });

export function exportEndpoints(
  runner: ExportRunner,
  store: Pick<Store, "missing">,
  sources: readonly string[],
): Endpoint[] {
  const find = (id: string): ExportJob => {
    const job = runner.get(id);
    if (!job) throw new Problem("not_found", `export ${id} does not exist; exports expire after 24 hours`);
    return job;
  };
  const create: ExportRunner["create"] = async (request) => {
    try {
      return await runner.create(request);
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
      description:
        "Responds immediately; the file is written in the background and kept for 24 hours. The queue holds at most " +
        `${EXPORTS_QUEUED_MAX} exports; one more is refused with 503. A key may have ${EXPORTS_UNFINISHED_PER_KEY_MAX} unfinished exports and ` +
        `${EXPORTS_KEPT_PER_KEY_MAX} in total; one more is refused with 429. The queue alternates between keys.`,
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
      responses: { 201: { description: "the export", data: exportSchema, example: EXPORT_EXAMPLE } },
      headers: { 201: ["Location"] },
      handle: async ({ body, key }) => {
        const job = await create({ format: body.format, question: exportQuery(body), owner: key.id });
        const response = data(exportView(job), 201, { Location: `/v1/events/exports/${job.id}` });
        return markIncomplete(response, store, "events", job.question);
      },
    }),
    endpoint({
      method: "GET",
      path: "/v1/events/exports",
      operationId: "listExports",
      tag: "Exports",
      summary: "List the key's exports, newest first",
      description: `Exports that the key has created and that have not expired, at most ${EXPORTS_KEPT_PER_KEY_MAX}. Use pages or a cursor.`,
      scopes: ["events:read"],
      query: refuseMixedPaging(z.strictObject(pagingParameters("export"))),
      responses: {
        200: {
          description: "one page of exports",
          data: z.array(exportSchema),
          paginated: true,
          example: [EXPORT_EXAMPLE],
        },
      },
      handle: ({ query, key }) => {
        const position = positionOf(query);
        const all = runner.list(key.id);
        // Ids rise, so that a cursor stays valid after its export is deleted.
        const after = position.mode === "cursor" ? position.after : undefined;
        if (after !== undefined && !EXPORT_ID.test(after)) {
          throw invalid([{ field: "after", message: "is not the id of an export" }]);
        }
        const rest = after === undefined ? all : all.filter(({ id }) => id < after);
        const first = position.mode === "page" ? (position.page - 1) * position.size : 0;
        const shown = rest.slice(first, first + position.size);
        const nextCursor = rest.length > shown.length ? (shown.at(-1)?.id ?? null) : null;
        const items = shown.map((job) => JSON.stringify(exportView(job)));
        return listPage(position, { total: all.length, items, nextCursor });
      },
    }),
    endpoint({
      method: "GET",
      path: "/v1/events/exports/:id",
      operationId: "getExport",
      tag: "Exports",
      summary: "Get the status of an export",
      scopes: ["events:read"],
      params: idParams,
      responses: { 200: { description: "the export", data: exportSchema, example: EXPORT_EXAMPLE } },
      problems: ["not_found"],
      handle: ({ params }) => {
        const job = find(params.id);
        return markIncomplete(data(exportView(job)), store, "events", job.question);
      },
      headers: { 200: ["X-Tocsin-Incomplete"] },
    }),
    endpoint({
      method: "DELETE",
      path: "/v1/events/exports/:id",
      operationId: "cancelExport",
      tag: "Exports",
      summary: "Cancel or delete an export",
      description:
        "Allowed for the key that created the export and for keys that also have `keys:manage`. An export without a recorded key " +
        "can be deleted by any key that can read it.",
      scopes: ["events:read"],
      params: idParams,
      responses: {
        200: {
          description: "the export is deleted",
          data: z.object({ id: z.string(), deleted: z.literal(true) }),
          example: { id: EXPORT_EXAMPLE.id, deleted: true },
        },
      },
      problems: ["not_found"],
      handle: async ({ params, key }) => {
        const { id, owner } = find(params.id);
        requireOwner(owner, key);
        await runner.cancel(id);
        return data({ id, deleted: true });
      },
    }),
    endpoint({
      method: "GET",
      path: "/v1/events/exports/:id/download",
      operationId: "downloadExport",
      tag: "Exports",
      summary: "Download the file of a completed export",
      description: "Allowed for every key with `events:read`, not only for the key that created the export.",
      scopes: ["events:read"],
      params: idParams,
      responses: {
        200: {
          description: "the file",
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
        const download = await runner.openDownload(id);
        // Read again: opening the file may have marked the export as lost.
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
  throw new Problem(
    "forbidden",
    "the export belongs to another key; delete it with that key or with one that has the scope keys:manage",
  );
}

function notReady({ id, status, error }: ExportJob): Problem {
  if (status === "failed") {
    const reason = error === null ? "" : ` (${error})`;
    return new Problem("not_found", `export ${id} failed and has no file${reason}`);
  }
  return new Problem("not_found", `export ${id} is not completed yet (${status}); try again later`, {
    headers: { "Retry-After": String(DOWNLOAD_RETRY_SECONDS) },
  });
}

/** The time range of the export and that of its query both apply. */
function exportQuery({ time_range, query, fields }: z.infer<typeof exportRequestSchema>): ExportQuery {
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
