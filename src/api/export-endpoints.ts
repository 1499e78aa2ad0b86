import { z } from "zod";
import {
  EXPORTS_KEPT_PER_KEY_MAX,
  EXPORTS_UNFINISHED_PER_KEY_MAX,
  EXPORTS_QUEUED_MAX,
  type Exports,
} from "../exports/export-jobs.ts";
import type { Store } from "../store/ports/store.ts";
import { markIncomplete } from "./incomplete-response.ts";
import { BESIDE_OTHERS } from "../lib/fault.ts";
import { exportRequestSchema, exportSchema, type ExportQuery } from "../model/export.ts";
import { toCondition } from "../model/query.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { sourceFaults } from "./sources.ts";
import { createdResponse, createExport, exportExample, storedExportEndpoints } from "./stored-exports.ts";

export function exportEndpoints(
  runner: Exports,
  store: Pick<Store, "missing">,
  sources: readonly string[],
): Endpoint[] {
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
      responses: { 201: { description: "the export", data: exportSchema, example: exportExample("events") } },
      headers: { 201: ["Location"] },
      handle: async ({ body, key }) => {
        const question = exportQuery(body);
        const job = await createExport(runner, { format: body.format, question, owner: key.id });
        return markIncomplete(createdResponse(job), store, "events", question);
      },
    }),
    ...storedExportEndpoints({
      runner,
      subject: "events",
      scope: "events:read",
      noun: "Export",
      annotate: (response, { question }) =>
        question.subject === "alerts" ? response : markIncomplete(response, store, "events", question),
    }),
  ];
}

/** The time range of the export and that of its query both apply. */
function exportQuery({ time_range, query, fields }: z.infer<typeof exportRequestSchema>): ExportQuery {
  const fromMs = Math.max(time_range.from, query?.time_range?.from ?? time_range.from);
  const toMs = Math.min(time_range.to, query?.time_range?.to ?? time_range.to);
  return { condition: toCondition(query?.bool), fromMs, toMs: Math.max(fromMs, toMs), fields: fields ?? null };
}
