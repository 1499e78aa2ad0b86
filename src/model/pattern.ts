// How large a pattern becomes when it is compiled, told from its text: compiling it to find out would take the time that
// is to be saved.

/** Characters that the compiled pattern compares, repetitions written out. */
export const PATTERN_WEIGHT_MAX = 2000;
/** The same for all patterns of a question or a rule: each takes time to compile before anything else happens. */
const PATTERNS_WEIGHT_MAX = 5000;
/** A class of Unicode is some hundred ranges. */
const UNICODE_CLASS_WEIGHT = 20;
const REPETITION = /^\{(\d{1,4})(?:,(\d{0,4}))?\}/;

/** At least as much as the pattern weighs; for one that RE2 does not take, whatever. */
export function patternWeight(pattern: string): number {
  // The weight of each group that is open, and of the last thing in it.
  const open: { sum: number; last: number }[] = [{ sum: 0, last: 0 }];
  const put = (weight: number) => {
    const group = open.at(-1)!;
    group.sum += group.last;
    group.last = weight;
  };
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern[i]!;
    if (char === "\\") {
      put(pattern[i + 1] === "p" || pattern[i + 1] === "P" ? UNICODE_CLASS_WEIGHT : 1);
      i++;
    } else if (char === "[") {
      let weight = 1;
      for (i += pattern[i + 1] === "^" ? 3 : 2; i < pattern.length && pattern[i] !== "]"; i++) {
        if (pattern[i] !== "\\") continue;
        i++;
        if (pattern[i] === "p" || pattern[i] === "P") weight += UNICODE_CLASS_WEIGHT;
      }
      put(weight);
    } else if (char === "(") open.push({ sum: 0, last: 0 });
    else if (char === ")" && open.length > 1) {
      const { sum, last } = open.pop()!;
      put(sum + last);
    } else if (char === "{") {
      const times = REPETITION.exec(pattern.slice(i, i + 12));
      if (!times) put(1);
      else {
        open.at(-1)!.last *= Math.max(1, Number(times[1]), Number(times[2] ?? 0)) + 1;
        i += times[0].length - 1;
      }
    } else if (!"?*+|^$".includes(char)) put(1);
  }
  return open.reduce((weight, { sum, last }) => weight + sum + last, 0);
}

/** What the patterns in a filter, or in a list of conditions, weigh in all. It meets things of any type. */
function patternsWeight(input: unknown): number {
  if (typeof input !== "object" || input === null) return 0;
  let weight = 0;
  for (const [key, value] of Object.entries(input)) {
    if (key !== "regex") weight += patternsWeight(value);
    else for (const pattern of [value].flat()) if (typeof pattern === "string") weight += patternWeight(pattern);
    if (weight > PATTERNS_WEIGHT_MAX) return weight;
  }
  return weight;
}

export function patternsFault(input: unknown): string | undefined {
  if (patternsWeight(input) <= PATTERNS_WEIGHT_MAX) return undefined;
  return `has patterns that are too large together: with their repetitions written out, ${PATTERNS_WEIGHT_MAX} characters are the most`;
}
