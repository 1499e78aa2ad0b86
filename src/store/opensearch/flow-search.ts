import { QueryRefused } from "../ports/store-errors.ts";
import { listDailyIndices, overlapping, type DailyIndex } from "./daily-index.ts";
import type { SumBucket } from "./flow-sums.ts";
import type { FlowFilter } from "../../model/flow-query.ts";
import type { FlowSource } from "./flow-documents.ts";
import type { OpenSearchClient, RequestKind } from "./opensearch-client.ts";

// Searches over the flows of one question.

export interface FlowSearchAnswer {
  readonly hits?: {
    readonly total?: { readonly value: number };
    readonly hits: readonly { readonly _source?: FlowSource; readonly sort?: readonly unknown[] }[];
  };
  readonly aggregations?: Readonly<Record<string, { readonly buckets?: readonly SumBucket[] }>>;
  readonly pit_id?: string;
}

/** An answer that lacks a shard would be wrong without a sign. */
const WHOLE = { allow_partial_search_results: false };
const DAYS_PER_QUERY_MAX = 800;
/** How often the days are listed again because one of them was removed. */
const REMOVALS_MAX = 5;
const POINT_IN_TIME_SECONDS = 60;

/** One shard of one day: within it, OpenSearch ranks sums exactly. */
export interface FlowShard {
  readonly index: string;
  readonly shard: number;
}

/** The days that were there when somebody looked last. */
export interface KnownFlowDays {
  indices: readonly DailyIndex[];
}

export class FlowSearch {
  readonly #client: OpenSearchClient;
  readonly #name: string;
  readonly #known: KnownFlowDays;
  readonly #signal: AbortSignal;
  readonly #kind: RequestKind;
  #found: { readonly filter: FlowFilter; readonly indices: readonly DailyIndex[] } | undefined;

  constructor(client: OpenSearchClient, name: string, known: KnownFlowDays, signal: AbortSignal) {
    this.#kind = { operation: "search", isQuery: true, indices: `${name}-2*` };
    this.#client = client;
    this.#name = name;
    this.#known = known;
    this.#signal = signal;
  }

  /**
   * The days that a filter may find flows in. Only these are asked, so that a day that cannot be read fails no question about
   * others. A closed index is among them, and is a failure.
   */
  async indices(filter: FlowFilter): Promise<readonly DailyIndex[]> {
    if (this.#found?.filter === filter) return this.#found.indices;
    this.#known.indices = await listDailyIndices(this.#client, this.#name, {}, this.#signal);
    const indices = overlapping(this.#known.indices, filter);
    if (indices.length > DAYS_PER_QUERY_MAX)
      throw new QueryRefused("from", `covers more than ${DAYS_PER_QUERY_MAX} days of flows: narrow the time range`);
    this.#found = { filter, indices };
    return indices;
  }

  /**
   * What is found in the days of a filter. They are mostly those that were known before: these are searched while the days are
   * listed, which saves the time of a request, and again if they turn out to be others.
   */
  async onDays<T>(filter: FlowFilter, ask: (indices: readonly DailyIndex[]) => Promise<T>): Promise<T> {
    const guess = this.#found?.filter === filter ? [] : overlapping(this.#known.indices, filter);
    if (guess.length === 0 || guess.length > DAYS_PER_QUERY_MAX) return ask(await this.indices(filter));
    const [early, listed] = await Promise.allSettled([ask(guess), this.indices(filter)]);
    if (listed.status === "rejected") throw listed.reason;
    if (areSame(guess, listed.value)) {
      if (early.status === "rejected") throw early.reason;
      return early.value;
    }
    return ask(listed.value);
  }

  /** Searches the days of a filter; null if there are none. The body holds the filter as a query. */
  async inDays(filter: FlowFilter, body: object): Promise<FlowSearchAnswer | null> {
    const text = JSON.stringify(body);
    for (let attempt = 0; ; attempt++) {
      const answer = await this.onDays(filter, async (indices) => {
        if (indices.length === 0) return null;
        // The names of many days do not fit into an address.
        const header = JSON.stringify({ index: indices.map(({ index }) => index), ...WHOLE });
        const [found] = await this.#client.searchMany<FlowSearchAnswer>(
          this.#kind,
          [`${header}\n${text}\n`],
          this.#signal,
        );
        // One of them was removed.
        return found ?? undefined;
      });
      if (answer !== undefined || attempt === REMOVALS_MAX) return answer ?? null;
      this.#found = undefined;
    }
  }

  /** One answer for each shard, from one request; null if its day was removed meanwhile. */
  perShard(shards: readonly FlowShard[], body: object): Promise<(FlowSearchAnswer | null)[]> {
    const text = JSON.stringify(body);
    const lines = shards.map(
      ({ index, shard }) => `${JSON.stringify({ index, preference: `_shards:${shard}`, ...WHOLE })}\n${text}\n`,
    );
    return this.#client.searchMany<FlowSearchAnswer>(this.#kind, lines, this.#signal);
  }

  /** Runs searches that see one state of the data, whatever is appended meanwhile. */
  async atOnePoint<T>(
    indices: readonly DailyIndex[],
    work: (search: (body: object) => Promise<FlowSearchAnswer>) => Promise<T>,
  ): Promise<T> {
    const keepAlive = `${POINT_IN_TIME_SECONDS}s`;
    const created = await this.#client.send<{ pit_id: string }>(this.#kind, {
      method: "POST",
      path: `/${indices.map(({ index }) => index).join(",")}/_search/point_in_time`,
      query: { keep_alive: keepAlive, allow_partial_pit_creation: false },
      signal: this.#signal,
    });
    let id = created.pit_id;
    try {
      return await work(async (body) => {
        const answer = await this.#client.send<FlowSearchAnswer>(this.#kind, {
          method: "POST",
          path: "/_search",
          query: WHOLE,
          body: { ...body, pit: { id, keep_alive: keepAlive } },
          signal: this.#signal,
        });
        id = answer.pit_id ?? id;
        return answer;
      });
    } finally {
      const body = { pit_id: [id] };
      // OpenSearch drops it by itself after the time it is kept.
      void this.#client
        .send({ operation: "search" }, { method: "DELETE", path: "/_search/point_in_time", body })
        .catch(() => undefined);
    }
  }
}

function areSame(some: readonly DailyIndex[], others: readonly DailyIndex[]): boolean {
  const isSame = (one: DailyIndex, nth: number) =>
    one.index === others[nth]!.index && one.shards === others[nth]!.shards;
  return some.length === others.length && some.every(isSame);
}
