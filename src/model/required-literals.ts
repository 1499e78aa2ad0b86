import { guardText } from "./guard-text.ts";

// Literals that every match of a pattern contains, parsed from its source without compiling it. They prefilter thousands of
// patterns.

/** Folded texts of which every match contains at least one. */
export type LiteralAlternatives = readonly string[];

const FACTORS_MAX = 4;
const ALTERNATIVES_MAX = 64;
const LITERAL_CHARACTERS_MIN = 2;
/** Longer literals are not noticeably rarer. */
const RARE_CHARACTERS = 8;
const NESTING_MAX = 200;

const LEADING_FLAGS = /^\(\?[a-zA-Z-]+\)/;
const GROUP_START = /^\((?:\?(?:P?<[A-Za-z_]\w*>|[a-zA-Z-]*:))?(?!\?)/;
const CASE_FLAG = /\(\?[a-zA-Z]*i/;
const REPETITION = /^\{(\d{1,4})(?:,\d{0,4})?\}/;
/** Escapes of one plain character, and escapes of a class or an assertion. */
const PLAIN_ESCAPE = /^\\([^\w\s])/;
const CLASS_ESCAPE = /^\\(?:[dDwWsSbBAztnrfva]|[pP](?:\{[^}]*\}|[A-Z])|x(?:\{[0-9A-Fa-f]+\}|[0-9A-Fa-f]{2}))/;
/** A class of plain characters; `[.]` or `[Pp]` equal one folded character. */
const PLAIN_CLASS = /^\[([^^\\\-[\]][^\\\-[\]]{0,3})\]/;

/** The literals that every match contains, rarest first. Empty if there are none or the source is not understood. */
export function requiredLiterals(pattern: string, ignoreCase: boolean): readonly LiteralAlternatives[] {
  const factors = new LiteralParser(pattern, ignoreCase || CASE_FLAG.test(pattern)).read() ?? [];
  return factors.toSorted((a, b) => frequency(a) - frequency(b)).slice(0, FACTORS_MAX);
}

/** Estimates how frequently a text contains one of these. */
function frequency(factor: LiteralAlternatives): number {
  return factor.reduce((sum, { length }) => sum + 4 ** -Math.min(length, RARE_CHARACTERS), 0);
}

class LiteralParser {
  readonly #pattern: string;
  readonly #ignoreCase: boolean;
  #at = 0;
  #depth = 0;

  constructor(pattern: string, ignoreCase: boolean) {
    this.#pattern = pattern;
    this.#ignoreCase = ignoreCase;
  }

  read(): LiteralAlternatives[] | undefined {
    // Only leading flags are supported: later ones may stand between an atom and its quantifier.
    this.#skip(LEADING_FLAGS);
    const factors = this.#choice();
    return this.#at === this.#pattern.length ? factors : undefined;
  }

  #skip(expression: RegExp): RegExpExecArray | null {
    const match = expression.exec(this.#rest(300));
    if (match) this.#at += match[0].length;
    return match;
  }

  #rest(characters: number): string {
    return this.#pattern.slice(this.#at, this.#at + characters);
  }

  /** Parses alternatives up to the end or the closing bracket. */
  #choice(): LiteralAlternatives[] | undefined {
    if (++this.#depth > NESTING_MAX) return undefined;
    const branches: LiteralAlternatives[][] = [];
    do {
      if (branches.length > 0) this.#at++;
      const branch = this.#sequence();
      if (!branch) return undefined;
      branches.push(branch);
    } while (this.#pattern[this.#at] === "|");
    this.#depth--;
    if (branches.length === 1) return branches[0]!;
    const either = new Set<string>();
    for (const branch of branches) {
      if (branch.length === 0) return [];
      const rarest = branch.reduce((a, b) => (frequency(b) < frequency(a) ? b : a));
      for (const text of rarest) either.add(text);
    }
    return either.size > ALTERNATIVES_MAX ? [] : [[...either]];
  }

  #sequence(): LiteralAlternatives[] | undefined {
    const factors: LiteralAlternatives[] = [];
    let run = "";
    const close = () => {
      const text = guardText(run);
      if (text.length >= LITERAL_CHARACTERS_MIN) factors.push([text]);
      run = "";
    };
    for (;;) {
      const char = this.#pattern[this.#at];
      if (char === undefined || char === "|" || char === ")") break;
      let literal: string | undefined;
      let inner: LiteralAlternatives[] = [];
      if (char === "(") {
        const group = this.#group();
        if (!group) return undefined;
        inner = group;
      } else {
        const atom = this.#atom();
        if (atom === undefined) return undefined;
        literal = atom === "" ? undefined : atom;
      }
      const times = this.#quantifier();
      if (times === undefined) return undefined;
      const isRequired = times !== "optional";
      if (literal !== undefined && isRequired) run += literal;
      // A repetition ends the run, since its first occurrence may be followed by itself.
      if (literal === undefined || times !== "once") close();
      if (isRequired) factors.push(...inner);
    }
    close();
    return factors;
  }

  #group(): LiteralAlternatives[] | undefined {
    if (!this.#skip(GROUP_START)) return undefined;
    const inner = this.#choice();
    if (!inner || this.#pattern[this.#at] !== ")") return undefined;
    this.#at++;
    return inner;
  }

  /** The literal character; empty for a class or an assertion; undefined if not understood. */
  #atom(): string | undefined {
    const char = this.#pattern[this.#at]!;
    if (char === "\\") {
      const plain = this.#skip(PLAIN_ESCAPE);
      if (plain) return this.#literal(plain[1]!);
      return this.#skip(CLASS_ESCAPE) ? "" : undefined;
    }
    if (char === "[") {
      const plain = this.#skip(PLAIN_CLASS);
      if (plain) {
        const folded = new Set(Array.from(plain[1]!, guardText));
        return folded.size === 1 ? this.#literal([...folded][0]!) : "";
      }
      const end = classEnd(this.#pattern, this.#at);
      if (end === undefined) return undefined;
      this.#at = end;
      return "";
    }
    if (char === "^" || char === "$" || char === ".") {
      this.#at++;
      return "";
    }
    if ("?*+{".includes(char)) return undefined;
    const whole = String.fromCodePoint(this.#pattern.codePointAt(this.#at)!);
    this.#at += whole.length;
    return this.#literal(whole);
  }

  /** Case-insensitive letters beyond ASCII have more forms than folding maps together. */
  #literal(char: string): string {
    const isSafe = this.#ignoreCase ? /^[ -~]$/.test(char) : char.isWellFormed();
    return isSafe ? char : "";
  }

  #quantifier(): "once" | "repeated" | "optional" | undefined {
    let times: "once" | "repeated" | "optional" = "once";
    for (;;) {
      const char = this.#pattern[this.#at];
      if (char === "?" && times === "repeated") this.#at++;
      else if (char === "?" || char === "*") {
        this.#at++;
        times = "optional";
      } else if (char === "+") {
        this.#at++;
        if (times === "once") times = "repeated";
      } else if (char === "{") {
        const repetition = this.#skip(REPETITION);
        if (!repetition) return undefined;
        if (Number(repetition[1]) === 0) times = "optional";
        else if (times === "once") times = "repeated";
      } else return times;
    }
  }
}

function classEnd(pattern: string, start: number): number | undefined {
  let i = start + 1;
  if (pattern[i] === "^") i++;
  // A leading bracket is a member of the class.
  if (pattern[i] === "]") i++;
  for (; i < pattern.length; i++) {
    if (pattern[i] === "\\") {
      if (pattern[i + 1] === "Q") return undefined;
      i++;
    } else if (pattern[i] === "[" && pattern[i + 1] === ":") {
      const end = pattern.indexOf(":]", i + 2);
      if (end < 0) return undefined;
      i = end + 1;
    } else if (pattern[i] === "]") return i + 1;
  }
  return undefined;
}
