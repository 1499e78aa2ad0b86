import type { RE2JS } from "re2js";

// Runs a compiled RE2 pattern over a text with all its states as bits of a few words: each character costs the same few
// operations whatever the text is, and they are counted, so that it can stop. The library's own engines build states of
// which a pattern may have very many, and take seconds for some on one large field.

/** The library's program: instructions of which some take a character and others only lead on. */
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

/** The library's partition of characters: those of one class are the same to every instruction. */
interface Classes {
  readonly latin1Class: Int32Array;
  runeClass(rune: number): number;
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
const NEWLINE = 10;
const NONE = -1;
const LATIN1_MAX = 255;
/**
 * What things cost, in steps of about a nanosecond: a character, a word of
 * states, and a state that leads elsewhere than to the next.
 */
const CHARACTER_STEPS = 24;
const WORD_STEPS = 8;
const WAY_STEPS = 12;

/** What may still be spent; whoever spends takes it off. */
export interface Purse {
  steps: number;
}

/** Where the automaton may go from each state, between two characters of certain kinds. */
interface Ways {
  readonly conditions: number;
  readonly start: Int32Array;
  readonly startMatches: boolean;
  /** States that lead to the next one and nowhere else: all of them move on by one shift. */
  readonly simple: Int32Array;
  readonly others: (Way | undefined)[];
}

interface Way {
  readonly states: Int32Array;
  readonly matches: boolean;
}

export class Automaton {
  readonly #program: Program;
  readonly #classes: Classes;
  /** Instructions that take a character, in the order of the program, and the number of each among them. */
  readonly #states: readonly Instruction[];
  readonly #numbers: Int32Array;
  readonly #words: number;
  /** Conditions between two characters that the pattern has: only these need to be known. */
  readonly #conditions: number;
  readonly #hasWords: boolean;
  readonly #characterSteps: number;
  readonly #ways: (Ways | undefined)[] = [];
  /** For each class of characters the states that take them. */
  readonly #takers: (Int32Array | undefined)[] = [];
  readonly #visited: Int32Array;
  #visit = 0;

  constructor(pattern: RE2JS) {
    const program: Program = pattern.re2Input.prog;
    this.#program = program;
    this.#classes = (pattern.re2Input as unknown as { readonly dfa: Classes }).dfa;
    this.#states = program.inst.filter(({ op }) => op >= RUNE && op <= RUNE_ANY_NOT_NEWLINE);
    this.#numbers = new Int32Array(program.inst.length);
    for (let i = 0, number = 0; i < program.inst.length; i++) {
      if (this.#states[number] === program.inst[i]) this.#numbers[i] = number++;
    }
    this.#words = Math.max(1, Math.ceil(this.#states.length / 32));
    this.#conditions = program.inst.reduce((all, { op, arg }) => (op === EMPTY_WIDTH ? all | arg : all), 0);
    this.#hasWords = (this.#conditions & (WORD_BOUNDARY | NO_WORD_BOUNDARY)) !== 0;
    const asked = this.#hasWords ? 2 * CHARACTER_STEPS : CHARACTER_STEPS;
    this.#characterSteps = asked + (this.#words === 1 ? 0 : WORD_STEPS * this.#words);
    this.#visited = new Int32Array(program.inst.length);
  }

  /** Whether the pattern is found in the text; undefined when the purse was empty before that was known. */
  test(text: string, purse: Purse): boolean | undefined {
    return this.#words === 1 ? this.#testNarrow(text, purse) : this.#testWide(text, purse);
  }

  /** Most patterns have no more states than a word has bits. */
  #testNarrow(text: string, purse: Purse): boolean | undefined {
    const { length } = text;
    const { latin1Class } = this.#classes;
    const takers = this.#takers;
    const isConditional = this.#conditions !== 0;
    let following = length > 0 ? runeAt(text, 0) : NONE;
    let ways = this.#waysBetween(NONE, following, purse);
    if (ways.startMatches) return true;
    let now = ways.start[0]!;
    for (let at = 0; at < length;) {
      const rune = following;
      at += rune > 0xffff ? 2 : 1;
      following = at < length ? runeAt(text, at) : NONE;
      if (isConditional) {
        ways = this.#waysBetween(rune, following, purse);
        if (ways.startMatches) return true;
      }
      if ((purse.steps -= this.#characterSteps) < 0) return undefined;
      const kind = rune <= LATIN1_MAX ? latin1Class[rune]! : this.#foreignClass(rune, purse);
      const taken = now & (takers[kind] ?? this.#takersOf(kind, rune, purse))[0]!;
      now = ways.start[0]!;
      if (taken === 0) continue;
      const shifted = taken & ways.simple[0]!;
      now |= shifted << 1;
      for (let rest = taken ^ shifted; rest !== 0; rest &= rest - 1) {
        const way = this.#wayFrom(31 - Math.clz32(rest & -rest), ways, purse);
        if (way.matches) return true;
        purse.steps -= WAY_STEPS;
        now |= way.states[0]!;
      }
    }
    return false;
  }

  #testWide(text: string, purse: Purse): boolean | undefined {
    const { length } = text;
    const words = this.#words;
    const { latin1Class } = this.#classes;
    const takersOf = this.#takers;
    const isConditional = this.#conditions !== 0;
    let following = length > 0 ? runeAt(text, 0) : NONE;
    let ways = this.#waysBetween(NONE, following, purse);
    if (ways.startMatches) return true;
    let now = new Int32Array(ways.start);
    let next = new Int32Array(words);
    for (let at = 0; at < length;) {
      const rune = following;
      at += rune > 0xffff ? 2 : 1;
      following = at < length ? runeAt(text, at) : NONE;
      if (isConditional) {
        ways = this.#waysBetween(rune, following, purse);
        if (ways.startMatches) return true;
      }
      if ((purse.steps -= this.#characterSteps) < 0) return undefined;
      const kind = rune <= LATIN1_MAX ? latin1Class[rune]! : this.#foreignClass(rune, purse);
      const takers = takersOf[kind] ?? this.#takersOf(kind, rune, purse);
      const { start, simple } = ways;
      // What the highest bit of a word moves on to is the lowest of the next.
      let carried = 0;
      let others = 0;
      for (let word = 0; word < words; word++) {
        const taken = now[word]! & takers[word]!;
        const shifted = taken & simple[word]!;
        next[word] = start[word]! | (shifted << 1) | carried;
        carried = shifted >>> 31;
        others |= taken ^ shifted;
      }
      if (others !== 0) {
        const done = this.#takeOthers(now, next, takers, ways, purse);
        if (done) return true;
        if (purse.steps < 0) return undefined;
      }
      const last = now;
      now = next;
      next = last;
    }
    return false;
  }

  #foreignClass(rune: number, purse: Purse): number {
    purse.steps -= CHARACTER_STEPS;
    return this.#classes.runeClass(rune);
  }

  /** Adds where those states lead that do not just lead to the next. Whether one of them completes a match. */
  #takeOthers(now: Int32Array, next: Int32Array, takers: Int32Array, ways: Ways, purse: Purse): boolean {
    const words = this.#words;
    for (let word = 0; word < words; word++) {
      for (let rest = now[word]! & takers[word]! & ~ways.simple[word]!; rest !== 0; rest &= rest - 1) {
        const { matches, states } = this.#wayFrom(word * 32 + 31 - Math.clz32(rest & -rest), ways, purse);
        if (matches) return true;
        if ((purse.steps -= WAY_STEPS + WORD_STEPS * words) < 0) return false;
        for (let i = 0; i < words; i++) next[i]! |= states[i]!;
      }
    }
    return false;
  }

  #wayFrom(state: number, ways: Ways, purse: Purse): Way {
    return ways.others[state] ?? this.#explore(state, ways, purse);
  }

  #explore(state: number, { conditions, simple, others }: Ways, purse: Purse): Way {
    const way = this.#reach(this.#states[state]!.out, conditions, purse);
    if (!way.matches && isOnly(way.states, state + 1)) simple[state >>> 5]! |= 1 << (state & 31);
    else others[state] = way;
    return way;
  }

  #waysBetween(before: number, after: number, purse: Purse): Ways {
    // Within a line, and where words do not matter, there is nothing to find out.
    const isPlain = !this.#hasWords && before > NEWLINE && after > NEWLINE;
    const conditions = isPlain ? 0 : conditionsBetween(before, after) & this.#conditions;
    return this.#ways[conditions] ?? this.#explored(conditions, purse);
  }

  #explored(conditions: number, purse: Purse): Ways {
    const { states, matches } = this.#reach(this.#program.start, conditions, purse);
    const simple = new Int32Array(this.#words);
    return (this.#ways[conditions] = { conditions, start: states, startMatches: matches, simple, others: [] });
  }

  /** The states that can be reached from an instruction without taking a character. */
  #reach(from: number, conditions: number, purse: Purse): Way {
    const states = new Int32Array(this.#words);
    const visit = ++this.#visit;
    let matches = false;
    const open = [from];
    while (open.length > 0) {
      const at = open.pop()!;
      if (this.#visited[at] === visit) continue;
      this.#visited[at] = visit;
      purse.steps -= 2;
      const { op, out, arg } = this.#program.inst[at]!;
      if (op === ALT || op === ALT_MATCH) open.push(arg, out);
      else if (op === CAPTURE || op === NOP) open.push(out);
      else if (op === EMPTY_WIDTH) {
        if ((arg & ~conditions) === 0) open.push(out);
      } else if (op === MATCH) matches = true;
      else if (op >= RUNE && op <= RUNE_ANY_NOT_NEWLINE) {
        const number = this.#numbers[at]!;
        states[number >>> 5]! |= 1 << (number & 31);
      }
    }
    return { states, matches };
  }

  #takersOf(kind: number, rune: number, purse: Purse): Int32Array {
    const takers = new Int32Array(this.#words);
    for (const [number, instruction] of this.#states.entries()) {
      if (takes(instruction, rune)) takers[number >>> 5]! |= 1 << (number & 31);
    }
    purse.steps -= this.#states.length * 4;
    return (this.#takers[kind] = takers);
  }
}

function takes(instruction: Instruction, rune: number): boolean {
  if (instruction.op === RUNE_ANY) return true;
  if (instruction.op === RUNE_ANY_NOT_NEWLINE) return rune !== NEWLINE;
  return instruction.op === RUNE1 ? rune === instruction.runes[0] : instruction.matchRune(rune);
}

function isOnly(states: Int32Array, state: number): boolean {
  return states.every((word, i) => word === (i === state >>> 5 ? 1 << (state & 31) : 0));
}

function runeAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return (code & 0xfc00) === 0xd800 ? text.codePointAt(at)! : code;
}

function conditionsBetween(before: number, after: number): number {
  let conditions = isWord(before) === isWord(after) ? NO_WORD_BOUNDARY : WORD_BOUNDARY;
  if (before === NONE) conditions |= BEGIN_TEXT | BEGIN_LINE;
  else if (before === NEWLINE) conditions |= BEGIN_LINE;
  if (after === NONE) conditions |= END_TEXT | END_LINE;
  else if (after === NEWLINE) conditions |= END_LINE;
  return conditions;
}

/** In ASCII, as RE2 has it. */
function isWord(rune: number): boolean {
  return (rune >= 48 && rune <= 57) || (rune >= 65 && rune <= 90) || rune === 95 || (rune >= 97 && rune <= 122);
}
