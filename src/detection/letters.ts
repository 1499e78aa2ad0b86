import { foldCase } from "../lib/text.ts";

/** Text as guards compare it: in one case, and with the one letter that a pattern without case takes for another. */
export function guardText(text: string): string {
  const folded = foldCase(text);
  return folded.includes("ſ") ? folded.replaceAll("ſ", "s") : folded;
}
