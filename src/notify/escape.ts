/**
 * Escapes text character by character. The result never exceeds the limit and is never cut within an escape: an ellipsis
 * replaces what does not fit.
 */
export function escapedWithin(words: string, charactersMax: number, escape: (character: string) => string): string {
  let result = "";
  /** Up to where an ellipsis still fits. */
  let kept = "";
  for (const character of words) {
    result += escape(character);
    if (result.length > charactersMax) return `${kept}…`;
    if (result.length < charactersMax) kept = result;
  }
  return result;
}

const HTML_ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Escapes text for elements and attributes of HTML. */
export function html(words: string): string {
  return words.replace(/[&<>"']/g, (character) => HTML_ENTITIES[character]!);
}
