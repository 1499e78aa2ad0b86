import { parseExact } from "../../lib/exact-json.ts";
import type { Event } from "../../model/event.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import { TERMS_PER_QUERY_MAX } from "./event-documents.ts";
import {
  both,
  either,
  isExact,
  NONE,
  not,
  terms,
  undecidedOf,
  withPartial,
  type Bounds,
  type Query,
} from "./event-query.ts";
import { pagesOf, textOf, type EventView } from "./event-search.ts";

/** Events that are read to decide about one query. */
const TESTED_EVENTS_MAX = 200_000;
const PAGE_EVENTS = 500;

export interface Question<T> {
  readonly scope: Query;
  readonly bounds: Bounds;
  /** True if any event matches. */
  readonly hasAny: (query: Query) => Promise<boolean>;
  /** Asks for the events of a query that is exact. */
  readonly ask: (query: Query) => Promise<T>;
  /** The same if events have to be tested. */
  readonly test: () => Promise<T>;
}

/**
 * Asks at once, as if OpenSearch could decide about every event, which it mostly can, and looks beside it whether that is so.
 * Events that were stored before the question are seen by both; of those that arrive meanwhile, any may be missing.
 */
export async function askOnce<T>({ scope, bounds, hasAny, ask, test }: Question<T>): Promise<T> {
  const whole = withPartial(bounds);
  if (isExact(whole)) return ask(both(scope, whole.may));
  if (whole.isOpen) return test();
  const [answer, isUndecided] = await Promise.all([
    ask(both(scope, whole.must)),
    hasAny(both(scope, undecidedOf(bounds))),
  ]);
  return isUndecided ? test() : answer;
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
  const open = both(scope, undecidedOf(bounds));
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
