import { z } from "zod";
import { eventSchema } from "../model/event-schema.ts";
import { ALERT_EVENTS_MAX } from "../model/finding.ts";
import { PER_PAGE_DEFAULT } from "../model/page.ts";
import type { Store } from "../store/ports/store.ts";
import { EVENT_EXAMPLE } from "./alert-examples.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { pagingParameters } from "./paging.ts";
import { Problem } from "./problems.ts";
import { listResponse, paginate } from "./response.ts";

/** The events of an alert, beyond the newest that its detail shows. */
export function alertEventEndpoints(store: Pick<Store, "alerts" | "events">): Endpoint[] {
  const { after, limit } = pagingParameters("event");
  return [
    endpoint({
      method: "GET",
      path: "/v1/alerts/:id/events",
      operationId: "listAlertEvents",
      tag: "Alerts",
      summary: "List the events of an alert",
      description:
        `By event time, with a cursor. An alert keeps references to its newest ${ALERT_EVENTS_MAX.toLocaleString("en")} events, and of ` +
        "events that arrive in a burst, to the newest 50 of each batch: `pagination.total` has the number of events that can be " +
        "listed, `pagination.events_total` the number of all events of the alert. Events that retention has removed are left " +
        "out, so that a page may have fewer than `limit`.",
      scopes: ["alerts:read"],
      params: z.object({ id: z.string() }),
      query: z.strictObject({
        after,
        limit,
        order: z.enum(["asc", "desc"]).default("desc").describe("desc: newest first"),
      }),
      responses: {
        200: { description: "events", data: z.array(eventSchema), paginated: true, example: [EVENT_EXAMPLE] },
      },
      problems: ["not_found"],
      handle: async ({ params: { id }, query }) => {
        const size = query.limit ?? PER_PAGE_DEFAULT;
        const descending = query.order === "desc";
        const page = await store.alerts.events(id, { after: query.after, limit: size, descending });
        if (!page) throw new Problem("not_found", `alert ${id} does not exist`);
        const texts = await Promise.all(page.events.map((event) => store.events.get(event.id)));
        return listResponse(
          texts.filter((text) => text !== undefined),
          {
            ...paginate(page.total, 1, size),
            next_cursor: page.nextCursor,
            events_total: page.eventCount,
          },
        );
      },
    }),
  ];
}
