// Converts Sigma's PCRE patterns to RE2: rewrites the syntax that both have with different meanings.

/** PCRE's white space; RE2's lacks the vertical tab. */
const SPACE = String.raw`\s\v`;
/** The complement, for use in a class: a class cannot subtract another. */
const NOT_SPACE = String.raw`\x00-\x08\x0e-\x1f\x21-\x{10ffff}`;
/** PCRE's vertical white space; in RE2, \v is the vertical tab alone. */
const VERTICAL = String.raw`\n\v\f\r\x85\x{2028}\x{2029}`;
/** PCRE's $ also matches before a final line break. */
const END = String.raw`(?:\n?$)`;
const MULTILINE = /\(\?[a-zA-Z]*m/;
/** `[:space:]` inside a class. */
const NAMED_CLASS = /^\[:\^?[a-z]+:\]/;
const NAMED_CLASS_CHARACTERS_MAX = "[:^xdigit:]".length;

/** The same pattern for RE2. Syntax that RE2 lacks is left unchanged, and RE2 reports it. */
export function fromPcre(pattern: string, isMultiline = false): string {
  const end = isMultiline || MULTILINE.test(pattern) ? "$" : END;
  let made = "";
  let isInClass = false;
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern[i]!;
    const next = pattern[i + 1] ?? "";
    if (char === "\\") {
      i++;
      if (next === "Q") {
        const quoteEnd = pattern.indexOf("\\E", i);
        const stop = quoteEnd < 0 ? pattern.length : quoteEnd + 2;
        made += pattern.slice(i - 1, stop);
        i = stop - 1;
      } else if (next === "s") made += isInClass ? SPACE : `[${SPACE}]`;
      else if (next === "S") made += isInClass ? NOT_SPACE : `[^${SPACE}]`;
      else if (next === "v") made += isInClass ? VERTICAL : `[${VERTICAL}]`;
      else made += char + next;
      continue;
    }
    const named = isInClass ? NAMED_CLASS.exec(pattern.slice(i, i + NAMED_CLASS_CHARACTERS_MAX)) : null;
    if (named) {
      made += named[0];
      i += named[0].length - 1;
      continue;
    }
    made += !isInClass && char === "$" ? end : char;
    if (isInClass) isInClass = char !== "]";
    else if (char === "[") {
      isInClass = true;
      // A bracket at the start of a class is one of its characters.
      const first = /^\^?\]?/.exec(pattern.slice(i + 1, i + 3))![0];
      made += first;
      i += first.length;
    }
  }
  return made;
}
