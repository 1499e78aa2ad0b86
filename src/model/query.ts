import { z } from "zod";
import { BESIDE_OTHERS, passIssues, WITH_NAMES } from "../lib/fault.ts";
import { withSizeGuard } from "../lib/size-guard.ts";
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
} from "./condition.ts";
import { CURSOR_CHARACTERS_MAX } from "./page.ts";
import { boundSchema, refuseBackwards } from "./time-bound.ts";
import type { Aggregations } from "./aggregation.ts";
import { aggregationsSchemaOf, toAggregations, withKeyLimit } from "./aggregation-schema.ts";
import { fieldTestSchema, fieldTestSchemaOf, keywordSchema, patternsFault } from "./condition-schema.ts";
import { fieldSchema } from "./field-schema.ts";
import { EVENT_FIELDS, type QueryFields } from "./query-fields.ts";

// Event queries: as a search or an export request states them, and as a store takes them.

export const SEARCH_LIMIT_MAX = 1000;
const SORT_FIELDS_MAX = 5;

const timeRangeSchema = z
  .strictObject({ from: boundSchema.optional(), to: boundSchema.optional() })
  .superRefine(refuseBackwards, BESIDE_OTHERS)
  .describe("`from` inclusive, `to` exclusive; also relative, such as `now-24h`");

type FilterInput = FieldTestInput | KeywordInput | { bool: BoolInput };
interface BoolInput {
  must?: FilterInput[] | undefined;
  must_not?: FilterInput[] | undefined;
  should?: FilterInput[] | undefined;
}

/** A bool of filters, each a field test, a keyword or a nested bool. */
function boolSchemaOf(fields: QueryFields): z.ZodType<BoolInput> {
  const test = fields === EVENT_FIELDS ? fieldTestSchema : fieldTestSchemaOf(fields);
  const filterSchemaOf = (input: unknown): z.ZodType => {
    if (typeof input !== "object" || input === null) return test;
    if ("bool" in input) return z.strictObject({ bool: boolSchema });
    return fields.hasAnyField && "keyword" in input ? keywordSchema : test;
  };
  /** Dispatches by hand, so that a fault names its exact path. */
  const filterSchema: z.ZodType<FilterInput> = z
    .lazy(() =>
      z.unknown().transform((input, context): FilterInput => {
        const parsed = filterSchemaOf(input).safeParse(input, WITH_NAMES);
        if (parsed.success) return parsed.data as FilterInput;
        passIssues(parsed.error, context);
        // Later checks still look at the refused input for more faults.
        return input as FilterInput;
      }),
    )
    .meta({
      id: `${fields.prefix}Filter`,
      description: fields.hasAnyField
        ? "a field test, { keyword } or a nested { bool }"
        : "a field test or a nested { bool }",
    });
  const boolSchema: z.ZodType<BoolInput> = z
    .strictObject({
      must: z.array(filterSchema).max(CONDITIONS_MAX).optional().describe("all must hold"),
      must_not: z.array(filterSchema).max(CONDITIONS_MAX).optional().describe("none may hold"),
      should: z.array(filterSchema).max(CONDITIONS_MAX).optional().describe("at least one must hold"),
    })
    .meta({ id: `${fields.prefix}Bool` });
  return withSizeGuard(boolSchema, (input) =>
    countFilters(input) > CONDITIONS_MAX ? `at most ${CONDITIONS_MAX} filters in all` : patternsFault(input),
  );
}

/** Counts the filters in a bool of any shape; an empty bool counts as one. */
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
export const querySchema = querySchemaOf(EVENT_FIELDS, {});

/** The same for other documents, with more properties. */
export function querySchemaOf<More extends z.ZodRawShape>(fields: QueryFields, more: More) {
  return z
    .strictObject({ bool: boolSchemaOf(fields).optional(), time_range: timeRangeSchema.optional(), ...more })
    .superRefine((query, context) => {
      const { bool } = query as { bool?: BoolInput | undefined };
      if (conditionDepth(toCondition(bool, fields)) > CONDITION_DEPTH_MAX * 2) {
        context.addIssue({ code: "custom", path: ["bool"], message: `nested deeper than ${CONDITION_DEPTH_MAX}` });
      }
    });
}

export function toCondition(bool: BoolInput | undefined, fields: QueryFields = EVENT_FIELDS): Condition {
  if (!bool) return ALWAYS;
  const toFilter = (filter: FilterInput) => toFilterCondition(filter, fields);
  const parts: Condition[] = (bool.must ?? []).map(toFilter);
  for (const filter of bool.must_not ?? []) parts.push({ kind: "not", of: toFilter(filter) });
  if (bool.should && bool.should.length > 0) parts.push({ kind: "any", of: bool.should.map(toFilter) });
  return { kind: "all", of: parts };
}

function toFilterCondition(filter: FilterInput, fields: QueryFields): Condition {
  if ("bool" in filter) return toCondition(filter.bool, fields);
  return "keyword" in filter ? toKeywordTest(filter) : toFieldTest(filter, fields);
}

export interface TimeRange {
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
}

/** Field to direction, in the order given. */
export function sortSchemaOf(field: typeof fieldSchema) {
  return withKeyLimit(z.record(field, z.enum(["asc", "desc"])), SORT_FIELDS_MAX, "fields");
}

export interface SortKey {
  readonly field: string;
  readonly descending: boolean;
}

export const searchSchema = z
  .strictObject({
    query: querySchema,
    aggs: aggregationsSchemaOf(EVENT_FIELDS).optional(),
    sort: sortSchemaOf(fieldSchema)
      .optional()
      .describe(
        "sorts by each field in turn: numbers, then text, then false, then true; events without the field come last in either direction; default: timestamp, newest first",
      ),
    limit: z.int().min(0).max(SEARCH_LIMIT_MAX).default(50),
    after: z
      .string()
      .min(1)
      .max(CURSOR_CHARACTERS_MAX)
      .optional()
      .describe(
        "the `next_cursor` of the previous page: continues after that event; `query` and `sort` stay the same, `aggs` are best left out",
      ),
  })
  .meta({ id: "Search" });

export interface SearchQuery extends TimeRange {
  readonly condition: Condition;
  readonly sort: readonly SortKey[];
  readonly limit: number;
  /** The id of the event after which the results begin. */
  readonly after?: string | undefined;
  readonly aggs: Aggregations;
}

export function toSearchQuery(input: z.infer<typeof searchSchema>): SearchQuery {
  return {
    condition: toCondition(input.query.bool),
    fromMs: input.query.time_range?.from,
    toMs: input.query.time_range?.to,
    sort: toSortKeys(input.sort),
    limit: input.limit,
    after: input.after,
    aggs: toAggregations(input.aggs),
  };
}

export function toSortKeys(sort: Record<string, "asc" | "desc"> | undefined): SortKey[] {
  return Object.entries(sort ?? {}).map(([field, order]) => ({ field, descending: order === "desc" }));
}
