import { parseExact } from "../../lib/exact-json.ts";
import { createLruCache } from "../../lib/lru.ts";
import type { Event } from "../../model/event.ts";
import { OBJECT, PATH_CHARACTERS_MAX, TOP_FIELDS, visitFields, type FieldValue } from "../../model/field.ts";
import { FIELD_TYPES, type EventField, type EventFieldType } from "../ports/event-fields.ts";

const FIELDS_MAX = 10_000;
const EXAMPLES_MAX = 5;
const EXAMPLE_CHARACTERS_MAX = 100;
/** Distinct values of a field that are counted; the least recently seen ones are forgotten. */
const COUNTED_VALUES_MAX = 50;

interface Tally {
  readonly types: Set<EventFieldType>;
  /** The weights of the events that have the field. */
  events: number;
  /** Occurrences of each value, most recently seen last. */
  readonly values: ReturnType<typeof createLruCache<string, number>>;
}

/** Counts the fields of events. Each event stands for as many others as its weight says. */
export class FieldTally {
  readonly #fields = new Map<string, Tally>();
  #examined = 0;

  get examined(): number {
    return this.#examined;
  }

  add(text: string, weight: number): void {
    const event = parseExact(text) as Event;
    const seen = new Set<string>();
    const visit = (path: string, value: FieldValue): void => {
      const tally = this.#tallyOf(path);
      if (!tally) return;
      if (!seen.has(path)) tally.events += weight;
      seen.add(path);
      tally.types.add(typeOf(value));
      if (value === OBJECT) return;
      const example = String(value).slice(0, EXAMPLE_CHARACTERS_MAX).toWellFormed();
      tally.values.set(example, (tally.values.get(example) ?? 0) + 1);
    };
    for (const field of TOP_FIELDS) visit(field, event[field]);
    visitFields(event, (path, value) => {
      if (path !== "raw" && path !== "enrichment") visit(path, value);
    });
    this.#examined++;
  }

  #tallyOf(path: string): Tally | undefined {
    const known = this.#fields.get(path);
    if (known || path.length > PATH_CHARACTERS_MAX || this.#fields.size >= FIELDS_MAX) return known;
    const tally: Tally = { types: new Set(), events: 0, values: createLruCache(COUNTED_VALUES_MAX) };
    this.#fields.set(path, tally);
    return tally;
  }

  fields(): EventField[] {
    return [...this.#fields]
      .map(([path, { types, events, values }]) => ({
        path,
        types: FIELD_TYPES.filter((type) => types.has(type)),
        events: Math.max(1, Math.round(events)),
        examples: [...values.entries()]
          .sort(([a, more], [b, less]) => less - more || (a < b ? -1 : 1))
          .slice(0, EXAMPLES_MAX)
          .map(([value]) => value),
      }))
      .sort((a, b) => b.events - a.events || (a.path < b.path ? -1 : 1));
  }
}

function typeOf(value: FieldValue): EventFieldType {
  if (value === OBJECT) return "object";
  return typeof value === "bigint" ? "number" : (typeof value as EventFieldType);
}
