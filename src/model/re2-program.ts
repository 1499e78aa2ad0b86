import type { RE2JS } from "re2js";

// The compiled form of a pattern, read from private fields of re2js. No other file reads them. re2-program.test.ts fails
// when a release of the library changes them.

/** A compiled program: instructions that consume a character, and instructions that only lead to others. */
export interface Program {
  readonly instructions: readonly Instruction[];
  readonly start: number;
  /** First code points of the intervals within which all characters are equivalent to the pattern. */
  readonly classBounds: Int32Array;
}

export interface Instruction {
  /** A value of INSTRUCTION. */
  readonly op: number;
  readonly out: number;
  /** ALT: the second successor. EMPTY_WIDTH: the bits of ASSERTION. */
  readonly arg: number;
  readonly runes: Int32Array;
  matchRune(rune: number): boolean;
}

export const INSTRUCTION = {
  ALT: 1,
  ALT_MATCH: 2,
  CAPTURE: 3,
  EMPTY_WIDTH: 4,
  MATCH: 6,
  NOP: 7,
  RUNE: 8,
  RUNE1: 9,
  RUNE_ANY: 10,
  RUNE_ANY_NOT_NEWLINE: 11,
} as const;

export const ASSERTION = {
  BEGIN_LINE: 1,
  END_LINE: 2,
  BEGIN_TEXT: 4,
  END_TEXT: 8,
  WORD_BOUNDARY: 16,
  NO_WORD_BOUNDARY: 32,
} as const;

/** Private fields of re2js 2.10. */
interface PrivateFields {
  readonly re2Input: {
    readonly prog: { readonly inst: readonly Instruction[]; readonly start: number };
    readonly dfa: { readonly classBounds: Int32Array };
  };
}

export function programOf(pattern: RE2JS): Program {
  const { prog, dfa } = (pattern as unknown as PrivateFields).re2Input;
  return { instructions: prog.inst, start: prog.start, classBounds: dfa.classBounds };
}

export function isConsuming(op: number): boolean {
  return op >= INSTRUCTION.RUNE && op <= INSTRUCTION.RUNE_ANY_NOT_NEWLINE;
}
