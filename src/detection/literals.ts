import { guardText } from "./letters.ts";

// Literal text that a pattern requires, read from its source without compiling it: whoever has to run thousands of patterns
// first looks for these.

/** Texts of which at least one is in every match; folded to one case. */
export type Factor = readonly string[];

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
/** Escapes that stand for one plain character, those for a class or an assertion, and those with something behind them. */
const PLAIN_ESCAPE = /^\\([^\w\s])/;
const CLASS_ESCAPE = /^\\(?:[dDwWsSbBAztnrfva]|[pP](?:\{[^}]*\}|[A-Z])|x(?:\{[0-9A-Fa-f]+\}|[0-9A-Fa-f]{2}))/;
/** A class whose members are plain: `[.]` or `[Pp]` may stand for one character. */
const PLAIN_CLASS = /^\[([^^\\\-[\]][^\\\-[\]]{0,3})\]/;

/** What every match must have in it, the rarest first. Empty where nothing is, or where the source is not understood. */
export function requiredLiterals(pattern: string, ignoreCase: boolean): readonly Factor[] {
  const factors = new Reader(pattern, ignoreCase || CASE_FLAG.test(pattern)).read() ?? [];
  return factors.toSorted((a, b) => frequency(a) - frequency(b)).slice(0, FACTORS_MAX);
}

/** Grows with how often some text has one of these in it. */
function frequency(factor: Factor): number {
  return factor.reduce((sum, { length }) => sum + 4 ** -Math.min(length, RARE_CHARACTERS), 0);
}

class Reader {
  readonly #pattern: string;
  readonly #ignoreCase: boolean;
  #at = 0;
  #depth = 0;

  constructor(pattern: string, ignoreCase: boolean) {
    this.#pattern = pattern;
    this.#ignoreCase = ignoreCase;
  }

  read(): Factor[] | undefined {
    // Further on, flags may stand between a part and its quantifier: that is not understood here.
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

  /** Up to the end or the bracket that closes the group. */
  #choice(): Factor[] | undefined {
    if (++this.#depth > NESTING_MAX) return undefined;
    const branches: Factor[][] = [];
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

  #sequence(): Factor[] | undefined {
    const factors: Factor[] = [];
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
      let inner: Factor[] = [];
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
      // What repeats ends the run: nobody knows what follows on its first occurrence.
      if (literal === undefined || times !== "once") close();
      if (isRequired) factors.push(...inner);
    }
    close();
    return factors;
  }

  #group(): Factor[] | undefined {
    if (!this.#skip(GROUP_START)) return undefined;
    const inner = this.#choice();
    if (!inner || this.#pattern[this.#at] !== ")") return undefined;
    this.#at++;
    return inner;
  }

  /** The character that it stands for; empty where that is one of several, or none; undefined where it is not understood. */
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

  /** Without case, letters beyond ASCII have more forms than folding brings together. */
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
  // A bracket that comes first is one of the class.
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
