import { foldCase } from "../lib/text.ts";

/** Normalises text for guards: folded case, and "ſ" as "s", which case-insensitive patterns treat as equal. */
export function guardText(text: string): string {
  const folded = foldCase(text);
  return folded.includes("ſ") ? folded.replaceAll("ſ", "s") : folded;
}
