import { DAY_MS, startOfDay } from "../../lib/time.ts";
import { ENTITY_KINDS } from "../../model/entity.ts";
import type { EntityMatches, EntityQuery, EntitySummary } from "../../model/entity-query.ts";
import { entityOfTerm } from "./event-documents.ts";
import { literal, rangeQuery } from "./event-query.ts";
import type { AggregationAnswer, EventSearch } from "./event-search.ts";
import { PATH_END } from "./event-terms.ts";

/** Entities in one answer. If more match, older days are left out. */
const MATCHES_MAX = 10_000;

/** The entities whose values contain a text, in whole days. */
export async function searchEntities(search: EventSearch, query: EntityQuery): Promise<EntityMatches> {
  const wholeFrom = startOfDay(query.fromMs);
  const toMs = startOfDay(query.toMs + DAY_MS - 1);
  let fromMs = wholeFrom;
  for (;;) {
    const { buckets = [], sum_other_doc_count: others = 0 } = await matches(search, query, fromMs, toMs);
    const days = (toMs - fromMs) / DAY_MS;
    if (others > 0 && days > 1) {
      fromMs = toMs - Math.ceil(days / 2) * DAY_MS;
      continue;
    }
    const found = buckets.map(({ key, doc_count: events, first, last }): EntitySummary => {
      return { ...entityOfTerm(key as string), firstSeenMs: first!.value, lastSeenMs: last!.value, events };
    });
    const isComplete = others === 0 && fromMs === wholeFrom;
    return {
      entities: found.sort(bestFirst(query.search)).slice(0, query.limit),
      total: found.length,
      fromMs,
      toMs,
      isComplete,
    };
  }
}

async function matches(
  search: EventSearch,
  { search: text, isWhole, kinds = ENTITY_KINDS }: EntityQuery,
  fromMs: number,
  toMs: number,
): Promise<AggregationAnswer> {
  const needle = literal(text.toLowerCase());
  const kindClass = `[${kinds.map((kind) => ENTITY_KINDS.indexOf(kind)).join("")}]`;
  const value = isWhole ? `${needle}${PATH_END}${literal(text)}` : `.*${needle}.*${PATH_END}.*`;
  const { aggregations } = await search.all({
    query: rangeQuery({ fromMs, toMs }),
    size: 0,
    track_total_hits: false,
    aggs: {
      entities: {
        terms: { field: "entities", size: MATCHES_MAX, include: kindClass + value },
        aggs: { first: { min: { field: "timestamp" } }, last: { max: { field: "timestamp" } } },
      },
    },
  });
  return aggregations?.["entities"] ?? {};
}

/** Equal values first, then those that begin with the text; within each, the last seen first. */
function bestFirst(search: string): (a: EntitySummary, b: EntitySummary) => number {
  const needle = search.toLowerCase();
  const rank = ({ value }: EntitySummary) => {
    const folded = value.toLowerCase();
    return folded === needle ? 0 : folded.startsWith(needle) ? 1 : 2;
  };
  return (a, b) =>
    rank(a) - rank(b) ||
    b.lastSeenMs - a.lastSeenMs ||
    ENTITY_KINDS.indexOf(a.kind) - ENTITY_KINDS.indexOf(b.kind) ||
    (a.value < b.value ? -1 : 1);
}
