export const SIGMA = "σ";
export const FINAL_SIGMA = "ς";
const ASCII = /^[\0-\x7f]*$/;

/**
 * Lower case, code point by code point, without regard to the letters around: one meaning wherever text is
 * compared without case, in this process and in a store's engine. The sigma that ends a word is the same letter as any
 * other: in upper case nobody can tell them apart.
 */
export function foldCase(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  let folded = "";
  for (const char of text) {
    const lower = char.toLowerCase();
    // Only U+0130 becomes two code points; its simple mapping is the first of them.
    folded += char === "\u0130" ? "i" : lower === FINAL_SIGMA ? SIGMA : lower;
  }
  return folded;
}

// Besides control characters, those that turn the direction of text or cannot be seen: text must look like what it is.
const UNSEEN = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** Text that may be anybody's: on one line, without what cannot be seen, and not longer than it may be. */
export function oneLine(text: string, charactersMax: number): string {
  return cut(beginning(text, charactersMax).replace(/\s+/g, " ").replace(UNSEEN, "").trim(), charactersMax);
}

/** The same for text that may have several lines. */
export function lines(text: string, charactersMax: number): string {
  const kept = beginning(text, charactersMax)
    .split(/\r\n|\r|\n/)
    .map((line) => line.replace(/\t/g, " ").replace(UNSEEN, ""));
  return cut(kept.join("\n").trim(), charactersMax);
}

/** As much as is worth looking at: a megabyte is not cleaned to show a line of it. */
function beginning(text: string, charactersMax: number): string {
  return text.slice(0, charactersMax * 4);
}

/** Ends with an ellipsis where something is missing, and never in the middle of a character. */
export function cut(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text;
  const end = charactersMax - 1;
  const splits = /[\uD800-\uDBFF]/.test(text[end - 1] ?? "");
  return `${text.slice(0, splits ? end - 1 : end)}…`;
}
