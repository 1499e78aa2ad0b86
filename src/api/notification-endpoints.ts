import { z } from "zod";
import { NOTIFICATION_STATUSES, notificationSchema, notificationView } from "../model/notification.ts";
import { CHANNELS, type Channel } from "../model/rule.ts";
import type { NotificationStore } from "../store/ports/notification-store.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { data } from "./response.ts";
import { listPage, pagingParameters, positionOf, refuseMixedPaging } from "./paging.ts";
import { Problem } from "./problems.ts";

// Notifications: sent, waiting and dead ones, and how to resend them.

const ID_CHARACTERS_MAX = 100;

const EXAMPLE = {
  id: "ntf_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
  alert_id: "alt_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
  channel: "slack",
  reason: "created",
  status: "dead",
  delivery_id: "dlv_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
  attempts: 1,
  repeat: false,
  created_at: "2026-11-15T08:30:00.120Z",
  next_attempt_at: null,
  settled_at: "2026-11-15T08:30:02.480Z",
  error: "answered 404: no_service",
};

const RESENT_EXAMPLE = {
  ...EXAMPLE,
  status: "waiting",
  delivery_id: null,
  attempts: 0,
  settled_at: null,
};

export interface NotificationEndpointOptions {
  readonly notifications: NotificationStore;
  /** The configured channels. */
  readonly channels: readonly Channel[];
  readonly now: () => number;
}

export function notificationEndpoints({ notifications, channels, now }: NotificationEndpointOptions): Endpoint[] {
  const requireChannel = (channel: Channel) => {
    if (channels.includes(channel)) return;
    throw new Problem("conflict", `the channel ${channel} is not configured; configure it before resending`);
  };
  return [
    endpoint({
      method: "GET",
      path: "/v1/notifications",
      operationId: "listNotifications",
      tag: "Notifications",
      summary: "List notifications, newest first",
      description:
        "Lists the notifications sent to channels, those waiting, and those given up (`status=dead`) with their error. Sent and dead " +
        "notifications are kept for a limited time.",
      scopes: ["alerts:read"],
      query: refuseMixedPaging(
        z.strictObject({
          ...pagingParameters("notification"),
          status: z.enum(NOTIFICATION_STATUSES).optional(),
          channel: z.enum(CHANNELS).optional(),
          alert_id: z.string().min(1).max(ID_CHARACTERS_MAX).optional(),
        }),
      ),
      cursorFault: async (id) => ((await notifications.get(id)) ? undefined : "is not the id of a notification"),
      responses: {
        200: {
          description: "one page of notifications",
          data: z.array(notificationSchema),
          paginated: true,
          example: [EXAMPLE],
        },
      },
      handle: async ({ query }) => {
        const position = positionOf(query);
        const { status, channel, alert_id: alertId } = query;
        const found = await notifications.list({ status, channel, alertId }, position);
        const items = found.items.map((item) => JSON.stringify(notificationView(item)));
        return listPage(position, { ...found, items });
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/notifications/:id/resend",
      operationId: "resendNotification",
      tag: "Notifications",
      summary: "Resend a dead notification",
      description: "Queues the notification again, with the same retries as a new one.",
      scopes: ["alerts:write"],
      params: z.object({ id: z.string() }),
      responses: {
        200: { description: "the queued notification", data: notificationSchema, example: RESENT_EXAMPLE },
      },
      problems: ["not_found", "conflict"],
      handle: async ({ params: { id } }) => {
        const known = await notifications.get(id);
        if (!known) throw new Problem("not_found", `notification ${id} does not exist`);
        requireChannel(known.channel);
        const count = await notifications.resend({ id }, now());
        const notification = (await notifications.get(id)) ?? known;
        if (count === 0)
          throw new Problem("conflict", `notification ${id} is ${notification.status}; only dead ones can be resent`);
        return data(notificationView(notification));
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/notifications/resend",
      operationId: "resendNotifications",
      tag: "Notifications",
      summary: "Resend all dead notifications of a channel",
      description:
        "Use this once a channel works again: its dead notifications are queued again and combined into as few messages as possible.",
      scopes: ["alerts:write"],
      body: z.strictObject({ channel: z.enum(CHANNELS) }).meta({ id: "Resending" }),
      example: { channel: "slack" },
      responses: {
        200: {
          description: "the number of queued notifications",
          data: z.object({ resent: z.int() }).meta({ id: "Resent" }),
          example: { resent: 12 },
        },
      },
      problems: ["conflict"],
      handle: async ({ body: { channel } }) => {
        const { total } = await notifications.list({ status: "dead", channel }, { mode: "page", page: 1, size: 1 });
        if (total === 0) return data({ resent: 0 });
        requireChannel(channel);
        return data({ resent: await notifications.resend({ channel }, now()) });
      },
    }),
  ];
}
