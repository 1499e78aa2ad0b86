import type { Condition } from "../../model/condition.ts";
import type { Event } from "../../model/event.ts";
import { ANY_SOURCE } from "../../model/rule.ts";
import { compilePredicate } from "./compile-condition.ts";
import type { Predicate } from "./predicate.ts";
import type { EventFacts } from "./event-facts.ts";
import { chooseGuard, type Guard } from "./guard.ts";
import { GuardIndex } from "./guard-index.ts";
import type { RulePatterns } from "./rule-patterns.ts";
import { TrafficSample } from "./traffic-sample.ts";

// Finds the rules whose conditions hold for an event. It evaluates only rules whose guard the event satisfies, and the few
// without a guard. Guards are chosen again as a sample of the traffic becomes available.

/** Numbers of events after which frequently evaluated rules get a better guard; the last interval repeats. */
const RECONSIDERED_AFTER = [2_000, 20_000, 200_000, 1_000_000];
/** Rules that are reconsidered at once, and the number of events between. */
const RECONSIDERED_AT_ONCE = 2;
const EVENTS_BETWEEN = 32;
/** Rules that run on a smaller share of events keep their guard. */
const EVALUATED_SHARE_MIN = 0.005;

interface MatcherEntry<Item> {
  readonly item: Item;
  readonly source: string;
  readonly condition: Condition;
  readonly holds: Predicate;
  readonly releases: readonly (() => void)[];
  guards: readonly (Guard & { readonly slot: number })[] | undefined;
  /** The last event that it was a candidate for. */
  round: number;
  /** Evaluations since its guard was last chosen. */
  evaluations: number;
}

interface FieldIndex<Item> {
  readonly slot: number;
  readonly guards: GuardIndex<MatcherEntry<Item>>;
}

export class RuleMatcher<Item> {
  readonly #facts: EventFacts;
  readonly #patterns: RulePatterns;
  readonly #entries = new Map<string, MatcherEntry<Item>>();
  readonly #unguarded = new Set<MatcherEntry<Item>>();
  readonly #indexes = new Map<string, FieldIndex<Item>>();
  /** The same as a list, for iteration over every event. */
  #indexList: readonly FieldIndex<Item>[] = [];
  readonly #traffic = new TrafficSample();
  #round = 0;
  readonly #candidates: MatcherEntry<Item>[] = [];
  readonly #found: Item[] = [];
  readonly #addCandidates: (owners: readonly MatcherEntry<Item>[]) => void;
  #reconsidered: Iterator<MatcherEntry<Item>> | undefined;
  #reconsiderAt = RECONSIDERED_AFTER[0]!;
  #consideredAt = 0;
  #evaluations = 0;

  constructor(facts: EventFacts, patterns: RulePatterns) {
    this.#facts = facts;
    this.#patterns = patterns;
    this.#addCandidates = (owners) => {
      const round = this.#round;
      for (let i = 0; i < owners.length; i++) {
        const entry = owners[i]!;
        if (entry.round === round) continue;
        entry.round = round;
        this.#candidates.push(entry);
      }
    };
  }

  add(id: string, source: string, condition: Condition, item: Item): void {
    const releases: (() => void)[] = [];
    const holds = compilePredicate(condition, { facts: this.#facts, patterns: this.#patterns, releases });
    const entry: MatcherEntry<Item> = {
      item,
      source,
      condition,
      holds,
      releases,
      guards: undefined,
      round: -1,
      evaluations: 0,
    };
    this.#entries.set(id, entry);
    this.#guard(entry, chooseGuard(condition, this.#traffic.weigh)?.guards);
  }

  remove(id: string): void {
    const entry = this.#entries.get(id);
    if (!entry) return;
    this.#entries.delete(id);
    this.#unguard(entry);
    for (const release of entry.releases) release();
  }

  /** Rules that could not be decided for the event. Valid until the next call. */
  readonly undecided: Item[] = [];

  /** The rules that hold for the current event. Valid until the next call. */
  match(): readonly Item[] {
    const { event } = this.#facts;
    this.#round++;
    this.#learn(event);
    const candidates = this.#candidates;
    empty(candidates);
    const indexes = this.#indexList;
    for (let i = 0; i < indexes.length; i++) {
      const { slot, guards } = indexes[i]!;
      guards.visit(this.#facts.guarded(slot), this.#addCandidates);
    }
    const found = this.#found;
    empty(found);
    empty(this.undecided);
    for (let i = 0; i < candidates.length; i++) this.#evaluate(candidates[i]!, event, found);
    if (this.#unguarded.size > 0) for (const entry of this.#unguarded) this.#evaluate(entry, event, found);
    return found;
  }

  matches(id: string): boolean {
    const entry = this.#entries.get(id)!;
    empty(this.undecided);
    return (entry.source === ANY_SOURCE || entry.source === this.#facts.event.source) && this.#holds(entry);
  }

  metrics(): Record<string, number> {
    return { rules_unguarded: this.#unguarded.size, rules_asked: this.#evaluations };
  }

  #evaluate(entry: MatcherEntry<Item>, event: Event, found: Item[]): void {
    if (entry.source !== ANY_SOURCE && entry.source !== event.source) return;
    entry.evaluations++;
    this.#evaluations++;
    if (this.#holds(entry)) found.push(entry.item);
  }

  /** A rule matches if its certain tests suffice. It is undecided if the uncertain ones could make it match. */
  #holds({ holds, item }: MatcherEntry<Item>): boolean {
    const patterns = this.#patterns;
    const { uncertain } = patterns;
    if (holds()) return true;
    if (patterns.uncertain === uncertain) return false;
    if (patterns.couldHold(holds)) this.undecided.push(item);
    return false;
  }

  #guard(entry: MatcherEntry<Item>, guards: readonly Guard[] | undefined): void {
    entry.evaluations = 0;
    if (!guards) {
      entry.guards = undefined;
      this.#unguarded.add(entry);
      return;
    }
    entry.guards = guards.map((guard) => ({ ...guard, slot: this.#facts.acquire(guard.field) }));
    for (const guard of entry.guards) {
      let index = this.#indexes.get(guard.field);
      if (!index) {
        index = { slot: guard.slot, guards: new GuardIndex() };
        this.#indexes.set(guard.field, index);
        this.#indexList = [...this.#indexes.values()];
      }
      index.guards.add(guard, entry);
    }
  }

  #unguard(entry: MatcherEntry<Item>): void {
    this.#unguarded.delete(entry);
    for (const guard of entry.guards ?? []) {
      const index = this.#indexes.get(guard.field)!;
      index.guards.remove(guard, entry);
      if (index.guards.size === 0) {
        this.#indexes.delete(guard.field);
        this.#indexList = [...this.#indexes.values()];
      }
      this.#facts.release(guard.slot);
    }
  }

  #learn(event: Event): void {
    this.#traffic.add(event);
    if (this.#round % EVENTS_BETWEEN !== 0) return;
    if (this.#reconsidered === undefined) {
      if (this.#round < this.#reconsiderAt) return;
      this.#reconsidered = this.#entries.values();
      const later = RECONSIDERED_AFTER.find((events) => events > this.#round);
      this.#reconsiderAt = later ?? this.#round + RECONSIDERED_AFTER.at(-1)!;
      this.#consideredAt = this.#round;
    }
    for (let i = 0; i < RECONSIDERED_AT_ONCE;) {
      const { done, value: entry } = this.#reconsidered.next();
      if (done) {
        this.#reconsidered = undefined;
        return;
      }
      if (this.#reconsider(entry)) i++;
    }
  }

  /** Returns true if a guard was chosen. */
  #reconsider(entry: MatcherEntry<Item>): boolean {
    const { evaluations } = entry;
    entry.evaluations = 0;
    if (evaluations < this.#consideredAt * EVALUATED_SHARE_MIN) return false;
    const choice = chooseGuard(entry.condition, this.#traffic.weigh);
    this.#unguard(entry);
    this.#guard(entry, choice?.guards);
    return true;
  }
}

/** Setting the length would free memory that the next event needs again. */
function empty(list: unknown[]): void {
  while (list.length > 0) list.pop();
}
