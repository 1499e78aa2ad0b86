import { compilePattern, patternSubject } from "../model/condition.ts";
import type { FieldValue } from "../model/field.ts";
import type { Predicate } from "./compile.ts";

// Patterns of users. RE2 takes time in proportion to the text, so what bounds an event is how much text is given to it.

/** Characters that patterns look at for one event, all rules together; what is beyond does not match and is counted. */
const CHARACTERS_PER_EVENT_MAX = 1_000_000;

export class PatternBudget {
  #left = CHARACTERS_PER_EVENT_MAX;
  /** Tests that were not made. */
  skipped = 0;

  /** For the next event. */
  renew(): void {
    this.#left = CHARACTERS_PER_EVENT_MAX;
  }

  take(characters: number): boolean {
    if (this.#left <= 0) {
      this.skipped++;
      return false;
    }
    this.#left -= characters;
    return true;
  }
}

interface Subject {
  readonly values: () => readonly FieldValue[];
  readonly folded: () => readonly FieldValue[];
  readonly budget: PatternBudget;
}

export function compileRegex(patterns: readonly string[], ignoreCase: boolean, { values, budget }: Subject): Predicate {
  const compiled = patterns.map((pattern) => compilePattern(pattern, ignoreCase));
  return () => {
    for (const value of values()) {
      if (typeof value !== "string") continue;
      const subject = patternSubject(value);
      for (const pattern of compiled) {
        if (!budget.take(subject.length)) return false;
        if (pattern.test(subject)) return true;
      }
    }
    return false;
  };
}
