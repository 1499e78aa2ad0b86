import { z } from "zod";
import { EXPORTS_KEPT_PER_KEY_MAX, TooManyExports, type Exports } from "../exports/export-jobs.ts";
import { formatTime } from "../lib/time.ts";
import { exportSchema, subjectOf, type ExportJob, type ExportSubject } from "../model/export.ts";
import type { ApiKey, Scope } from "../model/key.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { listPage, pagingParameters, positionOf, refuseMixedPaging } from "./paging.ts";
import { invalid, Problem } from "./problems.ts";
import { data, type ApiResponse } from "./response.ts";

// The calls on an export that exists, which are the same for events and alerts.

const DOWNLOAD_RETRY_SECONDS = 2;

const EXPORT_ID = /^exp_[0-9a-f]{32}$/;
const idParams = z.object({ id: z.string() });

/** An export of this subject in the OpenAPI document. */
export function exportExample(subject: ExportSubject) {
  return {
    id: "exp_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
    status: "pending",
    format: "csv",
    row_count: null,
    size_bytes: null,
    created_at: "2026-11-15T08:30:00.000Z",
    completed_at: null,
    expires_at: "2026-11-16T08:30:00.000Z",
    download_url: `/v1/${subject}/exports/exp_019a84f2c0d17a3e8b5d4e6f7a8b9c0d/download`,
    error: null,
  };
}

export interface StoredExportOptions {
  readonly runner: Exports;
  readonly subject: ExportSubject;
  readonly scope: Scope;
  /** The ending of the operation ids: `Export` makes `getExport`. */
  readonly noun: string;
  /** Adds to the response of a status call. */
  readonly annotate?: (response: ApiResponse, job: ExportJob) => ApiResponse | Promise<ApiResponse>;
}

export function storedExportEndpoints(options: StoredExportOptions): Endpoint[] {
  const { runner, subject, scope, noun, annotate = (response: ApiResponse) => response } = options;
  const example = exportExample(subject);
  /** An export of another subject needs another scope, so that it does not exist here. */
  const find = async (id: string): Promise<ExportJob> => {
    const job = await runner.get(id);
    if (job && subjectOf(job) === subject) return job;
    throw new Problem("not_found", `export ${id} does not exist; exports expire after 24 hours`);
  };
  return [
    endpoint({
      method: "GET",
      path: `/v1/${subject}/exports`,
      operationId: `list${noun}s`,
      tag: "Exports",
      summary: `List the key's exports of ${subject}, newest first`,
      description: `Exports that the key has created and that have not expired, at most ${EXPORTS_KEPT_PER_KEY_MAX}. Use pages or a cursor.`,
      scopes: [scope],
      query: refuseMixedPaging(z.strictObject(pagingParameters("export"))),
      responses: {
        200: { description: "one page of exports", data: z.array(exportSchema), paginated: true, example: [example] },
      },
      handle: async ({ query, key }) => {
        const position = positionOf(query);
        const all = (await runner.list(key.id)).filter((job) => subjectOf(job) === subject);
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
      path: `/v1/${subject}/exports/:id`,
      operationId: `get${noun}`,
      tag: "Exports",
      summary: "Get the status of an export",
      scopes: [scope],
      params: idParams,
      responses: { 200: { description: "the export", data: exportSchema, example } },
      problems: ["not_found"],
      handle: async ({ params }) => {
        const job = await find(params.id);
        return annotate(data(exportView(job)), job);
      },
      headers: options.annotate ? { 200: ["X-Tocsin-Incomplete"] } : {},
    }),
    endpoint({
      method: "DELETE",
      path: `/v1/${subject}/exports/:id`,
      operationId: `cancel${noun}`,
      tag: "Exports",
      summary: "Cancel or delete an export",
      description:
        "Allowed for the key that created the export and for keys that also have `keys:manage`. An export without a recorded key " +
        "can be deleted by any key that can read it.",
      scopes: [scope],
      params: idParams,
      responses: {
        200: {
          description: "the export is deleted",
          data: z.object({ id: z.string(), deleted: z.literal(true) }),
          example: { id: example.id, deleted: true },
        },
      },
      problems: ["not_found"],
      handle: async ({ params, key }) => {
        const { id, owner } = await find(params.id);
        requireOwner(owner, key);
        await runner.cancel(id);
        return data({ id, deleted: true });
      },
    }),
    endpoint({
      method: "GET",
      path: `/v1/${subject}/exports/:id/download`,
      operationId: `download${noun}`,
      tag: "Exports",
      summary: "Download the file of a completed export",
      description: `Allowed for every key with \`${scope}\`, not only for the key that created the export.`,
      scopes: [scope],
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
        const { id } = await find(params.id);
        const download = await runner.openDownload(id);
        // Read again: opening the file may have marked the export as lost.
        if (!download) throw notReady(await find(id));
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

/** Queues an export; a key at its limit is refused with 429. */
export async function createExport(runner: Exports, request: Parameters<Exports["create"]>[0]): Promise<ExportJob> {
  try {
    return await runner.create(request);
  } catch (error) {
    if (!(error instanceof TooManyExports)) throw error;
    const headers = { "Retry-After": String(error.retryAfterSeconds) };
    throw new Problem("rate_limited", error.message, { headers });
  }
}

/** The response of a call that has created the export. */
export function createdResponse(job: ExportJob): ApiResponse {
  return data(exportView(job), 201, { Location: `/v1/${subjectOf(job)}/exports/${job.id}` });
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
    download_url: `/v1/${subjectOf(job)}/exports/${job.id}/download`,
    error: job.error,
  };
}
