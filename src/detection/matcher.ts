import type { Condition } from "../model/condition.ts";
import type { Event } from "../model/event.ts";
import { ANY_SOURCE } from "../model/rule.ts";
import { compile, type Predicate } from "./compile.ts";
import type { Facts } from "./facts.ts";
import { chooseGuard, type Guard } from "./guard.ts";
import { GuardIndex } from "./guard-index.ts";
import type { Patterns } from "./patterns.ts";
import { Traffic } from "./traffic.ts";

// Finds the rules whose conditions hold for an event without asking all of them: only those whose guard it meets, and the
// few that have none. Guards are chosen anew as it becomes known what events look like.

/** Numbers of events after which rules that are asked too often look for a better guard; from the last on, each time. */
const RECONSIDERED_AFTER = [2_000, 20_000, 200_000, 1_000_000];
/** Rules that are reconsidered between two events, and how many events lie between. */
const RECONSIDERED_AT_ONCE = 2;
const EVENTS_BETWEEN = 32;
/** A rule that is asked less often than this is let be. */
const ASKED_SHARE_MIN = 0.005;

interface Entry<Item> {
  readonly item: Item;
  readonly source: string;
  readonly condition: Condition;
  readonly holds: Predicate;
  readonly releases: readonly (() => void)[];
  guards: readonly (Guard & { readonly slot: number })[] | undefined;
  /** The last event that it was asked about, and how often it was since guards were last considered. */
  round: number;
  asked: number;
}

interface Index<Item> {
  readonly slot: number;
  readonly guards: GuardIndex<Entry<Item>>;
}

export class Matcher<Item> {
  readonly #facts: Facts;
  readonly #patterns: Patterns;
  readonly #entries = new Map<string, Entry<Item>>();
  readonly #unguarded = new Set<Entry<Item>>();
  readonly #indexes = new Map<string, Index<Item>>();
  /** The same as a list: it is gone through for each event. */
  #indexList: readonly Index<Item>[] = [];
  readonly #traffic = new Traffic();
  #round = 0;
  readonly #candidates: Entry<Item>[] = [];
  readonly #found: Item[] = [];
  readonly #meet: (owners: readonly Entry<Item>[]) => void;
  #reconsidered: Iterator<Entry<Item>> | undefined;
  #reconsiderAt = RECONSIDERED_AFTER[0]!;
  #consideredAt = 0;
  #asked = 0;

  constructor(facts: Facts, patterns: Patterns) {
    this.#facts = facts;
    this.#patterns = patterns;
    this.#meet = (owners) => {
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
    const holds = compile(condition, { facts: this.#facts, patterns: this.#patterns, releases });
    const entry: Entry<Item> = { item, source, condition, holds, releases, guards: undefined, round: -1, asked: 0 };
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

  /** Those of which it is not known whether they hold for the event; good until it is asked again. */
  readonly undecided: Item[] = [];

  /** Those that hold for the event that the facts are about; the list is good until it is asked again. */
  match(): readonly Item[] {
    const { event } = this.#facts;
    this.#round++;
    this.#learn(event);
    const candidates = this.#candidates;
    empty(candidates);
    const indexes = this.#indexList;
    for (let i = 0; i < indexes.length; i++) {
      const { slot, guards } = indexes[i]!;
      guards.visit(this.#facts.guarded(slot), this.#meet);
    }
    const found = this.#found;
    empty(found);
    empty(this.undecided);
    for (let i = 0; i < candidates.length; i++) this.#ask(candidates[i]!, event, found);
    if (this.#unguarded.size > 0) for (const entry of this.#unguarded) this.#ask(entry, event, found);
    return found;
  }

  matches(id: string): boolean {
    const entry = this.#entries.get(id)!;
    empty(this.undecided);
    return (entry.source === ANY_SOURCE || entry.source === this.#facts.event.source) && this.#holds(entry);
  }

  metrics(): Record<string, number> {
    return { rules_unguarded: this.#unguarded.size, rules_asked: this.#asked };
  }

  #ask(entry: Entry<Item>, event: Event, found: Item[]): void {
    if (entry.source !== ANY_SOURCE && entry.source !== event.source) return;
    entry.asked++;
    this.#asked++;
    if (this.#holds(entry)) found.push(entry.item);
  }

  /** A rule matches when its certain tests are enough for that, and is undecided when the uncertain ones could tip it. */
  #holds({ holds, item }: Entry<Item>): boolean {
    const patterns = this.#patterns;
    const { uncertain } = patterns;
    if (holds()) return true;
    if (patterns.uncertain === uncertain) return false;
    if (patterns.couldHold(holds)) this.undecided.push(item);
    return false;
  }

  #guard(entry: Entry<Item>, guards: readonly Guard[] | undefined): void {
    entry.asked = 0;
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

  #unguard(entry: Entry<Item>): void {
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
    this.#traffic.see(event);
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

  /** Whether there was anything to think about. */
  #reconsider(entry: Entry<Item>): boolean {
    const { asked } = entry;
    entry.asked = 0;
    if (asked < this.#consideredAt * ASKED_SHARE_MIN) return false;
    const choice = chooseGuard(entry.condition, this.#traffic.weigh);
    this.#unguard(entry);
    this.#guard(entry, choice?.guards);
    return true;
  }
}

/** Setting the length would give back the room that the next event needs again. */
function empty(list: unknown[]): void {
  while (list.length > 0) list.pop();
}
