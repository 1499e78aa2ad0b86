const ASCII = /^[\0-\x7f]*$/;

/**
 * Lower case, code point by code point, without regard to the letters around: one meaning wherever text is
 * compared without case, in this process and in a store's engine.
 */
export function foldCase(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  let folded = "";
  for (const char of text) {
    const lower = char.toLowerCase();
    // Only U+0130 becomes two code points; its simple mapping is the first of them.
    folded += char === "\u0130" ? "i" : lower;
  }
  return folded;
}
