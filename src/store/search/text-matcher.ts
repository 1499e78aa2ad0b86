import type { AlertSummary } from "../../model/alert.ts";
import type { Event } from "../../model/event.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import { spacedEventWords, spacedTextWords } from "./indexed-words.ts";
import { containsPhrases, idTerm, parseSearch, spacedTerm } from "./text-search.ts";

// Full-text search without an index, for an event, an alert or texts in memory. It defines the meaning of a search: lists of
// every engine find exactly the same.

export interface Searchable {
  /** The words that an index would have, each between spaces. */
  readonly words: string;
  /** Values to search for phrases; a phrase must be within one of them. */
  readonly values: { readonly [key: string]: unknown };
  /** An event's own id, which also finds it. */
  readonly eventId: string | undefined;
}

export function searchableEvent(event: Event): Searchable {
  return {
    words: spacedEventWords(event, Date.parse(event.timestamp)),
    values: { ...event },
    eventId: event.id,
  };
}

export function searchableAlert(alert: AlertSummary): Searchable {
  return searchableTexts(alertTexts(alert));
}

export function searchableTexts(texts: readonly string[]): Searchable {
  return { words: spacedTextWords(texts), values: { texts }, eventId: undefined };
}

/** The texts of an alert that a search covers. */
export function alertTexts(alert: AlertSummary): string[] {
  const { title, description, rule, group, assignee, tags = [], entities = [] } = alert;
  const names = entities.map(({ value }) => value);
  return [title, description, rule.name, group?.value ?? "", assignee ?? "", ...tags, ...names];
}

/** Throws a QueryRefused on `search`, as a list does, if the words cannot be searched for. */
export function textMatcher(words: string): (what: Searchable) => boolean {
  const search = parseSearch(words, {});
  if ("fault" in search) throw new QueryRefused("search", search.fault);
  const terms = search.terms.map((term) => [term, ...(term.or ?? [])].map(spacedTerm));
  return ({ words: own, values, eventId }) =>
    terms.every((choices) => choices.some((term) => own.includes(term))) &&
    search.ids.every((id) => id === eventId || own.includes(spacedTerm(idTerm(id)))) &&
    containsPhrases(values, search.phrases);
}
