import { OPERATORS, type RelationOperator } from "../../model/condition.ts";
import type { FieldValue } from "../../model/field.ts";
import type { Predicate } from "./predicate.ts";
import type { RulePatterns } from "./rule-patterns.ts";

// Tests that compare each value of a field with each value of another. Two long lists can have too many pairs, so a test has a
// step budget like a pattern (rule-patterns.ts) and is uncertain when the budget runs out.

/** Steps (about a nanosecond each) per pair, in addition to one per scanned character. */
const PAIR_STEPS = 32;

interface RelationSubject {
  readonly values: () => readonly FieldValue[];
  readonly others: () => readonly FieldValue[];
  /** True if a passing test helps the rule to match, false if a failing one does. */
  readonly isPositive: boolean;
}

export function compileRelation(name: RelationOperator, patterns: RulePatterns, subject: RelationSubject): Predicate {
  return name === "equals_field" ? compileEquals(subject) : compilePairs(name, patterns, subject);
}

/** Values are already folded if case is ignored. An object equals nothing. */
function compileEquals({ values, others }: RelationSubject): Predicate {
  return () => {
    const found = others();
    if (found.length === 0) return false;
    if (found.length === 1) return values().some((value) => value === found[0] && typeof value !== "symbol");
    const set = new Set(found);
    return values().some((value) => typeof value !== "symbol" && set.has(value));
  };
}

function compilePairs(
  name: Exclude<RelationOperator, "equals_field">,
  patterns: RulePatterns,
  { values, others, isPositive }: RelationSubject,
): Predicate {
  const { relation } = OPERATORS[name];
  const scansValue = name === "contains_field";
  const compare = (): boolean | undefined => {
    const found = others();
    if (found.length === 0) return false;
    const own = values();
    const share = patterns.shareFor(own.length + found.length, charactersOf(own) + charactersOf(found));
    let isDecided = true;
    let holds = false;
    for (let i = 0; i < own.length && isDecided && !holds; i++) {
      const value = own[i]!;
      if (typeof value !== "string") continue;
      const steps = PAIR_STEPS + (scansValue ? value.length : 0);
      for (let j = 0; j < found.length && !holds; j++) {
        const other = found[j]!;
        if ((share.purse.steps -= steps) < 0) {
          isDecided = false;
          break;
        }
        holds = relation!(value, other, identity);
      }
    }
    share.settle();
    if (isDecided) return holds;
    patterns.aborted++;
    return undefined;
  };
  // The outcome is cached per event, so that a later call does not depend on the remaining budget.
  let round = -1;
  let outcome: boolean | undefined;
  return () => {
    if (round !== patterns.round) {
      outcome = compare();
      round = patterns.round;
    }
    if (outcome !== undefined) return outcome;
    patterns.uncertain++;
    return patterns.isOptimistic ? isPositive : !isPositive;
  };
}

const identity = (text: string): string => text;

function charactersOf(values: readonly FieldValue[]): number {
  let characters = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value === "string") characters += value.length;
  }
  return characters;
}
