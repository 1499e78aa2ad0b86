import { z } from "zod";
import { OPERATOR_NAMES } from "./condition.ts";
import { MATCHED_FIELDS_MAX, MATCHED_VALUE_CHARACTERS_MAX, type MatchedField } from "./matched-fields.ts";
import { groupPaths, inputsOf, pathList, toCorrelated, type Rule } from "./rule.ts";
import type { RuleDefinition } from "./rule-definition.ts";

// Why an alert fired, as the API returns it.

export interface EventExplanation {
  readonly eventId: string;
  /** The part of the rule that counted the event; null: the rule itself. */
  readonly part: string | null;
  /** The name of the step; null without a sequence. */
  readonly step: string | null;
  /** The position of the step, or of the input of a threshold, from 1; null if the rule or part has neither. */
  readonly stepNumber: number | null;
  readonly fields: readonly MatchedField[];
  /** False if the explanation took too long. */
  readonly isComplete: boolean;
}

export interface AlertMatch {
  /** `stored`: as the rule was at its last match. `current`: the rule as it is, for alerts of earlier versions. */
  readonly origin: "stored" | "current";
  readonly definition: RuleDefinition;
  readonly events: readonly EventExplanation[];
}

const MATCH_KINDS = ["single", "threshold", "sequence", "absence"] as const;
type MatchKind = (typeof MATCH_KINDS)[number];

const stageFields = {
  kind: z.enum(MATCH_KINDS),
  window: z.string().nullable(),
  group_by: z.array(z.string()).describe("paths whose values the events share"),
  threshold: z
    .object({
      count: z.int().nullable(),
      distinct: z.array(z.string()).describe("paths whose different values are counted"),
      sum: z.string().nullable(),
      avg: z.string().nullable(),
      percentile: z.object({ of: z.string(), rank: z.number() }).nullable(),
      gte: z.number().nullable(),
      gt: z.number().nullable(),
      lte: z.number().nullable(),
      lt: z.number().nullable(),
    })
    .nullable(),
  order: z.enum(["in_order", "any"]).nullable().describe("of the steps of a sequence"),
  steps_min: z.int().nullable().describe("number of steps that suffice; null: all"),
  steps: z
    .array(
      z.object({
        number: z.int().describe("from 1"),
        name: z.string().nullable().describe("null for an input of a threshold"),
        count: z.int().nullable().describe("number of events that complete the step"),
        absent: z.boolean().describe("the step must not happen"),
        part: z.string().nullable().describe("the part whose occurrences count, instead of events"),
      }),
    )
    .describe("steps of a sequence, or inputs of a threshold"),
};

const scalarSchema = z.union([z.string(), z.number(), z.boolean()]).nullable();

const eventMatchSchema = z.object({
  event_id: z.string(),
  part: z.string().nullable().describe("the part of the rule that counted the event; null: the rule itself"),
  step: z.string().nullable().describe("the name of the step"),
  step_number: z.int().nullable().describe("its number in `steps` of the rule or part"),
  fields: z
    .array(
      z.object({
        field: z.string(),
        operator: z.enum(OPERATOR_NAMES),
        value: scalarSchema.describe(
          `the value that matched, shortened to ${MATCHED_VALUE_CHARACTERS_MAX} characters; null if there is none`,
        ),
        expected: scalarSchema.describe("the value of the condition; of a list, the item that matched"),
      }),
    )
    .describe(`at most ${MATCHED_FIELDS_MAX}; empty if the event no longer meets the rule`),
  complete: z.boolean().describe("false if the explanation was stopped because it took too long"),
});

export const alertMatchSchema = z
  .object({
    rule_as: z
      .enum(["stored", "current"])
      .describe("stored: the rule as it was at its last match; current: as it is now, for alerts of earlier versions"),
    ...stageFields,
    absence: z.string().nullable().describe("how long the events were absent"),
    parts: z.array(z.object({ name: z.string(), ...stageFields })),
    events: z.array(eventMatchSchema).describe("the related events, in the same order"),
  })
  .meta({ id: "AlertMatch" });

export function alertMatchView({ origin, definition, events }: AlertMatch): z.infer<typeof alertMatchSchema> {
  return {
    rule_as: origin,
    ...stageView(definition),
    kind: definition.absence === null ? kindOf(definition) : "absence",
    absence: definition.absence,
    parts: (definition.parts ?? []).map((part) => ({ name: part.name, ...stageView(toCorrelated(part)) })),
    events: events.map((event) => ({
      event_id: event.eventId,
      part: event.part,
      step: event.step,
      step_number: event.stepNumber,
      // Integers beyond 2^53 are bigints here and numbers in JSON.
      fields: event.fields as z.infer<typeof eventMatchSchema>["fields"],
      complete: event.isComplete,
    })),
  };
}

type Stage = Pick<Rule, "window" | "threshold" | "sequence" | "sequenceOrder" | "sequenceMin" | "groupBy">;

function kindOf({ sequence, threshold }: Pick<Stage, "sequence" | "threshold">): MatchKind {
  return sequence ? "sequence" : threshold ? "threshold" : "single";
}

function stageView(stage: Stage) {
  const { threshold, sequence } = stage;
  return {
    kind: kindOf(stage),
    window: stage.window,
    group_by: [...groupPaths(stage)],
    threshold: threshold && {
      count: threshold.count ?? null,
      distinct: [...pathList(threshold.distinct)],
      sum: threshold.sum ?? null,
      avg: threshold.avg ?? null,
      percentile: threshold.percentile ?? null,
      gte: threshold.gte ?? null,
      gt: threshold.gt ?? null,
      lte: threshold.lte ?? null,
      lt: threshold.lt ?? null,
    },
    order: sequence && stage.sequenceOrder,
    steps_min: stage.sequenceMin ?? null,
    steps: (inputsOf(stage) ?? []).map((input, i) => ({
      number: i + 1,
      name: "name" in input ? input.name : null,
      count: "count" in input && !input.absent ? input.count : null,
      absent: "absent" in input && input.absent === true,
      part: input.part ?? null,
    })),
  };
}
