import { QueryRefused } from "../ports/store-errors.ts";
import type { DailyIndex } from "./daily-index.ts";
import { listDailyIndices } from "./daily-index.ts";
import type { Bucket } from "./flow-sums.ts";
import type { FlowFilter } from "../../model/flow-query.ts";
import type { FlowSource } from "./flow-documents.ts";
import type { OpenSearchClient } from "./opensearch-client.ts";

// Searches over the flows of one question.

export interface FlowSearchAnswer {
  readonly hits?: {
    readonly total?: { readonly value: number };
    readonly hits: readonly { readonly _source?: FlowSource; readonly sort?: readonly unknown[] }[];
  };
  readonly aggregations?: Readonly<Record<string, { readonly buckets?: readonly Bucket[] }>>;
  readonly pit_id?: string;
}

const SEARCH = { operation: "search", isQuery: true } as const;
/** An answer that lacks a shard would be wrong without a sign. */
const WHOLE = { allow_partial_search_results: false };
const DAYS_PER_QUERY_MAX = 800;
const POINT_IN_TIME_SECONDS = 60;

/** One shard of one day: within it, OpenSearch ranks sums exactly. */
export interface FlowShard {
  readonly index: string;
  readonly shard: number;
}

export class FlowSearch {
  readonly #client: OpenSearchClient;
  readonly #name: string;
  readonly #signal: AbortSignal;

  constructor(client: OpenSearchClient, name: string, signal: AbortSignal) {
    this.#client = client;
    this.#name = name;
    this.#signal = signal;
  }

  /** Searches all days. A range of time skips the shards that lie outside, and a closed index is a failure. */
  all(body: object): Promise<FlowSearchAnswer> {
    return this.#client.send(SEARCH, {
      method: "POST",
      path: `/${this.#name}-2*/_search`,
      query: { ...WHOLE, expand_wildcards: "open,closed", allow_no_indices: true },
      body,
      signal: this.#signal,
    });
  }

  async indices(filter: FlowFilter): Promise<DailyIndex[]> {
    const found = await listDailyIndices(this.#client, this.#name, filter, this.#signal);
    if (found.length > DAYS_PER_QUERY_MAX)
      throw new QueryRefused("from", `covers more than ${DAYS_PER_QUERY_MAX} days of flows: narrow the time range`);
    return found;
  }

  /** One answer for each shard, from one request; null if its day was removed meanwhile. */
  perShard(shards: readonly FlowShard[], body: object): Promise<(FlowSearchAnswer | null)[]> {
    const text = JSON.stringify(body);
    const lines = shards.map(
      ({ index, shard }) => `${JSON.stringify({ index, preference: `_shards:${shard}`, ...WHOLE })}\n${text}\n`,
    );
    return this.#client.searchMany<FlowSearchAnswer>(lines, this.#signal);
  }

  /** Runs searches that see one state of the data, whatever is appended meanwhile. */
  async atOnePoint<T>(
    indices: readonly DailyIndex[],
    work: (search: (body: object) => Promise<FlowSearchAnswer>) => Promise<T>,
  ): Promise<T> {
    const keepAlive = `${POINT_IN_TIME_SECONDS}s`;
    const created = await this.#client.send<{ pit_id: string }>(SEARCH, {
      method: "POST",
      path: `/${indices.map(({ index }) => index).join(",")}/_search/point_in_time`,
      query: { keep_alive: keepAlive, allow_partial_pit_creation: false },
      signal: this.#signal,
    });
    let id = created.pit_id;
    try {
      return await work(async (body) => {
        const answer = await this.#client.send<FlowSearchAnswer>(SEARCH, {
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
