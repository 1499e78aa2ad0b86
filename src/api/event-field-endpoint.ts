import { z } from "zod";
import { typeSchema } from "../model/event-schema.ts";
import { boundParameter } from "../model/time-bound.ts";
import type { Store } from "../store/ports/store.ts";
import { FIELD_TYPES, type EventField } from "../store/ports/event-fields.ts";
import { PER_PAGE_DEFAULT } from "../model/page.ts";
import { abortOnDisconnect } from "./client-disconnect.ts";
import { commaListParameter } from "./comma-list.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { markIncomplete } from "./incomplete-response.ts";
import { refuseReversedRange } from "./paging.ts";
import { integerParameter, pageParameter } from "./query-parameters.ts";
import { paginate, type ApiResponse } from "./response.ts";
import { sourceSchema } from "./sources.ts";

const FIELDS_PER_PAGE_MAX = 1000;
const SEARCH_CHARACTERS_MAX = 512;

const fieldsSchema = z
  .object({
    fields: z.array(
      z
        .object({
          name: z.string().describe("path, as filters use it"),
          types: z.array(z.enum(FIELD_TYPES)).describe("types of its values; elements of an array count as values"),
          events: z.int().describe("events that have the field; an estimate if `sampled`"),
          examples: z.array(z.string()).describe("up to 5 frequent values as text, cut at 100 characters"),
        })
        .meta({ id: "EventField" }),
    ),
    events: z.int().describe("events of the range and the filters"),
    events_examined: z.int(),
    sampled: z
      .boolean()
      .describe(
        "true if not all events were examined: the newest ones of each type were, so that a rare field may be missing",
      ),
  })
  .meta({ id: "EventFields" });

export function eventFieldEndpoint(store: Pick<Store, "events" | "missing">, sources: readonly string[]): Endpoint {
  return endpoint({
    method: "GET",
    path: "/v1/events/fields",
    operationId: "listEventFields",
    tag: "Events",
    summary: "List the fields that events have",
    description:
      "Most frequent first. At most 2,000 events are read, whatever the range: all if there are no more, otherwise the newest ones of " +
      "each type, with counts extrapolated by type (`sampled`). Of more than 5 million events, the last arrivals stand for all. Counts as an expensive search: two run per key.",
    scopes: ["events:read"],
    query: refuseReversedRange(
      z.strictObject({
        search: z
          .string()
          .trim()
          .min(1)
          .max(SEARCH_CHARACTERS_MAX)
          .optional()
          .describe("text that the name contains, in upper or lower case"),
        from: boundParameter.optional().describe("inclusive; also relative, such as `now-24h`"),
        to: boundParameter.optional().describe("exclusive; also relative, such as `now`"),
        source: commaListParameter(sourceSchema(sources), sources.join(", ")),
        type: commaListParameter(typeSchema, "type of the event"),
        page: pageParameter,
        per_page: integerParameter(1, FIELDS_PER_PAGE_MAX, `fields per page, default ${PER_PAGE_DEFAULT}`),
      }),
    ),
    responses: {
      200: {
        description: "one page of fields",
        data: fieldsSchema,
        paginated: true,
        example: {
          fields: [{ name: "raw.src_ip", types: ["string"], events: 42, examples: ["192.0.2.17"] }],
          events: 60,
          events_examined: 60,
          sampled: false,
        },
      },
    },
    headers: { 200: ["X-Tocsin-Incomplete"] },
    handle: ({ query, key, request }) =>
      abortOnDisconnect(request.raw.socket, async (signal) => {
        const { search, from: fromMs, to: toMs, source, type, page = 1, per_page = PER_PAGE_DEFAULT } = query;
        const range = { fromMs, toMs };
        const { total, examined, fields } = await store.events.fields(
          { ...range, source, type },
          { client: key.id, signal },
        );
        const found = fields.filter(({ path }) => path.toLowerCase().includes((search ?? "").toLowerCase()));
        const text = JSON.stringify({
          fields: found.slice((page - 1) * per_page, page * per_page).map(fieldView),
          events: total,
          events_examined: examined,
          sampled: examined < total,
        });
        const pagination = paginate(found.length, page, per_page);
        const response: ApiResponse = { kind: "data", status: 200, text, pagination };
        return markIncomplete(response, store, "events", range);
      }),
  });
}

function fieldView({ path, types, events, examples }: EventField) {
  return { name: path, types, events, examples };
}
