import type { RE2JS } from "re2js";

// Several compiled RE2 patterns as one nondeterministic automaton: every state is a bit, and one character moves all of them
// at once. What a step costs is counted, so that whoever runs it can stop.

/** The library's program: instructions of which some consume a character and others only lead on. */
interface Program {
  readonly inst: readonly Instruction[];
  readonly start: number;
}

interface Instruction {
  readonly op: number;
  readonly out: number;
  readonly arg: number;
  readonly runes: Int32Array;
  matchRune(rune: number): boolean;
}

/** An instruction among those of all patterns: where it leads is counted from the first of them. */
interface Placed {
  readonly op: number;
  readonly out: number;
  readonly arg: number;
  readonly instruction: Instruction;
}

/** Where the library's intervals of equivalent characters begin. */
interface Intervals {
  readonly classBounds: Int32Array;
}

const ALT = 1;
const ALT_MATCH = 2;
const CAPTURE = 3;
const EMPTY_WIDTH = 4;
const MATCH = 6;
const NOP = 7;
const RUNE = 8;
const RUNE1 = 9;
const RUNE_ANY = 10;
const RUNE_ANY_NOT_NEWLINE = 11;

const BEGIN_LINE = 1;
const END_LINE = 2;
const BEGIN_TEXT = 4;
const END_TEXT = 8;
const WORD_BOUNDARY = 16;
const NO_WORD_BOUNDARY = 32;
const NEWLINE_RUNE = 10;

/** What an assertion such as ^ or \b needs to know of a character; EDGE is the beginning or the end of the text. */
const OTHER = 0;
const WORD = 1;
const NEWLINE = 2;
export const EDGE = 3;
export const KINDS = 4;

export const LATIN1_MAX = 255;
const NO_PATTERN = -1;

/** Costs in steps of about a nanosecond: a character, a word of states, and a state that leads elsewhere than to the next. */
const CHARACTER_STEPS = 24;
const WORD_STEPS = 4;
const WAY_STEPS = 12;

/** What may still be spent; whoever spends subtracts. */
export interface Purse {
  steps: number;
}

/** Where a state leads, as the words that it sets, and the pattern that it completes. */
interface Way {
  readonly words: readonly number[];
  readonly bits: readonly number[];
  readonly pattern: number;
}

/** Where states lead between two characters of certain kinds. */
interface Ways {
  readonly conditions: number;
  readonly start: Int32Array;
  /** Patterns that match the empty text here. */
  readonly startPatterns: readonly number[];
  /** States that lead to the next one and nowhere else: one shift moves all of them. */
  readonly simple: Int32Array;
  readonly others: (Way | undefined)[];
}

export class Nfa {
  readonly patterns: number;
  readonly words: number;
  /** Whether any pattern has an assertion: without one, the neighbours of a character do not matter. */
  readonly isConditional: boolean;
  /** By class, what assertions need to know of its characters. */
  readonly kinds: number[] = [];
  /** How many patterns the last move completed, and which; some may be named twice. */
  completedCount = 0;
  readonly completed: number[] = [];
  readonly #instructions: Placed[] = [];
  readonly #starts: number[] = [];
  /** By instruction, the pattern that it is of. */
  readonly #patternOf: number[] = [];
  /** Instructions that consume a character, in the order of the programs, and the number of each among them. */
  readonly #states: number[] = [];
  readonly #numbers: Int32Array;
  readonly #conditions: number;
  readonly #ways: (Ways | undefined)[] = [];
  readonly #bounds: Int32Array;
  readonly #classOfInterval: Int32Array;
  readonly #classes = new Map<string, number>();
  readonly #takers: Int32Array[] = [];
  readonly #visited: Int32Array;
  #visit = 0;

  constructor(patterns: readonly RE2JS[]) {
    this.patterns = patterns.length;
    const bounds = new Set<number>();
    for (const [number, pattern] of patterns.entries()) {
      this.#addProgram(pattern.re2Input.prog as unknown as Program, number);
      const { classBounds } = (pattern.re2Input as unknown as { readonly dfa: Intervals }).dfa;
      for (const bound of classBounds) bounds.add(bound);
    }
    this.#numbers = new Int32Array(this.#instructions.length);
    for (const [number, at] of this.#states.entries()) this.#numbers[at] = number;
    this.words = Math.max(1, Math.ceil(this.#states.length / 32));
    this.#conditions = this.#instructions.reduce((all, { op, arg }) => (op === EMPTY_WIDTH ? all | arg : all), 0);
    this.isConditional = this.#conditions !== 0;
    this.#bounds = Int32Array.from(bounds).sort();
    this.#classOfInterval = new Int32Array(this.#bounds.length + 1).fill(-1);
    this.#visited = new Int32Array(this.#instructions.length);
  }

  #addProgram({ inst, start }: Program, pattern: number): void {
    const offset = this.#instructions.length;
    this.#starts.push(start + offset);
    for (const instruction of inst) {
      const { op, out, arg } = instruction;
      if (isConsuming(op)) this.#states.push(this.#instructions.length);
      this.#patternOf.push(pattern);
      const leadsTwice = op === ALT || op === ALT_MATCH;
      this.#instructions.push({ op, out: out + offset, arg: leadsTwice ? arg + offset : arg, instruction });
    }
  }

  /** What one character costs at least when no transition is cached. */
  get characterSteps(): number {
    return CHARACTER_STEPS + WORD_STEPS * this.words;
  }

  /** Characters of one class are the same to every pattern. */
  classOf(rune: number, purse: Purse): number {
    const interval = this.#intervalOf(rune);
    const known = this.#classOfInterval[interval]!;
    return known >= 0 ? known : (this.#classOfInterval[interval] = this.#newClass(rune, purse));
  }

  #intervalOf(rune: number): number {
    const bounds = this.#bounds;
    let low = 0;
    let high = bounds.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (bounds[middle]! <= rune) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #newClass(rune: number, purse: Purse): number {
    const takers = new Int32Array(this.words);
    for (const [number, at] of this.#states.entries()) {
      if (takes(this.#instructions[at]!.instruction, rune)) takers[number >>> 5]! |= 1 << (number & 31);
    }
    purse.steps -= this.#states.length * 4;
    const kind = this.isConditional ? kindOf(rune) : OTHER;
    const key = `${kind} ${takers.join()}`;
    const known = this.#classes.get(key);
    if (known !== undefined) return known;
    this.#takers.push(takers);
    this.kinds.push(kind);
    this.#classes.set(key, this.#takers.length - 1);
    return this.#takers.length - 1;
  }

  /** Sets the states before the first character, which is of this kind. */
  begin(first: number, next: Int32Array, purse: Purse): void {
    const { start, startPatterns } = this.#waysBetween(EDGE, first, purse);
    this.#complete(startPatterns);
    next.set(start);
  }

  /** Sets the states that follow on these after a character of this class, when what comes after it is of that kind. */
  move(now: Int32Array, next: Int32Array, character: number, following: number, purse: Purse): void {
    const ways = this.#waysBetween(this.kinds[character]!, following, purse);
    const { start, startPatterns, simple } = ways;
    const takers = this.#takers[character]!;
    const { words } = this;
    this.#complete(startPatterns);
    // The highest bit of a word moves on to the lowest of the next.
    let carried = 0;
    let others = 0;
    for (let word = 0; word < words; word++) {
      const taken = now[word]! & takers[word]!;
      const shifted = taken & simple[word]!;
      next[word] = start[word]! | (shifted << 1) | carried;
      carried = shifted >>> 31;
      others |= taken ^ shifted;
    }
    purse.steps -= CHARACTER_STEPS + WORD_STEPS * words;
    if (others === 0) return;
    for (let word = 0; word < words && purse.steps >= 0; word++) {
      for (let rest = now[word]! & takers[word]! & ~simple[word]!; rest !== 0; rest &= rest - 1) {
        const way = this.#wayFrom(word * 32 + 31 - Math.clz32(rest & -rest), ways, purse);
        if (way.pattern !== NO_PATTERN) this.completed[this.completedCount++] = way.pattern;
        for (let i = 0; i < way.words.length; i++) next[way.words[i]!]! |= way.bits[i]!;
        purse.steps -= WAY_STEPS + WORD_STEPS * way.words.length;
      }
    }
  }

  #complete(patterns: readonly number[]): void {
    for (let i = 0; i < patterns.length; i++) this.completed[i] = patterns[i]!;
    this.completedCount = patterns.length;
  }

  #wayFrom(state: number, ways: Ways, purse: Purse): Way {
    return ways.others[state] ?? this.#explore(state, ways, purse);
  }

  #explore(state: number, { conditions, simple, others }: Ways, purse: Purse): Way {
    const at = this.#states[state]!;
    const { states, matches } = this.#reach(this.#instructions[at]!.out, conditions, purse);
    const words: number[] = [];
    const bits: number[] = [];
    for (const [word, set] of states.entries()) {
      if (set === 0) continue;
      words.push(word);
      bits.push(set);
    }
    const way = { words, bits, pattern: matches ? this.#patternOf[at]! : NO_PATTERN };
    const next = state + 1;
    const isSimple = !matches && words.length === 1 && words[0] === next >>> 5 && bits[0] === 1 << (next & 31);
    if (isSimple) simple[state >>> 5]! |= 1 << (state & 31);
    else others[state] = way;
    return way;
  }

  #waysBetween(before: number, after: number, purse: Purse): Ways {
    const conditions = this.isConditional ? CONDITIONS[before * KINDS + after]! & this.#conditions : 0;
    return this.#ways[conditions] ?? this.#explored(conditions, purse);
  }

  #explored(conditions: number, purse: Purse): Ways {
    const start = new Int32Array(this.words);
    const startPatterns: number[] = [];
    for (const [pattern, at] of this.#starts.entries()) {
      const { states, matches } = this.#reach(at, conditions, purse);
      for (const [word, set] of states.entries()) start[word]! |= set;
      if (matches) startPatterns.push(pattern);
    }
    const simple = new Int32Array(this.words);
    return (this.#ways[conditions] = { conditions, start, startPatterns, simple, others: [] });
  }

  /** The states that can be reached from an instruction without consuming a character. */
  #reach(from: number, conditions: number, purse: Purse): { states: Int32Array; matches: boolean } {
    const states = new Int32Array(this.words);
    const visit = ++this.#visit;
    let matches = false;
    const open = [from];
    while (open.length > 0) {
      const at = open.pop()!;
      if (this.#visited[at] === visit) continue;
      this.#visited[at] = visit;
      purse.steps -= 2;
      const { op, out, arg } = this.#instructions[at]!;
      if (op === ALT || op === ALT_MATCH) open.push(arg, out);
      else if (op === CAPTURE || op === NOP) open.push(out);
      else if (op === EMPTY_WIDTH) {
        if ((arg & ~conditions) === 0) open.push(out);
      } else if (op === MATCH) matches = true;
      else if (isConsuming(op)) {
        const number = this.#numbers[at]!;
        states[number >>> 5]! |= 1 << (number & 31);
      }
    }
    return { states, matches };
  }
}

function isConsuming(op: number): boolean {
  return op >= RUNE && op <= RUNE_ANY_NOT_NEWLINE;
}

function takes(instruction: Instruction, rune: number): boolean {
  if (instruction.op === RUNE_ANY) return true;
  if (instruction.op === RUNE_ANY_NOT_NEWLINE) return rune !== NEWLINE_RUNE;
  return instruction.op === RUNE1 ? rune === instruction.runes[0] : instruction.matchRune(rune);
}

/** A word is of ASCII characters, as in RE2. */
function kindOf(rune: number): number {
  if (rune === NEWLINE_RUNE) return NEWLINE;
  const isDigit = rune >= 48 && rune <= 57;
  const isLetter = (rune >= 65 && rune <= 90) || (rune >= 97 && rune <= 122);
  return isDigit || isLetter || rune === 95 ? WORD : OTHER;
}

/** Assertions that hold between two kinds of characters, by both. */
const CONDITIONS = Int32Array.from({ length: KINDS * KINDS }, (_, i) => {
  const before = Math.floor(i / KINDS);
  const after = i % KINDS;
  let conditions = (before === WORD) === (after === WORD) ? NO_WORD_BOUNDARY : WORD_BOUNDARY;
  if (before === EDGE) conditions |= BEGIN_TEXT | BEGIN_LINE;
  else if (before === NEWLINE) conditions |= BEGIN_LINE;
  if (after === EDGE) conditions |= END_TEXT | END_LINE;
  else if (after === NEWLINE) conditions |= END_LINE;
  return conditions;
});
