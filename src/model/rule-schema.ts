import { z } from "zod";
import { DURATION, parseDuration } from "../lib/duration.ts";
import { BESIDE_OTHERS, passIssues, WITH_NAMES } from "../lib/fault.ts";
import { DAY_MS } from "../lib/time.ts";
import { unlessTooMuch } from "../lib/unless-too-much.ts";
import { CONDITION_DEPTH_MAX } from "./condition.ts";
import { fieldTestSchema, keywordSchema, oneOrSeveral } from "./condition-schema.ts";
import { severitySchema } from "./event-schema.ts";
import { pathFault } from "./field.ts";
import { patternsFault } from "./pattern.ts";
import { timeSchema } from "./query.ts";
import { ANY_SOURCE, CHANNELS, EXCEPTIONS_MAX, WINDOW_MS_MAX, type ConditionInput } from "./rule.ts";
import { refuseCrowdedPlaces, refuseMixtures, refuseUnknownSources } from "./rule-faults.ts";

// How rules are checked and described.

const RULE_TESTS_MAX = 1000;
export const CONDITION_ITEMS_MAX = 256;
const THRESHOLD_COUNT_MAX = 10_000;
const GROUP_PATHS_MAX = 5;
const STEPS_MAX = 10;
const STEP_COUNT_MAX = 1000;
const TAGS_MAX = 50;
const REFERENCES_MAX = 50;
const ACTIONS_MAX = 10;
/** More than there are: one that is given twice is told by its place. */
const ACTION_CHANNELS_MAX = 10;
const DEDUP_PERIOD_DEFAULT = "1h";

/** Told apart by hand, so that a fault names its exact place: conditions[2].any[0].cidr */
const conditionSchema: z.ZodType<ConditionInput> = z
  .lazy(() =>
    z.unknown().transform((input, context): ConditionInput => {
      const parsed = itemSchemaOf(input).safeParse(input, WITH_NAMES);
      if (parsed.success) return parsed.data as ConditionInput;
      passIssues(parsed.error, context);
      return z.NEVER;
    }),
  )
  .meta({ id: "Condition", description: "a field test, { keyword }, or { any }, { all }, { not } of conditions" });

const anySchema = z.strictObject({ any: z.array(conditionSchema).min(1).max(CONDITION_ITEMS_MAX) });
const allSchema = z.strictObject({ all: z.array(conditionSchema).min(1).max(CONDITION_ITEMS_MAX) });
const notSchema = z.strictObject({ not: conditionSchema });

function itemSchemaOf(input: unknown): z.ZodType {
  if (typeof input !== "object" || input === null) return fieldTestSchema;
  if ("any" in input) return anySchema;
  if ("all" in input) return allSchema;
  if ("not" in input) return notSchema;
  return "keyword" in input ? keywordSchema : fieldTestSchema;
}

/** How deep a body nests is bounded before it gets here; how deep conditions may nest is said here. */
const conditionList = z
  .array(conditionSchema)
  .max(CONDITION_ITEMS_MAX)
  .superRefine((items, context) => {
    const path = tooDeep(items, CONDITION_DEPTH_MAX);
    if (path) context.addIssue({ code: "custom", path, message: `nested deeper than ${CONDITION_DEPTH_MAX}` });
  });
export const conditionsSchema = unlessTooMuch(conditionList, refuseTests);
const someConditionsSchema = unlessTooMuch(conditionList.min(1), refuseTests);

function refuseTests(items: unknown): string | undefined {
  return countTests(items) > RULE_TESTS_MAX ? `at most ${RULE_TESTS_MAX} tests in all` : patternsFault(items);
}

/** Those of a list of any shape; a list without any counts as one. */
function countTests(items: unknown): number {
  let tests = 0;
  for (const item of Array.isArray(items) ? (items as unknown[]) : []) {
    const { any, all, not } = (item ?? {}) as Record<string, unknown>;
    tests += countTests(any ?? all ?? (not === undefined ? undefined : [not]));
  }
  return Math.max(1, tests);
}

/** Where the first condition stands that has others in it although so many levels are above it. */
function tooDeep(items: readonly ConditionInput[], levels: number): PropertyKey[] | undefined {
  for (const [i, item] of items.entries()) {
    const [name, inner] =
      "any" in item ? ["any", item.any] : "all" in item ? ["all", item.all] : "not" in item ? ["not", [item.not]] : [];
    if (name === undefined) continue;
    if (levels === 0) return [i];
    const within = tooDeep(inner as readonly ConditionInput[], levels - 1);
    if (within) return [i, name, ...(name === "not" ? within.slice(1) : within)];
  }
  return undefined;
}

const pathSchema = z.string().superRefine((path, context) => {
  const fault = pathFault(path);
  if (fault) context.addIssue({ code: "custom", message: fault });
});

/** The same thing twice is a slip: whoever wrote it meant something else. */
function refuseRepeated(items: readonly string[], context: z.RefinementCtx): void {
  for (const [i, item] of items.entries()) {
    if (items.indexOf(item) < i) context.addIssue({ code: "custom", path: [i], message: "is given twice" });
  }
}

const severalPaths = z
  .array(pathSchema)
  .min(1)
  .max(GROUP_PATHS_MAX)
  .superRefine(refuseRepeated)
  .meta({ uniqueItems: true });
export const pathsSchema = oneOrSeveral(pathSchema, severalPaths, {
  itemsMax: GROUP_PATHS_MAX,
  error: `a field path, or a list of 1 to ${GROUP_PATHS_MAX} of them`,
}).describe("a field path, or a list of them");

function durationSchema(maxMs: number, words: string) {
  return z
    .string()
    .refine((text) => {
      const ms = parseDuration(text);
      return ms !== undefined && ms <= maxMs;
    }, `a duration such as 30s, 5m, 1h or 2d, ${words}`)
    .meta({ pattern: DURATION.source, examples: ["5m"] });
}
const windowSchema = durationSchema(WINDOW_MS_MAX, "1s to 7d");

const thresholdSchema = z.strictObject({
  count: z
    .int()
    .min(1)
    .max(THRESHOLD_COUNT_MAX)
    .optional()
    .describe(
      "so many matching events within the window; beside sum, avg, percentile, lte or lt: at least so many, default 1",
    ),
  group_by: pathsSchema.optional().describe("counted apart for each value; an event without it does not count"),
  distinct: pathsSchema
    .optional()
    .describe("count different values of this field, or different combinations of these, instead of events"),
  sum: pathSchema.optional().describe("the sum of this field's numbers within the window, compared with gte or gt"),
  avg: pathSchema.optional().describe("the same of their average"),
  percentile: z
    .strictObject({ of: pathSchema, rank: z.number().gt(0).max(100) })
    .optional()
    .describe("the same of a percentile: { of: raw.ms, rank: 95 }"),
  gte: z.number().optional(),
  gt: z.number().optional(),
  lte: z.number().optional().describe("at most: windows on a fixed grid, decided after their end"),
  lt: z.number().optional().describe("less than: the same"),
});

const stepSchema = z.strictObject({
  name: z.string().trim().min(1).max(100),
  conditions: someConditionsSchema,
  count: z.int().min(1).max(STEP_COUNT_MAX).default(1).describe("how many events make the step"),
  group_by: pathsSchema
    .optional()
    .describe("where this step has the value under another path than the rule's group_by"),
  absent: z
    .boolean()
    .optional()
    .describe(
      "true: the step must not happen between its neighbours; last: before the window ends; first: in the window before",
    ),
});

export const exceptionInputSchema = z
  .strictObject({
    conditions: someConditionsSchema,
    reason: z.string().trim().min(1).max(1000),
    expires_at: timeSchema.nullable().optional().describe("default: never"),
  })
  .meta({ id: "NewException", description: "events that are no match of the rule, and why" });

/** In a rule that replaces another, or is tried, those that it has already stand as they were read. */
const keptExceptionSchema = exceptionInputSchema
  .extend({
    id: z.string().optional().describe("of one that the rule has: it stays, with its author and its time"),
    author: z.string().optional().describe("as it was read"),
    created_at: z.string().optional().describe("as it was read"),
  })
  .meta({ id: "KeptException", description: "an exception that the rule has, by its id, or a new one" });

const actionSchema = z
  .strictObject({
    alert: z.strictObject({
      channels: z
        .array(z.enum(CHANNELS))
        .max(ACTION_CHANNELS_MAX)
        .superRefine(refuseRepeated)
        .meta({ uniqueItems: true }),
    }),
  })
  .meta({ id: "RuleAction" });

const ORIGIN_CHARACTERS_MAX = 300;
const originWord = z.string().max(ORIGIN_CHARACTERS_MAX);
export const originSchema = z
  .strictObject({
    sigma: z.strictObject({
      id: originWord.nullable(),
      name: originWord.nullable(),
      logsource: z.strictObject({
        category: originWord.optional(),
        product: originWord.optional(),
        service: originWord.optional(),
      }),
    }),
  })
  .describe("the Sigma rule that it was imported from, which later filters may name");

const NAME = /^[a-z0-9][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*)+$/;

const ruleFields = {
  name: z
    .string()
    .max(200)
    .regex(NAME, "namespace.name: lower-case letters, digits, - and _, with a dot between")
    .meta({ examples: ["site.repeated_login_failure"] }),
  description: z.string().trim().min(1).max(10_000).superRefine(refuseCrowdedPlaces),
  severity: severitySchema,
  tags: z.array(z.string().trim().min(1).max(100)).max(TAGS_MAX).default([]),
  title: z
    .string()
    .trim()
    .min(1)
    .max(300)
    .superRefine(refuseCrowdedPlaces)
    .nullable()
    .optional()
    .describe(
      "title of its alerts, filled from the event: Failed logins from {{raw.src_ip}}; default: the description's first line",
    ),
  references: z.array(z.string().trim().min(1).max(1000)).max(REFERENCES_MAX).default([]),
  conditions: conditionsSchema.describe("all must hold; empty only with a sequence or an absence"),
  window: windowSchema.nullable().optional().describe("how close together, by the times of the events: 1s to 7d"),
  threshold: thresholdSchema.nullable().optional(),
  sequence: z
    .array(stepSchema)
    .min(2)
    .max(STEPS_MAX)
    .nullable()
    .optional()
    .describe("steps that must all happen within the window"),
  sequence_order: z.enum(["in_order", "any"]).default("in_order"),
  sequence_min: z
    .int()
    .min(1)
    .max(STEPS_MAX)
    .nullable()
    .optional()
    .describe("how many of the steps must happen, in any order; default all"),
  group_by: pathsSchema.nullable().optional().describe("for sequence and absence: what belongs together"),
  absence: durationSchema(WINDOW_MS_MAX, "1m to 7d")
    .refine((text) => (parseDuration(text) ?? 60_000) >= 60_000, "at least 1m")
    .nullable()
    .optional()
    .describe("an alert when no matching event came for so long (1m to 7d), once there has been one"),
  dedup: z
    .strictObject({
      period: durationSchema(30 * DAY_MS, "1s to 30d")
        .default(DEDUP_PERIOD_DEFAULT)
        .describe("findings less than this apart are one alert: 1s to 30d"),
      by: pathsSchema.nullable().optional().describe("default: the group_by"),
    })
    .prefault({}),
  exceptions: z.array(exceptionInputSchema).max(EXCEPTIONS_MAX).default([]),
  actions: z.array(actionSchema).min(1).max(ACTIONS_MAX),
  origin: originSchema.nullable().optional(),
};

const inputSchemas = new Map<string, ReturnType<typeof newRuleInputSchema>>();

/**
 * A rule as it is created, or as a rule file has it. `sources` are those of this platform. For the same ones it is the
 * same schema, since documents refer to it by its name.
 */
export function ruleInputSchema(sources: readonly string[]): ReturnType<typeof newRuleInputSchema> {
  const key = sources.join();
  const known = inputSchemas.get(key) ?? newRuleInputSchema(sources);
  inputSchemas.set(key, known);
  return known;
}

function newRuleInputSchema(sources: readonly string[]) {
  return z
    .strictObject({ ...ruleFields, enabled: z.boolean().default(true), source: sourceSchema(sources) })
    .superRefine(refuseMixtures, BESIDE_OTHERS)
    .superRefine((rule, context) => refuseUnknownSources(rule, sources, context), BESIDE_OTHERS)
    .meta({ id: "NewRule" });
}

/** What the service says of a rule. Whoever sends back what they have read need not take it out: it changes nothing. */
const saidFields = {
  id: z.string().optional().describe("as it was read"),
  builtin: z.boolean().optional().describe("as it was read; not heeded"),
  created_at: z.string().optional().describe("as it was read; not heeded"),
  updated_at: z.string().optional().describe("as it was read; not heeded"),
  stats: z.looseObject({}).optional().describe("as they were read; not heeded"),
  exceptions: z.array(keptExceptionSchema).max(EXCEPTIONS_MAX).default([]),
};

/** A rule as it replaces another: `enabled` must be said. */
export function ruleReplacementSchema(sources: readonly string[]) {
  return z
    .strictObject({
      ...ruleFields,
      ...saidFields,
      enabled: z.boolean(),
      source: sourceSchema(sources),
    })
    .superRefine(refuseMixtures, BESIDE_OTHERS)
    .superRefine((rule, context) => refuseUnknownSources(rule, sources, context), BESIDE_OTHERS)
    .meta({ id: "RuleReplacement" });
}

/** A rule as it is tried. */
export function simulatedRuleSchema(sources: readonly string[]) {
  return newRuleInputSchema(sources).safeExtend(saidFields).meta({ id: "SimulatedRule" });
}

function sourceSchema(sources: readonly string[]) {
  return z.enum([ANY_SOURCE, ...sources]).default(ANY_SOURCE);
}

export type RuleInput = z.output<ReturnType<typeof ruleInputSchema>>;

export type RuleReplacement = z.output<ReturnType<typeof ruleReplacementSchema>>;

/** What a person says of events that are no match. */
export type ExceptionInput = Omit<z.output<typeof exceptionInputSchema>, "conditions"> & {
  readonly conditions: readonly ConditionInput[];
};
