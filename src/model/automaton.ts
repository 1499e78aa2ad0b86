import type { RE2JS } from "re2js";
import { EDGE, KINDS, LATIN1_MAX, Nfa, type Purse } from "./nfa.ts";

// Looks for several compiled RE2 patterns in one pass over a text. Sets of states that the text leads to are cached with
// their transitions (a lazily built DFA), so that most characters cost one lookup however many patterns there are. A text that
// leads to ever new sets of states runs uncached from there on: slower, but never by more than the patterns are long.

/** Memory for the cached states of one automaton. */
const CACHE_BYTES_MAX = 512 * 1024;
/** Memory for those of all automatons of a room together. */
const ROOM_BYTES_MAX = 64 * 1024 * 1024;
/** Characters that each cached state must have served since the cache was last emptied to be worth building anew. */
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

/** Counts the memory of all caches; when they need too much together, all but the one that grows are emptied. */
export class CacheRoom {
  readonly #users = new Map<object, { bytes: number; empty: () => void }>();
  #bytes = 0;

  grow(user: object, bytes: number, empty: () => void): void {
    const entry = this.#users.get(user) ?? { bytes: 0, empty };
    this.#users.set(user, entry);
    entry.bytes += bytes;
    this.#bytes += bytes;
    if (this.#bytes <= ROOM_BYTES_MAX) return;
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
  readonly #room: CacheRoom;
  /** Slots of a state: one for each class of characters, and in patterns with assertions for each kind that may follow. */
  readonly #kinds: number;
  #classCapacity = CLASSES_AT_FIRST;
  readonly #latin1 = new Int32Array(LATIN1_MAX + 1).fill(-1);
  /** Targets by state and slot: 0 while unknown, otherwise twice the state, plus one where entering it completes a pattern. */
  #targets = new Int32Array(0);
  #bits = new Int32Array(0);
  readonly #ids = new Map<string, number>();
  /** By state, the patterns that entering it completes. */
  #completed: (readonly number[])[] = [];
  readonly #initial = new Int32Array(KINDS);
  #charactersServed = 0;
  #scratch: Int32Array;
  #otherScratch: Int32Array;

  constructor(patterns: readonly RE2JS[], room: CacheRoom) {
    this.#nfa = new Nfa(patterns);
    this.#room = room;
    this.#kinds = this.#nfa.isConditional ? KINDS : 1;
    this.#scratch = new Int32Array(this.#nfa.words);
    this.#otherScratch = new Int32Array(this.#nfa.words);
    this.#completed = [[]];
  }

  /** What a character costs at least when nothing is cached. */
  get uncachedSteps(): number {
    return this.#nfa.characterSteps;
  }

  /**
   * Marks each pattern that is found in the text. False when the purse ran out first: what is marked was found, and nothing
   * is known of the others.
   */
  search(text: string, purse: Purse, found: Uint8Array): boolean {
    for (;;) {
      const outcome = this.#search(text, purse, found);
      if (outcome !== WIDENED) return outcome !== EXHAUSTED;
    }
  }

  /** Gives its memory back; it can still be used. */
  empty(): void {
    this.#room.leave(this);
    this.#targets = new Int32Array(0);
    this.#bits = new Int32Array(0);
    this.#ids.clear();
    this.#completed = [[]];
    this.#initial.fill(0);
    this.#charactersServed = 0;
  }

  #search(text: string, purse: Purse, found: Uint8Array): number {
    const { length } = text;
    const { kinds } = this.#nfa;
    const isConditional = this.#kinds > 1;
    const stride = this.#stride;
    const latin1 = this.#latin1;
    const left = { patterns: this.#nfa.patterns };
    for (const mark of found) left.patterns -= mark;
    let code = length > 0 ? runeAt(text, 0) : 0;
    let character = length > 0 ? this.#classOf(code, purse) : 0;
    if (character < 0) return WIDENED;
    const first = length > 0 ? kinds[character]! : EDGE;
    let target = this.#initial[first]! || this.#begin(first, purse);
    if (purse.steps < 0) return EXHAUSTED;
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
          next = this.#classOf(code, purse);
          if (next < 0) return WIDENED;
        }
      }
      const following = !isConditional ? 0 : at < length ? kinds[next]! : EDGE;
      const slot = isConditional ? character * KINDS + following : character;
      target = targets[state * stride + slot]!;
      if (target === 0) {
        this.#charactersServed += at - counted;
        purse.steps -= (at - counted) * HIT_STEPS;
        counted = at;
        target = this.#miss(state, character, following, purse);
        if (target === EXHAUSTED) return EXHAUSTED;
        if (target === UNCACHED) return this.#runUncached(text, at, purse, found, left);
        targets = this.#targets;
      }
      if ((target & 1) !== 0 && this.#mark(target >> 1, found, left)) break;
      state = target >> 1;
      character = next;
    }
    this.#charactersServed += length - counted;
    purse.steps -= (length - counted) * HIT_STEPS;
    return DONE;
  }

  /** From a place on, with the states before it in the scratch, without caching anything. */
  #runUncached(text: string, from: number, purse: Purse, found: Uint8Array, left: { patterns: number }): number {
    const { length } = text;
    const nfa = this.#nfa;
    const { kinds } = nfa;
    const latin1 = this.#latin1;
    let now = this.#scratch;
    let next = this.#otherScratch;
    if (this.#markAll(nfa.completed, nfa.completedCount, found, left)) return DONE;
    let code = from < length ? runeAt(text, from) : 0;
    let character = from < length ? nfa.classOf(code, purse) : 0;
    for (let at = from; at < length;) {
      at += code > 0xffff ? 2 : 1;
      let after = 0;
      if (at < length) {
        code = runeAt(text, at);
        after = code <= LATIN1_MAX ? latin1[code]! : -1;
        if (after < 0) {
          purse.steps -= FOREIGN_STEPS;
          after = nfa.classOf(code, purse);
        }
      }
      nfa.move(now, next, character, at < length ? kinds[after]! : EDGE, purse);
      if (purse.steps < 0) return EXHAUSTED;
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

  /** -1 when there are more classes than the cache has slots for: it was emptied, and the search begins again. */
  #classOf(rune: number, purse: Purse): number {
    if (rune > LATIN1_MAX) purse.steps -= FOREIGN_STEPS;
    const known = this.#nfa.classOf(rune, purse);
    if (known >= this.#classCapacity) {
      this.empty();
      this.#classCapacity *= 2;
      return -1;
    }
    if (rune <= LATIN1_MAX) this.#latin1[rune] = known;
    return known;
  }

  #begin(first: number, purse: Purse): number {
    this.#nfa.begin(first, this.#scratch, purse);
    let target = this.#intern(purse);
    if (target === 0) {
      this.empty();
      target = this.#intern(purse);
    }
    return (this.#initial[first] = target);
  }

  #miss(state: number, character: number, following: number, purse: Purse): number {
    const { words } = this.#nfa;
    const now = this.#otherScratch;
    for (let i = 0; i < words; i++) now[i] = this.#bits[state * words + i]!;
    this.#nfa.move(now, this.#scratch, character, following, purse);
    if (purse.steps < 0) return EXHAUSTED;
    const target = this.#intern(purse);
    if (target !== 0) {
      const slot = this.#kinds === 1 ? character : character * KINDS + following;
      this.#targets[state * this.#stride + slot] = target;
      return target;
    }
    if (this.#charactersServed < this.#ids.size * CHARACTERS_PER_STATE_MIN) return UNCACHED;
    this.empty();
    return this.#intern(purse);
  }

  /** The target for the states in the scratch; 0 when the cache is full. */
  #intern(purse: Purse): number {
    const { words } = this.#nfa;
    const completed = this.#nfa.completed.slice(0, this.#nfa.completedCount);
    const key = keyOf(this.#scratch, completed);
    const known = this.#ids.get(key);
    purse.steps -= INTERN_STEPS / 2;
    if (known !== undefined) return known;
    const id = this.#ids.size + 1;
    const stride = this.#stride;
    const bytes = (stride + 3 * words) * 4 + STATE_OVERHEAD_BYTES;
    if (id > 1 && id * bytes > CACHE_BYTES_MAX) return 0;
    purse.steps -= INTERN_STEPS + INTERN_WORD_STEPS * words + stride / 4;
    if ((id + 1) * stride > this.#targets.length) {
      this.#targets = grown(this.#targets, stride * Math.max(4, id * 2));
      this.#bits = grown(this.#bits, words * Math.max(4, id * 2));
    }
    this.#room.grow(this, bytes, () => this.empty());
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

  /** Whether every pattern has been found now. */
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
