// How large a pattern becomes when it is compiled, told from its text: compiling it to find out would take the time that
// is to be saved.

/** Characters that the compiled pattern compares, repetitions written out. */
export const PATTERN_WEIGHT_MAX = 2000;
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
