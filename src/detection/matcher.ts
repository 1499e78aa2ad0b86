import type { Condition } from "../model/condition.ts";
import { compile, type Predicate } from "./compile.ts";
import type { Facts } from "./facts.ts";
import type { PatternBudget } from "./regex.ts";

interface Entry<Item> {
  readonly item: Item;
  readonly holds: Predicate;
  readonly slots: readonly number[];
}

/** Finds the conditions that hold for the event that the facts are about. */
export class Matcher<Item> {
  readonly #facts: Facts;
  readonly #budget: PatternBudget;
  readonly #entries = new Map<string, Entry<Item>>();

  constructor(facts: Facts, budget: PatternBudget) {
    this.#facts = facts;
    this.#budget = budget;
  }

  add(id: string, condition: Condition, item: Item): void {
    const slots: number[] = [];
    const holds = compile(condition, { facts: this.#facts, budget: this.#budget, slots });
    this.#entries.set(id, { item, holds, slots });
  }

  remove(id: string): void {
    for (const slot of this.#entries.get(id)?.slots ?? []) this.#facts.release(slot);
    this.#entries.delete(id);
  }

  match(): Item[] {
    const found: Item[] = [];
    for (const { item, holds } of this.#entries.values()) if (holds()) found.push(item);
    return found;
  }

  matches(id: string): boolean {
    return this.#entries.get(id)!.holds();
  }

  metrics(): Record<string, number> {
    return {};
  }
}
