import { z } from "zod";
import { DAY_MS, formatTime } from "../lib/time.ts";
import type { Resolution } from "./alert-state.ts";
import { severitySchema } from "./event-schema.ts";
import { CHANNELS, type Rule, type RuleException, type RuleStats } from "./rule.ts";
import { originSchema, pathsSchema } from "./rule-schema.ts";
import type { RuleTest } from "./rule-test.ts";

// Rules as the API returns them.

/** Conditions are returned as they were sent; they were validated on input. */
const conditionViewSchema = z
  .looseObject({})
  .meta({ id: "RuleCondition", description: "the condition as it was sent" });

export const exceptionSchema = z
  .object({
    id: z.string(),
    conditions: z.array(conditionViewSchema),
    reason: z.string(),
    author: z.string(),
    created_at: z.string(),
    expires_at: z.string().nullable(),
  })
  .meta({ id: "RuleException" });

const inputViewFields = {
  conditions: z.array(conditionViewSchema).optional(),
  part: z.string().optional(),
  group_by: pathsSchema.optional(),
};
const thresholdViewSchema = z.object({
  count: z.int().optional(),
  group_by: pathsSchema.optional(),
  distinct: pathsSchema.optional(),
  sum: z.string().optional(),
  avg: z.string().optional(),
  percentile: z.object({ of: z.string(), rank: z.number() }).optional(),
  gte: z.number().optional(),
  gt: z.number().optional(),
  lte: z.number().optional(),
  lt: z.number().optional(),
  inputs: z.array(z.object({ ...inputViewFields, value: pathsSchema.optional() })).optional(),
});
const stepViewSchema = z.object({
  name: z.string(),
  ...inputViewFields,
  count: z.int(),
  absent: z.boolean().optional(),
});

/** Tests are returned as they were sent. */
const testViewSchema = z
  .object({
    name: z.string(),
    start: z.string().optional(),
    events: z.array(z.looseObject({ type: z.string() })),
    wait: z.string().optional(),
    alerts: z.int(),
    event_count: z.int().optional(),
    title: z.string().optional(),
  })
  .meta({ id: "StoredRuleTest", description: "the test as it was sent" });

/** A rule as the API returns it. */
export const ruleSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string(),
    severity: severitySchema,
    enabled: z.boolean(),
    source: z.string(),
    tags: z.array(z.string()),
    title: z.string().nullable(),
    references: z.array(z.string()),
    conditions: z.array(conditionViewSchema),
    window: z.string().nullable(),
    threshold: thresholdViewSchema.nullable(),
    sequence: z.array(stepViewSchema).nullable(),
    sequence_order: z.enum(["in_order", "any"]),
    sequence_min: z.int().nullable(),
    group_by: pathsSchema.nullable(),
    absence: z.string().nullable(),
    parts: z.array(
      z.object({
        name: z.string(),
        conditions: z.array(conditionViewSchema),
        window: z.string(),
        threshold: thresholdViewSchema.nullable().optional(),
        sequence: z.array(stepViewSchema).nullable().optional(),
        sequence_order: z.enum(["in_order", "any"]),
        sequence_min: z.int().nullable().optional(),
        group_by: pathsSchema.nullable().optional(),
      }),
    ),
    dedup: z.object({ period: z.string(), by: pathsSchema.nullable() }),
    exceptions: z.array(exceptionSchema),
    actions: z.array(z.object({ alert: z.object({ channels: z.array(z.enum(CHANNELS)) }) })),
    origin: originSchema.meta({ id: "RuleOrigin" }).nullable(),
    tests: z
      .array(testViewSchema)
      .optional()
      .describe("events and the alerts that they must raise; only where a single rule is returned"),
    builtin: z.boolean(),
    created_at: z.string(),
    updated_at: z.string(),
    stats: z.object({
      matches_24h: z.int().describe("matching events of the last 24 hours, by event time"),
      matches_7d: z.int().describe("matching events of the last 7 days, by event time"),
      last_match: z.string().nullable(),
      alerts_7d: z.int().describe("alerts created in the last 7 days"),
      false_positive_share: z
        .number()
        .nullable()
        .describe(
          "from 0 to 1: false positives among the resolved alerts that were created in the last 90 days; null if there are none",
        ),
    }),
  })
  .meta({ id: "Rule" });

/** The times of creation from which alerts count in the stats of a rule. */
export function outcomesSince(nowMs: number): { createdMs: number; resolvedMs: number } {
  return { createdMs: nowMs - 7 * DAY_MS, resolvedMs: nowMs - 90 * DAY_MS };
}

interface AlertOutcomes {
  readonly created: number;
  readonly resolutions: Readonly<Record<Resolution, number>>;
}

export function falsePositiveShare({ resolutions }: AlertOutcomes): number | null {
  const resolved = Object.values(resolutions).reduce((sum, count) => sum + count, 0);
  return resolved === 0 ? null : Math.round((1000 * resolutions.false_positive) / resolved) / 1000;
}

/** `tests`: for a single rule; lists are returned without them. */
export function ruleView(rule: Rule, stats: RuleStats, outcomes: AlertOutcomes, tests?: readonly RuleTest[]): object {
  const { id, name, description, severity, enabled, source, tags, title, references, conditions, window } = rule;
  return {
    id,
    name,
    description,
    severity,
    enabled,
    source,
    tags,
    title,
    references,
    conditions,
    window,
    threshold: rule.threshold,
    sequence: rule.sequence,
    sequence_order: rule.sequenceOrder,
    sequence_min: rule.sequenceMin ?? null,
    group_by: rule.groupBy,
    absence: rule.absence,
    parts: rule.parts ?? [],
    dedup: rule.dedup,
    exceptions: rule.exceptions.map(exceptionView),
    actions: rule.actions,
    origin: rule.origin ?? null,
    ...(tests && { tests }),
    builtin: rule.builtin,
    created_at: formatTime(rule.createdAt),
    updated_at: formatTime(rule.updatedAt),
    stats: {
      matches_24h: stats.matches24h,
      matches_7d: stats.matches7d,
      last_match: stats.lastMatchAt === null ? null : formatTime(stats.lastMatchAt),
      alerts_7d: outcomes.created,
      false_positive_share: falsePositiveShare(outcomes),
    },
  };
}

export function exceptionView(exception: RuleException): z.infer<typeof exceptionSchema> {
  return {
    id: exception.id,
    conditions: [...exception.conditions],
    reason: exception.reason,
    author: exception.author,
    created_at: formatTime(exception.createdAt),
    expires_at: exception.expiresAt === null ? null : formatTime(exception.expiresAt),
  };
}
