import { z } from "zod";
import { BESIDE_OTHERS } from "../lib/fault.ts";
import { alertSchema, alertView } from "../model/alert.ts";
import { ALERT_QUERY_FIELDS } from "../model/alert-field.ts";
import { HISTOGRAM_BUCKETS_MAX } from "../model/aggregation.ts";
import { aggregationsSchemaOf, toAggregations } from "../model/aggregation-schema.ts";
import { fieldExcept } from "../model/field-schema.ts";
import { querySchemaOf, SEARCH_LIMIT_MAX, sortSchemaOf, toCondition, toSortKeys } from "../model/query.ts";
import { ALERT_TIMES, type AlertQuery } from "../store/ports/alert-store.ts";
import type { Store } from "../store/ports/store.ts";
import { ALERT_EXAMPLE } from "./alert-examples.ts";
import { abortOnDisconnect } from "./client-disconnect.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { cursorParameter, searchParameter } from "./paging.ts";
import { dataText } from "./response.ts";
import { aggregationResultsSchema } from "./search-response.ts";
import { sourceFaults } from "./sources.ts";

const alertSearchSchema = z
  .strictObject({
    query: querySchemaOf(ALERT_QUERY_FIELDS, {
      time: z
        .enum(ALERT_TIMES)
        .optional()
        .describe("what `time_range` compares: `created_at` (default), or the time from the first to the last event"),
    }).optional(),
    search: searchParameter("words that must all occur, as in the list of alerts"),
    aggs: aggregationsSchemaOf(ALERT_QUERY_FIELDS).optional(),
    sort: sortSchemaOf(fieldExcept(ALERT_QUERY_FIELDS, () => false, ""))
      .optional()
      .describe(
        "sorts by each field in turn; the worst severity is the highest, and alerts without the field come last in either " +
          "direction; default and last: newest first by `created_at`",
      ),
    after: cursorParameter("alert"),
    limit: z.int().min(0).max(SEARCH_LIMIT_MAX).default(50),
  })
  .meta({ id: "AlertSearch" });

const resultSchema = z
  .object({
    results: z.array(alertSchema),
    total: z.int().describe("all matching alerts"),
    next_cursor: z.string().nullable().describe("the `after` of the next page; null on the last page"),
    aggregations: aggregationResultsSchema,
  })
  .meta({ id: "AlertSearchAnswer" });

const EXAMPLE = {
  query: {
    bool: {
      must: [
        { field: "status", in: ["open", "acknowledged"] },
        { field: "entities.value", cidr: "192.0.2.0/24" },
      ],
    },
    time_range: { from: "2026-11-09T00:00:00Z", to: "2026-11-16T00:00:00Z" },
    time: "overlap",
  },
  aggs: {
    by_time: {
      histogram: { field: "created_at", interval: "1d" },
      aggs: { severity: { terms: { field: "severity" } } },
    },
    by_rule: {
      terms: { field: "rule_name", size: 100 },
      aggs: { severity: { terms: { field: "severity" } }, last: { stats: { field: "last_event_at" } } },
    },
  },
  sort: { severity: "desc", last_event_at: "desc" },
  limit: 20,
};
const severity = { buckets: [{ key: ALERT_EXAMPLE.severity, count: 1 }], other_count: 0 };
const { last_event_at: last } = ALERT_EXAMPLE;
const RESULT_EXAMPLE = {
  results: [ALERT_EXAMPLE],
  total: 1,
  next_cursor: null,
  aggregations: {
    by_time: { buckets: [{ key: "2026-11-15T00:00:00.000Z", count: 1, severity }] },
    by_rule: {
      buckets: [
        { key: ALERT_EXAMPLE.rule_name, count: 1, severity, last: { min: last, max: last, avg: last, sum: null } },
      ],
      other_count: 0,
    },
  },
};

interface AlertSearchOptions {
  readonly store: Pick<Store, "alerts">;
  readonly sources: readonly string[];
}

export function alertSearchEndpoint({ store, sources }: AlertSearchOptions): Endpoint {
  return endpoint({
    method: "POST",
    path: "/v1/alerts/search",
    operationId: "searchAlerts",
    tag: "Alerts",
    summary: "Search and aggregate alerts",
    description:
      "`query` and `search` select the alerts; both may be missing. The body is that of the search over events, with the fields of " +
      "alerts. `entities` is `kind:value`. `limit: 0` returns only `total` and the aggregations. The `interval` of a histogram is a duration for a " +
      `time and a number for any other field; a histogram has at most ${HISTOGRAM_BUCKETS_MAX.toLocaleString("en")} buckets. ` +
      "Nested `aggs` of `terms` or `histogram` are computed per bucket. If a `sort` field of the cursor's alert has changed, the " +
      "results continue from the alert's current position.\n\n" +
      "`title`, `description`, `enrichment.*`, patterns and comparisons of two fields read the alerts one by one, which takes " +
      "seconds for 100,000 alerts; narrow the other filters. Such searches, and those with `search`, are limited to two running " +
      "per key and 16 in flight per key; a search past that limit, or queued for longer than 10 s, is refused with 503 and " +
      "`Retry-After`. A search that takes longer than 30 s is refused with 400 on `query`. Closing the connection cancels it.",
    scopes: ["alerts:read"],
    body: alertSearchSchema.superRefine(({ query }, context) => sourceFaults(query, sources, context), BESIDE_OTHERS),
    example: EXAMPLE,
    responses: {
      200: { description: "the matching alerts and the aggregations", data: resultSchema, example: RESULT_EXAMPLE },
    },
    handle: async ({ body, key, request }) => {
      const query = toAlertQuery(body);
      const found = await abortOnDisconnect(request.raw.socket, (signal) =>
        store.alerts.search(query, { client: key.id, signal }),
      );
      return dataText(
        JSON.stringify({
          results: found.items.map(alertView),
          total: found.total,
          next_cursor: found.nextCursor,
          aggregations: found.aggregations,
        }),
      );
    },
  });
}

function toAlertQuery(input: z.infer<typeof alertSearchSchema>): AlertQuery {
  const { query = {}, search, after, limit } = input;
  return {
    condition: toCondition(query.bool, ALERT_QUERY_FIELDS),
    fromMs: query.time_range?.from,
    toMs: query.time_range?.to,
    time: query.time,
    search,
    sort: toSortKeys(input.sort),
    after,
    limit,
    aggs: toAggregations(input.aggs),
  };
}
