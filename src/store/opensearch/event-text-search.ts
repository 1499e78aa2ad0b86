import { QueryRefused } from "../ports/store-errors.ts";
import { idTerm, parseSearch, type Term } from "../search/text-search.ts";
import { both, either, exactly, prefix, term, unknown, type Bounds, type Query } from "./event-query.ts";

/** The events of a full-text search. Phrases are decided by the events themselves. */
export function wordBounds(words: string): Bounds {
  const search = parseSearch(words, {});
  if ("fault" in search) throw new QueryRefused("search", search.fault);
  const one = (wanted: Term): Query => {
    const word = wanted.word.toWellFormed();
    const own = wanted.isPrefix ? prefix("words", word) : term("words", word);
    return either(own, ...(wanted.or ?? []).map(one));
  };
  const ids = search.ids.map((id) => either(term("id", id), one(idTerm(id))));
  const query = both(...search.terms.map(one), ...ids);
  return search.phrases.length === 0 ? exactly(query, true) : unknown(query, true);
}
