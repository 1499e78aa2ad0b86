import { z } from "zod";
import { eventSchema } from "../model/event-schema.ts";
import { AGGREGATION_KINDS, AGGREGATIONS, HISTOGRAM_BUCKETS_MAX } from "../model/aggregation.ts";

// The response schema of a search, and its example.

const bucketSchema = z
  .object({
    key: z
      .union([z.string(), z.number(), z.boolean()])
      .describe("terms: the value; histogram: the start of the bucket, which is a time for a field of times"),
    count: z.int().describe("matches in the bucket"),
  })
  // The results of nested aggregations, by name.
  .catchall(z.lazy((): z.ZodType => aggregationResultSchema))
  .meta({ id: "Bucket", description: "key, count, and the result of each nested aggregation by its name" });

const bucketsSchema = z
  .object({
    buckets: z
      .array(bucketSchema)
      .describe(
        "terms: most matches first, at most `size`; histogram: ascending, including empty buckets in between, " +
          `at most ${HISTOGRAM_BUCKETS_MAX}`,
      ),
    other_count: z.int().optional().describe("terms only: occurrences of the values past `size`"),
  })
  .meta({ id: "Buckets" });

const valueSchema = z
  .object({
    value: z
      .int()
      .describe("count: matches that have the field, or all matches without a field; cardinality: distinct values"),
  })
  .meta({ id: "Value" });

const statistic = z.union([z.number(), z.string(), z.null()]);
const statsSchema = z
  .object({
    min: statistic.describe("an exact number; a time for a field of times; null if no match has a value"),
    max: statistic,
    avg: statistic.describe("integers beyond 2^53 are rounded to the nearest double, here and in `sum`"),
    sum: z.number().nullable().describe("0 if no match has a number; null for times"),
  })
  .meta({ id: "Stats" });

const aggregationResultSchema = z.union([bucketsSchema, valueSchema, statsSchema]).meta({
  id: "AggregationAnswer",
  description: AGGREGATION_KINDS.map((kind) => `${kind}: ${AGGREGATIONS[kind].answer}`).join("; "),
});

export const aggregationResultsSchema = z
  .record(z.string(), aggregationResultSchema)
  .describe("the result of each aggregation, by name");

export const searchResponseSchema = z
  .object({
    results: z.array(eventSchema),
    total: z.int().describe("all matching events"),
    next_cursor: z
      .string()
      .nullable()
      .describe("the value for `after` to get the next page; null on the last page and with `limit: 0`"),
    aggregations: aggregationResultsSchema,
  })
  .meta({ id: "SearchAnswer" });

export const AGGREGATIONS_EXAMPLE = {
  by_type: { terms: { field: "type", size: 5 }, aggs: { users: { cardinality: { field: "raw.user" } } } },
  by_hour: { histogram: { field: "timestamp", interval: "1h" } },
  with_user: { count: { field: "raw.user" } },
  attempts: { stats: { field: "raw.attempts" } },
};

export const AGGREGATIONS_RESULT_EXAMPLE = {
  by_type: { buckets: [{ key: "login_failure", count: 1, users: { value: 1 } }], other_count: 0 },
  by_hour: { buckets: [{ key: "2026-11-15T08:00:00.000Z", count: 1 }] },
  with_user: { value: 1 },
  attempts: { min: 3, max: 3, avg: 3, sum: 3 },
};
