import { Automaton, CacheMemoryLimit } from "../../model/automaton.ts";
import { compilePattern, PATTERN_TEXT_CHARACTERS_MAX, patternSubject } from "../../model/condition.ts";
import type { StepBudget } from "../../model/nfa.ts";
import { patternWeight } from "../../model/pattern.ts";
import { requiredLiterals, type LiteralAlternatives } from "../../model/required-literals.ts";

// The patterns of all rules, and their step budgets per event. Patterns on the same field are searched together, in groups.
// Each pattern has its own share of steps that grows with the text; neither the text nor another pattern can exhaust it.
// Only patterns too wide for their share compete for the extra steps of an event.

/** Per pattern and character. All but very wide patterns are always decided within it. */
const SHARE_STEPS_PER_CHARACTER = 128;
/** A pattern is wide if it takes more uncached steps per character. The rest of a share is for loops. */
const WIDE_STEPS_MIN = SHARE_STEPS_PER_CHARACTER / 2;
/** The share of wide patterns, which suffices only if few different states occur. */
const WIDE_SHARE_STEPS_PER_CHARACTER = 8;
/** Fixed steps per test, for the first run of a pattern. */
const SHARE_STEPS_PER_TEST = 50_000;
/** Maximum steps of one test of a wide pattern: less than ten milliseconds. */
const STEPS_PER_TEST_MAX = 3_000_000;
/** Maximum steps of all wide patterns beyond their shares, per event. */
const EXTRA_STEPS_PER_EVENT_MAX = 4 * STEPS_PER_TEST_MAX;

/** Limits of a group and of its members: number, weight and loops. */
const GROUP_PATTERNS_MAX = 64;
const GROUP_WEIGHT_MAX = 1024;
const GROUP_LOOPS_MAX = 64;
const GROUPED_WEIGHT_MAX = 64;
const GROUPED_LOOPS_MAX = 8;

/** Literals checked before a group runs; checking more would take longer than running it. */
const LITERALS_CHECKED_MAX = 8;

/** Partial: absent from the searched part of a very long value. Unknown: the test was aborted. */
export type PatternOutcome = "found" | "absent" | "partial" | "unknown";

/** A pattern on a field, shared by all rules that use it. */
export interface FieldPattern {
  /** Searches the value with this index among the field's values; `folded` is the same value as guards compare it. */
  test(value: string, folded: string, number: number): PatternOutcome;
  release(): void;
}

export class RulePatterns {
  /** Aborted tests. */
  aborted = 0;
  /** Tests without a certain outcome: aborted, or on a part of the value only. */
  uncertain = 0;
  #isHopeful = false;
  /** The number of the current event. */
  round = 0;
  extraSteps = EXTRA_STEPS_PER_EVENT_MAX;
  readonly room = new CacheMemoryLimit();
  readonly #members = new Map<string, GroupedPattern>();
  /** The groups that further patterns may join, by field. */
  readonly #open = new Map<string, PatternGroup[]>();

  /** Resets the budgets for the next event. */
  startEvent(): void {
    this.round++;
    this.extraSteps = EXTRA_STEPS_PER_EVENT_MAX;
  }

  /** True while uncertain tests count in favour of the rule. */
  get isOptimistic(): boolean {
    return this.#isHopeful;
  }

  /** True if the condition would hold with every uncertain test in its favour. */
  couldHold(holds: () => boolean): boolean {
    this.#isHopeful = true;
    try {
      return holds();
    } finally {
      this.#isHopeful = false;
    }
  }

  /** The budget of a test: its share plus the extra steps of the event. */
  shareFor(values: number, characters: number): { readonly purse: StepBudget; settle(): void } {
    const share = shareOf(values + characters, SHARE_STEPS_PER_CHARACTER);
    const extra = Math.max(0, Math.min(this.extraSteps, STEPS_PER_TEST_MAX - share));
    const purse: StepBudget = { steps: share + extra };
    return {
      purse,
      settle: () => {
        this.extraSteps -= Math.max(0, extra - Math.max(0, purse.steps));
      },
    };
  }

  acquire(field: string, pattern: string, ignoreCase: boolean): FieldPattern {
    const key = JSON.stringify([field, ignoreCase, pattern]);
    const known = this.#members.get(key);
    if (known) return known.acquire();
    const literals = requiredLiterals(pattern, ignoreCase);
    const source = { pattern, ignoreCase, literals, weight: patternWeight(pattern), ...repetitionsOf(pattern) };
    const group = this.#groupFor(field, source);
    const member = new GroupedPattern(group, source, () => {
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

  #groupFor(field: string, source: PatternSource): PatternGroup {
    const group = new PatternGroup(this, source);
    if (source.weight > GROUPED_WEIGHT_MAX || source.loops > GROUPED_LOOPS_MAX) return group;
    let groups = this.#open.get(field);
    if (!groups) this.#open.set(field, (groups = []));
    const suitable = groups.find((each) => each.suits(source));
    if (suitable) return suitable;
    groups.push(group);
    return group;
  }
}

interface PatternSource {
  readonly pattern: string;
  readonly ignoreCase: boolean;
  readonly literals: readonly LiteralAlternatives[];
  readonly weight: number;
  /** Estimated number of unbounded repetitions after expansion. */
  readonly loops: number;
  /** True if it counts repetitions, which can lead to very many states. */
  readonly counts: boolean;
}

interface GroupSearch {
  readonly found: Uint8Array;
  readonly isComplete: boolean;
}

/** Patterns on one field that are searched together. */
class PatternGroup {
  readonly patterns: RulePatterns;
  readonly members: GroupedPattern[] = [];
  /** Patterns with literals, which mostly do not run, and patterns that count have their own groups. */
  readonly #hasLiterals: boolean;
  readonly #counts: boolean;
  #weight = 0;
  #loops = 0;
  /** Built on first use: most patterns never run, and loading thousands of rules must be fast. */
  #automaton: Automaton | undefined;
  /** Results for the values of the current event, by index. */
  #searches: GroupSearch[] = [];
  #round = -1;

  constructor(patterns: RulePatterns, { literals, counts }: PatternSource) {
    this.patterns = patterns;
    this.#hasLiterals = literals.length > 0;
    this.#counts = counts;
  }

  suits({ literals, counts, weight, loops }: PatternSource): boolean {
    if (literals.length > 0 !== this.#hasLiterals || counts !== this.#counts) return false;
    const isFull = this.members.length >= GROUP_PATTERNS_MAX;
    return !isFull && this.#weight + weight <= GROUP_WEIGHT_MAX && this.#loops + loops <= GROUP_LOOPS_MAX;
  }

  add(member: GroupedPattern): void {
    this.members.push(member);
    this.#weight += member.source.weight;
    this.#loops += member.source.loops;
    this.#changed();
  }

  remove(member: GroupedPattern): void {
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

  /** The result for a value of the current event, if the group has run on it. */
  searched(number: number): GroupSearch | undefined {
    return this.#round === this.patterns.round ? this.#searches[number] : undefined;
  }

  search(value: string, number: number): GroupSearch {
    if (this.#round !== this.patterns.round) {
      this.#round = this.patterns.round;
      this.#searches = [];
    }
    return (this.#searches[number] ??= this.#run(patternSubject(value)));
  }

  #run(text: string): GroupSearch {
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

class GroupedPattern implements FieldPattern {
  readonly source: PatternSource;
  /** Index in the group. */
  number = 0;
  readonly #group: PatternGroup;
  readonly #drop: () => void;
  #users = 0;
  #automaton: Automaton | undefined;
  #outcomes: PatternOutcome[] = [];
  #round = -1;

  constructor(group: PatternGroup, source: PatternSource, drop: () => void) {
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

  test(value: string, folded: string, number: number): PatternOutcome {
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

  #search(value: string, number: number): PatternOutcome {
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

  /** Runs the pattern alone: it is the only member, or its group ran out of steps. */
  #run(text: string, patterns: RulePatterns): PatternOutcome {
    const { pattern, ignoreCase } = this.source;
    this.#automaton ??= new Automaton([compilePattern(pattern, ignoreCase)], patterns.room);
    const isWide = this.#automaton.uncachedSteps > WIDE_STEPS_MIN;
    const share = shareOf(text.length, isWide ? WIDE_SHARE_STEPS_PER_CHARACTER : SHARE_STEPS_PER_CHARACTER);
    const extra = Math.max(0, Math.min(patterns.extraSteps, STEPS_PER_TEST_MAX - share));
    const purse: StepBudget = { steps: share + extra };
    const found = new Uint8Array(1);
    const isComplete = this.#automaton.search(text, purse, found);
    patterns.extraSteps -= Math.max(0, extra - Math.max(0, purse.steps));
    if (found[0] === 1) return "found";
    if (isComplete) return "absent";
    patterns.aborted++;
    return "unknown";
  }
}

function shareOf(characters: number, stepsPerCharacter: number): number {
  return SHARE_STEPS_PER_TEST + characters * stepsPerCharacter;
}

const COUNTED_MIN = 4;

/** Estimates from the source. They only decide which patterns share a group. */
function repetitionsOf(pattern: string): Pick<PatternSource, "loops" | "counts"> {
  const plain = pattern.replaceAll(/\\./g, "");
  const times = Array.from(plain.matchAll(/\{(\d+)(?:,(\d*))?\}/g), ([, least, most]) => Number(most || least));
  const highest = Math.max(1, ...times);
  const loops = plain.match(/[*+]|\{\d+,\}/g)?.length ?? 0;
  return { loops: loops * highest, counts: highest >= COUNTED_MIN };
}
