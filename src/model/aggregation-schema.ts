import { z } from "zod";
import { DURATION, parseDuration } from "../lib/duration.ts";
import { BESIDE_OTHERS } from "../lib/fault.ts";
import { withSizeGuard } from "../lib/size-guard.ts";
import {
  AGGREGATION_KINDS,
  AGGREGATIONS,
  type Aggregation,
  type AggregationKind,
  type AggregationOf,
  type Aggregations,
  type PerAggregation,
} from "./aggregation.ts";
import { positiveNumber } from "./condition-schema.ts";
import { fieldExcept } from "./field-schema.ts";
import { isTime, type QueryFields } from "./query-fields.ts";

// Schemas of aggregations in requests, and their conversion to the form that engines compute.

const TERMS_SIZE_MAX = 1000;
const AGGREGATIONS_MAX = 20;

const anyField = () => false;

const shapesOf = (fields: QueryFields) => {
  const { timeWords } = fields;
  const isText = (path: string) => fields.isText(path);
  const intervalWords = `a duration such as 5m, 1h or 1d for ${timeWords}, a number greater than 0 for other fields`;
  return {
    terms: z.strictObject({
      field: fieldExcept(fields, (path) => path === "id", "every id is different"),
      size: z.int().min(1).max(TERMS_SIZE_MAX).default(10),
    }),
    count: z.strictObject({ field: fieldExcept(fields, anyField, "").optional() }),
    histogram: z
      .strictObject({
        field: fieldExcept(fields, isText, `must be numeric or ${timeWords}`),
        interval: z
          .union([z.string().meta({ pattern: DURATION.source }), positiveNumber], {
            error: ({ input }) => (input === undefined ? "is required" : intervalWords),
          })
          .describe(intervalWords),
      })
      .superRefine(({ field, interval }, context) => {
        if (context.issues.length > 0) return;
        const needsDuration = isTime(fields, field);
        if (needsDuration && (typeof interval !== "string" || parseDuration(interval) === undefined)) {
          context.addIssue({ code: "custom", path: ["interval"], message: "a duration such as 5m, 1h or 1d" });
        }
        if (!needsDuration && typeof interval === "string") {
          context.addIssue({
            code: "custom",
            path: ["interval"],
            message: `a number greater than 0 (durations are for ${timeWords})`,
          });
        }
      }),
    stats: z.strictObject({ field: fieldExcept(fields, isText, "is not a number") }),
    cardinality: z.strictObject({ field: fieldExcept(fields, anyField, "") }),
  } satisfies PerAggregation<{ [Kind in AggregationKind]: z.ZodType }>;
};

type AggregationShapes = ReturnType<typeof shapesOf>;
type ShapeInput<Kind extends AggregationKind> = z.infer<AggregationShapes[Kind]>;

const READERS: PerAggregation<{
  [Kind in AggregationKind]: (input: ShapeInput<Kind>, aggs: Aggregations) => AggregationOf<Kind>;
}> = {
  terms: (input, aggs) => ({ kind: "terms", ...input, aggs }),
  count: ({ field }) => ({ kind: "count", field }),
  histogram: ({ field, interval }, aggs) => ({
    kind: "histogram",
    field,
    interval: typeof interval === "string" ? parseDuration(interval)! : Number(interval),
    aggs,
  }),
  stats: ({ field }) => ({ kind: "stats", field }),
  cardinality: ({ field }) => ({ kind: "cardinality", field }),
};

function kindsIn(input: object): AggregationKind[] {
  return AGGREGATION_KINDS.filter((kind) => input[kind as keyof typeof input] !== undefined);
}

function refuseSeveralKinds(input: object, context: z.RefinementCtx): void {
  if (kindsIn(input).length === 1) return;
  context.addIssue({ code: "custom", path: [], message: `takes one of ${AGGREGATION_KINDS.join(", ")}` });
}

/** The same constraint for the OpenAPI document. */
const ONE_KIND = { oneOf: AGGREGATION_KINDS.map((kind) => ({ required: [kind] })) };

/** Refuses objects with more keys before it looks at any of them. */
export function withKeyLimit<Schema extends z.ZodType>(schema: Schema, keysMax: number, words: string) {
  return withSizeGuard(schema, (input) =>
    typeof input === "object" && input !== null && Object.keys(input).length > keysMax
      ? `at most ${keysMax} ${words}`
      : undefined,
  ).meta({ maxProperties: keysMax });
}

/** Names of a bucket's own properties. */
const BUCKET_NAMES: ReadonlySet<string> = new Set(["key", "count"]);
const innerName = z
  .string()
  .min(1)
  .max(64)
  .refine((name) => !BUCKET_NAMES.has(name), "is reserved for the bucket itself: choose another name");

type OptionalShapes = { [Kind in AggregationKind]: z.ZodOptional<AggregationShapes[Kind]> };

export function aggregationsSchemaOf(fields: QueryFields) {
  const kinds = shapesOf(fields);
  const shapes = Object.fromEntries(
    AGGREGATION_KINDS.map((kind) => [kind, kinds[kind].optional().describe(AGGREGATIONS[kind].about)]),
  ) as unknown as OptionalShapes;
  const innerAggregation = z.strictObject(shapes).superRefine(refuseSeveralKinds, BESIDE_OTHERS).meta(ONE_KIND);
  const innerAggregations = withKeyLimit(z.record(innerName, innerAggregation), AGGREGATIONS_MAX, "aggregations");
  const aggregationSchema = z
    .strictObject({ ...shapes, aggs: innerAggregations.optional() })
    .superRefine((input, context) => {
      refuseSeveralKinds(input, context);
      if (input.aggs && !kindsIn(input).some((kind) => AGGREGATIONS[kind].hasBuckets)) {
        const kinds = AGGREGATION_KINDS.filter((kind) => AGGREGATIONS[kind].hasBuckets).join(" and ");
        context.addIssue({ code: "custom", path: ["aggs"], message: `is allowed inside ${kinds} only` });
      }
    }, BESIDE_OTHERS)
    .meta({ id: `${fields.prefix}Aggregation`, ...ONE_KIND });
  return withKeyLimit(z.record(z.string().min(1).max(64), aggregationSchema), AGGREGATIONS_MAX, "aggregations");
}

type InnerInput = { [Kind in AggregationKind]?: ShapeInput<Kind> | undefined };
type AggregationInput = InnerInput & { aggs?: Record<string, InnerInput> | undefined };

export function toAggregations(input: Record<string, AggregationInput> | undefined): Aggregations {
  return Object.entries(input ?? {}).map(([name, aggregation]) => ({ name, aggregation: toAggregation(aggregation) }));
}

function toAggregation(input: AggregationInput): Aggregation {
  // The schema has checked that there is exactly one.
  const [kind] = kindsIn(input) as [AggregationKind];
  const read = READERS[kind] as (shape: unknown, aggs: Aggregations) => Aggregation;
  return read(input[kind], toAggregations(input.aggs));
}
