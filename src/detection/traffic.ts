import type { Event } from "../model/event.ts";
import { fieldReader, type FieldValue } from "../model/field.ts";
import { guardValue, guessWeight, type Guard, type Weigh } from "./guard.ts";

// What events look like: some of the latest, taken at intervals, so that a guard can be tried before it is used.

const EVENTS_KEPT = 64;
const TAKEN_EVERY = 16;
/** Fields whose values are kept ready. */
const FIELDS_MAX = 256;

export class Traffic {
  #events: Event[] = [];
  #seen = 0;
  /** For each field its values in each of the events. */
  #values = new Map<string, readonly (readonly FieldValue[])[]>();

  see(event: Event): void {
    if (this.#seen++ % TAKEN_EVERY !== 0) return;
    const place = (this.#seen / TAKEN_EVERY) | 0;
    this.#events[place % EVENTS_KEPT] = event;
    if (place % EVENTS_KEPT === 0) this.#values.clear();
  }

  /** The share of events that have what the guard asks for; a guess as long as too few are known. */
  readonly weigh: Weigh = (guard) => {
    const guess = guessWeight(guard);
    if (this.#events.length < EVENTS_KEPT) return guess;
    const lists = this.#valuesOf(guard.field);
    let hits = 0;
    for (const values of lists) if (satisfies(values, guard)) hits++;
    // Of guards that nothing was seen of, the likelier one is still worse.
    return (hits + guess) / (lists.length + 1);
  };

  #valuesOf(field: string): readonly (readonly FieldValue[])[] {
    let lists = this.#values.get(field);
    if (!lists) {
      const read = fieldReader(field);
      lists = this.#events.map((event) => read(event).map(guardValue));
      if (this.#values.size >= FIELDS_MAX) this.#values.clear();
      this.#values.set(field, lists);
    }
    return lists;
  }
}

function satisfies(values: readonly FieldValue[], guard: Guard): boolean {
  switch (guard.kind) {
    case "present":
      return values.length > 0;
    case "equals":
      return values.includes(guard.value);
    case "prefix":
      return values.some((value) => typeof value === "string" && value.startsWith(guard.text));
    case "suffix":
      return values.some((value) => typeof value === "string" && value.endsWith(guard.text));
    case "contains":
      return values.some((value) => typeof value === "string" && value.includes(guard.text));
  }
}
