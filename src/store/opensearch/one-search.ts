import type { Query } from "./event-query.ts";
import type { AggregationAnswer, EventAnswer, EventSearchBody, EventView, WaitingSearch } from "./event-search.ts";

// Several searches for the same events as one. One request sees one state of each shard: a point in time, which takes two
// more requests, is only needed if answers lead to further searches.

/** The question takes more than one request. */
export class NeedsFurtherSearch extends Error {}

/** A view that sends the searches that are asked for at first as one, and rejects later ones with NeedsFurtherSearch. */
export function oneSearch(send: EventView): EventView {
  const waiting: WaitingSearch[] = [];
  let isSent = false;
  const run = async () => {
    isSent = true;
    try {
      const { body, partOf } = mergeSearches(waiting.map((each) => each.body));
      const answer = await send(body);
      for (const [nth, { resolve }] of waiting.entries()) resolve(partOf(nth, answer));
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  };
  return (body) => {
    if (isSent) return Promise.reject(new NeedsFurtherSearch());
    const { promise, resolve, reject } = Promise.withResolvers<EventAnswer>();
    if (waiting.push({ body, resolve, reject }) === 1) setImmediate(() => void run());
    return promise;
  };
}

/** At most one of the searches may return events. */
function mergeSearches(bodies: readonly EventSearchBody[]) {
  const [first] = bodies as [EventSearchBody];
  const query: Query = first.query;
  const withHits = bodies.find(({ size }) => size !== 0);
  const names = new Map<object, string>();
  for (const body of bodies) {
    if (body.query !== query || (body["size"] !== 0 && body !== withHits)) throw new NeedsFurtherSearch();
    // The same aggregation may be part of several searches.
    for (const agg of Object.values(aggsOf(body))) if (!names.has(agg)) names.set(agg, `a${names.size}`);
  }
  const aggs = Object.fromEntries([...names].map(([agg, name]) => [name, agg]));
  const body: EventSearchBody = {
    ...(withHits ?? first),
    track_total_hits: bodies.some((each) => each["track_total_hits"] === true),
    ...(names.size > 0 && { aggs }),
  };
  const partOf = (nth: number, answer: EventAnswer): EventAnswer => {
    const own = Object.entries(aggsOf(bodies[nth]!)).map(([name, agg]): [string, AggregationAnswer | undefined] => [
      name,
      answer.aggregations?.[names.get(agg)!],
    ]);
    const found = own.filter((entry): entry is [string, AggregationAnswer] => entry[1] !== undefined);
    return { ...answer, aggregations: Object.fromEntries(found) };
  };
  return { body, partOf };
}

function aggsOf(body: EventSearchBody): Readonly<Record<string, object>> {
  return (body["aggs"] ?? {}) as Readonly<Record<string, object>>;
}
