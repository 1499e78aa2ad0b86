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
        if (flags[1]!.includes("i")) hasCase = false;
        close();
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
  return isSafe && longest.length > 1 ? longest.toLowerCase() : undefined;
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
