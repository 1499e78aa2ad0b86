import type { FieldValue } from "../../model/field.ts";
import type { Predicate } from "./predicate.ts";
import type { FieldPattern, RulePatterns } from "./rule-patterns.ts";

interface RegexSubject {
  readonly values: () => readonly FieldValue[];
  /** The same values as guards compare them. */
  readonly guarded: () => readonly FieldValue[];
  /** True if finding the pattern helps the rule to match, false if its absence does. */
  readonly isPositive: boolean;
}

/**
 * Holds if one of the patterns is found in one of the values. An aborted test never makes a rule match. A test on a part of a
 * very long value counts with its result. Both count as uncertain.
 */
export function compileRegex(
  tests: readonly FieldPattern[],
  patterns: RulePatterns,
  { values, guarded, isPositive }: RegexSubject,
): Predicate {
  return () => {
    const texts = values();
    const folded = guarded();
    let isUnknown = false;
    let isPartial = false;
    for (let i = 0; i < texts.length; i++) {
      const text = texts[i];
      if (typeof text !== "string") continue;
      for (let j = 0; j < tests.length; j++) {
        const outcome = tests[j]!.test(text, folded[i] as string, i);
        if (outcome === "found") return true;
        if (outcome === "unknown") isUnknown = true;
        else if (outcome === "partial") isPartial = true;
      }
    }
    if (!isUnknown && !isPartial) return false;
    patterns.uncertain++;
    if (patterns.isOptimistic) return isPositive;
    return isUnknown ? !isPositive : false;
  };
}
