import { z } from "zod";
import { tooManyAlerts } from "../exports/alert-rows.ts";
import type { Exports } from "../exports/export-jobs.ts";
import { alertFieldFault, EXPORTED_ALERTS_MAX } from "../model/alert-export.ts";
import { EXPORT_FIELDS_MAX, EXPORT_FORMATS, exportSchema } from "../model/export.ts";
import type { Store } from "../store/ports/store.ts";
import { alertFilterOf } from "./alert-filters.ts";
import type { AlertQuerySchema } from "./alert-query-schema.ts";
import { abortOnDisconnect } from "./client-disconnect.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { createdResponse, createExport, exportExample, storedExportEndpoints } from "./stored-exports.ts";

function requestSchema(querySchema: AlertQuerySchema) {
  return z
    .strictObject({
      format: z.enum(EXPORT_FORMATS),
      query: querySchema.optional().describe("filters; default: all alerts"),
      fields: z
        .array(
          z.string().superRefine((path, context) => {
            const message = alertFieldFault(path);
            if (message) context.addIssue({ code: "custom", message });
          }),
        )
        .min(1)
        .max(EXPORT_FIELDS_MAX)
        .refine((fields) => new Set(fields).size === fields.length, "names a field twice")
        .optional()
        .describe("fields to export, in this order, such as `rule.name` or `group.value`; default: all"),
    })
    .meta({ id: "AlertExportRequest" });
}

/** Exports of alerts, which share queue, limits and files with those of events. */
export function alertExportEndpoints(
  runner: Exports,
  store: Pick<Store, "alerts">,
  querySchema: AlertQuerySchema,
): Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/v1/alerts/export",
      operationId: "exportAlerts",
      tag: "Exports",
      summary: "Export alerts to a file",
      description:
        "Responds immediately; the file is written in the background and kept for 24 hours. It has the matching alerts, newest " +
        `first, with their own fields but without events and timeline. At most ${EXPORTED_ALERTS_MAX.toLocaleString("en")} alerts: more are refused ` +
        "with 400. The limits of exports apply to those of events and alerts together.",
      scopes: ["alerts:read"],
      body: requestSchema(querySchema),
      example: {
        format: "csv",
        query: { status: ["open", "acknowledged"], severity: ["critical", "high"], from: "2026-11-08T00:00:00Z" },
        fields: ["created_at", "severity", "status", "title", "assignee", "group.value"],
      },
      responses: { 201: { description: "the export", data: exportSchema, example: exportExample("alerts") } },
      headers: { 201: ["Location"] },
      handle: async ({ body, key, request }) => {
        const filter = alertFilterOf(body.query ?? {});
        const { total } = await abortOnDisconnect(request.raw.socket, (signal) =>
          store.alerts.ids(filter, 1, { client: key.id, signal }),
        );
        if (total > EXPORTED_ALERTS_MAX) throw tooManyAlerts(total);
        const question = { subject: "alerts", filter, fields: body.fields ?? null } as const;
        return createdResponse(await createExport(runner, { format: body.format, question, owner: key.id }));
      },
    }),
    ...storedExportEndpoints({ runner, subject: "alerts", scope: "alerts:read", noun: "AlertExport" }),
  ];
}
