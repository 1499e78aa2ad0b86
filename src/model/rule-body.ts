import type { RuleBody } from "./rule.ts";
import type { RuleInput } from "./rule-schema.ts";

/** The stored form of a checked request. */
export function toRuleBody(input: RuleInput): RuleBody {
  return {
    name: input.name,
    description: input.description,
    severity: input.severity,
    enabled: input.enabled,
    source: input.source,
    tags: input.tags,
    title: input.title ?? null,
    references: input.references,
    conditions: input.conditions,
    window: input.window ?? null,
    threshold: input.threshold ?? null,
    sequence: input.sequence ?? null,
    sequenceOrder: input.sequence_order,
    sequenceMin: input.sequence_min ?? null,
    groupBy: input.group_by ?? null,
    absence: input.absence ?? null,
    ...(input.parts.length > 0 && { parts: input.parts }),
    dedup: { period: input.dedup.period, by: input.dedup.by ?? null },
    actions: input.actions,
    origin: input.origin ?? null,
  };
}
