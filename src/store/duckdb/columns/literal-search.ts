// Searches a text for many literals in one pass: an Aho-Corasick automaton over their first characters, whose hits are
// verified against the text. Its size depends on the number of literals, not on their length or their alphabet.

/** Characters of a literal that the automaton contains. */
const PREFIX_CHARACTERS = 8;
/** Characters are distinguished by their lowest bits only; verification settles the others. */
const CLASSES = 64;
const CLASS_MASK = CLASSES - 1;
/** Verifications between two calls of `check`. */
const CHECK_EVERY = 1024;

interface Candidate {
  readonly literal: string;
  readonly prefixLength: number;
}

/** `check` is called at intervals and throws to abort the search. */
export function containsAny(literals: readonly string[], check: () => void): (text: string) => boolean {
  if (literals.includes("")) return () => true;
  const { next, candidates } = build(literals);
  return (text) => {
    let state = 0;
    let verified = 0;
    for (let at = 0; at < text.length; at++) {
      state = next[state * CLASSES + (text.charCodeAt(at) & CLASS_MASK)]!;
      const hits = candidates[state];
      if (hits === undefined) continue;
      for (const { literal, prefixLength } of hits) {
        if (++verified % CHECK_EVERY === 0) check();
        if (text.startsWith(literal, at + 1 - prefixLength)) return true;
      }
    }
    return false;
  };
}

interface LiteralAutomaton {
  /** The next state by state and character class. */
  readonly next: Int32Array;
  /** By state, the literals that may end their prefix there. */
  readonly candidates: readonly (readonly Candidate[] | undefined)[];
}

function build(literals: readonly string[]): LiteralAutomaton {
  const prefixes = [...new Set(literals)].map((literal) => ({
    literal,
    prefixLength: Math.min(literal.length, PREFIX_CHARACTERS),
  }));
  const statesMax = prefixes.reduce((sum, { prefixLength }) => sum + prefixLength, 1);
  const next = new Int32Array(statesMax * CLASSES);
  const candidates: Candidate[][] = [];
  let states = 1;
  for (const candidate of prefixes) {
    let state = 0;
    for (let i = 0; i < candidate.prefixLength; i++) {
      const slot = state * CLASSES + (candidate.literal.charCodeAt(i) & CLASS_MASK);
      state = next[slot]! || (next[slot] = states++);
    }
    (candidates[state] ??= []).push(candidate);
  }
  link(next, candidates, states);
  return { next: next.slice(0, states * CLASSES), candidates };
}

/** Breadth first: where the trie ends, a state continues like its longest proper suffix. */
function link(next: Int32Array, candidates: Candidate[][], states: number): void {
  const suffixOf = new Int32Array(states);
  const queue = [0];
  for (const state of queue) {
    const suffix = suffixOf[state]!;
    for (let kind = 0; kind < CLASSES; kind++) {
      const slot = state * CLASSES + kind;
      const child = next[slot]!;
      const fallback = state === 0 ? 0 : next[suffix * CLASSES + kind]!;
      if (child === 0) {
        next[slot] = fallback;
        continue;
      }
      suffixOf[child] = fallback;
      const inherited = candidates[fallback];
      if (inherited) candidates[child] = [...(candidates[child] ?? []), ...inherited];
      queue.push(child);
    }
  }
}
