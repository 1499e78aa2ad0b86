import { z } from "zod";
import type { Alerts } from "../alerts/alerts.ts";
import {
  ACTIONS_TAKEN_MAX,
  alertDetailSchema,
  alertDetailText,
  alertSchema,
  alertView,
  BULK_ALERTS_MAX,
  COMMENT_BYTES_MAX,
  COMMENTS_MAX,
  commentSchema,
  commentView,
  type Alert,
  type AlertSummary,
  type TimelineEntry,
} from "../model/alert.ts";
import { RESOLUTIONS, STATUSES } from "../model/alert-state.ts";
import { SEVERITIES } from "../model/event.ts";
import { severitySchema } from "../model/event-schema.ts";
import { boundParameter } from "../model/query.ts";
import { exceptionInputSchema } from "../model/rule-schema.ts";
import { exceptionFaults } from "../model/rule-faults.ts";
import type { Store } from "../store/store.ts";
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
import { alertStatsEndpoint } from "./alert-stats.ts";
import { commaListParameter } from "./comma-list.ts";
import { data, dataText, endpoint, type Answer, type Endpoint } from "./endpoint.ts";
import { listPage, pagingParameters, positionOf, refuseMixedPaging, searchParameter } from "./paging.ts";
import { invalid, Problem } from "./problems.ts";
import { sourceSchema } from "./sources.ts";

const RULE_NAME_CHARACTERS_MAX = 200;
const ADDRESS_CHARACTERS_MAX = 254;
const ACTION_CHARACTERS_MAX = 1000;
const ID_CHARACTERS_MAX = 100;

export interface AlertEndpointOptions {
  readonly alerts: Alerts;
  readonly store: Pick<Store, "alerts" | "events" | "searchFault">;
  readonly sources: readonly string[];
  readonly now: () => number;
}

const idParams = z.object({ id: z.string() });
const statusSchema = z.enum(STATUSES);
const resolutionSchema = z.enum(RESOLUTIONS);
const commentText = z
  .string()
  .min(1)
  .refine((text) => text === "" || text.trim() !== "", "must not be blank")
  .refine((text) => Buffer.byteLength(text) <= COMMENT_BYTES_MAX, `must be at most ${COMMENT_BYTES_MAX} bytes of UTF-8`)
  .describe(`Markdown, at most ${COMMENT_BYTES_MAX} bytes of UTF-8; kept as it is sent`);
const assigneeSchema = z
  .email("must look like an e-mail address")
  .max(ADDRESS_CHARACTERS_MAX)
  .describe("e-mail address of whoever looks into it");

const acknowledgementSchema = z
  .strictObject({ comment: commentText.optional(), assignee: assigneeSchema.optional() })
  .meta({ id: "Acknowledgement" });
const reopeningSchema = z.strictObject({ comment: commentText.optional() }).meta({ id: "Reopening" });
const alertExceptionSchema = exceptionInputSchema
  .extend({
    reason: exceptionInputSchema.shape.reason
      .optional()
      .describe("default: `false positive: ` and the id of the alert"),
  })
  .meta({ id: "ExceptionOfAlert", description: "events that are no match of the alert's rule from now on" });
const resolvingSchema = z
  .strictObject({
    resolution: resolutionSchema,
    comment: commentText.optional(),
    actions_taken: z.array(z.string().trim().min(1).max(ACTION_CHARACTERS_MAX)).max(ACTIONS_TAKEN_MAX).optional(),
    exception: alertExceptionSchema.optional().describe("with false_positive; needs the scope rules:write as well"),
  })
  .refine(({ resolution, exception }) => exception === undefined || resolution === "false_positive", {
    path: ["exception"],
    message: "belongs to the resolution false_positive",
  })
  .meta({ id: "Resolving" });
const bulkSchema = z
  .strictObject({
    alert_ids: z
      .array(z.string().min(1).max(ID_CHARACTERS_MAX))
      .min(1)
      .max(BULK_ALERTS_MAX)
      .superRefine(refuseRepeated)
      .meta({ uniqueItems: true }),
    action: z.enum(["acknowledge", "resolve", "reopen"]),
    resolution: resolutionSchema.optional().describe("required when action is resolve"),
    comment: commentText.optional().describe("added to each"),
  })
  .superRefine(({ action, resolution }, context) => {
    const fault = (message: string) => context.addIssue({ code: "custom", path: ["resolution"], message });
    if (action === "resolve" && resolution === undefined) fault("is required when action is resolve");
    if (action !== "resolve" && resolution !== undefined) fault("belongs to the action resolve");
  })
  .meta({ id: "BulkMove" });

function refuseRepeated(ids: readonly string[], context: z.RefinementCtx): void {
  const known = new Set<string>();
  for (const [i, id] of ids.entries()) {
    if (known.has(id)) context.addIssue({ code: "custom", path: [i], message: "is given more than once" });
    known.add(id);
  }
}

type DetailStore = Pick<Store, "alerts" | "events">;

async function wholeAlert(store: DetailStore, alert: Alert, timeline: readonly TimelineEntry[]): Promise<Answer> {
  const related = await Promise.all(alert.relatedEvents.map(({ id }) => store.events.get(id)));
  // Events that retention has removed are missing.
  const texts = related.filter((text) => text !== undefined);
  return dataText(alertDetailText(alert, timeline, texts));
}

/** The answer of whatever has changed the alert. */
export async function movedAlert(store: DetailStore, alert: AlertSummary): Promise<Answer> {
  const { alert: whole, timeline } = (await store.alerts.withTimeline(alert.id))!;
  return wholeAlert(store, { ...alert, relatedEvents: whole.relatedEvents }, timeline);
}

export function alertEndpoints({ alerts, store, sources, now }: AlertEndpointOptions): Endpoint[] {
  const moved = ({ alert }: { alert: AlertSummary }) => movedAlert(store, alert);
  const detailAnswer = (example: object) => ({ 200: { about: "the alert", data: alertDetailSchema, example } });
  return [
    endpoint({
      method: "GET",
      path: "/v1/alerts",
      operationId: "listAlerts",
      tag: "Alerts",
      summary: "List alerts, newest first",
      about:
        "By pages (`page`, `per_page`), or by cursor: `limit` alone begins at the top, `after` goes on below an alert. " +
        "Alerts that are made meanwhile neither repeat nor hide a row of a cursor walk. Under a `sort` by what changes, a cursor " +
        "goes on below the place that its alert has now.",
      scopes: ["alerts:read"],
      query: refuseMixedPaging(
        z.strictObject({
          ...pagingParameters("alert"),
          ...alertFilters(sources),
          from: boundParameter.optional().describe("of created_at, inclusive"),
          to: boundParameter.optional().describe("of created_at, exclusive"),
          search: searchParameter(
            (words) => store.searchFault(words),
            "words that must all occur, each from its beginning, in title, description, rule name, group or assignee",
          ),
          sort: z.enum(["created_at", "last_event_at", "severity", "event_count"]).default("created_at"),
          order: z.enum(["asc", "desc"]).default("desc"),
        }),
      ),
      cursorFault: async (id) => ((await store.alerts.get(id)) ? undefined : "is not the id of an alert"),
      answers: {
        200: { about: "a page of alerts", data: z.array(alertSchema), paginated: true, example: [ALERT_EXAMPLE] },
      },
      handle: async ({ query }) => {
        const { status, severity, source, assignee, search, from, to } = query;
        const position = positionOf(query);
        const filter = {
          status,
          severity,
          ruleName: query.rule_name,
          source,
          assignee,
          search,
          fromMs: from,
          toMs: to,
        };
        const found = await store.alerts.list(filter, position, query.sort, query.order === "desc");
        const items = found.items.map((alert) => JSON.stringify(alertView(alert)));
        return listPage(position, { ...found, items });
      },
    }),
    alertStatsEndpoint({ store, now }),
    endpoint({
      method: "GET",
      path: "/v1/alerts/:id",
      operationId: "getAlert",
      tag: "Alerts",
      summary: "One alert with its events and its timeline",
      scopes: ["alerts:read"],
      params: idParams,
      answers: detailAnswer(ALERT_DETAIL_EXAMPLE),
      problems: ["not_found"],
      handle: async ({ params }) => {
        const found = await store.alerts.withTimeline(params.id);
        if (!found) throw new Problem("not_found", `there is no alert ${params.id}`);
        return wholeAlert(store, found.alert, found.timeline);
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/alerts/:id/acknowledge",
      operationId: "acknowledgeAlert",
      tag: "Alerts",
      summary: "Take an alert, or give it to somebody",
      about: "From `open` or `acknowledged`; an alert that is acknowledged already is reassigned.",
      scopes: ["alerts:write"],
      params: idParams,
      body: acknowledgementSchema,
      bodyOptional: true,
      example: ACKNOWLEDGEMENT_EXAMPLE,
      answers: detailAnswer(ACKNOWLEDGED_EXAMPLE),
      problems: ["not_found", "conflict"],
      handle: async ({ params, body, key }) =>
        moved(await alerts.move(params.id, { action: "acknowledge", ...body }, key.name)),
    }),
    endpoint({
      method: "POST",
      path: "/v1/alerts/:id/resolve",
      operationId: "resolveAlert",
      tag: "Alerts",
      summary: "Close an alert",
      about:
        "From `open` or `acknowledged`. With `false_positive`, an `exception` keeps events like these from matching the " +
        "rule again; that needs the scope `rules:write` as well.",
      scopes: ["alerts:write"],
      params: idParams,
      body: resolvingSchema,
      example: RESOLVING_EXAMPLE,
      answers: detailAnswer(RESOLVED_EXAMPLE),
      problems: ["not_found", "conflict"],
      handle: async ({ params, body, key }) => {
        const { resolution, comment, actions_taken: actionsTaken, exception } = body;
        const move = { action: "resolve", resolution, comment, actionsTaken } as const;
        if (exception === undefined) return moved(await alerts.move(params.id, move, key.name));
        if (!key.scopes.includes("rules:write")) {
          throw new Problem("forbidden", "the key lacks the scope rules:write, which an exception needs");
        }
        const faults = exceptionFaults(exception, { sources, now: now(), above: ["exception"] });
        if (faults.length > 0) throw invalid(faults);
        return moved(await alerts.resolveWithException(params.id, move, exception, key.name));
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/alerts/:id/reopen",
      operationId: "reopenAlert",
      tag: "Alerts",
      summary: "Open an alert again",
      about:
        "From `acknowledged` or `resolved`. It stays with its assignee; everything else of the last round is cleared.",
      scopes: ["alerts:write"],
      params: idParams,
      body: reopeningSchema,
      bodyOptional: true,
      example: REOPENING_EXAMPLE,
      answers: detailAnswer(REOPENED_EXAMPLE),
      problems: ["not_found", "conflict"],
      handle: async ({ params, body, key }) =>
        moved(await alerts.move(params.id, { action: "reopen", ...body }, key.name)),
    }),
    endpoint({
      method: "POST",
      path: "/v1/alerts/:id/comments",
      operationId: "commentOnAlert",
      tag: "Alerts",
      summary: "Add a comment to an alert's timeline",
      about:
        "Markdown. It is kept and given back as it was sent: whoever shows it must not take it for HTML. An alert takes " +
        `${COMMENTS_MAX.toLocaleString("en")} comments at most: one more is a 409.`,
      scopes: ["alerts:write"],
      params: idParams,
      body: z.strictObject({ body: commentText }).meta({ id: "NewComment" }),
      example: { body: COMMENT_EXAMPLE.body },
      answers: { 201: { about: "the comment", data: commentSchema, example: COMMENT_EXAMPLE } },
      problems: ["not_found", "conflict"],
      handle: async ({ params, body, key }) => {
        const { comment } = await alerts.move(params.id, { action: "comment", comment: body.body }, key.name);
        return data(commentView(comment!), 201);
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/alerts/bulk",
      operationId: "moveAlerts",
      tag: "Alerts",
      summary: `Move up to ${BULK_ALERTS_MAX} alerts at once`,
      about: "Each alert stands for itself: `failed` says what could not be done and why, the others are done.",
      scopes: ["alerts:write"],
      body: bulkSchema,
      example: { alert_ids: [ALERT_EXAMPLE.id], action: "resolve", resolution: "duplicate", comment: "One scan" },
      answers: {
        200: {
          about: "what was done and what was not",
          data: bulkAnswerSchema,
          example: {
            succeeded: [ALERT_EXAMPLE.id],
            failed: [{ id: "alt_0", error: { code: "not_found", message: "there is no alert alt_0" } }],
          },
        },
      },
      handle: async ({ body: { alert_ids, action, resolution, comment }, key }) => {
        const move = action === "resolve" ? { action, resolution: resolution!, comment } : { action, comment };
        const { succeeded, failed } = await alerts.moveMany(alert_ids, move, key.name);
        return data({
          succeeded,
          failed: failed.map(({ id, refusal }) => ({ id, error: { code: refusal.kind, message: refusal.message } })),
        });
      },
    }),
  ];
}

/** Filters that a list and a stream have in common. */
export function alertFilters(sources: readonly string[]) {
  return {
    status: commaListParameter(statusSchema, STATUSES.join(", ")),
    severity: commaListParameter(severitySchema, SEVERITIES.join(", ")),
    rule_name: commaListParameter(z.string().max(RULE_NAME_CHARACTERS_MAX), "name of the rule that matched"),
    source: commaListParameter(sourceSchema(sources), sources.join(", ")),
    assignee: commaListParameter(
      z.string().max(ADDRESS_CHARACTERS_MAX).toLowerCase(),
      "e-mail address, upper or lower case",
    ),
  };
}

const bulkAnswerSchema = z
  .object({
    succeeded: z.array(z.string()),
    failed: z.array(
      z.object({
        id: z.string(),
        error: z.object({ code: z.enum(["not_found", "conflict"]), message: z.string() }),
      }),
    ),
  })
  .meta({ id: "BulkAnswer" });
