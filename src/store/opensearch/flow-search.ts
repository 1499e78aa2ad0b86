import { QueryRefused } from "../ports/store-errors.ts";
import { DAY_MS, startOfDay } from "../../lib/time.ts";
import { dailyIndexName, listDailyIndices, overlapping, type DailyIndex } from "./daily-index.ts";
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
  readonly _shards?: { readonly total: number };
}

/** An answer that lacks a shard would be wrong without a sign. */
const WHOLE = { allow_partial_search_results: false };
const DAYS_PER_QUERY_MAX = 800;
/** How often the days are listed again because one of them was removed. */
const REMOVALS_MAX = 5;
const POINT_IN_TIME_SECONDS = 60;
/** Days that are named without having been listed. */
const PATTERNS_MAX = 60;
/** How long the number of a day's shards is relied on: an index that was removed may come back with others. */
const KNOWN_MS = 5000;

/** One shard of one day: within it, OpenSearch ranks sums exactly. */
export interface FlowShard {
  readonly index: string;
  readonly shard: number;
}

export type ShardAnswers = (FlowSearchAnswer | null)[];

/** The days that were there when somebody looked last, at a time of `performance.now`. */
export interface KnownFlowDays {
  indices: readonly DailyIndex[];
  listedAt: number;
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
    this.#known.listedAt = performance.now();
    const indices = overlapping(this.#known.indices, filter);
    if (indices.length > DAYS_PER_QUERY_MAX)
      throw new QueryRefused("from", `covers more than ${DAYS_PER_QUERY_MAX} days of flows: narrow the time range`);
    this.#found = { filter, indices };
    return indices;
  }

  /** Searches the days of a filter; null if there are none. The body holds the filter as a query. */
  async inDays(filter: FlowFilter, body: object): Promise<FlowSearchAnswer | null> {
    const text = JSON.stringify(body);
    for (let attempt = 0; ; attempt++) {
      const names = dayPatterns(this.#name, filter) ?? (await this.indices(filter)).map(({ index }) => index);
      if (names.length === 0) return null;
      const [answer] = await this.#search([`${headerOf(names)}\n${text}\n`]);
      if (answer || attempt === REMOVALS_MAX) return answer ?? null;
      // One of them was removed.
      this.#found = undefined;
    }
  }

  /** One answer for each shard of the days of a filter, from one request; null for a day that was removed meanwhile. */
  async perShardOf(filter: FlowFilter, body: object): Promise<{ shards: FlowShard[]; answers: ShardAnswers }> {
    const patterns = dayPatterns(this.#name, filter);
    const isKnown = patterns !== undefined && performance.now() - this.#known.listedAt < KNOWN_MS;
    const indices = isKnown ? overlapping(this.#known.indices, filter) : await this.indices(filter);
    const shards = shardsOf(indices);
    const named = new Set(indices.map(({ index }) => patternOf(index)));
    const others = isKnown ? patterns.filter((pattern) => !named.has(pattern)) : [];
    if (others.length === 0) return { shards, answers: await this.perShard(shards, body) };
    // Days that somebody may have created since.
    const lines = [...shardLines(shards, body), `${headerOf(others)}\n${JSON.stringify({ size: 0 })}\n`];
    const answers = await this.#search(lines);
    const created = answers.pop();
    if (created?._shards?.total === 0) return { shards, answers };
    this.#known.listedAt = -Infinity;
    return this.perShardOf(filter, body);
  }

  /** One answer for each shard, from one request; null if its day was removed meanwhile. */
  async perShard(shards: readonly FlowShard[], body: object): Promise<ShardAnswers> {
    return shards.length === 0 ? [] : this.#search(shardLines(shards, body));
  }

  #search(lines: readonly string[]): Promise<ShardAnswers> {
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

/**
 * A pattern for each day of a range: it stands for an index that exists, and for nothing otherwise, so that the days need not be
 * listed. Undefined if there are too many.
 */
function dayPatterns(name: string, { fromMs, toMs }: FlowFilter): string[] | undefined {
  if (fromMs === undefined || toMs === undefined) return undefined;
  const first = startOfDay(fromMs);
  const days = Math.ceil((toMs - first) / DAY_MS);
  if (days > PATTERNS_MAX) return undefined;
  return Array.from({ length: Math.max(0, days) }, (_, nth) => patternOf(dailyIndexName(name, first + nth * DAY_MS)));
}

/** Not at the end: a copy of a day may be named like it, with more after the date. */
const patternOf = (index: string) => `${index.slice(0, -1)}*${index.slice(-1)}`;

/** A closed index is a failure. The names of many days do not fit into an address. */
function headerOf(index: readonly string[]): string {
  return JSON.stringify({ index, expand_wildcards: "open,closed", allow_no_indices: true, ...WHOLE });
}

function shardLines(shards: readonly FlowShard[], body: object): string[] {
  const text = JSON.stringify(body);
  return shards.map(
    ({ index, shard }) => `${JSON.stringify({ index, preference: `_shards:${shard}`, ...WHOLE })}\n${text}\n`,
  );
}

function shardsOf(indices: readonly DailyIndex[]): FlowShard[] {
  return indices.flatMap(({ index, shards }) =>
    Array.from({ length: shards }, (_, shard): FlowShard => ({ index, shard })),
  );
}
