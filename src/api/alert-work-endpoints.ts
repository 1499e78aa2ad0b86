import { z } from "zod";
import type { Alerts } from "../alerts/alerts.ts";
import { alertDetailSchema } from "../model/alert.ts";
import { ALERT_TAGS_MAX, tagsSchema } from "../model/alert-tags.ts";
import type { AlertDetails } from "./alert-detail.ts";
import { ALERT_DETAIL_EXAMPLE } from "./alert-examples.ts";
import { assigneeSchema, commentText } from "./alert-body-fields.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";

const TAGS_EXAMPLE = ["guest-network"];

const idParams = z.object({ id: z.string() });

interface TagLists {
  readonly add?: readonly string[] | undefined;
  readonly remove?: readonly string[] | undefined;
}

function refuseContradictions({ add = [], remove = [] }: TagLists, context: z.RefinementCtx): void {
  for (const [i, tag] of remove.entries()) {
    if (add.includes(tag)) context.addIssue({ code: "custom", path: ["remove", i], message: "is also in add" });
  }
}

/** Calls that organise the work on an alert: its assignee and its tags. Its status stays. */
export function alertWorkEndpoints(alerts: Alerts, details: AlertDetails): Endpoint[] {
  const responsesLike = (example: object) => ({ 200: { description: "the alert", data: alertDetailSchema, example } });
  return [
    endpoint({
      method: "POST",
      path: "/v1/alerts/:id/assign",
      operationId: "assignAlert",
      tag: "Alerts",
      summary: "Assign an alert without acknowledging it",
      description: "Allowed in any status, which stays. `assignee: null` removes the assignee.",
      scopes: ["alerts:write"],
      params: idParams,
      body: z
        .strictObject({ assignee: assigneeSchema.nullable(), comment: commentText.optional() })
        .meta({ id: "Assignment" }),
      example: { assignee: ALERT_DETAIL_EXAMPLE.assignee, comment: "Yours, please" },
      responses: responsesLike(ALERT_DETAIL_EXAMPLE),
      problems: ["not_found", "conflict"],
      handle: async ({ params, body, key }) => {
        const changed = await alerts.transition(params.id, { action: "assign", ...body }, key.name);
        return details.ofTransition(changed, key);
      },
    }),
    endpoint({
      method: "PUT",
      path: "/v1/alerts/:id/tags",
      operationId: "setAlertTags",
      tag: "Alerts",
      summary: "Replace the tags of an alert",
      scopes: ["alerts:write"],
      params: idParams,
      body: z.strictObject({ tags: tagsSchema }).meta({ id: "AlertTags" }),
      example: { tags: TAGS_EXAMPLE },
      responses: responsesLike({ ...ALERT_DETAIL_EXAMPLE, tags: TAGS_EXAMPLE }),
      problems: ["not_found"],
      handle: async ({ params, body, key }) => {
        const transition = { action: "tag", set: body.tags, add: [], remove: [] } as const;
        const changed = await alerts.transition(params.id, transition, key.name);
        return details.ofTransition(changed, key);
      },
    }),
    endpoint({
      method: "PATCH",
      path: "/v1/alerts/:id/tags",
      operationId: "changeAlertTags",
      tag: "Alerts",
      summary: "Add and remove tags of an alert",
      description:
        "Tags that the alert already has, or does not have, are no fault, but a tag cannot be in both lists. An alert with more than " +
        `${ALERT_TAGS_MAX} tags after the change is refused with 409.`,
      scopes: ["alerts:write"],
      params: idParams,
      body: z
        .strictObject({ add: tagsSchema.optional(), remove: tagsSchema.optional() })
        .refine(({ add, remove }) => add !== undefined || remove !== undefined, "needs add or remove")
        .superRefine(refuseContradictions)
        .meta({ id: "AlertTagChange" }),
      example: { add: TAGS_EXAMPLE, remove: ["unclear"] },
      responses: responsesLike({ ...ALERT_DETAIL_EXAMPLE, tags: TAGS_EXAMPLE }),
      problems: ["not_found", "conflict"],
      handle: async ({ params, body: { add = [], remove = [] }, key }) => {
        const changed = await alerts.transition(params.id, { action: "tag", add, remove }, key.name);
        return details.ofTransition(changed, key);
      },
    }),
  ];
}
