import type { AlertSummary } from "../../../model/alert.ts";
import { QuestionRefused, type AlertFilter } from "../../store.ts";
import { holdsPhrases, idTerm, parseSearch, type TextSearch } from "../text-search.ts";
import type { AlertColumns } from "./alert-columns.ts";
import type { WordIndex } from "./word-index.ts";

/** Finds alerts by what a person typed. */
export class AlertSearch {
  readonly #words: WordIndex;
  readonly #columns: AlertColumns;
  readonly #summaryOf: (slot: number) => AlertSummary;

  constructor(words: WordIndex, columns: AlertColumns, summaryOf: (slot: number) => AlertSummary) {
    this.#words = words;
    this.#columns = columns;
    this.#summaryOf = summaryOf;
  }

  /** One for each slot that all the words are in. */
  find(words: string, filter: AlertFilter): Uint8Array {
    const search = parseSearch(words, {});
    if ("fault" in search) throw new QuestionRefused("search", search.fault);
    const { slotsEnd } = this.#columns;
    const [first, ...others] = [...search.terms, ...search.ids.map(idTerm)];
    const found = this.#words.find(first!, slotsEnd);
    for (const term of others) {
      const also = this.#words.find(term, slotsEnd);
      for (let slot = 0; slot < slotsEnd; slot++) found[slot]! &= also[slot]!;
    }
    if (search.phrases.length > 0) this.#keepPhrases(found, search, filter);
    return found;
  }

  /** What the index cannot tell is looked up in the texts themselves, of those that the other filters leave. */
  #keepPhrases(found: Uint8Array, search: TextSearch, filter: AlertFilter): void {
    const { slots } = this.#columns.select({
      filter,
      found,
      sort: "created_at",
      descending: false,
      after: undefined,
      offset: 0,
      limit: this.#columns.size,
    });
    for (const slot of slots) {
      if (!holdsPhrases({ texts: searchTexts(this.#summaryOf(slot)) }, search.phrases)) found[slot] = 0;
    }
  }
}

/** What of an alert is searched. */
export function searchTexts({ title, description, rule, group, assignee }: AlertSummary): string[] {
  return [title, description, rule.name, group?.value ?? "", assignee ?? ""];
}
