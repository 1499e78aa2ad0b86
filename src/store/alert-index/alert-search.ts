import type { AlertSummary } from "../../model/alert.ts";
import type { AlertFilter } from "../ports/alert-store.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import type { TimeSlices } from "../queries/time-slices.ts";
import { alertTexts } from "../search/text-matcher.ts";
import { containsPhrases, idTerm, parseSearch, type Term, type TextSearch } from "../search/text-search.ts";
import type { AlertColumns } from "./alert-columns.ts";

/** The words of all alerts, wherever they are. */
export interface AlertWords {
  /** An array of `size` slots, with 1 for each whose alert contains the term. */
  find(term: Term, size: number): Uint8Array | Promise<Uint8Array>;
}

/** Reads the alerts in these slots; undefined for one that is gone. */
export type ReadSummaries = (
  slots: readonly number[],
) => readonly (AlertSummary | undefined)[] | Promise<readonly (AlertSummary | undefined)[]>;

/** Alerts that are read at once: few enough to parse well within a slice, enough for a database in the network. */
export const SUMMARIES_AT_ONCE = 200;

/** Finds alerts by a typed search, in slices: commits and other queries run in between. */
export class AlertSearch {
  /** Results of the searches in flight. */
  readonly #inFlight = new Set<Uint8Array>();
  readonly #words: AlertWords;
  readonly #columns: AlertColumns;
  readonly #readSummaries: ReadSummaries;

  constructor(words: AlertWords, columns: AlertColumns, readSummaries: ReadSummaries) {
    this.#words = words;
    this.#columns = columns;
    this.#readSummaries = readSummaries;
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
    const found = new Uint8Array(slotsEnd).fill(1);
    this.#inFlight.add(found);
    try {
      for (const term of [...search.terms, ...search.ids.map(idTerm)]) {
        if (slices.isOver) await slices.next();
        const matches = await this.#words.find(term, slotsEnd);
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
    for (let at = 0; at < slots.length; at += SUMMARIES_AT_ONCE) {
      if (slices.isOver) await slices.next();
      const some = slots.slice(at, at + SUMMARIES_AT_ONCE).filter((slot) => found[slot] === 1);
      for (const [i, alert] of (await this.#readSummaries(some)).entries()) {
        if (!alert || !containsPhrases({ texts: alertTexts(alert) }, search.phrases)) found[some[i]!] = 0;
      }
    }
  }
}
