import { z } from "zod";
import { DURATION, parseDuration } from "../lib/duration.ts";
import { BESIDE_OTHERS, passIssues, WITH_NAMES } from "../lib/fault.ts";
import { parseTime, parseTimeUp } from "../lib/time.ts";
import { unlessTooMuch } from "../lib/unless-too-much.ts";
import {
  ALWAYS,
  conditionDepth,
  CONDITION_DEPTH_MAX,
  CONDITIONS_MAX,
  toFieldTest,
  toKeywordTest,
  type Condition,
  type FieldTestInput,
  type KeywordInput,
  type Scalar,
} from "./condition.ts";
import { fieldTestSchema, keywordSchema, positiveNumber } from "./condition-schema.ts";
import { pathFault, type TopField } from "./field.ts";
import { patternsFault } from "./pattern.ts";

// Questions about events, as they come in a search or an export, and as a store is asked.

const SEARCH_LIMIT_MAX = 1000;
const TERMS_SIZE_MAX = 1000;
const AGGREGATIONS_MAX = 20;
const SORT_FIELDS_MAX = 5;

function timeBy(read: (text: string) => number | undefined) {
  return (
    z
      .string()
      .transform((text, context) => {
        const ms = read(text);
        if (ms !== undefined) return ms;
        context.addIssue({
          code: "custom",
          message: "a time in ISO 8601 with an offset or Z, or a date: 2026-11-15T08:30:00Z",
        });
        return z.NEVER;
      })
      // A date alone is taken, too. Generated clients have one type for a time, and need not know.
      .meta({ type: "string", format: "date-time" })
  );
}

/** A time in a request: refused in words, handed on in milliseconds. */
export const timeSchema = timeBy(parseTime);
/** An end of a range. */
export const boundSchema = timeBy(parseTimeUp);
/** The same in a query, where a plus that nobody encoded arrives as a space. */
export const boundParameter = timeBy((text) => parseTimeUp(text.replace(/ (?=\d\d(?::?\d\d)?$)/, "+")));

const timeRangeSchema = z
  .strictObject({ from: boundSchema.optional(), to: boundSchema.optional() })
  .superRefine(refuseBackwards, BESIDE_OTHERS)
  .describe("from inclusive, to exclusive");

export function refuseBackwards(
  range: { from?: number | undefined; to?: number | undefined },
  context: z.RefinementCtx,
): void {
  if (typeof range.from === "number" && typeof range.to === "number" && range.from > range.to) {
    context.addIssue({ code: "custom", path: ["from"], message: "is after to" });
  }
}

function withKeys<Schema extends z.ZodType>(schema: Schema, keysMax: number, words: string) {
  return unlessTooMuch(schema, (input) =>
    typeof input === "object" && input !== null && Object.keys(input).length > keysMax
      ? `at most ${keysMax} ${words}`
      : undefined,
  ).meta({ maxProperties: keysMax });
}

type FilterInput = FieldTestInput | KeywordInput | { bool: BoolInput };
interface BoolInput {
  must?: FilterInput[] | undefined;
  must_not?: FilterInput[] | undefined;
  should?: FilterInput[] | undefined;
}

/** A filter is a test on a field, a keyword or, nested, a bool of filters. Told apart by hand so that faults name the exact place. */
const filterSchema: z.ZodType<FilterInput> = z
  .lazy(() =>
    z.unknown().transform((input, context): FilterInput => {
      const parsed = filterSchemaOf(input).safeParse(input, WITH_NAMES);
      if (parsed.success) return parsed.data as FilterInput;
      passIssues(parsed.error, context);
      // It is refused; as it stands it can still be looked at for more.
      return input as FilterInput;
    }),
  )
  .meta({ id: "Filter", description: "a field test, { keyword }, or { bool } nested" });

function filterSchemaOf(input: unknown): z.ZodType {
  if (typeof input !== "object" || input === null) return fieldTestSchema;
  if ("bool" in input) return z.strictObject({ bool: boolSchema });
  return "keyword" in input ? keywordSchema : fieldTestSchema;
}

const boolSchema: z.ZodType<BoolInput> = z
  .strictObject({
    must: z.array(filterSchema).max(CONDITIONS_MAX).optional().describe("every one holds"),
    must_not: z.array(filterSchema).max(CONDITIONS_MAX).optional().describe("none holds"),
    should: z.array(filterSchema).max(CONDITIONS_MAX).optional().describe("at least one holds"),
  })
  .meta({ id: "Bool" });

const countedBool = unlessTooMuch(boolSchema, (input) =>
  countFilters(input) > CONDITIONS_MAX ? `at most ${CONDITIONS_MAX} filters in all` : patternsFault(input),
);

/** Those of a bool of any shape; a bool without any counts as one. */
function countFilters(bool: unknown): number {
  if (typeof bool !== "object" || bool === null) return 1;
  const { must, must_not, should } = bool as Record<string, unknown>;
  let filters = 0;
  for (const part of [must, must_not, should]) {
    for (const filter of Array.isArray(part) ? (part as unknown[]) : []) {
      const isBool = typeof filter === "object" && filter !== null && "bool" in filter;
      filters += isBool ? countFilters(filter.bool) : 1;
    }
  }
  return Math.max(1, filters);
}

/** `{ bool, time_range }` of a search or an export. */
export const querySchema = z
  .strictObject({ bool: countedBool.optional(), time_range: timeRangeSchema.optional() })
  .superRefine((query, context) => {
    if (conditionDepth(toCondition(query.bool)) > CONDITION_DEPTH_MAX * 2) {
      context.addIssue({ code: "custom", path: ["bool"], message: `nested deeper than ${CONDITION_DEPTH_MAX}` });
    }
  });

export function toCondition(bool: BoolInput | undefined): Condition {
  if (!bool) return ALWAYS;
  const parts: Condition[] = (bool.must ?? []).map(toFilterCondition);
  for (const filter of bool.must_not ?? []) parts.push({ kind: "not", of: toFilterCondition(filter) });
  if (bool.should && bool.should.length > 0) parts.push({ kind: "any", of: bool.should.map(toFilterCondition) });
  return { kind: "all", of: parts };
}

function toFilterCondition(filter: FilterInput): Condition {
  if ("bool" in filter) return toCondition(filter.bool);
  return "keyword" in filter ? toKeywordTest(filter) : toFieldTest(filter);
}

export interface TimeRange {
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
}

const fieldSchema = fieldBut([], "");

/** A path, and which of those that every event has are refused for what reason. */
function fieldBut(refused: readonly TopField[], message: string) {
  return z.string().superRefine((path, context) => {
    const fault = (refused as readonly string[]).includes(path) ? message : pathFault(path);
    if (fault) context.addIssue({ code: "custom", message: fault });
  });
}

/** They have words for values. */
const WORD_FIELDS: readonly TopField[] = ["id", "type", "source", "class", "severity"];

const INTERVAL_WORDS = "a duration such as 5m, 1h or 1d for timestamp, a number greater than 0 for other fields";

const metricShapes = {
  count: z
    .strictObject({ field: fieldSchema.optional() })
    .optional()
    .describe("how many events have the field; all without one"),
  stats: z
    .strictObject({ field: fieldBut(WORD_FIELDS, "is not a number") })
    .optional()
    .describe("min, max, avg and sum; of timestamp times, whose sum is null"),
  cardinality: z.strictObject({ field: fieldSchema }).optional().describe("how many different values there are"),
  terms: z
    .strictObject({
      field: fieldBut(["id"], "every id is different"),
      size: z.int().min(1).max(TERMS_SIZE_MAX).default(10),
    })
    .optional()
    .describe("the values that occur most, and how often"),
  histogram: z
    .strictObject({
      field: fieldBut(WORD_FIELDS, "is neither a number nor the timestamp"),
      interval: z
        .union([z.string().meta({ pattern: DURATION.source }), positiveNumber], {
          error: ({ input }) => (input === undefined ? "is required" : INTERVAL_WORDS),
        })
        .describe(INTERVAL_WORDS),
    })
    .superRefine(({ field, interval }, context) => {
      if (context.issues.length > 0) return;
      if (field === "timestamp" && (typeof interval !== "string" || parseDuration(interval) === undefined)) {
        context.addIssue({ code: "custom", path: ["interval"], message: "a duration such as 5m, 1h or 1d" });
      }
      if (field !== "timestamp" && typeof interval === "string") {
        context.addIssue({
          code: "custom",
          path: ["interval"],
          message: "a number greater than 0 (durations are for timestamp)",
        });
      }
    })
    .optional()
    .describe("how many events lie in each step"),
};

const KINDS = ["terms", "count", "histogram", "stats", "cardinality"] as const;

function refuseSeveralKinds(input: object, context: z.RefinementCtx): void {
  const given = KINDS.filter((kind) => input[kind as keyof typeof input] !== undefined);
  if (given.length !== 1) context.addIssue({ code: "custom", path: [], message: `takes one of ${KINDS.join(", ")}` });
}

/** The same for the document. */
const ONE_KIND = { oneOf: KINDS.map((kind) => ({ required: [kind] })) };

const leafAggregation = z.strictObject(metricShapes).superRefine(refuseSeveralKinds, BESIDE_OTHERS).meta(ONE_KIND);
/** What a bucket has of its own. */
const BUCKET_NAMES: ReadonlySet<string> = new Set(["key", "count"]);
const innerName = z
  .string()
  .min(1)
  .max(64)
  .refine((name) => !BUCKET_NAMES.has(name), "is what a bucket has already: choose another name");
const namedLeaves = withKeys(z.record(innerName, leafAggregation), AGGREGATIONS_MAX, "aggregations");

const aggregationSchema = z
  .strictObject({ ...metricShapes, aggs: namedLeaves.optional() })
  .superRefine((input, context) => {
    refuseSeveralKinds(input, context);
    if (input.aggs && !input.terms && !input.histogram) {
      context.addIssue({ code: "custom", path: ["aggs"], message: "stands inside terms and histogram only" });
    }
  }, BESIDE_OTHERS)
  .meta({ id: "Aggregation", ...ONE_KIND });

const aggregationsSchema = withKeys(
  z.record(z.string().min(1).max(64), aggregationSchema),
  AGGREGATIONS_MAX,
  "aggregations",
);

export type Aggregation =
  | { readonly kind: "terms"; readonly field: string; readonly size: number; readonly aggs: Aggregations }
  | { readonly kind: "histogram"; readonly field: string; readonly interval: number; readonly aggs: Aggregations }
  | { readonly kind: "count"; readonly field?: string | undefined }
  | { readonly kind: "stats"; readonly field: string }
  | { readonly kind: "cardinality"; readonly field: string };
export type Aggregations = readonly { readonly name: string; readonly aggregation: Aggregation }[];

type AggregationInput = Omit<z.infer<typeof aggregationSchema>, "aggs"> & {
  aggs?: Record<string, z.infer<typeof leafAggregation>> | undefined;
};

function toAggregations(input: Record<string, AggregationInput> | undefined): Aggregations {
  return Object.entries(input ?? {}).map(([name, agg]) => ({ name, aggregation: toAggregation(agg) }));
}

function toAggregation(input: AggregationInput): Aggregation {
  if (input.terms) return { kind: "terms", ...input.terms, aggs: toAggregations(input.aggs) };
  if (input.histogram) {
    const { field, interval } = input.histogram;
    return {
      kind: "histogram",
      field,
      interval: typeof interval === "string" ? parseDuration(interval)! : Number(interval),
      aggs: toAggregations(input.aggs),
    };
  }
  if (input.stats) return { kind: "stats", field: input.stats.field };
  if (input.cardinality) return { kind: "cardinality", field: input.cardinality.field };
  return { kind: "count", field: input.count?.field };
}

/** Field to direction, in the order given. */
const sortSchema = withKeys(z.record(fieldSchema, z.enum(["asc", "desc"])), SORT_FIELDS_MAX, "fields");

export interface SortKey {
  readonly field: string;
  readonly descending: boolean;
}

export const searchSchema = z
  .strictObject({
    query: querySchema,
    aggs: aggregationsSchema.optional(),
    sort: sortSchema
      .optional()
      .describe(
        "by each field in turn: numbers, then text, then false, then true; events without the field last, whichever the direction; default: timestamp, newest first",
      ),
    limit: z.int().min(0).max(SEARCH_LIMIT_MAX).default(50),
  })
  .meta({ id: "Search" });

export interface SearchQuery extends TimeRange {
  readonly condition: Condition;
  readonly sort: readonly SortKey[];
  readonly limit: number;
  readonly aggs: Aggregations;
}

export function toSearchQuery(input: z.infer<typeof searchSchema>): SearchQuery {
  return {
    condition: toCondition(input.query.bool),
    fromMs: input.query.time_range?.from,
    toMs: input.query.time_range?.to,
    sort: Object.entries(input.sort ?? {}).map(([field, order]) => ({ field, descending: order === "desc" })),
    limit: input.limit,
    aggs: toAggregations(input.aggs),
  };
}

export type Bucket = { readonly key: Scalar; readonly count: number } & {
  readonly [subAggregation: string]: unknown;
};
export type AggregationResult =
  | { readonly buckets: readonly Bucket[]; readonly other_count?: number }
  | { readonly value: number }
  | {
      readonly min: number | bigint | null;
      readonly max: number | bigint | null;
      readonly avg: number | null;
      readonly sum: number;
    }
  /** Of the timestamp: times, whose sum means nothing. */
  | { readonly min: string | null; readonly max: string | null; readonly avg: string | null; readonly sum: null };
