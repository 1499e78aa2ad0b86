import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseExact } from "../../lib/exact-json.ts";
import { startOfDay } from "../../lib/time.ts";
import type { Condition } from "../../model/condition.ts";
import type { Event, EventDraft } from "../../model/event.ts";
import type { TextPage } from "../../model/page.ts";
import type { SearchQuery } from "../../model/query.ts";
import type { EventFilter, SearchResult } from "../ports/event-engine.ts";
import type { Store } from "../ports/store.ts";

// The harness of the store's contract: tests that every store passes, regardless of its engines. Each part of the contract is
// a function of a context, so that a backend can run the parts in separate files, in parallel.

export interface StoreUnderTest {
  readonly store: Store;
  /** Closes the store and opens the same data again, as a new process would. */
  reopen(): Promise<Store>;
  /** Closes the store and removes its data. */
  end(): Promise<void>;
}

export interface ContractContext {
  /** The store that is open now. */
  store(): Store;
  reopen(): Promise<Store>;
  clock(): number;
  setClock(ms: number): void;
  draft(more?: Partial<EventDraft>): EventDraft;
  append(...drafts: EventDraft[]): Promise<Event[]>;
  page(filter: EventFilter, number?: number, size?: number): Promise<TextPage>;
  search(condition: Condition, more?: Partial<SearchQuery>): Promise<SearchResult>;
  /** How many of so many random cases are tried. */
  runs(count: number): number;
}

export interface OpenStoreUnderTest {
  /** Opens an empty store with the platform word `platform` and the given clock. */
  (now: () => number): Promise<StoreUnderTest>;
  /** The share of random cases that are tried; default: all. For stores that take long for each. */
  readonly runsShare?: number;
}

/** Runs parts of the contract one after the other on one store. */
export function storeContract(
  name: string,
  open: OpenStoreUnderTest,
  ...parts: readonly ((context: ContractContext) => void)[]
): void {
  describe(`${name} meets the contract`, () => {
    let now = startOfDay(Date.UTC(2026, 5, 15)) + 12 * 3_600_000;
    let opened: StoreUnderTest;
    let store: Store;

    beforeAll(async () => {
      opened = await open(() => now);
      store = opened.store;
    });
    afterAll(() => opened.end());

    const context: ContractContext = {
      store: () => store,
      reopen: async () => (store = await opened.reopen()),
      clock: () => now,
      setClock: (ms) => {
        now = ms;
      },
      draft: (more = {}) => ({
        type: "login_failure",
        source: "custom",
        severity: "info",
        class: "security",
        timestampMs: now,
        raw: {},
        enrichment: {},
        ...more,
      }),
      append: async (...drafts) => {
        const stored = await store.events.append(drafts.map((draft) => ({ draft })));
        return stored.map(({ text }) => parseExact(text) as Event);
      },
      page: (filter, number = 1, size = 100) => store.events.list(filter, { mode: "page", page: number, size }),
      runs: (count) => Math.ceil(count * (open.runsShare ?? 1)),
      search: (condition, more = {}) => store.events.search({ condition, sort: [], limit: 1000, aggs: [], ...more }),
    };
    for (const part of parts) part(context);

    test("it says how much room it takes and has", async () => {
      const { totalBytes, freeBytes, usedBytes } = await store.space();
      expect(usedBytes).toBeGreaterThan(0);
      expect(freeBytes).toBeGreaterThan(0);
      expect(totalBytes).toBeGreaterThanOrEqual(freeBytes);
    });

    test("its health check passes", async () => {
      await expect(store.check()).resolves.toBeUndefined();
    });
  });
}

/** The place of each stored event, by its id. */
export async function placesOf({ events }: Store): Promise<Map<string, string>> {
  const last = await events.lastArrival();
  const places = new Map<string, string>();
  const stop = new AbortController();
  if (last === null) return places;
  for await (const chunk of events.arrivals(null, stop.signal)) {
    for (const { id, place } of chunk) places.set(id, place);
    if (chunk.at(-1)!.place >= last) stop.abort();
  }
  return places;
}

export function idsOf(items: readonly string[]): string[] {
  return items.map((text) => (JSON.parse(text) as Event).id);
}
