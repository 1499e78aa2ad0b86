import { z } from "zod";
import { BATCH_ITEMS_MAX, type Intake, type Item } from "../intake/intake.ts";
import { DATA_DEPTH_MAX, submissionSchema } from "../intake/submission.ts";
import { BESIDE_OTHERS, type Fault } from "../lib/fault.ts";
import { classSchema, eventSchema, severitySchema, typeSchema } from "../model/event-schema.ts";
import type { ApiKey } from "../model/key.ts";
import { boundParameter, searchSchema, toSearchQuery } from "../model/query.ts";
import { HISTOGRAM_BUCKETS_MAX, type Store } from "../store/store.ts";
import { batchItems, LEVELS_AROUND_DATA, wholeSubmission } from "./batch.ts";
import { JSON_TYPE, NDJSON_TYPE, NDJSON_TYPES, readJson, type Body } from "./body.ts";
import { data, dataText, endpoint } from "./endpoint.ts";
import type { Endpoint } from "./endpoint.ts";
import { untilHangUp } from "./hang-up.ts";
import { found, listPage, pagingParameters, positionOf, refuseMixedPaging, searchParameter } from "./paging.ts";
import { marked } from "./incomplete.ts";
import { invalid, Problem } from "./problems.ts";
import { AGGREGATIONS_ANSWER_EXAMPLE, AGGREGATIONS_EXAMPLE, searchAnswerSchema } from "./search-answer.ts";
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
      "visible ASCII of your own making, such as a UUID; each API key has its own, and they are known for 24 hours",
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
  readonly bodyLimits: { readonly submitBytes: number; readonly batchBytes: number };
}

export function eventEndpoints({ store, intake, sources, bodyLimits }: EventEndpointOptions): Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/v1/events",
      operationId: "listEvents",
      tag: "Events",
      summary: "List events, newest first",
      about:
        "By pages (`page`, `per_page`), or by cursor: `limit` alone begins at the top, `after` goes on below an event. " +
        "Events that arrive meanwhile neither repeat nor hide a row of a cursor walk.",
      scopes: ["events:read"],
      query: listQuery(sources, (words) => store.searchFault(words)),
      cursorFault: async (id) =>
        (await store.events.get(id)) === undefined ? "is not the id of an event that is stored" : undefined,
      answers: {
        200: { about: "a page of events", data: z.array(eventSchema), paginated: true, example: [EVENT_EXAMPLE] },
      },
      headers: { 200: ["X-Tocsin-Incomplete"] },
      handle: ({ query, key, request }) => {
        const { page, per_page, after, limit, from, to, ...filter } = query;
        const position = positionOf({ page, per_page, after, limit });
        return untilHangUp(request.raw.socket, async (signal) => {
          const asking = { asker: key.id, signal };
          const finding = store.events.list({ ...filter, fromMs: from, toMs: to }, position, asking);
          const answer = listPage(position, await found(position, finding));
          return marked(answer, store, "events", { fromMs: from, toMs: to });
        });
      },
    }),
    endpoint({
      method: "GET",
      path: "/v1/events/:id",
      operationId: "getEvent",
      tag: "Events",
      summary: "One event",
      scopes: ["events:read"],
      params: z.object({ id: z.string() }),
      answers: { 200: { about: "the event", data: eventSchema, example: EVENT_EXAMPLE } },
      problems: ["not_found"],
      handle: async ({ params }) => {
        const text = await store.events.get(params.id);
        if (text === undefined) throw new Problem("not_found", `there is no event ${params.id}`);
        return dataText(text);
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/events/search",
      operationId: "searchEvents",
      tag: "Events",
      summary: "Search and aggregate events",
      about:
        "`query` says which events; `limit: 0` asks for `total` and aggregations alone. In a histogram, `interval` is a duration on " +
        `\`timestamp\` and a number on any other field, and may make ${HISTOGRAM_BUCKETS_MAX.toLocaleString("en")} buckets at most. ` +
        "`aggs` within `terms` or `histogram` are answered in each bucket. A search that takes longer than 30 s is a 400 on `query`. " +
        "Of searches that read more than a few columns (patterns, keywords, fields without a column of their own, aggregations, sorting), " +
        "two of a key run at a time and 16 may be under way; one more, or one that waits longer than 10 s, is a 503 with a `Retry-After`. " +
        "Closing the connection cancels the search.",
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
      answers: {
        200: {
          about: "what was found",
          data: searchAnswerSchema,
          example: { results: [EVENT_EXAMPLE], total: 1, aggregations: AGGREGATIONS_ANSWER_EXAMPLE },
        },
      },
      headers: { 200: ["X-Tocsin-Incomplete"] },
      handle: async ({ body, key, request }) => {
        const query = toSearchQuery(body);
        const { items, total, aggregations } = await untilHangUp(request.raw.socket, (signal) =>
          store.events.search(query, { asker: key.id, signal }),
        );
        const found = JSON.stringify(aggregations);
        const answer = dataText(`{"results":[${items.join(",")}],"total":${total},"aggregations":${found}}`);
        return marked(answer, store, "events", query);
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/events",
      operationId: "submitEvent",
      tag: "Events",
      summary: "Submit one event",
      about:
        "Answered once the event is durable. With an `Idempotency-Key`, the same key within 24 hours gets the first answer " +
        "again and stores nothing.",
      scopes: ["events:write"],
      requestHeaders: idempotencyHeader,
      body: submissionSchema,
      bodyTypes: [JSON_TYPE],
      refusesFaults: true,
      example: SUBMISSION_EXAMPLE,
      answers: { 201: { about: "the stored event", data: eventSchema, example: EVENT_EXAMPLE } },
      headers: { 201: ["Location", "Idempotency-Replayed"] },
      handle: async ({ request, key, readBody, faults }) => {
        const header = request.headers["idempotency-key"];
        const beside = [...faults, ...idempotencyFaults(header)];
        const item = submissionOf(await readBody({ bytesMax: bodyLimits.submitBytes, types: [JSON_TYPE] }));
        if (beside.length > 0) throw invalid([...beside, ...intake.faultsOf(item).map(placed)]);
        const submitted = await intake.submit(item, tokenOf(key, header));
        if (submitted.kind === "refused") throw invalid(submitted.faults.map(placed));
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
      about:
        `A JSON array, or one submission on each line (\`${NDJSON_TYPE}\`). What is wrong with one does not touch the others: ` +
        "`rejected` names each that was not stored, by its place in the batch: `index` counts submissions from 0, and lines only " +
        "where something stands on them. `ids` are those of the others, in order. " +
        "With an `Idempotency-Key`, the same batch may be sent again within 24 hours: what is stored of it is not stored again and " +
        "has the ids it had, the rest is stored now. The key must stand for one batch. Each submission is at most as large as one that is " +
        "sent alone (`body_limits.submit_bytes`), and all of them as `body_limits.batch_bytes` says.",
      scopes: ["events:write"],
      requestHeaders: idempotencyHeader,
      body: z.array(submissionSchema).min(1).max(BATCH_ITEMS_MAX),
      bodyTypes: [JSON_TYPE, ...NDJSON_TYPES],
      refusesFaults: true,
      example: [SUBMISSION_EXAMPLE],
      answers: {
        200: {
          about: "what was stored and what was not",
          data: batchAnswerSchema,
          example: { accepted: 1, rejected: [], ids: [EVENT_EXAMPLE.id] },
        },
      },
      headers: { 200: ["Idempotency-Replayed"] },
      handle: async ({ request, key, readBody, faults }) => {
        const header = request.headers["idempotency-key"];
        const beside = [...faults, ...idempotencyFaults(header)];
        const body = await readBody({ bytesMax: bodyLimits.batchBytes, types: [JSON_TYPE, ...NDJSON_TYPES] });
        if (!body) throw invalid([...beside, { field: "body", message: "is required" }]);
        if (beside.length > 0) throw invalid(beside);
        const items = await batchItems(body, { depthMax: DATA_DEPTH_MAX, itemBytesMax: bodyLimits.submitBytes });
        const { ids, rejected, refusal, replayed } = await intake.submitMany(items, tokenOf(key, header));
        if (refusal && ids.length === 0) throw refusal;
        const answer = {
          accepted: ids.length,
          rejected: rejected.map(({ index, details }) => ({ index, details: details.map(placed) })),
          ids,
        };
        return data(answer, 200, replayed ? { "Idempotency-Replayed": "true" } : {});
      },
    }),
  ];
}

function listQuery(sources: readonly string[], searchFault: Store["searchFault"]) {
  return refuseMixedPaging(
    z.strictObject({
      ...pagingParameters("event"),
      source: sourceSchema(sources).optional(),
      severity: severitySchema.optional(),
      type: typeSchema.optional(),
      class: classSchema.optional(),
      from: boundParameter.optional().describe("inclusive"),
      to: boundParameter.optional().describe("exclusive"),
      search: searchParameter(
        searchFault,
        'words that must all occur, in any field, each from its beginning; an address or a "phrase" as a whole; an id finds ' +
          "its event and those that name it; `2026-11-15` or `2026-11-15T08:30` finds the events of that time (UTC)",
      ),
    }),
  );
}

function submissionOf(body: Body | undefined): Item {
  if (!body) return { faults: [{ field: "", message: "is required" }] };
  const whole = wholeSubmission(body.bytes, { depthMax: DATA_DEPTH_MAX });
  return whole ?? readJson(body.bytes, { depthMax: DATA_DEPTH_MAX, levelsAround: LEVELS_AROUND_DATA });
}

function placed({ field, message }: Fault): Fault {
  return { field: field || "body", message };
}

/** One client's key must not find another's events. */
function tokenOf(key: ApiKey, header: string | string[] | undefined): string | undefined {
  return header === undefined ? undefined : `${key.id}/${String(header)}`;
}

function idempotencyFaults(header: string | string[] | undefined): Fault[] {
  if (header === undefined) return [];
  const isText = typeof header === "string" && IDEMPOTENCY_KEY.test(header);
  if (isText && header.length <= IDEMPOTENCY_KEY_CHARACTERS_MAX) return [];
  const message = `must be 1 to ${IDEMPOTENCY_KEY_CHARACTERS_MAX} visible ASCII characters`;
  return [{ field: "Idempotency-Key", message }];
}

const batchAnswerSchema = z
  .object({
    accepted: z.int(),
    rejected: z.array(
      z.object({
        index: z.int().describe("place in the batch, from 0; empty lines do not count"),
        details: z.array(z.object({ field: z.string(), message: z.string() })),
      }),
    ),
    ids: z.array(z.string()),
  })
  .meta({ id: "BatchAnswer" });
