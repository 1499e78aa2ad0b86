import type { Logger } from "pino";
import type { FlowRows } from "../../model/flow.ts";
import {
  TIMESERIES_POINTS_MAX,
  timeseriesPoints,
  type FlowFilter,
  type FlowOrder,
  type TalkersQuery,
  type Timeseries,
  type TimeseriesQuery,
  type Traffic,
} from "../../model/flow-query.ts";
import { DAY_MS } from "../../lib/time.ts";
import type { FlowEngine } from "../ports/flow-engine.ts";
import type { QueryContext } from "../ports/query-context.ts";
import { QueryRefused, StoreUnavailable } from "../ports/store-errors.ts";
import { QueryLanes } from "../queries/query-lanes.ts";
import { createDocuments } from "./bulk.ts";
import { dailyIndexName, listDailyIndices } from "./daily-index.ts";
import { FlowDocuments, flowTemplate } from "./flow-documents.ts";
import { pageOfFlows, type FlowPage } from "./flow-pages.ts";
import { groupingOf, topFlowGroups } from "./flow-ranking.ts";
import { FlowSearch, type KnownFlowDays } from "./flow-search.ts";
import { flowTimeseries } from "./flow-series.ts";
import { putIndexTemplate } from "./index-template.ts";
import type { OpenSearchClient } from "./opensearch-client.ts";

// The flows in OpenSearch: one index for each UTC day.

/** Batches in flight; more are refused, so that memory does not grow with a slow cluster. */
const PENDING_BATCHES_MAX = 16;
/** Rows whose documents are in memory at a time. */
const ROWS_AT_ONCE_MAX = 20_000;
const QUERY_MS_MAX = 30_000;
const PROTOCOLS = 256;
const MAPPING_RETRY_SECONDS = 30;

export interface OpenSearchFlowsOptions {
  readonly client: OpenSearchClient;
  readonly indexPrefix: string;
  /** Of indices that are created from now on. */
  readonly shards: number;
  readonly replicas: number;
  readonly log: Logger;
}

/** Writes the index template. The client stays its caller's, who closes it. */
export async function openOpenSearchFlows(options: OpenSearchFlowsOptions): Promise<OpenSearchFlows> {
  const { client, indexPrefix, shards, replicas, log } = options;
  const name = flowsName(indexPrefix);
  await putIndexTemplate(client, flowTemplate({ name, shards, replicas }), log);
  return new OpenSearchFlows(client, name, log);
}

export const flowsName = (indexPrefix: string) => `${indexPrefix}-flows`;

export class OpenSearchFlows implements FlowEngine {
  readonly #client: OpenSearchClient;
  readonly #name: string;
  readonly #log: Logger;
  readonly #lanes = new QueryLanes();
  readonly #days: KnownFlowDays = { indices: [], listedAt: -Infinity };
  #batchesInFlight = 0;

  constructor(client: OpenSearchClient, name: string, log: Logger) {
    this.#client = client;
    this.#name = name;
    this.#log = log;
  }

  /** Queries that were refused because of too many others. */
  get refused(): number {
    return this.#lanes.refused;
  }

  async append(rows: FlowRows, batchId: string): Promise<void> {
    if (rows.count === 0) return;
    if (this.#batchesInFlight >= PENDING_BATCHES_MAX)
      throw new StoreUnavailable("queue_full", "too many batches of flows are in flight: try again later");
    this.#batchesInFlight++;
    try {
      const indices = await this.#create(rows, batchId);
      // Rows that an attempt before this one stored may still be invisible.
      const path = `/${[...indices].join(",")}/_refresh`;
      // A day that retention has removed meanwhile has nothing to show.
      const query = { ignore_unavailable: true };
      await this.#client.send({ operation: "refresh" }, { method: "POST", path, query });
    } finally {
      this.#batchesInFlight--;
    }
  }

  /** Stores the rows and returns the indices that have them. */
  async #create(rows: FlowRows, batchId: string): Promise<ReadonlySet<string>> {
    const documents = new FlowDocuments(rows, batchId);
    const names = new Map<number, string>();
    const indexOf = (row: number) => {
      const day = Math.floor(documents.timestamp(row) / DAY_MS);
      let index = names.get(day);
      if (index === undefined) names.set(day, (index = dailyIndexName(this.#name, day * DAY_MS)));
      return index;
    };
    for (let from = 0; from < rows.count; from += ROWS_AT_ONCE_MAX) {
      const length = Math.min(ROWS_AT_ONCE_MAX, rows.count - from);
      const chunk = Array.from({ length }, (_, nth) => {
        const row = from + nth;
        return { index: indexOf(row), id: documents.id(row), text: documents.text(row) };
      });
      const outcomes = await createDocuments(this.#client, chunk, { kind: "flows" });
      const at = outcomes.findIndex(({ status }) => status === "refused");
      if (at >= 0) throw this.#wrongMapping(chunk[at]!.index, (outcomes[at] as { detail: string }).detail);
    }
    return new Set(names.values());
  }

  /** A row always fits our mappings: the index has others, and the rows wait until someone has replaced it. */
  #wrongMapping(index: string, detail: string): StoreUnavailable {
    this.#log.error(
      { index, detail },
      "OpenSearch refuses rows: the index was not created from the template; reindex or remove it",
    );
    const message = `the index ${index} has other mappings than the template ${this.#name} (${detail})`;
    return new StoreUnavailable("failed", message, MAPPING_RETRY_SECONDS);
  }

  list(filter: FlowFilter, order: FlowOrder, offset: number, limit: number, context?: QueryContext): Promise<FlowPage> {
    return this.#query(context, (search) => pageOfFlows(search, filter, order, offset, limit));
  }

  topTalkers({ filter, dimension, by, limit }: TalkersQuery, context?: QueryContext): Promise<readonly Traffic[]> {
    return this.#top({ filter, dimension, by, limit }, context);
  }

  protocols(filter: FlowFilter, context?: QueryContext): Promise<readonly Traffic[]> {
    return this.#top({ filter, dimension: "protocol", by: "bytes", limit: PROTOCOLS }, context);
  }

  #top(
    { filter, dimension, by, limit }: Omit<TalkersQuery, "dimension"> & { dimension: Parameters<typeof groupingOf>[0] },
    context?: QueryContext,
  ): Promise<readonly Traffic[]> {
    return this.#query(context, async (search) => {
      const groups = await topFlowGroups({ search, filter, grouping: groupingOf(dimension), by, limit });
      return groups.map(({ value: _value, ...traffic }) => traffic);
    });
  }

  async timeseries(query: TimeseriesQuery, context?: QueryContext): Promise<Timeseries> {
    const { filter, intervalMs, shiftMs = 0 } = query;
    if ((filter.toMs - filter.fromMs) / intervalMs > TIMESERIES_POINTS_MAX)
      throw new QueryRefused("interval", `would make more than ${TIMESERIES_POINTS_MAX} points: use a longer one`);
    if (timeseriesPoints(filter.fromMs + shiftMs, filter.toMs + shiftMs, intervalMs).length === 0)
      return { timestamps: [], series: [] };
    return this.#query(context, (search) => flowTimeseries(search, query));
  }

  async removeBefore(ms: number): Promise<{ days: number; flows: number }> {
    const all = await listDailyIndices(this.#client, this.#name, { toMs: ms });
    const expired = all.filter(({ day }) => day + DAY_MS <= ms).map(({ index }) => index);
    let days = 0;
    let flows = 0;
    for (const index of expired) {
      // A closed index is removed without having been counted.
      const counted = await this.#client.send<{ count: number }>(
        { operation: "count" },
        { method: "GET", path: `/${index}/_count`, query: { ignore_unavailable: true } },
      );
      const answer = await this.#client.send<{ acknowledged?: boolean }>(
        { operation: "remove" },
        { method: "DELETE", path: `/${index}`, ignore: [404] },
      );
      // Otherwise another node has removed it.
      if (answer.acknowledged !== true) continue;
      days++;
      flows += counted.count;
    }
    return { days, flows };
  }

  count(): Promise<number> {
    return this.#query({}, async (search) => {
      const answer = await search.inDays({}, { size: 0, track_total_hits: true });
      return answer?.hits?.total?.value ?? 0;
    });
  }

  async #query<T>(context: QueryContext | undefined, ask: (search: FlowSearch) => Promise<T>): Promise<T> {
    const { client, signal } = context ?? {};
    const stop = new AbortController();
    const onAbort = () => stop.abort(signal!.reason);
    if (signal?.aborted) onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      return await this.#lanes.take({ name: client, lane: "heavy" }, stop.signal, async () => {
        const timedOut = new QueryRefused("from", `took longer than ${QUERY_MS_MAX / 1000} s: narrow the time range`);
        const timer = setTimeout(() => stop.abort(timedOut), QUERY_MS_MAX);
        try {
          return await ask(new FlowSearch(this.#client, this.#name, this.#days, stop.signal));
        } finally {
          clearTimeout(timer);
        }
      });
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }
}
