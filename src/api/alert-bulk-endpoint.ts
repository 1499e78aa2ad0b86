import { z } from "zod";
import type { Alerts, Transition } from "../alerts/alerts.ts";
import { BULK_FAILURES_MAX, transitionInBatches, type BulkResult } from "../alerts/bulk-transitions.ts";
import type { UndoLog } from "../alerts/undo-log.ts";
import { BESIDE_OTHERS } from "../lib/fault.ts";
import { unreachable } from "../lib/unreachable.ts";
import { BULK_ALERTS_MAX, BULK_QUERY_ALERTS_MAX } from "../model/alert.ts";
import { RESOLUTIONS } from "../model/alert-state.ts";
import { tagsSchema } from "../model/alert-tags.ts";
import type { ApiKey } from "../model/key.ts";
import type { Store } from "../store/ports/store.ts";
import { ALERT_EXAMPLE } from "./alert-examples.ts";
import { assigneeSchema, commentText } from "./alert-body-fields.ts";
import { alertFilterOf } from "./alert-filters.ts";
import type { AlertQuerySchema } from "./alert-query-schema.ts";
import { abortOnDisconnect } from "./client-disconnect.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { Problem } from "./problems.ts";
import { data } from "./response.ts";

// One change of many alerts.

const ID_CHARACTERS_MAX = 100;
/** Calls with a query that run at a time; each takes seconds. */
const QUERIES_RUNNING_MAX = 4;
const RUNNING_RETRY_SECONDS = 5;
/** Changed alerts that the answer lists. */
const SUCCEEDED_LISTED_MAX = 500;

const ACTIONS = ["acknowledge", "resolve", "reopen", "assign", "comment", "tag", "untag"] as const;
type BulkAction = (typeof ACTIONS)[number];

/** Fields that only some actions take, and the actions that require them. */
const FIELDS_OF_ACTIONS = {
  resolution: { takenBy: ["resolve"], requiredBy: ["resolve"] },
  assignee: { takenBy: ["acknowledge", "assign"], requiredBy: ["assign"] },
  tags: { takenBy: ["tag", "untag"], requiredBy: ["tag", "untag"] },
  comment: { takenBy: ACTIONS, requiredBy: ["comment"] },
} as const satisfies Record<
  string,
  { readonly takenBy: readonly BulkAction[]; readonly requiredBy: readonly BulkAction[] }
>;

function bulkSchema(querySchema: AlertQuerySchema) {
  return z
    .strictObject({
      alert_ids: z
        .array(z.string().min(1).max(ID_CHARACTERS_MAX))
        .min(1)
        .max(BULK_ALERTS_MAX)
        .superRefine(refuseDuplicates)
        .meta({ uniqueItems: true })
        .optional()
        .describe("the alerts; either these or `query`"),
      query: querySchema
        .optional()
        .describe(`all alerts that match, the newest ${BULK_QUERY_ALERTS_MAX.toLocaleString("en")} at a time`),
      action: z.enum(ACTIONS),
      resolution: z.enum(RESOLUTIONS).optional().describe("required for the action `resolve`"),
      assignee: assigneeSchema
        .nullable()
        .optional()
        .describe("required for the action `assign`, where null removes the assignee; allowed for `acknowledge`"),
      tags: tagsSchema.min(1).optional().describe("required for the actions `tag` and `untag`"),
      comment: commentText.optional().describe("added to each alert; required for the action `comment`"),
      dry_run: z.boolean().default(false).describe("only count what would happen"),
    })
    .superRefine(refuseMisfits, BESIDE_OTHERS)
    .meta({ id: "BulkMove" });
}

type BulkRequest = z.output<ReturnType<typeof bulkSchema>>;

function refuseDuplicates(ids: readonly string[], context: z.RefinementCtx): void {
  const known = new Set<string>();
  for (const [i, id] of ids.entries()) {
    if (known.has(id)) context.addIssue({ code: "custom", path: [i], message: "is given more than once" });
    known.add(id);
  }
}

/** Runs beside other faults, so that fields may have any type. */
function refuseMisfits(body: Readonly<Record<string, unknown>>, context: z.RefinementCtx): void {
  const fault = (field: string, message: string) => context.addIssue({ code: "custom", path: [field], message });
  if (body.alert_ids === undefined && body.query === undefined) fault("alert_ids", "is required, or else query");
  if (body.alert_ids !== undefined && body.query !== undefined) fault("query", "cannot be combined with alert_ids");
  const action = ACTIONS.find((name) => name === body.action);
  if (action === undefined) return;
  const includesAction = (actions: readonly BulkAction[]) => actions.includes(action);
  for (const [field, { takenBy, requiredBy }] of Object.entries(FIELDS_OF_ACTIONS)) {
    const isGiven = body[field] !== undefined;
    if (!isGiven && includesAction(requiredBy)) fault(field, `is required for the action ${action}`);
    if (isGiven && !includesAction(takenBy)) fault(field, `is only allowed for the action ${takenBy.join(" or ")}`);
  }
  if (action === "acknowledge" && body.assignee === null) fault("assignee", "must be an address");
}

function transitionOf({ action, resolution, assignee, tags = [], comment }: BulkRequest): Transition {
  switch (action) {
    case "acknowledge":
      return { action, comment, assignee: assignee ?? undefined };
    case "resolve":
      return { action, resolution: resolution!, comment };
    case "reopen":
      return { action, comment };
    case "assign":
      return { action, assignee: assignee!, comment };
    case "comment":
      return { action, comment: comment! };
    case "tag":
      return { action, add: tags, remove: [], comment };
    case "untag":
      return { action: "tag", add: [], remove: tags, comment };
    default:
      return unreachable(action);
  }
}

const bulkResultSchema = z
  .object({
    dry_run: z.boolean().describe("true: nothing was changed, and the rest of the answer says what would happen"),
    matched: z.int().describe("alerts that the request selects"),
    succeeded_count: z.int(),
    failed_count: z.int(),
    remaining: z.int().describe("selected alerts that were not attempted: send the request again"),
    succeeded: z.array(z.string()).describe(`the first ${SUCCEEDED_LISTED_MAX}`),
    failed: z
      .array(
        z.object({
          id: z.string(),
          error: z.object({ code: z.enum(["not_found", "conflict", "unavailable"]), message: z.string() }),
        }),
      )
      .describe(`the first ${BULK_FAILURES_MAX}`),
    undo_id: z
      .string()
      .nullable()
      .describe("takes the change back, see `/v1/alerts/bulk/undo`; null: nothing was changed that can be taken back"),
  })
  .meta({ id: "BulkAnswer" });

interface ResultViewOptions {
  readonly matched: number;
  readonly isDryRun?: boolean;
  readonly undoId?: string | null;
}

function resultView(
  result: BulkResult,
  { matched, isDryRun = false, undoId = null }: ResultViewOptions,
): z.infer<typeof bulkResultSchema> {
  return {
    dry_run: isDryRun,
    matched,
    succeeded_count: result.succeededCount,
    failed_count: result.failedCount,
    remaining: matched - result.succeededCount - result.failedCount,
    succeeded: [...result.succeeded],
    failed: result.failed.map(({ id, kind, message }) => ({ id, error: { code: kind, message } })),
    undo_id: undoId,
  };
}

export interface AlertBulkOptions {
  readonly alerts: Alerts;
  readonly store: Pick<Store, "alerts">;
  readonly querySchema: AlertQuerySchema;
  readonly undoLog: UndoLog;
}

const ANSWER_EXAMPLE = {
  dry_run: false,
  matched: 2,
  succeeded_count: 1,
  failed_count: 1,
  remaining: 0,
  succeeded: [ALERT_EXAMPLE.id],
  failed: [{ id: "alt_0", error: { code: "not_found", message: "alert alt_0 does not exist" } }],
  undo_id: "undo_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
};

export function alertBulkEndpoints(options: AlertBulkOptions): Endpoint[] {
  return [changeEndpoint(options), undoEndpoint(options)];
}

function changeEndpoint({ alerts, store, querySchema, undoLog }: AlertBulkOptions): Endpoint {
  let running = 0;
  const change = async (ids: readonly string[], matched: number, body: BulkRequest, key: ApiKey) => {
    const options = { actor: key.name, isDryRun: body.dry_run, listedMax: SUCCEEDED_LISTED_MAX };
    const result = await transitionInBatches(alerts, ids, transitionOf(body), options);
    const undoId = body.dry_run ? null : undoLog.remember(key.id, result.changed);
    return data(resultView(result, { matched, isDryRun: body.dry_run, undoId }));
  };
  return endpoint({
    method: "POST",
    path: "/v1/alerts/bulk",
    operationId: "moveAlerts",
    tag: "Alerts",
    summary: "Change many alerts",
    description:
      `Takes up to ${BULK_ALERTS_MAX} ids, or a \`query\` with the filters of the list, of which the newest ` +
      `${BULK_QUERY_ALERTS_MAX.toLocaleString("en")} matching alerts are changed; \`remaining\` has the number of the others. ` +
      "Alerts are processed independently and in batches: `failed` lists each refused alert with the reason, all others are changed. " +
      `At most ${QUERIES_RUNNING_MAX} requests with a query run at a time (503 past that).`,
    scopes: ["alerts:write"],
    body: bulkSchema(querySchema),
    example: { alert_ids: [ALERT_EXAMPLE.id], action: "resolve", resolution: "duplicate", comment: "One scan" },
    responses: {
      200: {
        description: "the changed and the refused alerts",
        data: bulkResultSchema,
        example: ANSWER_EXAMPLE,
      },
    },
    handle: async ({ body, key, request }) => {
      if (body.alert_ids) return change(body.alert_ids, body.alert_ids.length, body, key);
      if (running >= QUERIES_RUNNING_MAX) {
        const message = `${QUERIES_RUNNING_MAX} changes of many alerts are running already; try again later`;
        throw new Problem("unavailable", message, { headers: { "Retry-After": String(RUNNING_RETRY_SECONDS) } });
      }
      running++;
      try {
        const filter = alertFilterOf(body.query!);
        const found = await abortOnDisconnect(request.raw.socket, (signal) =>
          store.alerts.ids(filter, BULK_QUERY_ALERTS_MAX, { client: key.id, signal }),
        );
        return await change(found.ids, found.total, body, key);
      } finally {
        running--;
      }
    },
  });
}

function undoEndpoint({ alerts, undoLog }: AlertBulkOptions): Endpoint {
  return endpoint({
    method: "POST",
    path: "/v1/alerts/bulk/undo",
    operationId: "undoAlertMove",
    tag: "Alerts",
    summary: "Take a change of alerts back",
    description:
      "Takes the `undo_id` of `/v1/alerts/bulk`, or the `meta.undo_id` of a call that changed a single alert. Gives each alert of the " +
      "change its earlier status, assignee, resolution, actions taken and tags. An alert that somebody has " +
      "changed since stays as it is and is listed in `failed` with the code `conflict`. Comments and the timeline stay. " +
      "Only the key that made the change can take it back, once, for about ten minutes and until the service restarts; otherwise the " +
      "answer is 404. If the store fails, `undo_id` takes back the rest.",
    scopes: ["alerts:write"],
    body: z.strictObject({ undo_id: z.string().min(1).max(ID_CHARACTERS_MAX) }).meta({ id: "BulkUndo" }),
    example: { undo_id: ANSWER_EXAMPLE.undo_id },
    responses: {
      200: {
        description: "the restored alerts and those that were left alone",
        data: bulkResultSchema,
        example: {
          ...ANSWER_EXAMPLE,
          failed: [
            {
              id: "alt_0",
              error: { code: "conflict", message: "alert alt_0 has been changed since and stays as it is" },
            },
          ],
          undo_id: null,
        },
      },
    },
    problems: ["not_found"],
    handle: async ({ body: { undo_id: id }, key }) => {
      const changes = undoLog.take(id, key.id);
      if (!changes) throw new Problem("not_found", `${id} is no change that this key can still take back`);
      const ids = [...changes.keys()];
      const restore = (alertId: string): Transition => ({ action: "restore", ...changes.get(alertId)! });
      const options = { actor: key.name, isDryRun: false, listedMax: SUCCEEDED_LISTED_MAX };
      let result: BulkResult;
      try {
        result = await transitionInBatches(alerts, ids, restore, options);
      } catch (error) {
        undoLog.remember(key.id, [...changes.values()], id);
        throw error;
      }
      const left = ids.slice(ids.length - result.leftCount).map((alertId) => changes.get(alertId)!);
      const undoId = left.length === 0 ? null : undoLog.remember(key.id, left, id);
      return data(resultView(result, { matched: ids.length, undoId }));
    },
  });
}
