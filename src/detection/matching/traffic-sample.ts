import { unreachable } from "../../lib/unreachable.ts";
import type { Event } from "../../model/event.ts";
import { fieldReader, type FieldValue } from "../../model/field.ts";
import { guardValue, guessWeight, type Guard, type WeighGuard } from "./guard.ts";

// A sample of recent events, taken at intervals, to estimate the selectivity of guards.

const EVENTS_KEPT = 64;
const TAKEN_EVERY = 16;
/** Fields whose values are cached. */
const FIELDS_MAX = 256;

export class TrafficSample {
  #events: Event[] = [];
  #seen = 0;
  /** The values of each sampled event, by field. */
  #values = new Map<string, readonly (readonly FieldValue[])[]>();

  add(event: Event): void {
    if (this.#seen++ % TAKEN_EVERY !== 0) return;
    const index = (this.#seen / TAKEN_EVERY) | 0;
    this.#events[index % EVENTS_KEPT] = event;
    if (index % EVENTS_KEPT === 0) this.#values.clear();
  }

  /** The share of sampled events that satisfy the guard; a guess while the sample is too small. */
  readonly weigh: WeighGuard = (guard) => {
    const guess = guessWeight(guard);
    if (this.#events.length < EVENTS_KEPT) return guess;
    const lists = this.#valuesOf(guard.field);
    let hits = 0;
    for (const values of lists) if (satisfies(values, guard)) hits++;
    // Among guards without hits, the guess decides.
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
    default:
      return unreachable(guard);
  }
}
