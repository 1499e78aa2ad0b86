import type { EventField } from "../../data/events.ts";
import { hasWildcard, literally } from "../../data/event-conditions.ts";
import { fieldName, fieldPath, type Unfinished } from "./filter-text.ts";

// What to offer while somebody types: names of fields, and then values of the field that is named.

export interface Suggestion {
  /** What the input has once it is chosen. */
  readonly text: string;
  readonly label: string;
  readonly detail: string;
  /** A field, whose value comes next, or a value, which completes the condition. */
  readonly isComplete: boolean;
}

const SUGGESTIONS_MAX = 8;
/** Nobody filters by these: each event has its own. */
const UNOFFERED = new Set(["id", "timestamp", "raw.line"]);

const rank = (name: string, typed: string) => (name.startsWith(typed) ? 0 : name.includes(typed) ? 1 : 2);

/** Names that contain what was typed; those that begin with it first, the most frequent of each first. */
export function fieldSuggestions({ before, name }: Unfinished, fields: readonly EventField[]): Suggestion[] {
  const typed = name.toLowerCase().replace(/^raw\./, "");
  return fields
    .filter((field) => !UNOFFERED.has(field.name) && !field.types.every((type) => type === "object"))
    .map((field) => ({ field, rank: rank(fieldName(field.name).toLowerCase(), typed) }))
    .filter((one) => one.rank < 2)
    .sort((a, b) => a.rank - b.rank)
    .slice(0, SUGGESTIONS_MAX)
    .map(({ field }) => ({
      text: `${before}${fieldName(field.name)}=`,
      label: fieldName(field.name),
      detail: field.examples.slice(0, 3).join(", "),
      isComplete: false,
    }));
}

interface CountedValue {
  readonly value: string;
  readonly count: number | undefined;
}

export function valueSuggestions(
  { before, name, operator, value }: Unfinished,
  values: readonly CountedValue[],
): Suggestion[] {
  const typed = value.toLowerCase();
  if (hasWildcard(value)) return [];
  return values
    .map((one) => ({ one, rank: rank(one.value.toLowerCase(), typed) }))
    .filter((found) => found.rank < 2)
    .sort((a, b) => a.rank - b.rank)
    .slice(0, SUGGESTIONS_MAX)
    .map(({ one }) => ({
      text: `${before}${name}${operator}${quoted(literally(one.value))}`,
      label: one.value,
      detail: one.count === undefined ? "" : String(one.count),
      isComplete: true,
    }));
}

const quoted = (value: string) => (/[\s"]/.test(value) ? `"${value.replaceAll('"', "")}"` : value);

export const namedField = ({ name, operator }: Unfinished) => (operator === undefined ? undefined : fieldPath(name));
