import type { RE2JS } from "re2js";
import { ASSERTION, INSTRUCTION, isConsuming, programOf, type Instruction, type Program } from "./re2-program.ts";

// Several compiled RE2 patterns as one nondeterministic automaton. Every state is a bit, and one character advances all
// states at once. Each step is charged to a budget, so that the caller can stop.

/** An instruction in the combined program; its successors are indices into that program. */
interface Placed {
  readonly op: number;
  readonly out: number;
  readonly arg: number;
  readonly instruction: Instruction;
}

const NEWLINE_RUNE = 10;

/** Kinds of characters that assertions such as ^ or \b distinguish; EDGE is the start or the end of the text. */
const OTHER = 0;
const WORD = 1;
const NEWLINE = 2;
export const EDGE = 3;
export const KINDS = 4;

export const LATIN1_MAX = 255;
const NO_PATTERN = -1;

/** Costs in steps of about a nanosecond: a character, a word of states, and a state whose successor is not the next state. */
const CHARACTER_STEPS = 24;
const WORD_STEPS = 4;
const TRANSITION_STEPS = 12;

/** Remaining steps; every operation subtracts its cost. */
export interface StepBudget {
  steps: number;
}

/** Successors of a state, as bits by word, and the pattern that it completes. */
interface StateTransition {
  readonly words: readonly number[];
  readonly bits: readonly number[];
  readonly pattern: number;
}

/** Transitions between two characters of certain kinds. */
interface StateTransitions {
  readonly conditions: number;
  readonly start: Int32Array;
  /** Patterns that match the empty string here. */
  readonly startPatterns: readonly number[];
  /** States whose only successor is the next state: one shift advances all of them. */
  readonly simple: Int32Array;
  readonly others: (StateTransition | undefined)[];
}

export class Nfa {
  readonly patterns: number;
  readonly words: number;
  /** True if any pattern has an assertion; otherwise the neighbours of a character do not matter. */
  readonly isConditional: boolean;
  /** Kind of the characters in each class. */
  readonly kinds: number[] = [];
  /** Number of patterns that the last step completed, and their indices; an index may occur twice. */
  completedCount = 0;
  readonly completed: number[] = [];
  readonly #instructions: Placed[] = [];
  readonly #starts: number[] = [];
  /** Pattern of each instruction. */
  readonly #patternOf: number[] = [];
  /** Instructions that consume a character, in program order, and the index of each among them. */
  readonly #states: number[] = [];
  readonly #numbers: Int32Array;
  readonly #conditions: number;
  readonly #transitions: (StateTransitions | undefined)[] = [];
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
      const program = programOf(pattern);
      this.#addProgram(program, number);
      for (const bound of program.classBounds) bounds.add(bound);
    }
    this.#numbers = new Int32Array(this.#instructions.length);
    for (const [number, at] of this.#states.entries()) this.#numbers[at] = number;
    this.words = Math.max(1, Math.ceil(this.#states.length / 32));
    this.#conditions = this.#instructions.reduce(
      (all, { op, arg }) => (op === INSTRUCTION.EMPTY_WIDTH ? all | arg : all),
      0,
    );
    this.isConditional = this.#conditions !== 0;
    this.#bounds = Int32Array.from(bounds).sort();
    this.#classOfInterval = new Int32Array(this.#bounds.length + 1).fill(-1);
    this.#visited = new Int32Array(this.#instructions.length);
  }

  #addProgram({ instructions, start }: Program, pattern: number): void {
    const offset = this.#instructions.length;
    this.#starts.push(start + offset);
    for (const instruction of instructions) {
      const { op, out, arg } = instruction;
      if (isConsuming(op)) this.#states.push(this.#instructions.length);
      this.#patternOf.push(pattern);
      const leadsTwice = op === INSTRUCTION.ALT || op === INSTRUCTION.ALT_MATCH;
      this.#instructions.push({ op, out: out + offset, arg: leadsTwice ? arg + offset : arg, instruction });
    }
  }

  /** Minimum cost of a character without a cached transition. */
  get characterSteps(): number {
    return CHARACTER_STEPS + WORD_STEPS * this.words;
  }

  /** Class of a character; no pattern distinguishes characters of one class. */
  classOf(rune: number, budget: StepBudget): number {
    const interval = this.#intervalOf(rune);
    const known = this.#classOfInterval[interval]!;
    return known >= 0 ? known : (this.#classOfInterval[interval] = this.#newClass(rune, budget));
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

  #newClass(rune: number, budget: StepBudget): number {
    const takers = new Int32Array(this.words);
    for (const [number, at] of this.#states.entries()) {
      if (takes(this.#instructions[at]!.instruction, rune)) takers[number >>> 5]! |= 1 << (number & 31);
    }
    budget.steps -= this.#states.length * 4;
    const kind = this.isConditional ? kindOf(rune) : OTHER;
    const key = `${kind} ${takers.join()}`;
    const known = this.#classes.get(key);
    if (known !== undefined) return known;
    this.#takers.push(takers);
    this.kinds.push(kind);
    this.#classes.set(key, this.#takers.length - 1);
    return this.#takers.length - 1;
  }

  /** Sets the initial states, given the kind of the first character. */
  begin(first: number, next: Int32Array, budget: StepBudget): void {
    const { start, startPatterns } = this.#transitionsBetween(EDGE, first, budget);
    this.#complete(startPatterns);
    next.set(start);
  }

  /** Sets the successor states for a character of this class that is followed by a character of that kind. */
  move(now: Int32Array, next: Int32Array, character: number, following: number, budget: StepBudget): void {
    const transitions = this.#transitionsBetween(this.kinds[character]!, following, budget);
    const { start, startPatterns, simple } = transitions;
    const takers = this.#takers[character]!;
    const { words } = this;
    this.#complete(startPatterns);
    // The highest bit of a word carries over to the lowest of the next.
    let carried = 0;
    let others = 0;
    for (let word = 0; word < words; word++) {
      const taken = now[word]! & takers[word]!;
      const shifted = taken & simple[word]!;
      next[word] = start[word]! | (shifted << 1) | carried;
      carried = shifted >>> 31;
      others |= taken ^ shifted;
    }
    budget.steps -= CHARACTER_STEPS + WORD_STEPS * words;
    if (others === 0) return;
    for (let word = 0; word < words && budget.steps >= 0; word++) {
      for (let rest = now[word]! & takers[word]! & ~simple[word]!; rest !== 0; rest &= rest - 1) {
        const transition = this.#transitionFrom(word * 32 + 31 - Math.clz32(rest & -rest), transitions, budget);
        if (transition.pattern !== NO_PATTERN) this.completed[this.completedCount++] = transition.pattern;
        for (let i = 0; i < transition.words.length; i++) next[transition.words[i]!]! |= transition.bits[i]!;
        budget.steps -= TRANSITION_STEPS + WORD_STEPS * transition.words.length;
      }
    }
  }

  #complete(patterns: readonly number[]): void {
    for (let i = 0; i < patterns.length; i++) this.completed[i] = patterns[i]!;
    this.completedCount = patterns.length;
  }

  #transitionFrom(state: number, transitions: StateTransitions, budget: StepBudget): StateTransition {
    return transitions.others[state] ?? this.#explore(state, transitions, budget);
  }

  #explore(state: number, { conditions, simple, others }: StateTransitions, budget: StepBudget): StateTransition {
    const at = this.#states[state]!;
    const { states, matches } = this.#reach(this.#instructions[at]!.out, conditions, budget);
    const words: number[] = [];
    const bits: number[] = [];
    for (const [word, set] of states.entries()) {
      if (set === 0) continue;
      words.push(word);
      bits.push(set);
    }
    const transition = { words, bits, pattern: matches ? this.#patternOf[at]! : NO_PATTERN };
    const next = state + 1;
    const isSimple = !matches && words.length === 1 && words[0] === next >>> 5 && bits[0] === 1 << (next & 31);
    if (isSimple) simple[state >>> 5]! |= 1 << (state & 31);
    else others[state] = transition;
    return transition;
  }

  #transitionsBetween(before: number, after: number, budget: StepBudget): StateTransitions {
    const conditions = this.isConditional ? CONDITIONS[before * KINDS + after]! & this.#conditions : 0;
    return this.#transitions[conditions] ?? this.#explored(conditions, budget);
  }

  #explored(conditions: number, budget: StepBudget): StateTransitions {
    const start = new Int32Array(this.words);
    const startPatterns: number[] = [];
    for (const [pattern, at] of this.#starts.entries()) {
      const { states, matches } = this.#reach(at, conditions, budget);
      for (const [word, set] of states.entries()) start[word]! |= set;
      if (matches) startPatterns.push(pattern);
    }
    const simple = new Int32Array(this.words);
    return (this.#transitions[conditions] = { conditions, start, startPatterns, simple, others: [] });
  }

  /** The states reachable from an instruction without consuming a character. */
  #reach(from: number, conditions: number, budget: StepBudget): { states: Int32Array; matches: boolean } {
    const states = new Int32Array(this.words);
    const visit = ++this.#visit;
    let matches = false;
    const open = [from];
    while (open.length > 0) {
      const at = open.pop()!;
      if (this.#visited[at] === visit) continue;
      this.#visited[at] = visit;
      budget.steps -= 2;
      const { op, out, arg } = this.#instructions[at]!;
      if (op === INSTRUCTION.ALT || op === INSTRUCTION.ALT_MATCH) open.push(arg, out);
      else if (op === INSTRUCTION.CAPTURE || op === INSTRUCTION.NOP) open.push(out);
      else if (op === INSTRUCTION.EMPTY_WIDTH) {
        if ((arg & ~conditions) === 0) open.push(out);
      } else if (op === INSTRUCTION.MATCH) matches = true;
      else if (isConsuming(op)) {
        const number = this.#numbers[at]!;
        states[number >>> 5]! |= 1 << (number & 31);
      }
    }
    return { states, matches };
  }
}

function takes(instruction: Instruction, rune: number): boolean {
  if (instruction.op === INSTRUCTION.RUNE_ANY) return true;
  if (instruction.op === INSTRUCTION.RUNE_ANY_NOT_NEWLINE) return rune !== NEWLINE_RUNE;
  return instruction.op === INSTRUCTION.RUNE1 ? rune === instruction.runes[0] : instruction.matchRune(rune);
}

/** Word characters are ASCII, as in RE2. */
function kindOf(rune: number): number {
  if (rune === NEWLINE_RUNE) return NEWLINE;
  const isDigit = rune >= 48 && rune <= 57;
  const isLetter = (rune >= 65 && rune <= 90) || (rune >= 97 && rune <= 122);
  return isDigit || isLetter || rune === 95 ? WORD : OTHER;
}

/** Assertions that hold between two kinds of characters. */
const CONDITIONS = Int32Array.from({ length: KINDS * KINDS }, (_, i) => {
  const before = Math.floor(i / KINDS);
  const after = i % KINDS;
  let conditions = (before === WORD) === (after === WORD) ? ASSERTION.NO_WORD_BOUNDARY : ASSERTION.WORD_BOUNDARY;
  if (before === EDGE) conditions |= ASSERTION.BEGIN_TEXT | ASSERTION.BEGIN_LINE;
  else if (before === NEWLINE) conditions |= ASSERTION.BEGIN_LINE;
  if (after === EDGE) conditions |= ASSERTION.END_TEXT | ASSERTION.END_LINE;
  else if (after === NEWLINE) conditions |= ASSERTION.END_LINE;
  return conditions;
});
