import type { AlertSummary } from "../../../model/alert.ts";
import type { AlertFilter } from "../../ports/alert-store.ts";
import { QueryRefused } from "../../ports/store-errors.ts";
import type { TimeSlices } from "../../queries/time-slices.ts";
import { containsPhrases, idTerm, parseSearch, type TextSearch } from "../../search/text-search.ts";
import type { AlertColumns } from "./alert-columns.ts";
import type { WordIndex } from "./word-index.ts";
import { alertTexts } from "../../search/text-matcher.ts";

/** Finds alerts by a typed search, in slices: commits and other queries run in between. */
export class AlertSearch {
  /** Results of the searches in flight. */
  readonly #inFlight = new Set<Uint8Array>();
  readonly #words: WordIndex;
  readonly #columns: AlertColumns;
  readonly #summaryOf: (slot: number) => AlertSummary;

  constructor(words: WordIndex, columns: AlertColumns, summaryOf: (slot: number) => AlertSummary) {
    this.#words = words;
    this.#columns = columns;
    this.#summaryOf = summaryOf;
  }

  /**
   * Passes `use` an array with 1 for each slot whose alert contains all words. Alerts that are created or removed during the
   * search are not in it.
   */
  async find<Value>(
    words: string,
    filter: AlertFilter,
    slices: TimeSlices,
    use: (found: Uint8Array) => Value,
  ): Promise<Value> {
    const search = parseSearch(words, {});
    if ("fault" in search) throw new QueryRefused("search", search.fault);
    const { slotsEnd } = this.#columns;
    const [first, ...others] = [...search.terms, ...search.ids.map(idTerm)];
    const found = this.#words.find(first!, slotsEnd);
    this.#inFlight.add(found);
    try {
      for (const term of others) {
        if (slices.isOver) await slices.next();
        const matches = this.#words.find(term, slotsEnd);
        for (let slot = 0; slot < slotsEnd; slot++) found[slot]! &= matches[slot]!;
      }
      if (search.phrases.length > 0) await this.#dropWithoutPhrases(found, search, filter, slices);
      return use(found);
    } finally {
      this.#inFlight.delete(found);
    }
  }

  /** Removes these slots from results in flight: their alerts are gone, and others may reuse the slots. */
  dropSlots(slots: readonly number[]): void {
    for (const found of this.#inFlight) for (const slot of slots) found[slot] = 0;
  }

  /** The index cannot decide about phrases: reads the texts of the alerts that pass the other filters. */
  async #dropWithoutPhrases(
    found: Uint8Array,
    search: TextSearch,
    filter: AlertFilter,
    slices: TimeSlices,
  ): Promise<void> {
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
      if (slices.isOver) await slices.next();
      if (found[slot] === 0) continue;
      if (!containsPhrases({ texts: alertTexts(this.#summaryOf(slot)) }, search.phrases)) found[slot] = 0;
    }
  }
}
