// The modifier `expand`: replaces placeholders such as %admins% with values of the mapping.

export interface Placeholders {
  /** Values of a placeholder; undefined if the mapping has none. */
  placeholder(name: string): readonly (string | number)[] | undefined;
}

const EXPANDED_MAX = 10_000;

/** A backslash escapes a percent sign. Escaped backslashes and wildcards are left for the pattern parser. */
const TOKENS = /\\[\\*?%]|%([\w.-]+)%/g;
const ESCAPES = /\\([\\*?%])/g;

/** Replaces each placeholder with its values. A value with two placeholders becomes every combination. */
export function expand<Value extends string | number | bigint | boolean | null>(
  values: readonly Value[],
  { placeholder }: Placeholders,
): (Value | string)[] | { readonly fault: string } {
  const expanded: (Value | string)[] = [];
  const waiting: (Value | string)[] = [...values];
  let replaced = 0;
  for (let value = waiting.shift(); value !== undefined; value = waiting.shift()) {
    const found = typeof value === "string" ? findPlaceholder(value) : undefined;
    if (!found) {
      expanded.push(typeof value === "string" ? withPlainPercents(value) : value);
      continue;
    }
    const { name, before, after } = found;
    const meant = placeholder(name);
    if (!meant) return { fault: `the placeholder %${name}% has no values in the mapping (placeholders)` };
    waiting.unshift(...meant.map((item) => before + String(item) + after));
    // A placeholder may refer to itself and would never end.
    if (++replaced > EXPANDED_MAX || expanded.length + waiting.length > EXPANDED_MAX) {
      return { fault: `its placeholders expand to more than ${EXPANDED_MAX} values` };
    }
  }
  return expanded;
}

function findPlaceholder(value: string): { name: string; before: string; after: string } | undefined {
  for (const { 0: token, 1: name, index } of value.matchAll(TOKENS)) {
    if (name === undefined) continue;
    return { name, before: value.slice(0, index), after: value.slice(index + token.length) };
  }
  return undefined;
}

function withPlainPercents(value: string): string {
  return value.replaceAll(ESCAPES, (escape, char: string) => (char === "%" ? "%" : escape));
}
