import type { ArrivalShard } from "../ports/arrival-log.ts";
import { dayOfIndex } from "./daily-index.ts";
import { both, either, not, type Query } from "./event-query.ts";
import { indexLists, type EventAnswer, type EventHit } from "./event-search.ts";
import type { OpenSearchClient } from "./opensearch-client.ts";
import { describeCause, toStoreError, type OpenSearchCause } from "./opensearch-errors.ts";

// The shards of the events as logs. A shard numbers its writes; everything up to the global checkpoint of its primary is on
// every copy. An amended event has the number of its first write in `first_seq`, and is read by that.

export interface ShardProgress extends ArrivalShard {
  /** Writes up to this number are on every copy. */
  readonly checkpoint: number;
  /** The last number that was given out. */
  readonly newest: number;
}

interface ShardStats {
  readonly routing: { readonly primary: boolean; readonly state: string };
  readonly seq_no?: { readonly max_seq_no: number; readonly global_checkpoint: number };
}

interface StatsAnswer {
  readonly indices?: Readonly<
    Record<string, { readonly uuid: string; readonly shards: Readonly<Record<string, readonly ShardStats[]>> }>
  >;
}

const KIND = { operation: "arrivals" };

export class EventShards {
  readonly #client: OpenSearchClient;
  readonly #name: string;

  constructor(client: OpenSearchClient, name: string) {
    this.#client = client;
    this.#name = name;
  }

  /** All shards whose primary runs, by index and number. */
  async progress(): Promise<ShardProgress[]> {
    const { indices = {} } = await this.#client.send<StatsAnswer>(KIND, {
      method: "GET",
      path: `/${this.#name}-2*/_stats/docs`,
      query: {
        level: "shards",
        filter_path: "indices.*.uuid,indices.*.shards.*.routing,indices.*.shards.*.seq_no",
        allow_no_indices: true,
      },
    });
    const found: ShardProgress[] = [];
    for (const index of Object.keys(indices).sort()) {
      if (dayOfIndex(this.#name, index) === undefined) continue;
      const { uuid: incarnation, shards } = indices[index]!;
      for (const [shard, copies] of Object.entries(shards)) {
        const primary = copies.find(({ routing }) => routing.primary && routing.state !== "INITIALIZING")?.seq_no;
        if (!primary) continue;
        const { global_checkpoint: checkpoint, max_seq_no: newest } = primary;
        found.push({ index, incarnation, shard: Number(shard), checkpoint, newest });
      }
    }
    return found;
  }

  /** Makes everything that is stored visible on every copy. */
  async refresh(indices: Iterable<string>): Promise<void> {
    for (const names of indexLists(indices)) {
      const { _shards: shards } = await this.#client.send<{ _shards: { failed: number } }>(KIND, {
        method: "POST",
        path: `/${names}/_refresh`,
        query: { ignore_unavailable: true },
      });
      if (shards.failed > 0)
        throw toStoreError({ failure: "no_shard", detail: "a copy was not refreshed" }, undefined, false);
    }
  }

  /** The current incarnations of these indices. */
  async incarnations(indices: Iterable<string>): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    for (const names of indexLists(indices))
      for (const [index, incarnation] of await this.#settingsOf(names)) found.set(index, incarnation);
    return found;
  }

  /** Those of all days, also of days that are closed or whose primary does not run: they may come back. */
  async allIncarnations(): Promise<string[]> {
    return (await this.#settingsOf(`${this.#name}-2*`)).map(([, incarnation]) => incarnation);
  }

  async #settingsOf(names: string): Promise<[index: string, incarnation: string][]> {
    const answer = await this.#client.send<Record<string, { settings: { index: { uuid: string } } }>>(KIND, {
      method: "GET",
      path: `/${names}/_settings/index.uuid`,
      query: { ignore_unavailable: true, allow_no_indices: true, expand_wildcards: "open,closed" },
    });
    return Object.entries(answer).map(([index, { settings }]) => [index, settings.index.uuid]);
  }

  /** When an index was created. One that is restored from a snapshot keeps its time. */
  async createdAt(index: string): Promise<number | undefined> {
    const answer = await this.#client.send<Record<string, { settings: { index: { creation_date: string } } }>>(KIND, {
      method: "GET",
      path: `/${index}/_settings/index.creation_date`,
      query: { ignore_unavailable: true },
    });
    const created = answer[index]?.settings.index.creation_date;
    return created === undefined ? undefined : Number(created);
  }

  /** One answer for each search; null if its index is gone. */
  async searchMany(
    searches: readonly { readonly on: ArrivalShard; readonly body: object }[],
  ): Promise<(EventAnswer | null)[]> {
    const lines = searches.map(({ on, body }) => {
      const header = { index: on.index, preference: `_shards:${on.shard}`, allow_partial_search_results: false };
      return `${JSON.stringify(header)}\n${JSON.stringify(body)}\n`;
    });
    const { responses } = await this.#client.send<{
      responses: (EventAnswer & { error?: OpenSearchCause; status: number })[];
    }>(KIND, { method: "POST", path: "/_msearch", body: lines.join(""), isLines: true });
    return responses.map((answer) => {
      if (!answer.error) return answer;
      if (answer.error.type === "index_not_found_exception") return null;
      const description = describeCause(answer.error, answer.status);
      this.#client.metrics.failed("arrivals", description.failure);
      throw toStoreError(description, answer.error, false);
    });
  }
}

export function keyOf({ incarnation, shard }: ArrivalShard): string {
  return `${incarnation} ${shard}`;
}

const AMENDED: Query = { exists: { field: "first_seq" } };

/** Events that were not amended and have a number in the range. */
export function unamended(first: number, last: number): Query {
  return both({ range: { _seq_no: { gte: first, lte: last } } }, not(AMENDED));
}

export function amended(first: number, last: number): Query {
  return { range: { first_seq: { gte: first, lte: last } } };
}

/** Events whose first write has a number in the range. In one search, since an amendment turns one kind into the other. */
export function numbered(first: number, last: number): Query {
  return either(unamended(first, last), amended(first, last));
}

/** The number of the first write of an event. */
export function numberOf({ _seq_no, _source }: EventHit): number {
  return _source!.first_seq ?? _seq_no!;
}
