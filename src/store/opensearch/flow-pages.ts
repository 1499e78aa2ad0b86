import type { Flow, FlowFilter, FlowOrder } from "../../model/flow-query.ts";
import { flowOf } from "./flow-documents.ts";
import { flowQuery } from "./flow-filter.ts";
import type { FlowSearch, FlowSearchAnswer } from "./flow-search.ts";

// Pages of flows. OpenSearch skips at most 10,000 hits; beyond that, a page is reached in steps, from the nearer end, in one state of
// the data.

const STEP_MAX = 10_000;

export interface FlowPage {
  readonly total: number;
  readonly flows: readonly Flow[];
}

/** Ties are ordered by timestamp and then by id, whose order is that of batch and row. */
function sortOf({ sort, descending }: FlowOrder): readonly object[] {
  const order = descending ? "desc" : "asc";
  const bySize = sort === "timestamp" ? [] : [{ [sort]: order }, { [`${sort}_over`]: { order, missing: -1 } }];
  return [...bySize, { timestamp: order }, { batch: order }, { row: order }];
}

const flowsOf = (answer: FlowSearchAnswer | null) => (answer?.hits?.hits ?? []).map(({ _source }) => flowOf(_source!));
const totalOf = (answer: FlowSearchAnswer | null) => answer?.hits?.total?.value ?? 0;

export async function pageOfFlows(
  search: FlowSearch,
  filter: FlowFilter,
  order: FlowOrder,
  offset: number,
  limit: number,
): Promise<FlowPage> {
  const query = flowQuery(filter);
  if (offset + limit <= STEP_MAX) {
    const answer = await search.inDays(filter, {
      query,
      sort: sortOf(order),
      from: offset,
      size: limit,
      track_total_hits: true,
    });
    return { total: totalOf(answer), flows: flowsOf(answer) };
  }
  const indices = await search.indices(filter);
  if (indices.length === 0) return { total: 0, flows: [] };
  return search.atOnePoint(indices, async (ask) => {
    const total = totalOf(await ask({ query, size: 0, track_total_hits: true }));
    const size = Math.min(limit, total - offset);
    if (size <= 0) return { total, flows: [] };
    const isNearerEnd = offset > total / 2;
    const { sort, descending } = order;
    const walk = sortOf({ sort, descending: descending !== isNearerEnd });
    let skip = isNearerEnd ? total - offset - size : offset;
    let after: readonly unknown[] | undefined;
    const next = { query, sort: walk, track_total_hits: false };
    while (skip > 0) {
      const step = Math.min(skip, STEP_MAX);
      const { hits } = await ask({ ...next, size: step, _source: false, ...(after && { search_after: after }) });
      after = hits!.hits.at(-1)!.sort;
      skip -= step;
    }
    const flows: Flow[] = [];
    while (flows.length < size) {
      const step = Math.min(size - flows.length, STEP_MAX);
      const answer = await ask({ ...next, size: step, ...(after && { search_after: after }) });
      flows.push(...flowsOf(answer));
      after = answer.hits!.hits.at(-1)!.sort;
    }
    return { total, flows: isNearerEnd ? flows.reverse() : flows };
  });
}
