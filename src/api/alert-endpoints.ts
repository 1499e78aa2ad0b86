import { z } from "zod";
import type { Alerts } from "../alerts/alerts.ts";
import {
  ACTIONS_TAKEN_MAX,
  alertDetailSchema,
  alertSchema,
  alertView,
  COMMENTS_MAX,
  commentSchema,
  commentView,
} from "../model/alert.ts";
import { RESOLUTIONS } from "../model/alert-state.ts";
import { boundParameter } from "../model/time-bound.ts";
import { exceptionInputSchema } from "../model/rule-schema.ts";
import { exceptionFaults } from "../model/rule-faults.ts";
import type { Store } from "../store/ports/store.ts";
import {
  ACKNOWLEDGED_EXAMPLE,
  ACKNOWLEDGEMENT_EXAMPLE,
  ALERT_DETAIL_EXAMPLE,
  ALERT_EXAMPLE,
  COMMENT_EXAMPLE,
  REOPENED_EXAMPLE,
  REOPENING_EXAMPLE,
  RESOLVED_EXAMPLE,
  RESOLVING_EXAMPLE,
} from "./alert-examples.ts";
import type { AlertDetails } from "./alert-detail.ts";
import { assigneeSchema, commentText } from "./alert-body-fields.ts";
import { alertFilterOf, alertFilters, eventIdParameter } from "./alert-filters.ts";
import { alertSearchEndpoint } from "./alert-search-endpoint.ts";
import { alertStatsEndpoint } from "./alert-stats.ts";
import { abortOnDisconnect } from "./client-disconnect.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { data } from "./response.ts";
import { listPage, pagingParameters, positionOf, refuseMixedPaging, searchParameter } from "./paging.ts";
import { invalid, Problem } from "./problems.ts";

const ACTION_CHARACTERS_MAX = 1000;

export interface AlertEndpointOptions {
  readonly alerts: Alerts;
  readonly store: Pick<Store, "alerts">;
  readonly details: AlertDetails;
  readonly sources: readonly string[];
  readonly now: () => number;
}

const idParams = z.object({ id: z.string() });
const resolutionSchema = z.enum(RESOLUTIONS);
const acknowledgementSchema = z
  .strictObject({ comment: commentText.optional(), assignee: assigneeSchema.optional() })
  .meta({ id: "Acknowledgement" });
const reopeningSchema = z.strictObject({ comment: commentText.optional() }).meta({ id: "Reopening" });
const alertExceptionSchema = exceptionInputSchema
  .extend({
    reason: exceptionInputSchema.shape.reason
      .optional()
      .describe("default: `false positive: ` followed by the alert id"),
  })
  .meta({ id: "ExceptionOfAlert", description: "events that the rule of the alert ignores from now on" });
const resolutionRequestSchema = z
  .strictObject({
    resolution: resolutionSchema,
    comment: commentText.optional(),
    actions_taken: z.array(z.string().trim().min(1).max(ACTION_CHARACTERS_MAX)).max(ACTIONS_TAKEN_MAX).optional(),
    exception: alertExceptionSchema
      .optional()
      .describe("only with `false_positive`; also requires the scope `rules:write`"),
  })
  .refine(({ resolution, exception }) => exception === undefined || resolution === "false_positive", {
    path: ["exception"],
    message: "is only allowed with the resolution false_positive",
  })
  .meta({ id: "Resolving" });
export function alertEndpoints({ alerts, store, details, sources, now }: AlertEndpointOptions): Endpoint[] {
  const detailResponse = (example: object) => ({ 200: { description: "the alert", data: alertDetailSchema, example } });
  return [
    endpoint({
      method: "GET",
      path: "/v1/alerts",
      operationId: "listAlerts",
      tag: "Alerts",
      summary: "List alerts, newest first",
      description:
        "Use pages (`page`, `per_page`) or a cursor: `limit` alone starts at the top, `after` continues after an alert. " +
        "New alerts neither repeat nor hide rows while a client follows the cursor. If the `sort` field of the cursor's alert has " +
        "changed, the list continues from the alert's current position.",
      scopes: ["alerts:read"],
      query: refuseMixedPaging(
        z.strictObject({
          ...pagingParameters("alert"),
          ...alertFilters(sources),
          event_id: eventIdParameter,
          from: boundParameter
            .optional()
            .describe("earliest `created_at`, inclusive; also relative, such as `now-7d`; see `time`"),
          to: boundParameter
            .optional()
            .describe("latest `created_at`, exclusive; also relative, such as `now`; see `time`"),
          search: searchParameter(
            "words that must all occur in title, description, rule name, group, assignee, tags or entities; each matches as a prefix",
          ),
          sort: z.enum(["created_at", "last_event_at", "severity", "event_count"]).default("created_at"),
          order: z.enum(["asc", "desc"]).default("desc"),
        }),
      ),
      cursorFault: async (id) => ((await store.alerts.get(id)) ? undefined : "is not the id of an alert"),
      responses: {
        200: {
          description: "one page of alerts",
          data: z.array(alertSchema),
          paginated: true,
          example: [ALERT_EXAMPLE],
        },
      },
      handle: async ({ query, key, request }) => {
        const position = positionOf(query);
        const filter = alertFilterOf(query);
        const found = await abortOnDisconnect(request.raw.socket, (signal) =>
          store.alerts.list(filter, position, query.sort, query.order === "desc", { client: key.id, signal }),
        );
        const items = found.items.map((alert) => JSON.stringify(alertView(alert)));
        return listPage(position, { ...found, items });
      },
    }),
    alertStatsEndpoint({ store, now }),
    alertSearchEndpoint({ store, sources }),
    endpoint({
      method: "GET",
      path: "/v1/alerts/:id",
      operationId: "getAlert",
      tag: "Alerts",
      summary: "Get an alert with its events and timeline",
      description:
        "`match` explains why the alert fired: the kind, window, threshold and steps of the rule as it was at its last match, and " +
        "the step and the matched fields of each related event. Where an event meets several steps, it has the first that no " +
        "earlier event has completed.",
      scopes: ["alerts:read"],
      params: idParams,
      responses: detailResponse(ALERT_DETAIL_EXAMPLE),
      problems: ["not_found"],
      handle: ({ params }) => details.of(params.id),
    }),
    endpoint({
      method: "POST",
      path: "/v1/alerts/:id/acknowledge",
      operationId: "acknowledgeAlert",
      tag: "Alerts",
      summary: "Acknowledge or reassign an alert",
      description: "Allowed from `open` and `acknowledged`. An alert that is already acknowledged is reassigned.",
      scopes: ["alerts:write"],
      params: idParams,
      body: acknowledgementSchema,
      bodyOptional: true,
      example: ACKNOWLEDGEMENT_EXAMPLE,
      responses: detailResponse(ACKNOWLEDGED_EXAMPLE),
      problems: ["not_found", "conflict"],
      handle: async ({ params, body, key }) =>
        details.ofTransition(await alerts.transition(params.id, { action: "acknowledge", ...body }, key.name), key),
    }),
    endpoint({
      method: "POST",
      path: "/v1/alerts/:id/resolve",
      operationId: "resolveAlert",
      tag: "Alerts",
      summary: "Resolve an alert",
      description:
        "Allowed from `open` and `acknowledged`. With `false_positive`, an `exception` prevents similar events from matching the " +
        "rule again; this also requires the scope `rules:write`.",
      scopes: ["alerts:write"],
      params: idParams,
      body: resolutionRequestSchema,
      example: RESOLVING_EXAMPLE,
      responses: detailResponse(RESOLVED_EXAMPLE),
      problems: ["not_found", "conflict"],
      handle: async ({ params, body, key }) => {
        const { resolution, comment, actions_taken: actionsTaken, exception } = body;
        const transition = { action: "resolve", resolution, comment, actionsTaken } as const;
        if (exception === undefined) {
          return details.ofTransition(await alerts.transition(params.id, transition, key.name), key);
        }
        if (!key.scopes.includes("rules:write")) {
          throw new Problem("forbidden", "the key lacks the scope rules:write, which an exception requires");
        }
        const faults = exceptionFaults(exception, { sources, now: now(), above: ["exception"] });
        if (faults.length > 0) throw invalid(faults);
        const resolved = await alerts.resolveWithException(params.id, transition, exception, key.name);
        return details.ofTransition(resolved, key);
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/alerts/:id/reopen",
      operationId: "reopenAlert",
      tag: "Alerts",
      summary: "Reopen an alert",
      description:
        "Allowed from `acknowledged` and `resolved`. The assignee is kept; acknowledgement and resolution are cleared.",
      scopes: ["alerts:write"],
      params: idParams,
      body: reopeningSchema,
      bodyOptional: true,
      example: REOPENING_EXAMPLE,
      responses: detailResponse(REOPENED_EXAMPLE),
      problems: ["not_found", "conflict"],
      handle: async ({ params, body, key }) =>
        details.ofTransition(await alerts.transition(params.id, { action: "reopen", ...body }, key.name), key),
    }),
    endpoint({
      method: "POST",
      path: "/v1/alerts/:id/comments",
      operationId: "commentOnAlert",
      tag: "Alerts",
      summary: "Comment on an alert",
      description:
        "The comment is Markdown, stored and returned unchanged: do not render it as HTML without sanitising it. An alert holds " +
        `at most ${COMMENTS_MAX.toLocaleString("en")} comments; one more is refused with 409.`,
      scopes: ["alerts:write"],
      params: idParams,
      body: z.strictObject({ body: commentText }).meta({ id: "NewComment" }),
      example: { body: COMMENT_EXAMPLE.body },
      responses: { 201: { description: "the comment", data: commentSchema, example: COMMENT_EXAMPLE } },
      problems: ["not_found", "conflict"],
      handle: async ({ params, body, key }) => {
        const { comment } = await alerts.transition(params.id, { action: "comment", comment: body.body }, key.name);
        return data(commentView(comment!), 201);
      },
    }),
  ];
}
