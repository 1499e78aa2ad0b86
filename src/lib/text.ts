export const SIGMA = "σ";
export const FINAL_SIGMA = "ς";
const ASCII = /^[\0-\x7f]*$/;

/**
 * Lower case by code point, independent of context, so that case-insensitive comparisons agree in this process and in the
 * engine of a store. A final sigma equals any other sigma: their upper case is the same.
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

// Control characters, and characters that are invisible or change the direction of text.
const UNSEEN = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** True if the text has characters that would make it look like another one. */
export function hasUnseen(text: string): boolean {
  return text.search(UNSEEN) >= 0;
}

/** Untrusted text on one line, without invisible characters, within the limit. */
export function oneLine(text: string, charactersMax: number): string {
  return cut(beginning(text, charactersMax).replace(/\s+/g, " ").replace(UNSEEN, "").trim(), charactersMax);
}

/** Untrusted text with its line breaks, without invisible characters, within the limit. */
export function lines(text: string, charactersMax: number): string {
  const kept = beginning(text, charactersMax)
    .split(/\r\n|\r|\n/)
    .map((line) => line.replace(/\t/g, " ").replace(UNSEEN, ""));
  return cut(kept.join("\n").trim(), charactersMax);
}

/** Limits the work: a megabyte is not cleaned to show one line of it. */
function beginning(text: string, charactersMax: number): string {
  return text.slice(0, charactersMax * 4);
}

/** Truncates with an ellipsis, never within a character. */
export function cut(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text;
  const end = charactersMax - 1;
  const splits = /[\uD800-\uDBFF]/.test(text[end - 1] ?? "");
  return `${text.slice(0, splits ? end - 1 : end)}…`;
}

/** Truncates with an ellipsis to a number of bytes in UTF-8, never within a character. */
export function cutBytes(text: string, bytesMax: number): string {
  if (Buffer.byteLength(text) <= bytesMax) return text;
  const kept = Buffer.from(text).subarray(0, bytesMax - Buffer.byteLength("…"));
  // A character that was cut in half decodes to U+FFFD, up to one per byte of it.
  return `${kept.toString().replace(/\ufffd{1,3}$/, "")}…`;
}

/** `eventsDays` becomes `events_days`. */
export function snakeCase(camelCase: string): string {
  return camelCase.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
