// A text of Sigma: `*` and `?` stand for other text, a backslash makes them plain.

/** Any text, or any one character. */
const ANY: unique symbol = Symbol("*");
const ONE: unique symbol = Symbol("?");
type Part = string | typeof ANY | typeof ONE;
export type Pattern = readonly Part[];

/** A backslash before anything but a wildcard or another backslash is a plain one: that is how paths are written. */
export function parsePattern(text: string): Pattern {
  const parts: Part[] = [];
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

/** The text, where there is no wildcard in it. */
export function plainText(pattern: Pattern): string | undefined {
  return pattern.every((part) => typeof part === "string") ? pattern.join("") : undefined;
}

/** The same pattern with every plain piece changed into several: one pattern for each. */
export function mapPlain(pattern: Pattern, change: (text: string) => readonly string[]): Pattern[] {
  let made: Part[][] = [[]];
  for (const part of pattern) {
    const choices: readonly Part[] = typeof part === "string" ? change(part) : [part];
    made = made.flatMap((before) => choices.map((choice): Part[] => [...before, choice]));
  }
  return made;
}

export type Where = "whole" | "contains" | "startswith" | "endswith";

/** How a field is compared with a pattern in our words. `any`: whatever there is. */
export type TextTest =
  | { readonly operator: "equals" | "contains" | "starts_with" | "ends_with" | "glob"; readonly text: string }
  | { readonly operator: "any" };

export function toTextTest(pattern: Pattern, where: Where): TextTest {
  const before: Pattern = where === "contains" || where === "endswith" ? [ANY] : [];
  const after: Pattern = where === "contains" || where === "startswith" ? [ANY] : [];
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

function globOf(part: Part): string {
  if (part === ANY) return "*";
  return typeof part === "string" ? part.replaceAll(/[\\*?]/g, "\\$&") : "?";
}
