import { z } from "zod";
import { eventSchema } from "../model/event-schema.ts";
import { HISTOGRAM_BUCKETS_MAX } from "../store/store.ts";

// What a search answers, for the document of the API.

const bucketSchema = z
  .object({
    key: z
      .union([z.string(), z.number(), z.boolean()])
      .describe("terms: the value; histogram: where the bucket begins, of timestamp a time"),
    count: z.int().describe("events in it"),
  })
  // The answers of inner aggregations, by their names: they are of the same kinds.
  .catchall(z.lazy((): z.ZodType => aggregationAnswerSchema))
  .meta({ id: "Bucket", description: "beside key and count, the answer of each inner aggregation by its name" });

const bucketsSchema = z
  .object({
    buckets: z
      .array(bucketSchema)
      .describe(
        "terms: most events first, at most size; histogram: from the least, empty ones in between included, " +
          `at most ${HISTOGRAM_BUCKETS_MAX}`,
      ),
    other_count: z.int().optional().describe("of terms alone: how often all values beyond size occur"),
  })
  .meta({ id: "Buckets" });

const valueSchema = z
  .object({
    value: z.int().describe("count: events that have the field, without one all; cardinality: different values"),
  })
  .meta({ id: "Value" });

const figure = z.union([z.number(), z.string(), z.null()]);
const statsSchema = z
  .object({
    min: figure.describe("a number, exact; of timestamp a time; null where no event has a number"),
    max: figure,
    avg: figure.describe("integers beyond 2^53 count as the nearest double, here and in sum"),
    sum: z.number().nullable().describe("0 where no event has a number; of timestamp null"),
  })
  .meta({ id: "Stats" });

const aggregationAnswerSchema = z.union([bucketsSchema, valueSchema, statsSchema]).meta({
  id: "AggregationAnswer",
  description: "to terms and histogram Buckets, to count and cardinality a Value, to stats the Stats",
});

export const searchAnswerSchema = z
  .object({
    results: z.array(eventSchema),
    total: z.int().describe("all matching events"),
    aggregations: z.record(z.string(), aggregationAnswerSchema).describe("the answer to each aggregation, by its name"),
  })
  .meta({ id: "SearchAnswer" });

export const AGGREGATIONS_EXAMPLE = {
  by_type: { terms: { field: "type", size: 5 }, aggs: { users: { cardinality: { field: "raw.user" } } } },
  by_hour: { histogram: { field: "timestamp", interval: "1h" } },
  with_user: { count: { field: "raw.user" } },
  attempts: { stats: { field: "raw.attempts" } },
};

/** Of a single event, as the document shows it. */
export const AGGREGATIONS_ANSWER_EXAMPLE = {
  by_type: { buckets: [{ key: "login_failure", count: 1, users: { value: 1 } }], other_count: 0 },
  by_hour: { buckets: [{ key: "2026-11-15T08:00:00.000Z", count: 1 }] },
  with_user: { value: 1 },
  attempts: { min: 3, max: 3, avg: 3, sum: 3 },
};
