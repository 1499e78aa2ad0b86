import type { RuleBody } from "./rule.ts";
import type { RuleInput } from "./rule-schema.ts";
import type { RuleTest } from "./rule-test.ts";

/** A replacement may leave the tests as they are. */
type BodyInput = Omit<RuleInput, "tests"> & { readonly tests?: readonly RuleTest[] | undefined };

/** The stored form of a checked request. */
export function toRuleBody(input: BodyInput): RuleBody {
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
    parts: input.parts.length > 0 ? input.parts : undefined,
    dedup: { period: input.dedup.period, by: input.dedup.by ?? null },
    actions: input.actions,
    tests: input.tests !== undefined && input.tests.length > 0 ? input.tests : undefined,
    origin: input.origin ?? null,
  };
}
