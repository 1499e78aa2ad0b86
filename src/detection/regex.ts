import { compilePattern, patternSubject } from "../model/condition.ts";
import type { FieldValue } from "../model/field.ts";
import { Automaton, type Purse } from "../model/automaton.ts";
import type { Predicate } from "./compile.ts";
import { guardText } from "./letters.ts";

// Patterns of users: what they may cost an event is bounded, however many there are.

/** Steps that one test may take: less than ten milliseconds. */
const STEPS_PER_TEST_MAX = 5_500_000;
/** Steps that all of an event may take. */
const STEPS_PER_EVENT_MAX = 4 * STEPS_PER_TEST_MAX;
/** Besides, for short texts alone: whoever sends one long field must not switch off the rules about all the others. */
const STEPS_FOR_SHORT_MAX = 2_000_000;
const SHORT_CHARACTERS_MAX = 1024;

/** What an event's patterns may still cost. */
export class PatternBudget {
  /** Tests that were given up. */
  skipped = 0;
  readonly #purse: Purse = { steps: 0 };
  #steps = STEPS_PER_EVENT_MAX;
  #stepsForShort = STEPS_FOR_SHORT_MAX;

  /** For the next event. */
  renew(): void {
    this.#steps = STEPS_PER_EVENT_MAX;
    this.#stepsForShort = STEPS_FOR_SHORT_MAX;
  }

  /** Whether the pattern is found; a test that is given up has not found it, and is counted. */
  test(automaton: Automaton, text: string): boolean {
    const purse = this.#purse;
    let isFound: boolean | undefined;
    if (text.length <= SHORT_CHARACTERS_MAX && this.#stepsForShort > 0) {
      purse.steps = this.#stepsForShort;
      isFound = automaton.test(text, purse);
      this.#stepsForShort = purse.steps;
    }
    if (isFound === undefined && this.#steps > 0) {
      const allowed = Math.min(this.#steps, STEPS_PER_TEST_MAX);
      purse.steps = allowed;
      isFound = automaton.test(text, purse);
      this.#steps -= allowed - purse.steps;
    }
    if (isFound === undefined) this.skipped++;
    return isFound === true;
  }
}

interface Subject {
  readonly values: () => readonly FieldValue[];
  /** The same values as guards compare them. */
  readonly guarded: () => readonly FieldValue[];
  readonly budget: PatternBudget;
}

export function compileRegex(patterns: readonly string[], ignoreCase: boolean, subject: Subject): Predicate {
  const { values, guarded, budget } = subject;
  const tests = patterns.map((pattern) => {
    const required = requiredText(pattern, ignoreCase);
    let automaton: Automaton | undefined;
    return (text: string, plain: string): boolean => {
      if (required !== undefined && !plain.includes(required)) return false;
      // Made when it is first needed: most rules never get here, and loading thousands of rules must not take long.
      automaton ??= new Automaton(compilePattern(pattern, ignoreCase));
      return budget.test(automaton, patternSubject(text));
    };
  });
  return () => {
    const texts = values();
    const plain = guarded();
    for (let i = 0; i < texts.length; i++) {
      const text = texts[i];
      if (typeof text !== "string") continue;
      for (const test of tests) if (test(text, plain[i] as string)) return true;
    }
    return false;
  };
}

const FLAGS = /^\(\?([a-zA-Z-]+)\)/;
/** Escapes that stand for one plain character; what else a backslash begins ends the search or the text. */
const PLAIN_ESCAPE = /[^\w\s]/;
const CLASS_ESCAPE = /[dDwWsSbBAz]/;
const CONTROL_ESCAPE = /[tnrfva]/;
const SPECIAL = new Set(["^", "$", ".", "|", ")", "?", "*", "+", "{"]);

/**
 * A text, in one case, that every match has in it: the longest run of plain characters outside of groups and choices.
 * Undefined when there is none, or the pattern has something in it that this does not know.
 */
export function requiredText(pattern: string, ignoreCase: boolean): string | undefined {
  let hasCase = !ignoreCase;
  let longest = "";
  let run = "";
  const close = () => {
    if (run.length > longest.length) longest = run;
    run = "";
  };
  for (let i = 0; i < pattern.length;) {
    const char = pattern[i]!;
    const next = pattern[i + 1];
    if (char === "|") return undefined;
    if (char === "(") {
      const flags = FLAGS.exec(pattern.slice(i, i + 12));
      if (flags) {
        // Further on they have a quantifier behind them that is about what stands before, or a part that they end with.
        if (i > 0) return undefined;
        if (flags[1]!.includes("i")) hasCase = false;
        i += flags[0].length;
        continue;
      }
      const end = groupEnd(pattern, i);
      if (end === undefined) return undefined;
      close();
      i = end;
    } else if (char === "[") {
      const end = classEnd(pattern, i);
      if (end === undefined) return undefined;
      close();
      i = end;
    } else if (char === "\\") {
      if (next === undefined) return undefined;
      if (CLASS_ESCAPE.test(next) || CONTROL_ESCAPE.test(next)) close();
      else if (PLAIN_ESCAPE.test(next)) run += next;
      else return undefined;
      i += 2;
    } else if (SPECIAL.has(char)) {
      // What may be absent is not required, and what may repeat ends the run.
      if (char === "?" || char === "*" || char === "{") run = run.slice(0, -1);
      close();
      if (char === "{") {
        const end = pattern.indexOf("}", i);
        if (end < 0 || !/^\{\d+(,\d*)?\}$/.test(pattern.slice(i, end + 1))) return undefined;
        i = end;
      }
      i++;
    } else {
      run += char;
      i++;
    }
  }
  close();
  // Without case, letters beyond ASCII have more forms than one lower case brings together.
  const isSafe = hasCase ? longest.isWellFormed() : /^[ -~]*$/.test(longest);
  return isSafe && longest.length > 1 ? guardText(longest) : undefined;
}

function groupEnd(pattern: string, start: number): number | undefined {
  let depth = 0;
  for (let i = start; i < pattern.length; i++) {
    const char = pattern[i]!;
    if (char === "\\") {
      if (/[QCpPx0-9]/.test(pattern[i + 1] ?? "Q")) return undefined;
      i++;
    } else if (char === "[") {
      const end = classEnd(pattern, i);
      if (end === undefined) return undefined;
      i = end - 1;
    } else if (char === "(") {
      // Flags in the middle of a group reach further than is looked at here.
      if (FLAGS.test(pattern.slice(i, i + 12))) return undefined;
      depth++;
    } else if (char === ")" && --depth === 0) return i + 1;
  }
  return undefined;
}

function classEnd(pattern: string, start: number): number | undefined {
  let i = start + 1;
  if (pattern[i] === "^") i++;
  // A bracket that comes first is one of the class.
  if (pattern[i] === "]") i++;
  for (; i < pattern.length; i++) {
    if (pattern[i] === "\\") {
      if (pattern[i + 1] === "Q") return undefined;
      i++;
    } else if (pattern[i] === "[" && pattern[i + 1] === ":") return undefined;
    else if (pattern[i] === "]") return i + 1;
  }
  return undefined;
}
