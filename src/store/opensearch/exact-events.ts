import { parseExact } from "../../lib/exact-json.ts";
import type { Event } from "../../model/event.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import { TERMS_PER_QUERY_MAX } from "./event-documents.ts";
import { both, either, isExact, NONE, not, terms, withPartial, type Bounds, type Query } from "./event-query.ts";
import { pagesOf, textOf, type EventView } from "./event-search.ts";

/** Events that are read to decide about one query. */
const TESTED_EVENTS_MAX = 200_000;
const PAGE_EVENTS = 500;

/** Some of the events have to be tested. */
class EventsUndecided extends Error {}

/**
 * Asks for all events that may match. If OpenSearch can decide about each of them, as it mostly can, the answer is that of
 * the condition, from one search; otherwise `test` is called instead.
 */
export async function askOnce<T>(
  view: EventView,
  scope: Query,
  bounds: Bounds,
  ask: (view: EventView, query: Query) => Promise<T>,
  test: () => Promise<T>,
): Promise<T> {
  const whole = withPartial(bounds);
  if (isExact(whole)) return ask(view, both(scope, whole.may));
  if (whole.isOpen) return test();
  const undecided = { filter: not(whole.must) };
  const checked: EventView = async (body) => {
    const answer = await view({ ...body, aggs: { ...(body["aggs"] as object | undefined), undecided } });
    if ((answer.aggregations?.["undecided"]?.doc_count ?? 0) > 0) throw new EventsUndecided();
    return answer;
  };
  try {
    return await ask(checked, both(scope, whole.may));
  } catch (error) {
    if (error instanceof EventsUndecided) return test();
    throw error;
  }
}

/**
 * A query that finds exactly the events of a condition. Events about which OpenSearch cannot decide are read and tested, and
 * become part of the query by their ids.
 */
export async function exactQuery(
  view: EventView,
  scope: Query,
  bounds: Bounds,
  matches: (event: Event) => boolean,
): Promise<Query> {
  const whole = withPartial(bounds);
  if (isExact(whole)) return both(scope, whole.may);
  const open = both(scope, whole.may, not(whole.must));
  if (open === NONE) return both(scope, whole.must);
  const matched: string[] = [];
  const failed: string[] = [];
  for await (const hits of pagesOf(view, open, { size: PAGE_EVENTS })) {
    for (const hit of hits) {
      const event = parseExact(textOf(hit)) as Event;
      (matches(event) ? matched : failed).push(event.id);
    }
    if (matched.length + failed.length > TESTED_EVENTS_MAX) throw tooMany();
  }
  if (matched.length <= TERMS_PER_QUERY_MAX) return both(scope, either(whole.must, terms("id", matched)));
  if (failed.length > TERMS_PER_QUERY_MAX) throw tooMany();
  return both(scope, whole.may, not(terms("id", failed)));
}

function tooMany(): QueryRefused {
  return new QueryRefused(
    "from",
    `covers more than ${TESTED_EVENTS_MAX} events that have to be tested one by one: narrow the time range`,
  );
}
