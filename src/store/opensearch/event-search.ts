import type { TimeRange } from "../../model/query.ts";
import { listDailyIndices } from "./daily-index.ts";
import type { EventSource } from "./event-documents.ts";
import { ALL, type Query } from "./event-query.ts";
import { StoreUnavailable } from "../ports/store-errors.ts";
import type { OpenSearchClient, RequestKind } from "./opensearch-client.ts";
import { describeCause, toStoreError, type OpenSearchCause } from "./opensearch-errors.ts";
import type { StoredDays, UnreadableDays } from "./stored-days.ts";

// Searches over the events. A day that is closed or lacks a shard is left out of an answer, and is among the missing days that
// the store reports with it; otherwise one damaged day would make all others useless.

export interface EventHit {
  readonly _id: string;
  readonly _index: string;
  readonly _seq_no?: number;
  readonly _source?: EventSource;
  readonly sort?: readonly (string | number)[];
  readonly fields?: Readonly<Record<string, readonly (string | number)[] | undefined>>;
}

export interface AggregationBucket {
  readonly key: string | number | Readonly<Record<string, string | number>>;
  readonly doc_count: number;
  readonly first?: { readonly value: number };
  readonly last?: { readonly value: number };
}

export interface AggregationAnswer {
  readonly doc_count?: number;
  readonly value?: number | null;
  readonly buckets?: readonly AggregationBucket[];
  readonly sum_other_doc_count?: number;
  readonly after_key?: Readonly<Record<string, string>>;
}

export interface EventAnswer {
  readonly hits: { readonly total?: { readonly value: number }; readonly hits: readonly EventHit[] };
  readonly aggregations?: Readonly<Record<string, AggregationAnswer>>;
  readonly pit_id?: string;
}

export interface EventSearchBody {
  readonly query: Query;
  readonly [option: string]: unknown;
}

/** Runs a search on the same state of the data each time. */
export type EventView = (body: EventSearchBody) => Promise<EventAnswer>;

/** An answer that lacks a shard would be wrong without a sign. */
const WHOLE = { allow_partial_search_results: false };
/** More names would not fit into the address of a request. */
const NAMED_INDICES_MAX = 60;
const POINT_IN_TIME_MINUTES = 5;
/** How often a search starts over because other days than before cannot be read. */
const CHANGES_MAX = 5;
const PAGE_EVENTS_MAX = 5000;
/** Searches in one request. */
const SEARCHES_MAX = 64;
const NO_EVENTS: EventAnswer = { hits: { total: { value: 0 }, hits: [] } };
const NONE_LEFT: UnreadableDays = { indices: new Set(), open: [] };
/** A closed day fails the request, unless it is known to be left out. */
const expanded = ({ indices }: UnreadableDays) => ({ expand_wildcards: indices.size === 0 ? "open,closed" : "open" });
/** Newest first. */
export const NEWEST_FIRST = [{ timestamp: "desc" }, { id: "desc" }] as const;

export class EventSearch {
  readonly #client: OpenSearchClient;
  readonly #name: string;
  readonly #days: StoredDays;
  readonly #signal: AbortSignal | undefined;
  readonly #kind: RequestKind = { operation: "search", isQuery: true };

  constructor(client: OpenSearchClient, name: string, days: StoredDays, signal?: AbortSignal) {
    this.#client = client;
    this.#name = name;
    this.#days = days;
    this.#signal = signal;
  }

  /** Searches all days. A range of time skips the shards that lie outside. */
  all(body: EventSearchBody): Promise<EventAnswer> {
    return this.#onReadableDays((left) =>
      this.#client.send(this.#kind, {
        method: "POST",
        path: `/${this.#without(left)}/_search`,
        query: { ...WHOLE, ...expanded(left), allow_no_indices: true },
        body,
        signal: this.#signal,
      }),
    );
  }

  /**
   * Asks all days, each of which has to answer. If they cannot, asks those that can be read: they must be the same before and
   * after, so that the days that the store reports as missing are those that the answer lacks.
   */
  async #onReadableDays<T>(ask: (left: UnreadableDays) => Promise<T>): Promise<T> {
    let left = this.#days.mayLackDays ? await this.#days.unreadable() : NONE_LEFT;
    for (let change = 0; left.open.length <= NAMED_INDICES_MAX && change < CHANGES_MAX; change++) {
      const before = left.indices;
      const isSame = (now: UnreadableDays) => now.indices.symmetricDifference(before).size === 0;
      try {
        const answer = await ask(left);
        if (before.size === 0) return answer;
        left = await this.#days.unreadable();
        if (isSame(left)) return answer;
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        left = await this.#days.unreadable();
        if (isSame(left)) throw error;
      }
    }
    throw toStoreError({ failure: "no_shard", detail: `${left.open.length} days` }, undefined, true);
  }

  #without({ open }: UnreadableDays): string {
    return [`${this.#name}-2*`, ...open.map((index) => `-${index}`)].join(",");
  }

  async count(query: Query): Promise<number> {
    return totalOf(await this.all({ query, size: 0, track_total_hits: true }));
  }

  async hasAny(query: Query): Promise<boolean> {
    // Counts no further than one.
    return totalOf(await this.all({ query, size: 0, track_total_hits: 1 })) > 0;
  }

  /** Runs searches that see one state of the data, whatever is stored meanwhile. */
  async atOnePoint<T>(range: TimeRange, work: (view: EventView) => Promise<T>): Promise<T> {
    const point = await this.openPoint(range);
    try {
      return await work(point.view);
    } finally {
      point.close();
    }
  }

  async openPoint(range: TimeRange): Promise<{ view: EventView; close: () => void }> {
    const keepAlive = `${POINT_IN_TIME_MINUTES}m`;
    const id = await this.#onReadableDays((left) => this.#createPoint(range, left, keepAlive));
    if (id === null) return { view: async () => NO_EVENTS, close: () => undefined };
    const batch = new SearchBatch((bodies) =>
      this.#many(bodies.map((body) => ({ ...body, pit: { id, keep_alive: keepAlive } }))),
    );
    return {
      view: (body) => batch.add(body),
      // OpenSearch drops it by itself after the time it is kept.
      close: () => {
        this.#client
          .send({ operation: "search" }, { method: "DELETE", path: "/_search/point_in_time", body: { pit_id: [id] } })
          .catch(() => undefined);
      },
    };
  }

  /** Null if there is no day to read. */
  async #createPoint(range: TimeRange, left: UnreadableDays, keepAlive: string): Promise<string | null> {
    const names = await this.#namesIn(range, left);
    if (names === "") return null;
    const answer = await this.#client.send<{ pit_id?: string; error?: OpenSearchCause }>(this.#kind, {
      method: "POST",
      path: `/${names}/_search/point_in_time`,
      query: { keep_alive: keepAlive, allow_partial_pit_creation: false, ...expanded(left) },
      signal: this.#signal,
      // What OpenSearch answers if there is no index, or a closed one.
      ignore: [400],
    });
    if (answer.pit_id !== undefined) return answer.pit_id;
    const indices = await listDailyIndices(this.#client, this.#name, range, this.#signal);
    if (indices.every(({ index }) => left.indices.has(index))) return null;
    throw toStoreError(describeCause(answer.error ?? {}, 400), answer.error, true);
  }

  /** The readable indices of a range, or a pattern of all; an empty text if there are none. */
  async #namesIn(range: TimeRange, left: UnreadableDays): Promise<string> {
    if (range.fromMs === undefined && range.toMs === undefined) return this.#without(left);
    const all = await listDailyIndices(this.#client, this.#name, range, this.#signal);
    const indices = all.filter(({ index }) => !left.indices.has(index));
    return indices.length > NAMED_INDICES_MAX ? this.#without(left) : indices.map(({ index }) => index).join(",");
  }

  async #many(bodies: readonly EventSearchBody[]): Promise<EventAnswer[]> {
    const { responses } = await this.#client.send<{
      responses: (EventAnswer & { error?: OpenSearchCause; status: number })[];
    }>(this.#kind, {
      method: "POST",
      path: "/_msearch",
      body: bodies.map((body) => `${JSON.stringify(WHOLE)}\n${JSON.stringify(body)}\n`).join(""),
      isLines: true,
      signal: this.#signal,
    });
    for (const { error, status } of responses) {
      if (!error) continue;
      const description = describeCause(error, status);
      this.#client.metrics.failed("search", description.failure);
      throw toStoreError(description, error, true);
    }
    return responses;
  }
}

/** A search whose answer is awaited until others are sent with it. */
export interface WaitingSearch {
  readonly body: EventSearchBody;
  readonly resolve: (answer: EventAnswer) => void;
  readonly reject: (reason: unknown) => void;
}

/** Sends searches that are asked for at the same time in one request. */
class SearchBatch {
  readonly #send: (bodies: readonly EventSearchBody[]) => Promise<EventAnswer[]>;
  readonly #waiting: WaitingSearch[] = [];
  #isSending = false;

  constructor(send: (bodies: readonly EventSearchBody[]) => Promise<EventAnswer[]>) {
    this.#send = send;
  }

  add(body: EventSearchBody): Promise<EventAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<EventAnswer>();
    this.#waiting.push({ body, resolve, reject });
    if (!this.#isSending) {
      this.#isSending = true;
      setImmediate(() => void this.#run());
    }
    return promise;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const some = this.#waiting.splice(0, SEARCHES_MAX);
      try {
        const answers = await this.#send(some.map(({ body }) => body));
        for (const [nth, { resolve }] of some.entries()) resolve(answers[nth]!);
      } catch (error) {
        for (const { reject } of some) reject(error);
      }
      // Whoever has an answer may ask more.
      await new Promise(setImmediate);
    }
    this.#isSending = false;
  }
}

/** Lists of names for the addresses of requests. */
export function* indexLists(indices: Iterable<string>): Generator<string> {
  const all = [...new Set(indices)];
  for (let at = 0; at < all.length; at += NAMED_INDICES_MAX) yield all.slice(at, at + NAMED_INDICES_MAX).join(",");
}

export function totalOf({ hits }: EventAnswer): number {
  return hits.total?.value ?? 0;
}

export function textOf({ _source }: EventHit): string {
  return _source!.text;
}

export interface PageOptions {
  /** Events in a page. */
  readonly size: number;
  /** Pages grow to about this many characters of events, so that there are fewer of them. */
  readonly charactersMax?: number | undefined;
  readonly sort?: readonly object[];
  readonly body?: object;
}

/** Reads all matching events, in pages. */
export async function* pagesOf(
  view: EventView,
  query: Query,
  { size: firstSize, charactersMax, sort = NEWEST_FIRST, body }: PageOptions,
): AsyncGenerator<readonly EventHit[]> {
  let after: EventHit["sort"];
  for (let size = firstSize; ;) {
    const { hits } = await view({
      query: query ?? ALL,
      size,
      sort,
      track_total_hits: false,
      ...body,
      ...(after && { search_after: after }),
    });
    if (hits.hits.length > 0) yield hits.hits;
    if (hits.hits.length < size) return;
    after = hits.hits.at(-1)!.sort!;
    if (charactersMax !== undefined) size = nextSize(size, hits.hits, charactersMax);
  }
}

/** A page twice as large, unless its events would be too long. */
function nextSize(size: number, hits: readonly EventHit[], charactersMax: number): number {
  const longest = hits.reduce((most, hit) => Math.max(most, textOf(hit).length), 1);
  const fitting = Math.floor(charactersMax / longest);
  return Math.max(1, Math.min(2 * size, PAGE_EVENTS_MAX, fitting));
}
