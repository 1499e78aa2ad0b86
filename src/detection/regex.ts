import type { FieldValue } from "../model/field.ts";
import type { Predicate } from "./compile.ts";
import type { FieldPattern, Patterns } from "./patterns.ts";

interface Subject {
  readonly values: () => readonly FieldValue[];
  /** The same values as guards compare them. */
  readonly guarded: () => readonly FieldValue[];
  /** Whether the rule gains by the pattern being found, rather than by its absence. */
  readonly isWanted: boolean;
}

/**
 * Whether one of the patterns is found in one of the values. A test that was given up never makes a rule match. One that
 * looked at a part of a very long value is taken at its word; both are counted as uncertain.
 */
export function compileRegex(
  tests: readonly FieldPattern[],
  patterns: Patterns,
  { values, guarded, isWanted }: Subject,
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
    if (patterns.isHopeful) return isWanted;
    return isUnknown ? !isWanted : false;
  };
}
