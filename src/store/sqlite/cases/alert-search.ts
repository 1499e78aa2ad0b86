import type { AlertSummary } from "../../../model/alert.ts";
import type { AlertFilter } from "../../ports/alert-store.ts";
import { QueryRefused } from "../../ports/store-errors.ts";
import type { TimeSlices } from "../../queries/time-slices.ts";
import { holdsPhrases, idTerm, parseSearch, type TextSearch } from "../../search/text-search.ts";
import type { AlertColumns } from "./alert-columns.ts";
import type { WordIndex } from "./word-index.ts";
import { alertTexts } from "../../search/text-matcher.ts";

/** Finds alerts by what a person typed, in parts: commits and other questions have their turn in between. */
export class AlertSearch {
  /** Results of the searches that are under way. */
  readonly #underWay = new Set<Uint8Array>();
  readonly #words: WordIndex;
  readonly #columns: AlertColumns;
  readonly #summaryOf: (slot: number) => AlertSummary;

  constructor(words: WordIndex, columns: AlertColumns, summaryOf: (slot: number) => AlertSummary) {
    this.#words = words;
    this.#columns = columns;
    this.#summaryOf = summaryOf;
  }

  /**
   * Passes `use` one for each slot that all the words are in. Alerts that are made meanwhile are not found, and those that are
   * removed are not either.
   */
  async find<Value>(
    words: string,
    filter: AlertFilter,
    parts: TimeSlices,
    use: (found: Uint8Array) => Value,
  ): Promise<Value> {
    const search = parseSearch(words, {});
    if ("fault" in search) throw new QueryRefused("search", search.fault);
    const { slotsEnd } = this.#columns;
    const [first, ...others] = [...search.terms, ...search.ids.map(idTerm)];
    const found = this.#words.find(first!, slotsEnd);
    this.#underWay.add(found);
    try {
      for (const term of others) {
        if (parts.isOver) await parts.next();
        const also = this.#words.find(term, slotsEnd);
        for (let slot = 0; slot < slotsEnd; slot++) found[slot]! &= also[slot]!;
      }
      if (search.phrases.length > 0) await this.#keepPhrases(found, search, filter, parts);
      return use(found);
    } finally {
      this.#underWay.delete(found);
    }
  }

  /** The alerts in these slots are gone, and others may take their slots. */
  forget(slots: readonly number[]): void {
    for (const found of this.#underWay) for (const slot of slots) found[slot] = 0;
  }

  /** What the index cannot tell is looked up in the texts themselves, of those that the other filters leave. */
  async #keepPhrases(found: Uint8Array, search: TextSearch, filter: AlertFilter, parts: TimeSlices): Promise<void> {
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
      if (parts.isOver) await parts.next();
      if (found[slot] === 0) continue;
      if (!holdsPhrases({ texts: alertTexts(this.#summaryOf(slot)) }, search.phrases)) found[slot] = 0;
    }
  }
}
