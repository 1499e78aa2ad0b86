// Estimates the compiled size of a pattern from its text. Compiling a pattern to measure it would cost the time that the
// limit is there to save.

/** Limit of one pattern's weight: the characters that it compares once its repetitions are expanded. */
export const PATTERN_WEIGHT_MAX = 2000;
/** A Unicode class has hundreds of ranges. */
const UNICODE_CLASS_WEIGHT = 20;
const REPETITION = /^\{(\d{1,4})(?:,(\d{0,4}))?\}/;

/** Upper bound of the pattern's weight; meaningless for a pattern that RE2 rejects. */
export function patternWeight(pattern: string): number {
  // For each open group, the weight of its items so far and of the last item.
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
