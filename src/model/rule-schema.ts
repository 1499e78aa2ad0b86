import { z } from "zod";
import { DURATION, parseDuration } from "../lib/duration.ts";
import { BESIDE_OTHERS, passIssues, WITH_NAMES } from "../lib/fault.ts";
import { DAY_MS } from "../lib/time.ts";
import { withSizeGuard } from "../lib/size-guard.ts";
import { CONDITION_DEPTH_MAX } from "./condition.ts";
import { fieldTestSchema, keywordSchema, oneOrSeveral, patternsFault } from "./condition-schema.ts";
import { severitySchema } from "./event-schema.ts";
import { pathFault } from "./field.ts";
import { timeSchema } from "./time-bound.ts";
import { ANY_SOURCE, CHANNELS, EXCEPTIONS_MAX, WINDOW_MS_MAX, type ConditionInput } from "./rule.ts";
import { ruleTestsSchema } from "./rule-test-schema.ts";
import { refuseCrowdedPlaces, refuseMixtures, refuseUnknownSources } from "./rule-faults.ts";

// Schemas of rules, for validation and for the OpenAPI document.

const RULE_TESTS_MAX = 1000;
export const CONDITION_ITEMS_MAX = 256;
const THRESHOLD_COUNT_MAX = 10_000;
const GROUP_PATHS_MAX = 5;
const STEPS_MAX = 10;
const PARTS_MAX = 10;
const STEP_COUNT_MAX = 1000;
const TAGS_MAX = 50;
const REFERENCES_MAX = 50;
const ACTIONS_MAX = 10;
/** More than there are channels, so that the fault of a repeated channel names its position. */
const ACTION_CHANNELS_MAX = 10;
const DEDUP_PERIOD_DEFAULT = "1h";

/** Dispatches by hand instead of a union, so that a fault names its exact path: conditions[2].any[0].cidr */
const conditionSchema: z.ZodType<ConditionInput> = z
  .lazy(() =>
    z.unknown().transform((input, context): ConditionInput => {
      const parsed = itemSchemaOf(input).safeParse(input, WITH_NAMES);
      if (parsed.success) return parsed.data as ConditionInput;
      passIssues(parsed.error, context);
      return z.NEVER;
    }),
  )
  .meta({
    id: "Condition",
    description: "a field test, { keyword }, or conditions combined with { any }, { all } or { not }",
  });

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

/** Limits the nesting of conditions. The nesting of the whole body is limited earlier. */
const conditionList = z
  .array(conditionSchema)
  .max(CONDITION_ITEMS_MAX)
  .superRefine((items, context) => {
    const path = tooDeep(items, CONDITION_DEPTH_MAX);
    if (path) context.addIssue({ code: "custom", path, message: `nested deeper than ${CONDITION_DEPTH_MAX}` });
  });
export const conditionsSchema = withSizeGuard(conditionList, refuseTests);
const someConditionsSchema = withSizeGuard(conditionList.min(1), refuseTests);

function refuseTests(items: unknown): string | undefined {
  return countTests(items) > RULE_TESTS_MAX ? `at most ${RULE_TESTS_MAX} tests in all` : patternsFault(items);
}

/** Counts the tests in a list of any shape; an empty list counts as one. */
function countTests(items: unknown): number {
  let tests = 0;
  for (const item of Array.isArray(items) ? (items as unknown[]) : []) {
    const { any, all, not } = (item ?? {}) as Record<string, unknown>;
    tests += countTests(any ?? all ?? (not === undefined ? undefined : [not]));
  }
  return Math.max(1, tests);
}

/** Path of the first condition that nests deeper than this many levels. */
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

/** Refuses repeated items: a repetition is most likely a typing error. */
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
  error: `must be a field path or a list of 1 to ${GROUP_PATHS_MAX} field paths`,
}).describe("a field path or a list of field paths");

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

const partName = z.string().trim().min(1).max(100);
const inputFields = {
  conditions: someConditionsSchema.optional().describe("required unless part is given"),
  part: partName.optional().describe("name of a part of the rule whose occurrences count instead of events"),
};

const thresholdSchema = z
  .strictObject({
    count: z
      .int()
      .min(1)
      .max(THRESHOLD_COUNT_MAX)
      .optional()
      .describe(
        "number of matching events within the window; with sum, avg, percentile, lte or lt the minimum number, default 1",
      ),
    group_by: pathsSchema
      .optional()
      .describe("counts separately for each value; an event without the field does not count"),
    distinct: pathsSchema
      .optional()
      .describe("counts distinct values of this field, or distinct combinations of these fields, instead of events"),
    sum: pathSchema.optional().describe("compares the sum of this numeric field within the window"),
    avg: pathSchema.optional().describe("compares the average of this numeric field within the window"),
    percentile: z
      .strictObject({ of: pathSchema, rank: z.number().gt(0).max(100) })
      .optional()
      .describe("compares a percentile of a numeric field within the window: { of: raw.ms, rank: 95 }"),
    gte: z.number().optional(),
    gt: z.number().optional(),
    lte: z.number().optional().describe("upper bound, inclusive; uses fixed windows that are decided after they end"),
    lt: z.number().optional().describe("upper bound, exclusive; uses fixed windows that are decided after they end"),
    inputs: z
      .array(
        z.strictObject({
          ...inputFields,
          group_by: pathsSchema
            .optional()
            .describe("paths of the group values in this input, if they differ from the threshold's group_by"),
          value: pathsSchema
            .optional()
            .describe(
              "paths of the measured values in this input, if they differ from those of distinct, sum, avg or percentile",
            ),
        }),
      )
      .min(1)
      .max(STEPS_MAX)
      .optional()
      .describe("events or parts that count, each with its own paths; default: every event that meets the conditions"),
  })
  .meta({ id: "NewThreshold" });

const stepSchema = z
  .strictObject({
    name: partName,
    ...inputFields,
    count: z.int().min(1).max(STEP_COUNT_MAX).default(1).describe("number of events that complete the step"),
    group_by: pathsSchema
      .optional()
      .describe("paths of the group values in this step, if they differ from the rule's group_by"),
    absent: z
      .boolean()
      .optional()
      .describe(
        "true: the step must not happen between its neighbours; as the last step, before the window ends; as the first step, in the window before",
      ),
  })
  .meta({ id: "NewSequenceStep" });

const sequenceFields = {
  sequence: z
    .array(stepSchema)
    .min(2)
    .max(STEPS_MAX)
    .nullable()
    .optional()
    .describe("steps that must happen within the window"),
  sequence_order: z.enum(["in_order", "any"]).default("in_order"),
  sequence_min: z
    .int()
    .min(1)
    .max(STEPS_MAX)
    .nullable()
    .optional()
    .describe("minimum number of steps that must happen, in any order; default: all"),
};

const partSchema = z
  .strictObject({
    name: partName,
    conditions: conditionsSchema.default([]).describe("must hold for each event that the part counts"),
    window: windowSchema,
    threshold: thresholdSchema.nullable().optional(),
    ...sequenceFields,
    group_by: pathsSchema.nullable().optional().describe("for a sequence: fields whose values group the events"),
  })
  .meta({ id: "NewRulePart", description: "a threshold or sequence within a rule; it may use earlier parts" });

export const exceptionInputSchema = z
  .strictObject({
    conditions: someConditionsSchema,
    reason: z.string().trim().min(1).max(1000),
    expires_at: timeSchema.nullable().optional().describe("default: never"),
  })
  .meta({ id: "NewException", description: "events that the rule ignores, and the reason" });

/** An exception in a rule that replaces another or is simulated: existing exceptions may be sent back as they were read. */
const keptExceptionSchema = exceptionInputSchema
  .extend({
    id: z.string().optional().describe("id of an existing exception, which keeps its author and creation time"),
    author: z.string().optional().describe("as read"),
    created_at: z.string().optional().describe("as read"),
  })
  .meta({ id: "KeptException", description: "an existing exception, identified by id, or a new one" });

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
  .describe("the Sigma rule that this rule was imported from; later Sigma filters may refer to it");

const NAME = /^[a-z0-9][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*)+$/;

const ruleFields = {
  name: z
    .string()
    .max(200)
    .regex(NAME, "must be namespace.name, in lower-case letters, digits, - and _")
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
      "title of the alerts, filled from the event: Failed logins from {{raw.src_ip}}; default: the first line of the description",
    ),
  references: z.array(z.string().trim().min(1).max(1000)).max(REFERENCES_MAX).default([]),
  conditions: conditionsSchema.describe("all must hold; may be empty only with a sequence or an absence"),
  window: windowSchema.nullable().optional().describe("length of the window in event time: 1s to 7d"),
  threshold: thresholdSchema.nullable().optional(),
  ...sequenceFields,
  group_by: pathsSchema
    .nullable()
    .optional()
    .describe("for sequence and absence: fields whose values group the events"),
  parts: z
    .array(partSchema)
    .max(PARTS_MAX)
    .default([])
    .describe("correlations within the rule that steps and inputs refer to by name"),
  absence: durationSchema(WINDOW_MS_MAX, "1m to 7d")
    .refine((text) => (parseDuration(text) ?? 60_000) >= 60_000, "at least 1m")
    .nullable()
    .optional()
    .describe("raises an alert when no matching event arrives for this long (1m to 7d) after the last one"),
  dedup: z
    .strictObject({
      period: durationSchema(30 * DAY_MS, "1s to 30d")
        .default(DEDUP_PERIOD_DEFAULT)
        .describe("findings closer together than this join one alert: 1s to 30d"),
      by: pathsSchema.nullable().optional().describe("fields that separate alerts; default: the group_by"),
    })
    .prefault({}),
  exceptions: z.array(exceptionInputSchema).max(EXCEPTIONS_MAX).default([]),
  actions: z.array(actionSchema).min(1).max(ACTIONS_MAX),
  origin: originSchema.nullable().optional(),
};

const inputSchemas = new Map<string, ReturnType<typeof newRuleInputSchema>>();

/**
 * Schema of a rule in a create request or a rule file. `sources` are the sources of this platform. The same sources give the
 * same schema object, since documents refer to it by name.
 */
export function ruleInputSchema(sources: readonly string[]): ReturnType<typeof newRuleInputSchema> {
  const key = sources.join();
  const known = inputSchemas.get(key) ?? newRuleInputSchema(sources);
  inputSchemas.set(key, known);
  return known;
}

function newRuleInputSchema(sources: readonly string[]) {
  return z
    .strictObject({
      ...ruleFields,
      enabled: z.boolean().default(true),
      source: sourceSchema(sources),
      tests: ruleTestsSchema(sources).default([]),
    })
    .superRefine(refuseMixtures, BESIDE_OTHERS)
    .superRefine((rule, context) => refuseUnknownSources(rule, sources, context), BESIDE_OTHERS)
    .meta({ id: "NewRule" });
}

/** Read-only fields of a rule. They are accepted and ignored, so that a client can send back what it has read. */
const saidFields = {
  id: z.string().optional().describe("as read"),
  builtin: z.boolean().optional().describe("as read; ignored"),
  created_at: z.string().optional().describe("as read; ignored"),
  updated_at: z.string().optional().describe("as read; ignored"),
  stats: z.looseObject({}).optional().describe("as read; ignored"),
  exceptions: z.array(keptExceptionSchema).max(EXCEPTIONS_MAX).default([]),
};

/** Schema of a rule that replaces another: `enabled` is required. */
export function ruleReplacementSchema(sources: readonly string[]) {
  return z
    .strictObject({
      ...ruleFields,
      ...saidFields,
      enabled: z.boolean(),
      source: sourceSchema(sources),
      tests: ruleTestsSchema(sources).optional(),
    })
    .superRefine(refuseMixtures, BESIDE_OTHERS)
    .superRefine((rule, context) => refuseUnknownSources(rule, sources, context), BESIDE_OTHERS)
    .meta({ id: "RuleReplacement" });
}

const simulatedSchemas = new Map<string, ReturnType<typeof newSimulatedRuleSchema>>();

/** Schema of a rule in a simulation or in a run of its tests. */
export function simulatedRuleSchema(sources: readonly string[]): ReturnType<typeof newSimulatedRuleSchema> {
  const key = sources.join();
  const known = simulatedSchemas.get(key) ?? newSimulatedRuleSchema(sources);
  simulatedSchemas.set(key, known);
  return known;
}

function newSimulatedRuleSchema(sources: readonly string[]) {
  return newRuleInputSchema(sources).safeExtend(saidFields).meta({ id: "SimulatedRule" });
}

function sourceSchema(sources: readonly string[]) {
  return z.enum([ANY_SOURCE, ...sources]).default(ANY_SOURCE);
}

export type RuleInput = z.output<ReturnType<typeof ruleInputSchema>>;

export type RuleReplacement = z.output<ReturnType<typeof ruleReplacementSchema>>;

/** A new exception: events that are not a match. */
export type ExceptionInput = Omit<z.output<typeof exceptionInputSchema>, "conditions"> & {
  readonly conditions: readonly ConditionInput[];
};
