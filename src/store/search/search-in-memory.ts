import { QuestionRefused, type Searchable, type Store } from "../ports/store.ts";
import { searchTexts } from "../sqlite/cases/alert-search.ts";
import { spacedEventWords, spacedTextWords } from "./indexed-words.ts";
import { holdsPhrases, idTerm, parseSearch, spacedTerm } from "./text-search.ts";

// A search of what is at hand, be it new or kept without an index. It finds what the indexes would: their words are made, and
// looked up in place.

export const searchable: Store["searchable"] = {
  event: (event) => ({
    words: spacedEventWords(event, Date.parse(event.timestamp)),
    values: { ...event },
    eventId: event.id,
  }),
  alert: (alert) => searchable.texts(searchTexts(alert)),
  texts: (texts) => ({ words: spacedTextWords(texts), values: { texts }, eventId: undefined }),
};

export function searchIn(words: string): (what: Searchable) => boolean {
  const search = parseSearch(words, {});
  if ("fault" in search) throw new QuestionRefused("search", search.fault);
  const terms = search.terms.map((term) => [term, ...(term.or ?? [])].map(spacedTerm));
  return ({ words: own, values, eventId }) =>
    terms.every((choices) => choices.some((term) => own.includes(term))) &&
    search.ids.every((id) => id === eventId || own.includes(spacedTerm(idTerm(id)))) &&
    holdsPhrases(values, search.phrases);
}
