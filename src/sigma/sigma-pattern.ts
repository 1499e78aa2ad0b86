// Sigma's text patterns: `*` and `?` are wildcards, a backslash escapes them.

/** Any text, or any one character. */
const ANY: unique symbol = Symbol("*");
const ONE: unique symbol = Symbol("?");
type PatternPart = string | typeof ANY | typeof ONE;
export type SigmaPattern = readonly PatternPart[];

/** Parses a pattern. A backslash before any other character is literal, as in Windows paths. */
export function parsePattern(text: string): SigmaPattern {
  const parts: PatternPart[] = [];
  let plain = "";
  const push = (part: typeof ANY | typeof ONE) => {
    if (plain !== "") parts.push(plain);
    plain = "";
    parts.push(part);
  };
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!;
    const next = text[i + 1];
    if (char === "\\" && (next === "*" || next === "?" || next === "\\")) {
      plain += next;
      i++;
    } else if (char === "*") push(ANY);
    else if (char === "?") push(ONE);
    else plain += char;
  }
  if (plain !== "") parts.push(plain);
  return parts;
}

/** The text of a pattern without wildcards, otherwise undefined. */
export function plainText(pattern: SigmaPattern): string | undefined {
  return pattern.every((part) => typeof part === "string") ? pattern.join("") : undefined;
}

/** All patterns that result from replacing each literal piece with its variants. */
export function mapPlain(pattern: SigmaPattern, change: (text: string) => readonly string[]): SigmaPattern[] {
  let made: PatternPart[][] = [[]];
  for (const part of pattern) {
    const choices: readonly PatternPart[] = typeof part === "string" ? change(part) : [part];
    made = made.flatMap((before) => choices.map((choice): PatternPart[] => [...before, choice]));
  }
  return made;
}

export type TextPosition = "whole" | "contains" | "startswith" | "endswith";

/** The operator and text that are equivalent to a pattern. `any`: the pattern matches every value. */
export type TextTest =
  | { readonly operator: "equals" | "contains" | "starts_with" | "ends_with" | "glob"; readonly text: string }
  | { readonly operator: "any" };

export function toTextTest(pattern: SigmaPattern, where: TextPosition): TextTest {
  const before: SigmaPattern = where === "contains" || where === "endswith" ? [ANY] : [];
  const after: SigmaPattern = where === "contains" || where === "startswith" ? [ANY] : [];
  const parts = [...before, ...pattern, ...after].filter((part, i, all) => part !== ANY || all[i - 1] !== ANY);
  if (parts.every((part) => part === ANY) && parts.length > 0) return { operator: "any" };
  const shape = parts.map((part) => (typeof part === "string" ? "t" : part === ANY ? "*" : "?")).join("");
  const text = parts.find((part) => typeof part === "string") ?? "";
  switch (shape) {
    case "":
    case "t":
      return { operator: "equals", text };
    case "*t":
      return { operator: "ends_with", text };
    case "t*":
      return { operator: "starts_with", text };
    case "*t*":
      return { operator: "contains", text };
    default:
      return { operator: "glob", text: parts.map(globOf).join("") };
  }
}

function globOf(part: PatternPart): string {
  if (part === ANY) return "*";
  return typeof part === "string" ? part.replaceAll(/[\\*?]/g, "\\$&") : "?";
}
