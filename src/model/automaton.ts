import type { RE2JS } from "re2js";
import { EDGE, KINDS, LATIN1_MAX, Nfa, type StepBudget } from "./nfa.ts";

// Searches a text for several compiled RE2 patterns in one pass. Reached sets of states are cached with
// their transitions (a lazily built DFA), so that most characters cost one lookup however many patterns there are. A text that
// leads to ever new sets of states runs uncached from there on: slower, but never by more than the patterns are long.

/** Memory for the cached states of one automaton. */
const CACHE_BYTES_MAX = 512 * 1024;
/** Memory for the cached states of all automatons together. */
const CACHES_BYTES_MAX = 64 * 1024 * 1024;
/** Characters per cached state since the last reset that make rebuilding a full cache worthwhile. */
const CHARACTERS_PER_STATE_MIN = 10;
const CLASSES_AT_FIRST = 32;
const STATE_OVERHEAD_BYTES = 160;

/**
 * Costs in steps of about a nanosecond: a character whose transition is cached, one beyond Latin-1, and a state that is added
 * to the cache.
 */
const HIT_STEPS = 6;
const FOREIGN_STEPS = 18;
const INTERN_STEPS = 250;
const INTERN_WORD_STEPS = 8;

const DONE = 0;
const EXHAUSTED = -1;
const UNCACHED = -2;
const WIDENED = -3;

/** Limits the memory of all caches together. Beyond the limit, every cache except the growing one is emptied. */
export class CacheMemoryLimit {
  readonly #users = new Map<object, { bytes: number; empty: () => void }>();
  #bytes = 0;

  grow(user: object, bytes: number, empty: () => void): void {
    const entry = this.#users.get(user) ?? { bytes: 0, empty };
    this.#users.set(user, entry);
    entry.bytes += bytes;
    this.#bytes += bytes;
    if (this.#bytes <= CACHES_BYTES_MAX) return;
    for (const [other, { empty: emptyOther }] of this.#users) if (other !== user) emptyOther();
  }

  clear(): void {
    for (const { empty } of this.#users.values()) empty();
  }

  leave(user: object): void {
    this.#bytes -= this.#users.get(user)?.bytes ?? 0;
    this.#users.delete(user);
  }
}

export class Automaton {
  readonly #nfa: Nfa;
  readonly #cacheLimit: CacheMemoryLimit;
  /** Slots per class: one, or with assertions one for each kind of following character. */
  readonly #kinds: number;
  #classCapacity = CLASSES_AT_FIRST;
  readonly #latin1 = new Int32Array(LATIN1_MAX + 1).fill(-1);
  /** Targets by state and slot: 0 if unknown, otherwise twice the state, plus one if entering it completes a pattern. */
  #targets = new Int32Array(0);
  #bits = new Int32Array(0);
  readonly #ids = new Map<string, number>();
  /** Patterns completed by entering each state. */
  #completed: (readonly number[])[] = [];
  readonly #initial = new Int32Array(KINDS);
  #charactersServed = 0;
  #scratch: Int32Array;
  #otherScratch: Int32Array;

  constructor(patterns: readonly RE2JS[], cacheLimit: CacheMemoryLimit) {
    this.#nfa = new Nfa(patterns);
    this.#cacheLimit = cacheLimit;
    this.#kinds = this.#nfa.isConditional ? KINDS : 1;
    this.#scratch = new Int32Array(this.#nfa.words);
    this.#otherScratch = new Int32Array(this.#nfa.words);
    this.#completed = [[]];
  }

  /** Minimum cost of a character without the cache. */
  get uncachedSteps(): number {
    return this.#nfa.characterSteps;
  }

  /**
   * Marks each pattern that is found in the text. Returns false if the budget runs out first: marked patterns were found,
   * the others are undecided.
   */
  search(text: string, budget: StepBudget, found: Uint8Array): boolean {
    for (;;) {
      const outcome = this.#search(text, budget, found);
      if (outcome !== WIDENED) return outcome !== EXHAUSTED;
    }
  }

  /** Releases the cache; the automaton stays usable. */
  empty(): void {
    this.#cacheLimit.leave(this);
    this.#targets = new Int32Array(0);
    this.#bits = new Int32Array(0);
    this.#ids.clear();
    this.#completed = [[]];
    this.#initial.fill(0);
    this.#charactersServed = 0;
  }

  #search(text: string, budget: StepBudget, found: Uint8Array): number {
    const { length } = text;
    const { kinds } = this.#nfa;
    const isConditional = this.#kinds > 1;
    const stride = this.#stride;
    const latin1 = this.#latin1;
    const left = { patterns: this.#nfa.patterns };
    for (const mark of found) left.patterns -= mark;
    let code = length > 0 ? runeAt(text, 0) : 0;
    let character = length > 0 ? this.#classOf(code, budget) : 0;
    if (character < 0) return WIDENED;
    const first = length > 0 ? kinds[character]! : EDGE;
    let target = this.#initial[first]! || this.#begin(first, budget);
    if (budget.steps < 0) return EXHAUSTED;
    if ((target & 1) !== 0 && this.#mark(target >> 1, found, left)) return DONE;
    let targets = this.#targets;
    let state = target >> 1;
    let counted = 0;
    for (let at = 0; at < length;) {
      at += code > 0xffff ? 2 : 1;
      let next = 0;
      if (at < length) {
        code = text.charCodeAt(at);
        next = code <= LATIN1_MAX ? latin1[code]! : -1;
        if (next < 0) {
          code = runeAt(text, at);
          next = this.#classOf(code, budget);
          if (next < 0) return WIDENED;
        }
      }
      const following = !isConditional ? 0 : at < length ? kinds[next]! : EDGE;
      const slot = isConditional ? character * KINDS + following : character;
      target = targets[state * stride + slot]!;
      if (target === 0) {
        this.#charactersServed += at - counted;
        budget.steps -= (at - counted) * HIT_STEPS;
        counted = at;
        target = this.#miss(state, character, following, budget);
        if (target === EXHAUSTED) return EXHAUSTED;
        if (target === UNCACHED) return this.#runUncached(text, at, budget, found, left);
        targets = this.#targets;
      }
      if ((target & 1) !== 0 && this.#mark(target >> 1, found, left)) break;
      state = target >> 1;
      character = next;
    }
    this.#charactersServed += length - counted;
    budget.steps -= (length - counted) * HIT_STEPS;
    return DONE;
  }

  /** Continues from a position, with its states in the scratch, without the cache. */
  #runUncached(text: string, from: number, budget: StepBudget, found: Uint8Array, left: { patterns: number }): number {
    const { length } = text;
    const nfa = this.#nfa;
    const { kinds } = nfa;
    const latin1 = this.#latin1;
    let now = this.#scratch;
    let next = this.#otherScratch;
    if (this.#markAll(nfa.completed, nfa.completedCount, found, left)) return DONE;
    let code = from < length ? runeAt(text, from) : 0;
    let character = from < length ? nfa.classOf(code, budget) : 0;
    for (let at = from; at < length;) {
      at += code > 0xffff ? 2 : 1;
      let after = 0;
      if (at < length) {
        code = runeAt(text, at);
        after = code <= LATIN1_MAX ? latin1[code]! : -1;
        if (after < 0) {
          budget.steps -= FOREIGN_STEPS;
          after = nfa.classOf(code, budget);
        }
      }
      nfa.move(now, next, character, at < length ? kinds[after]! : EDGE, budget);
      if (budget.steps < 0) return EXHAUSTED;
      if (nfa.completedCount > 0 && this.#markAll(nfa.completed, nfa.completedCount, found, left)) return DONE;
      const last = now;
      now = next;
      next = last;
      character = after;
    }
    return DONE;
  }

  get #stride(): number {
    return this.#classCapacity * this.#kinds;
  }

  /** Class of a character; -1 after the cache was reset to make room for more classes, and the search must restart. */
  #classOf(rune: number, budget: StepBudget): number {
    if (rune > LATIN1_MAX) budget.steps -= FOREIGN_STEPS;
    const known = this.#nfa.classOf(rune, budget);
    if (known >= this.#classCapacity) {
      this.empty();
      this.#classCapacity *= 2;
      return -1;
    }
    if (rune <= LATIN1_MAX) this.#latin1[rune] = known;
    return known;
  }

  #begin(first: number, budget: StepBudget): number {
    this.#nfa.begin(first, this.#scratch, budget);
    let target = this.#intern(budget);
    if (target === 0) {
      this.empty();
      target = this.#intern(budget);
    }
    return (this.#initial[first] = target);
  }

  #miss(state: number, character: number, following: number, budget: StepBudget): number {
    const { words } = this.#nfa;
    const now = this.#otherScratch;
    for (let i = 0; i < words; i++) now[i] = this.#bits[state * words + i]!;
    this.#nfa.move(now, this.#scratch, character, following, budget);
    if (budget.steps < 0) return EXHAUSTED;
    const target = this.#intern(budget);
    if (target !== 0) {
      const slot = this.#kinds === 1 ? character : character * KINDS + following;
      this.#targets[state * this.#stride + slot] = target;
      return target;
    }
    if (this.#charactersServed < this.#ids.size * CHARACTERS_PER_STATE_MIN) return UNCACHED;
    this.empty();
    return this.#intern(budget);
  }

  /** The target for the states in the scratch; 0 if the cache is full. */
  #intern(budget: StepBudget): number {
    const { words } = this.#nfa;
    const completed = this.#nfa.completed.slice(0, this.#nfa.completedCount);
    const key = keyOf(this.#scratch, completed);
    const known = this.#ids.get(key);
    budget.steps -= INTERN_STEPS / 2;
    if (known !== undefined) return known;
    const id = this.#ids.size + 1;
    const stride = this.#stride;
    const bytes = (stride + 3 * words) * 4 + STATE_OVERHEAD_BYTES;
    if (id > 1 && id * bytes > CACHE_BYTES_MAX) return 0;
    budget.steps -= INTERN_STEPS + INTERN_WORD_STEPS * words + stride / 4;
    if ((id + 1) * stride > this.#targets.length) {
      this.#targets = grown(this.#targets, stride * Math.max(4, id * 2));
      this.#bits = grown(this.#bits, words * Math.max(4, id * 2));
    }
    this.#cacheLimit.grow(this, bytes, () => this.empty());
    this.#bits.set(this.#scratch, id * words);
    this.#completed[id] = completed.length === 0 ? NONE : [...new Set(completed)];
    const target = id * 2 + (completed.length > 0 ? 1 : 0);
    this.#ids.set(key, target);
    return target;
  }

  #mark(state: number, found: Uint8Array, left: { patterns: number }): boolean {
    const completed = this.#completed[state]!;
    return this.#markAll(completed, completed.length, found, left);
  }

  /** Marks patterns; true if every pattern is found. */
  #markAll(completed: readonly number[], count: number, found: Uint8Array, left: { patterns: number }): boolean {
    for (let i = 0; i < count; i++) {
      const pattern = completed[i]!;
      left.patterns -= 1 - found[pattern]!;
      found[pattern] = 1;
    }
    return left.patterns === 0;
  }
}

const NONE: readonly number[] = [];

function keyOf(states: Int32Array, completed: readonly number[]): string {
  const halves = new Uint16Array(states.buffer, states.byteOffset, states.length * 2);
  const key = String.fromCharCode.apply(null, halves as unknown as number[]);
  return completed.length === 0 ? key : `${key}|${[...new Set(completed)].sort((a, b) => a - b).join()}`;
}

function grown(array: Int32Array, length: number): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(length);
  larger.set(array);
  return larger;
}

function runeAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return (code & 0xfc00) === 0xd800 ? text.codePointAt(at)! : code;
}
