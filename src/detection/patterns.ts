import { Automaton, CacheRoom } from "../model/automaton.ts";
import { compilePattern, PATTERN_TEXT_CHARACTERS_MAX, patternSubject } from "../model/condition.ts";
import type { Purse } from "../model/nfa.ts";
import { patternWeight } from "../model/pattern.ts";
import { requiredLiterals, type Factor } from "./literals.ts";

// The patterns of all rules, and what running them on one event may cost. Patterns on the same field are searched for
// together, in groups. Each pattern has a share of steps of its own that grows with the text: no text and no other
// pattern can use it up. Only patterns too wide to be run within their share compete, for what an event has besides.

/** For each pattern and character of text. All but very wide patterns are always decided within it. */
const SHARE_STEPS_PER_CHARACTER = 128;
/** A pattern that takes more than this for a character when nothing is cached is wide; the rest of a share is for loops. */
const WIDE_STEPS_MIN = SHARE_STEPS_PER_CHARACTER / 2;
/** The same for wide patterns, which can only be decided within it where few different states occur. */
const WIDE_SHARE_STEPS_PER_CHARACTER = 8;
/** Beside the characters, for each test: what it takes to look at a pattern for the first time. */
const SHARE_STEPS_PER_TEST = 50_000;
/** Steps that one test of a wide pattern may take: less than ten milliseconds. */
const STEPS_PER_TEST_MAX = 3_000_000;
/** Steps that all wide patterns may take beyond their shares, for one event. */
const EXTRA_STEPS_PER_EVENT_MAX = 4 * STEPS_PER_TEST_MAX;

/** Patterns that are searched for together; how large they may be, together and each; and how many loops they may have. */
const GROUP_PATTERNS_MAX = 64;
const GROUP_WEIGHT_MAX = 1024;
const GROUP_LOOPS_MAX = 64;
const GROUPED_WEIGHT_MAX = 64;
const GROUPED_LOOPS_MAX = 8;

/** Literals that are looked for before a group is run: more would take longer than running it. */
const LITERALS_CHECKED_MAX = 8;

/** Partial: it is not in the part of a very long value that patterns look at. Unknown: it was given up. */
export type Outcome = "found" | "absent" | "partial" | "unknown";

/** A pattern on a field; rules that ask for the same one share it. */
export interface FieldPattern {
  /** Whether the pattern is found in the value with this number among the field's values; `folded` is how guards have it. */
  test(value: string, folded: string, number: number): Outcome;
  release(): void;
}

export class Patterns {
  /** Tests that were given up. */
  givenUp = 0;
  /** Tests whose outcome does not tell whether the pattern occurs: given up, or on a part of the value only. */
  uncertain = 0;
  #isHopeful = false;
  /** Which event it is. */
  round = 0;
  extraSteps = EXTRA_STEPS_PER_EVENT_MAX;
  readonly room = new CacheRoom();
  readonly #members = new Map<string, Member>();
  /** By field, the groups that further patterns may join. */
  readonly #open = new Map<string, Group[]>();

  /** For the next event. */
  renew(): void {
    this.round++;
    this.extraSteps = EXTRA_STEPS_PER_EVENT_MAX;
  }

  /** Whether uncertain tests are to come out in favour of the rule. */
  get isHopeful(): boolean {
    return this.#isHopeful;
  }

  /** Whether a condition would hold if every uncertain test came out in its favour. */
  couldHold(holds: () => boolean): boolean {
    this.#isHopeful = true;
    try {
      return holds();
    } finally {
      this.#isHopeful = false;
    }
  }

  acquire(field: string, pattern: string, ignoreCase: boolean): FieldPattern {
    const key = JSON.stringify([field, ignoreCase, pattern]);
    const known = this.#members.get(key);
    if (known) return known.acquire();
    const literals = requiredLiterals(pattern, ignoreCase);
    const source = { pattern, ignoreCase, literals, weight: patternWeight(pattern), ...repetitionsOf(pattern) };
    const group = this.#groupFor(field, source);
    const member = new Member(group, source, () => {
      this.#members.delete(key);
      group.remove(member);
      const groups = this.#open.get(field);
      if (group.members.length > 0 || !groups?.includes(group)) return;
      groups.splice(groups.indexOf(group), 1);
      if (groups.length === 0) this.#open.delete(field);
    });
    group.add(member);
    this.#members.set(key, member);
    return member.acquire();
  }

  #groupFor(field: string, source: Source): Group {
    const group = new Group(this, source);
    if (source.weight > GROUPED_WEIGHT_MAX || source.loops > GROUPED_LOOPS_MAX) return group;
    let groups = this.#open.get(field);
    if (!groups) this.#open.set(field, (groups = []));
    const roomy = groups.find((each) => each.suits(source));
    if (roomy) return roomy;
    groups.push(group);
    return group;
  }
}

interface Source {
  readonly pattern: string;
  readonly ignoreCase: boolean;
  readonly literals: readonly Factor[];
  readonly weight: number;
  /** Parts that may repeat without end, about as many as there are once repetitions are written out. */
  readonly loops: number;
  /** Whether it counts repetitions: some texts then lead to very many different states. */
  readonly counts: boolean;
}

interface Search {
  readonly found: Uint8Array;
  readonly isComplete: boolean;
}

/** Patterns on one field that are searched for together. */
class Group {
  readonly patterns: Patterns;
  readonly members: Member[] = [];
  /** Patterns that literals rule out mostly are kept apart from those that run on every value, and so are those that count. */
  readonly #hasLiterals: boolean;
  readonly #counts: boolean;
  #weight = 0;
  #loops = 0;
  /** Made when it is first needed: most rules never get here, and loading thousands of rules must not take long. */
  #automaton: Automaton | undefined;
  /** What was found in the values of the event at hand, by their numbers. */
  #searches: Search[] = [];
  #round = -1;

  constructor(patterns: Patterns, { literals, counts }: Source) {
    this.patterns = patterns;
    this.#hasLiterals = literals.length > 0;
    this.#counts = counts;
  }

  suits({ literals, counts, weight, loops }: Source): boolean {
    if (literals.length > 0 !== this.#hasLiterals || counts !== this.#counts) return false;
    const isFull = this.members.length >= GROUP_PATTERNS_MAX;
    return !isFull && this.#weight + weight <= GROUP_WEIGHT_MAX && this.#loops + loops <= GROUP_LOOPS_MAX;
  }

  add(member: Member): void {
    this.members.push(member);
    this.#weight += member.source.weight;
    this.#loops += member.source.loops;
    this.#changed();
  }

  remove(member: Member): void {
    this.members.splice(this.members.indexOf(member), 1);
    this.#weight -= member.source.weight;
    this.#loops -= member.source.loops;
    this.#changed();
  }

  #changed(): void {
    this.#automaton?.empty();
    this.#automaton = undefined;
    this.#searches = [];
    for (const [number, member] of this.members.entries()) member.number = number;
  }

  /** What the group has found in a value of the event at hand, if it was run on it. */
  searched(number: number): Search | undefined {
    return this.#round === this.patterns.round ? this.#searches[number] : undefined;
  }

  search(value: string, number: number): Search {
    if (this.#round !== this.patterns.round) {
      this.#round = this.patterns.round;
      this.#searches = [];
    }
    return (this.#searches[number] ??= this.#run(patternSubject(value)));
  }

  #run(text: string): Search {
    const { length } = this.members;
    this.#automaton ??= new Automaton(
      this.members.map(({ source }) => compilePattern(source.pattern, source.ignoreCase)),
      this.patterns.room,
    );
    const found = new Uint8Array(length);
    const purse = { steps: length * shareOf(text.length, SHARE_STEPS_PER_CHARACTER) };
    return { found, isComplete: this.#automaton.search(text, purse, found) };
  }
}

class Member implements FieldPattern {
  readonly source: Source;
  /** Its place in the group. */
  number = 0;
  readonly #group: Group;
  readonly #drop: () => void;
  #users = 0;
  #automaton: Automaton | undefined;
  #outcomes: Outcome[] = [];
  #round = -1;

  constructor(group: Group, source: Source, drop: () => void) {
    this.#group = group;
    this.source = source;
    this.#drop = drop;
  }

  acquire(): this {
    this.#users++;
    return this;
  }

  release(): void {
    if (--this.#users > 0) return;
    this.#automaton?.empty();
    this.#drop();
  }

  test(value: string, folded: string, number: number): Outcome {
    const isPartial = value.length > PATTERN_TEXT_CHARACTERS_MAX;
    const known = isPartial ? undefined : this.#group.searched(number);
    if (known?.isComplete) return known.found[this.number] === 1 ? "found" : "absent";
    if (!this.#hasLiterals(folded)) return "absent";
    const outcome = this.#search(value, number);
    return isPartial && outcome === "absent" ? "partial" : outcome;
  }

  #hasLiterals(folded: string): boolean {
    let left = LITERALS_CHECKED_MAX;
    for (const factor of this.source.literals) {
      if ((left -= factor.length) < 0) return true;
      if (!factor.some((literal) => folded.includes(literal))) return false;
    }
    return true;
  }

  #search(value: string, number: number): Outcome {
    if (this.#group.members.length > 1) {
      const { found, isComplete } = this.#group.search(value, number);
      if (found[this.number] === 1) return "found";
      if (isComplete) return "absent";
    }
    const { patterns } = this.#group;
    if (this.#round !== patterns.round) {
      this.#round = patterns.round;
      this.#outcomes = [];
    }
    return (this.#outcomes[number] ??= this.#run(patternSubject(value), patterns));
  }

  /** By itself: it is the only one, or its group did not get to the end. */
  #run(text: string, patterns: Patterns): Outcome {
    const { pattern, ignoreCase } = this.source;
    this.#automaton ??= new Automaton([compilePattern(pattern, ignoreCase)], patterns.room);
    const isWide = this.#automaton.uncachedSteps > WIDE_STEPS_MIN;
    const share = shareOf(text.length, isWide ? WIDE_SHARE_STEPS_PER_CHARACTER : SHARE_STEPS_PER_CHARACTER);
    const extra = Math.max(0, Math.min(patterns.extraSteps, STEPS_PER_TEST_MAX - share));
    const purse: Purse = { steps: share + extra };
    const found = new Uint8Array(1);
    const isComplete = this.#automaton.search(text, purse, found);
    patterns.extraSteps -= Math.max(0, extra - Math.max(0, purse.steps));
    if (found[0] === 1) return "found";
    if (isComplete) return "absent";
    patterns.givenUp++;
    return "unknown";
  }
}

function shareOf(characters: number, stepsPerCharacter: number): number {
  return SHARE_STEPS_PER_TEST + characters * stepsPerCharacter;
}

const COUNTED_MIN = 4;

/** Estimates, from the source: they only decide which patterns are run together. */
function repetitionsOf(pattern: string): Pick<Source, "loops" | "counts"> {
  const plain = pattern.replaceAll(/\\./g, "");
  const times = Array.from(plain.matchAll(/\{(\d+)(?:,(\d*))?\}/g), ([, least, most]) => Number(most || least));
  const highest = Math.max(1, ...times);
  const loops = plain.match(/[*+]|\{\d+,\}/g)?.length ?? 0;
  return { loops: loops * highest, counts: highest >= COUNTED_MIN };
}
