import { z } from "zod";
import { BATCH_ITEMS_MAX, type Intake, type SubmissionItem } from "../intake/intake.ts";
import { DATA_DEPTH_MAX, submissionSchema } from "../intake/submission.ts";
import { BESIDE_OTHERS, type Fault } from "../lib/fault.ts";
import { CLASSES, SEVERITIES } from "../model/event.ts";
import { classSchema, eventSchema, severitySchema, typeSchema } from "../model/event-schema.ts";
import type { ApiKey } from "../model/key.ts";
import { searchSchema, toSearchQuery } from "../model/query.ts";
import { boundParameter } from "../model/time-bound.ts";
import { HISTOGRAM_BUCKETS_MAX } from "../model/aggregation.ts";
import type { Store } from "../store/ports/store.ts";
import { batchItems, LEVELS_AROUND_DATA, verbatimSubmission } from "./batch.ts";
import { JSON_TYPE, NDJSON_TYPE, NDJSON_TYPES, readJson, type Body } from "./body.ts";
import { commaListParameter } from "./comma-list.ts";
import { endpoint } from "./endpoint.ts";
import { data, dataText, withWarnings } from "./response.ts";
import type { Endpoint } from "./endpoint.ts";
import { abortOnDisconnect } from "./client-disconnect.ts";
import { withSizeField, listPage, pagingParameters, positionOf, refuseMixedPaging, searchParameter } from "./paging.ts";
import { eventFieldEndpoint } from "./event-field-endpoint.ts";
import { FieldWarnings } from "./field-warnings.ts";
import { markIncomplete } from "./incomplete-response.ts";
import { invalid, Problem } from "./problems.ts";
import { AGGREGATIONS_RESULT_EXAMPLE, AGGREGATIONS_EXAMPLE, searchResponseSchema } from "./search-response.ts";
import { sourceFaults, sourceSchema } from "./sources.ts";

const IDEMPOTENCY_KEY_CHARACTERS_MAX = 255;
const IDEMPOTENCY_KEY = /^[\x21-\x7e]+$/;

const idempotencyHeader = z.object({
  "Idempotency-Key": z
    .string()
    .min(1)
    .max(IDEMPOTENCY_KEY_CHARACTERS_MAX)
    .meta({ pattern: IDEMPOTENCY_KEY.source })
    .optional()
    .describe(
      "a unique value chosen by the client, such as a UUID, in visible ASCII; scoped to the API key and valid for 24 hours",
    ),
});

const SUBMISSION_EXAMPLE = {
  type: "login_failure",
  source: "custom",
  severity: "medium",
  data: { user: "alice", src_ip: "192.0.2.17", attempts: 3 },
};
const EVENT_EXAMPLE = {
  id: "evt_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
  type: SUBMISSION_EXAMPLE.type,
  source: SUBMISSION_EXAMPLE.source,
  class: "security",
  severity: SUBMISSION_EXAMPLE.severity,
  timestamp: "2026-11-15T08:30:00.000Z",
  raw: SUBMISSION_EXAMPLE.data,
  enrichment: {},
};

export interface EventEndpointOptions {
  readonly store: Store;
  readonly intake: Intake;
  readonly sources: readonly string[];
  readonly now: () => number;
  readonly bodyLimits: { readonly submitBytes: number; readonly batchBytes: number };
}

export function eventEndpoints({ store, intake, sources, bodyLimits, now }: EventEndpointOptions): Endpoint[] {
  const fieldWarnings = new FieldWarnings(store.events, now);
  return [
    endpoint({
      method: "GET",
      path: "/v1/events",
      operationId: "listEvents",
      tag: "Events",
      summary: "List events, newest first",
      description:
        "Use pages (`page`, `per_page`) or a cursor: `limit` alone starts at the top, `after` continues after an event. " +
        "New events neither repeat nor hide rows while a client follows the cursor. " +
        "Of the lists with `search`, two run per key; one past 100 in flight per key, or queued for longer than 10 s, is refused " +
        "with 503 and `Retry-After`.",
      scopes: ["events:read"],
      query: listQuery(sources),
      cursorFault: async (id) =>
        (await store.events.get(id)) === undefined ? "is not the id of a stored event" : undefined,
      responses: {
        200: {
          description: "one page of events",
          data: z.array(eventSchema),
          paginated: true,
          example: [EVENT_EXAMPLE],
        },
      },
      headers: { 200: ["X-Tocsin-Incomplete"] },
      handle: ({ query, key, request }) => {
        const { page, per_page, after, limit, from, to, ...filter } = query;
        const position = positionOf({ page, per_page, after, limit });
        return abortOnDisconnect(request.raw.socket, async (signal) => {
          const caller = { client: key.id, signal };
          const page = store.events.list({ ...filter, fromMs: from, toMs: to }, position, caller);
          const response = listPage(position, await withSizeField(position, page));
          return markIncomplete(response, store, "events", { fromMs: from, toMs: to });
        });
      },
    }),
    eventFieldEndpoint(store, sources),
    endpoint({
      method: "GET",
      path: "/v1/events/:id",
      operationId: "getEvent",
      tag: "Events",
      summary: "Get an event",
      scopes: ["events:read"],
      params: z.object({ id: z.string() }),
      responses: { 200: { description: "the event", data: eventSchema, example: EVENT_EXAMPLE } },
      problems: ["not_found"],
      handle: async ({ params }) => {
        const text = await store.events.get(params.id);
        if (text === undefined) throw new Problem("not_found", `event ${params.id} does not exist`);
        return dataText(text);
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/events/search",
      operationId: "searchEvents",
      tag: "Events",
      summary: "Search and aggregate events",
      description:
        "`query` selects the events. `limit: 0` returns only `total` and the aggregations. For the next page, send the same search with " +
        "`next_cursor` as `after`: in any sort, new events neither repeat nor hide rows, and each page costs the same. The `interval` of a histogram is a duration for " +
        `\`timestamp\` and a number for any other field; a histogram has at most ${HISTOGRAM_BUCKETS_MAX.toLocaleString("en")} buckets. ` +
        "Nested `aggs` of `terms` or `histogram` are computed per bucket. A search that takes longer than 30 s is refused with 400 on `query`. " +
        "Expensive searches (patterns, keywords, fields without a column, aggregations, sorting) are limited to two running per key " +
        "and 16 in flight per key; a search past that limit, or queued for longer than 10 s, is refused with 503 and `Retry-After`. " +
        "Closing the connection cancels the search. A filter on a field that no event of the range has is answered with a warning in " +
        "`meta.warnings`, which suggests the most similar field.",
      scopes: ["events:read"],
      body: searchSchema.superRefine(({ query }, context) => sourceFaults(query, sources, context), BESIDE_OTHERS),
      example: {
        query: {
          bool: {
            must: [{ field: "raw.src_ip", cidr: "192.0.2.0/24" }],
            must_not: [{ field: "severity", in: ["info", "low"] }],
          },
          time_range: { from: "2026-11-09T00:00:00Z", to: "2026-11-16T00:00:00Z" },
        },
        aggs: AGGREGATIONS_EXAMPLE,
        sort: { timestamp: "desc" },
        limit: 20,
      },
      responses: {
        200: {
          description: "the matching events and the aggregations",
          data: searchResponseSchema,
          example: { results: [EVENT_EXAMPLE], total: 1, next_cursor: null, aggregations: AGGREGATIONS_RESULT_EXAMPLE },
        },
      },
      headers: { 200: ["X-Tocsin-Incomplete"] },
      handle: async ({ body, key, request }) => {
        const query = toSearchQuery(body);
        const { items, total, nextCursor, aggregations, warnings } = await abortOnDisconnect(
          request.raw.socket,
          async (signal) => {
            const context = { client: key.id, signal };
            const found = await store.events.search(query, context);
            // The first page has told the client already.
            const warnings = body.after === undefined ? await fieldWarnings.of(body.query, found.total, context) : [];
            return { ...found, warnings };
          },
        );
        const aggregationsText = JSON.stringify(aggregations);
        const response = dataText(
          `{"results":[${items.join(",")}],"total":${total},"next_cursor":${JSON.stringify(nextCursor)},"aggregations":${aggregationsText}}`,
        );
        return markIncomplete(withWarnings(response, warnings), store, "events", query);
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/events",
      operationId: "submitEvent",
      tag: "Events",
      summary: "Submit one event",
      description:
        "The response is sent once the event is durable. A repeated `Idempotency-Key` within 24 hours returns the first response " +
        "again and stores nothing.",
      scopes: ["events:write"],
      requestHeaders: idempotencyHeader,
      body: submissionSchema,
      bodyTypes: [JSON_TYPE],
      handlesFaults: true,
      example: SUBMISSION_EXAMPLE,
      responses: { 201: { description: "the stored event", data: eventSchema, example: EVENT_EXAMPLE } },
      headers: { 201: ["Location", "Idempotency-Replayed"] },
      handle: async ({ request, key, readBody, faults }) => {
        const header = request.headers["idempotency-key"];
        const otherFaults = [...faults, ...idempotencyFaults(header)];
        const item = submissionOf(await readBody({ bytesMax: bodyLimits.submitBytes, types: [JSON_TYPE] }));
        if (otherFaults.length > 0) throw invalid([...otherFaults, ...intake.faultsOf(item).map(withBodyField)]);
        const submitted = await intake.submit(item, idempotencyToken(key, header));
        if (submitted.kind === "refused") throw invalid(submitted.faults.map(withBodyField));
        return dataText(submitted.event.text, 201, {
          Location: `/v1/events/${submitted.event.id}`,
          ...(submitted.replayed && { "Idempotency-Replayed": "true" }),
        });
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/events/batch",
      operationId: "submitEvents",
      tag: "Events",
      summary: `Submit up to ${BATCH_ITEMS_MAX.toLocaleString("en")} events at once`,
      description:
        `The body is a JSON array or one submission per line (\`${NDJSON_TYPE}\`). Submissions are processed independently: ` +
        "`rejected` lists each refused one by its `index`, which counts from 0 and skips blank lines. `ids` are the ids of " +
        "the stored events, in order. " +
        "With an `Idempotency-Key`, the same batch can be sent again within 24 hours: events that are already stored keep their ids and " +
        "are not stored again, the others are stored now. Use a new key for each batch. A submission is at most " +
        "`body_limits.submit_bytes` bytes, the batch at most `body_limits.batch_bytes`.",
      scopes: ["events:write"],
      requestHeaders: idempotencyHeader,
      body: z.array(submissionSchema).min(1).max(BATCH_ITEMS_MAX),
      bodyTypes: [JSON_TYPE, ...NDJSON_TYPES],
      handlesFaults: true,
      example: [SUBMISSION_EXAMPLE],
      responses: {
        200: {
          description: "the stored and the rejected submissions",
          data: batchResultSchema,
          example: { accepted: 1, rejected: [], ids: [EVENT_EXAMPLE.id] },
        },
      },
      headers: { 200: ["Idempotency-Replayed"] },
      handle: async ({ request, key, readBody, faults }) => {
        const header = request.headers["idempotency-key"];
        const otherFaults = [...faults, ...idempotencyFaults(header)];
        const body = await readBody({ bytesMax: bodyLimits.batchBytes, types: [JSON_TYPE, ...NDJSON_TYPES] });
        if (!body) throw invalid([...otherFaults, { field: "body", message: "is required" }]);
        if (otherFaults.length > 0) throw invalid(otherFaults);
        const items = await batchItems(body, { depthMax: DATA_DEPTH_MAX, itemBytesMax: bodyLimits.submitBytes });
        const { ids, rejected, refusal, replayed } = await intake.submitMany(items, idempotencyToken(key, header));
        if (refusal && ids.length === 0) throw refusal;
        const response = {
          accepted: ids.length,
          rejected: rejected.map(({ index, details }) => ({ index, details: details.map(withBodyField) })),
          ids,
        };
        return data(response, 200, replayed ? { "Idempotency-Replayed": "true" } : {});
      },
    }),
  ];
}

function listQuery(sources: readonly string[]) {
  return refuseMixedPaging(
    z.strictObject({
      ...pagingParameters("event"),
      source: commaListParameter(sourceSchema(sources), sources.join(", ")),
      severity: commaListParameter(severitySchema, SEVERITIES.join(", ")),
      type: commaListParameter(typeSchema, "type of the event"),
      class: commaListParameter(classSchema, CLASSES.join(", ")),
      from: boundParameter.optional().describe("inclusive; also relative, such as `now-24h`"),
      to: boundParameter.optional().describe("exclusive; also relative, such as `now`"),
      search: searchParameter(
        'words that must all occur in any field; each matches as a prefix, an address or a "phrase" as a whole; an id finds ' +
          "its event and events that mention it; `2026-11-15` or `2026-11-15T08:30` finds the events of that time (UTC)",
      ),
    }),
  );
}

function submissionOf(body: Body | undefined): SubmissionItem {
  if (!body) return { faults: [{ field: "", message: "is required" }] };
  const verbatim = verbatimSubmission(body.bytes, { depthMax: DATA_DEPTH_MAX });
  return verbatim ?? readJson(body.bytes, { depthMax: DATA_DEPTH_MAX, levelsAround: LEVELS_AROUND_DATA });
}

function withBodyField({ field, message }: Fault): Fault {
  return { field: field || "body", message };
}

/** Prefixed with the id of the key, so that clients cannot see each other's events. */
function idempotencyToken(key: ApiKey, header: string | string[] | undefined): string | undefined {
  return header === undefined ? undefined : `${key.id}/${String(header)}`;
}

function idempotencyFaults(header: string | string[] | undefined): Fault[] {
  if (header === undefined) return [];
  const isText = typeof header === "string" && IDEMPOTENCY_KEY.test(header);
  if (isText && header.length <= IDEMPOTENCY_KEY_CHARACTERS_MAX) return [];
  const message = `must be 1 to ${IDEMPOTENCY_KEY_CHARACTERS_MAX} visible ASCII characters`;
  return [{ field: "Idempotency-Key", message }];
}

const batchResultSchema = z
  .object({
    accepted: z.int(),
    rejected: z.array(
      z.object({
        index: z.int().describe("index in the batch, from 0; blank lines do not count"),
        details: z.array(z.object({ field: z.string(), message: z.string() })),
      }),
    ),
    ids: z.array(z.string()),
  })
  .meta({ id: "BatchAnswer" });
