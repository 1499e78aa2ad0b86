import type { Logger } from "pino";
import { parseExact } from "../../lib/exact-json.ts";
import { DAY_MS } from "../../lib/time.ts";
import { compileCondition, type Condition } from "../../model/condition.ts";
import type { EntityMatches, EntityQuery } from "../../model/entity-query.ts";
import type { Event } from "../../model/event.ts";
import { isTopField } from "../../model/field.ts";
import type { Position, TextPage } from "../../model/page.ts";
import type { SearchQuery, SortKey, TimeRange } from "../../model/query.ts";
import type {
  Amendment,
  Arrival,
  EventEngine,
  EventFilter,
  FieldFilter,
  LastArrivals,
  NewEvent,
  SearchResult,
  StoredEvent,
} from "../ports/event-engine.ts";
import type { EventFields } from "../ports/event-fields.ts";
import type { QueryContext } from "../ports/query-context.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import { QueryLanes, type Lane } from "../queries/query-lanes.ts";
import { searchableEvent, textMatcher } from "../search/text-matcher.ts";
import { listDailyIndices } from "./daily-index.ts";
import { aggregateEvents, takesOneSearch } from "./event-aggregations.ts";
import type { EventArrivals } from "./event-arrivals.ts";
import { boundsOf } from "./event-condition.ts";
import { eventTemplate, tokenTerm } from "./event-documents.ts";
import { searchEntities } from "./entity-matches.ts";
import { sampleFields } from "./event-fields-sample.ts";
import { ALL, both, filterQuery, isExact, rangeQuery, term, withPartial, type Query } from "./event-query.ts";
import { EventSearch, NEWEST_FIRST, pagesOf, textOf, totalOf, type EventHit, type EventView } from "./event-search.ts";
import { readSorted, sortedEvents, type SortedEvent } from "./event-sorting.ts";
import { EventStore, TOKEN_MS } from "./event-store.ts";
import { wordBounds } from "./event-text-search.ts";
import { askOnce, exactQuery } from "./exact-events.ts";
import { putIndexTemplate } from "./index-template.ts";
import { NeedsFurtherSearch, oneSearch } from "./one-search.ts";
import type { OpenSearchClient } from "./opensearch-client.ts";
import type { StoredDays } from "./stored-days.ts";

// The events in OpenSearch: one index for each UTC day of the events' own times.

const QUERY_MS_MAX = 30_000;
/** OpenSearch returns no page beyond this; a later one is reached in steps. */
const WINDOW_EVENTS = 10_000;
/** Of the first page of a scan; later ones have as many events as make up so many characters. */
const SCAN_EVENTS = 250;
const SCAN_CHARACTERS = 2_000_000;
const TOKENS_PER_ANSWER = 5000;
/** How long a stored event waits until reads see it. */
const REFRESH_MS = 200;

export interface OpenSearchEventsOptions {
  readonly client: OpenSearchClient;
  readonly indexPrefix: string;
  /** The platform's word, with which names of sources begin. */
  readonly platform: string;
  /** Of indices that are created from now on. */
  readonly shards: number;
  readonly replicas: number;
  readonly arrivals: EventArrivals;
  /** Of the same indices: reports the days that answers lack. */
  readonly days: StoredDays;
  /** Called before events are stored. */
  readonly noteEvents?: ((events: readonly NewEvent[]) => Promise<void> | undefined) | undefined;
  readonly log: Logger;
  readonly now?: (() => number) | undefined;
  readonly refreshMs?: number | undefined;
}

/** Writes the index template. The client stays its caller's, who closes it. */
export async function openOpenSearchEvents(options: OpenSearchEventsOptions): Promise<OpenSearchEvents> {
  await putEventTemplate(options);
  return new OpenSearchEvents(options);
}

export async function putEventTemplate(
  options: Pick<OpenSearchEventsOptions, "client" | "indexPrefix" | "shards" | "replicas" | "log" | "refreshMs">,
): Promise<void> {
  const { client, indexPrefix, shards, replicas, log, refreshMs = REFRESH_MS } = options;
  await putIndexTemplate(client, eventTemplate({ name: eventsName(indexPrefix), shards, replicas, refreshMs }), log);
}

export const eventsName = (indexPrefix: string) => `${indexPrefix}-events`;

export class OpenSearchEvents implements EventEngine {
  readonly storesWholeDays = false;
  readonly #client: OpenSearchClient;
  readonly #name: string;
  readonly #platform: string;
  readonly #now: () => number;
  readonly #events: EventStore;
  readonly #arrivals: EventArrivals;
  readonly #days: StoredDays;
  readonly #noteEvents: OpenSearchEventsOptions["noteEvents"];
  readonly #lanes = new QueryLanes();

  constructor(options: OpenSearchEventsOptions) {
    const { client, indexPrefix, platform, arrivals, days, noteEvents, log, now = Date.now } = options;
    this.#client = client;
    this.#name = eventsName(indexPrefix);
    this.#platform = platform;
    this.#now = now;
    this.#arrivals = arrivals;
    this.#days = days;
    this.#noteEvents = noteEvents;
    this.#events = new EventStore({ client, name: this.#name, now, log });
  }

  /** Queries that were refused because of too many others. */
  get refused(): number {
    return this.#lanes.refused;
  }

  async append(events: readonly NewEvent[]): Promise<StoredEvent[]> {
    await this.#noteEvents?.(events);
    const stored = await this.#events.append(events);
    this.#arrivals.stored();
    return stored;
  }

  amend(amendments: readonly Amendment[]): Promise<void> {
    return this.#events.amend(amendments);
  }

  get(id: string): Promise<string | undefined> {
    return this.#events.get(id);
  }

  async findByToken(token: string): Promise<StoredEvent | undefined> {
    const query = both(term("token", tokenTerm(token)), this.#withinTokenTime());
    const { hits } = await new EventSearch(this.#client, this.#name, this.#days).all({
      query,
      size: 1,
      sort: [{ arrived: "desc" }],
      track_total_hits: false,
    });
    const [hit] = hits.hits;
    return hit && { id: idOf(textOf(hit)), text: textOf(hit) };
  }

  async findByTokens(token: string): Promise<ReadonlyMap<number, string>> {
    const query = both(term("token_batch", tokenTerm(token)), this.#withinTokenTime());
    const search = new EventSearch(this.#client, this.#name, this.#days);
    const found = new Map<number, string>();
    const body = { _source: false, docvalue_fields: ["id", "token_number"] };
    const pages = pagesOf((asked) => search.all(asked), query, {
      size: TOKENS_PER_ANSWER,
      sort: [{ id: "asc" }],
      body,
    });
    for await (const hits of pages) {
      for (const { fields } of hits) found.set(Number(fields!["token_number"]![0]), String(fields!["id"]![0]));
    }
    return found;
  }

  #withinTokenTime(): Query {
    return { range: { arrived: { gt: this.#now() - TOKEN_MS } } };
  }

  list(filter: EventFilter, position: Position, context: QueryContext = {}): Promise<TextPage> {
    return this.#query(context, filter.search === undefined ? "quick" : "text", async (search) => {
      const after =
        position.mode === "cursor" && position.after !== undefined ? await this.#cursor(position.after) : undefined;
      const scope = filterQuery(filter);
      if (filter.search === undefined) return pageOf((body) => search.all(body), scope, position, after);
      const bounds = wordBounds(filter.search);
      const finds = textMatcher(filter.search);
      const ask = (view: EventView, query: Query) => pageOf(view, query, position, after);
      return askOnce({
        scope,
        bounds,
        hasAny: (query) => search.hasAny(query),
        ask: (query) => ask((body) => search.all(body), query),
        test: () =>
          search.atOnePoint(filter, async (view) =>
            ask(view, await exactQuery(view, scope, bounds, (event) => finds(searchableEvent(event)))),
          ),
      });
    });
  }

  search(query: SearchQuery, context: QueryContext = {}): Promise<SearchResult> {
    const { condition, sort, limit, aggs } = query;
    return this.#query(context, "heavy", async (search) => {
      const after = query.after === undefined ? undefined : await this.#cursor(query.after);
      const scope = rangeQuery(query);
      const bounds = boundsOf(condition);
      // One more than requested shows whether there is a next page.
      const wanted = limit === 0 ? 0 : limit + 1;
      const hasTopSort = sort.every(({ field }) => isTopField(field));
      const ask = async (view: EventView, exact: Query): Promise<SearchResult> => {
        const [{ total, events }, aggregations] = await Promise.all([
          hasTopSort ? readSorted(view, exact, sort, after, wanted) : readInParts(view, exact, sort, after, wanted),
          aggregateEvents(aggs, { view, query: exact, platform: this.#platform, range: query }),
        ]);
        return { total, ...firstOf(events, limit), aggregations };
      };
      const inParts = () =>
        search.atOnePoint(query, async (view) =>
          ask(view, await exactQuery(view, scope, bounds, compileCondition(condition))),
        );
      if (!hasTopSort || !aggs.every(({ aggregation }) => takesOneSearch(aggregation, query))) return inParts();
      try {
        return await askOnce({
          scope,
          bounds,
          hasAny: (each) => search.hasAny(each),
          ask: (exact) =>
            ask(
              oneSearch((body) => search.all(body)),
              exact,
            ),
          test: inParts,
        });
      } catch (error) {
        if (error instanceof NeedsFurtherSearch) return inParts();
        throw error;
      }
    });
  }

  fields(filter: FieldFilter, context: QueryContext = {}): Promise<EventFields> {
    return this.#query(context, "heavy", (search, signal) => sampleFields(search, filter, signal));
  }

  entities(query: EntityQuery, context: QueryContext = {}): Promise<EntityMatches> {
    return this.#query(context, "quick", (search) => searchEntities(search, query));
  }

  async *scan(query: { condition: Condition } & TimeRange, signal: AbortSignal): AsyncIterable<string[]> {
    if (signal.aborted) return;
    const matches = compileCondition(query.condition);
    const bounds = withPartial(boundsOf(query.condition));
    const search = new EventSearch(this.#client, this.#name, this.#days, signal);
    const sort = [{ timestamp: "asc" }, { id: "asc" }];
    try {
      const point = await search.openPoint(query);
      try {
        for await (const hits of pagesOf(point.view, both(rangeQuery(query), bounds.may), {
          size: SCAN_EVENTS,
          charactersMax: SCAN_CHARACTERS,
          sort,
        })) {
          const texts = hits.map(textOf);
          const chunk = isExact(bounds) ? texts : texts.filter((text) => matches(parseExact(text) as Event));
          if (chunk.length > 0) yield chunk;
          if (signal.aborted) return;
        }
      } finally {
        point.close();
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  scanLast(query: LastArrivals, signal: AbortSignal): AsyncIterable<{ arrivals: Arrival[]; isCut: boolean }> {
    return this.#arrivals.scanLast(query, signal);
  }

  lastArrivalBefore(ms: number): Promise<string | null> {
    return this.#arrivals.lastBefore(ms);
  }

  arrivals(after: string | null, signal: AbortSignal): AsyncIterable<Arrival[]> {
    return this.#arrivals.follow(after, signal);
  }

  lastArrival(): Promise<string | null> {
    return this.#arrivals.last();
  }

  lastKnownArrival(): Promise<string | null> {
    return this.#arrivals.lastKnown();
  }

  async removeBefore(ms: number): Promise<{ days: number; events: number }> {
    const all = await listDailyIndices(this.#client, this.#name, { toMs: ms });
    let days = 0;
    let events = 0;
    for (const { index, day } of all) {
      if (day + DAY_MS > ms) continue;
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
      events += counted.count;
    }
    return { days, events };
  }

  count(): Promise<number> {
    return this.#query({}, "quick", (search) => search.count(ALL));
  }

  async #cursor(id: string): Promise<Event> {
    const text = await this.#events.get(id);
    if (text === undefined) throw new QueryRefused("after", "is not the id of a stored event");
    return parseExact(text) as Event;
  }

  async #query<T>(
    { client, signal }: QueryContext,
    lane: Lane,
    ask: (search: EventSearch, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const stop = new AbortController();
    const onAbort = () => stop.abort(signal!.reason);
    if (signal?.aborted) onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      return await this.#lanes.take({ name: client, lane }, stop.signal, async () => {
        const timedOut = new QueryRefused("from", `took longer than ${QUERY_MS_MAX / 1000} s: narrow the time range`);
        const timer = setTimeout(() => stop.abort(timedOut), QUERY_MS_MAX);
        try {
          return await ask(new EventSearch(this.#client, this.#name, this.#days, stop.signal), stop.signal);
        } finally {
          clearTimeout(timer);
        }
      });
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }
}

const idOf = (text: string) => (parseExact(text) as Event).id;

function firstOf(found: readonly SortedEvent[], limit: number): Pick<SearchResult, "items" | "nextCursor"> {
  const items = found.slice(0, limit);
  return {
    items: items.map(({ text }) => text),
    nextCursor: limit > 0 && found.length > limit ? items.at(-1)!.event.id : null,
  };
}

async function readInParts(
  view: EventView,
  query: Query,
  sort: readonly SortKey[],
  after: Event | undefined,
  limit: number,
): Promise<{ total: number; events: SortedEvent[] }> {
  const [total, events] = await Promise.all([
    view({ query, size: 0, track_total_hits: true }).then(totalOf),
    sortedEvents(view, query, sort, after, limit),
  ]);
  return { total, events };
}

/** A page of a list, newest first. */
async function pageOf(view: EventView, query: Query, position: Position, after: Event | undefined): Promise<TextPage> {
  const isCursor = position.mode === "cursor";
  const { size } = position;
  let from = isCursor ? 0 : (position.page - 1) * size;
  let searchAfter: EventHit["sort"] = after && [Date.parse(after.timestamp), after.id];
  const ask = (body: object) =>
    view({ query, sort: NEWEST_FIRST, ...body, ...(searchAfter && { search_after: searchAfter }) });
  // A page far down the list is reached in steps that return no events.
  while (from > 0 && (searchAfter || from + size > WINDOW_EVENTS)) {
    const step = Math.min(from, WINDOW_EVENTS);
    const answer = await ask({ size: step, _source: false, track_total_hits: true });
    if (answer.hits.hits.length < step) return { total: totalOf(answer), items: [], nextCursor: null };
    from -= step;
    searchAfter = answer.hits.hits.at(-1)!.sort!;
  }
  // One more than requested shows whether there is a next page.
  const answer = await ask({ size: isCursor ? size + 1 : size, ...(from > 0 && { from }), track_total_hits: true });
  const texts = answer.hits.hits.map(textOf);
  const items = texts.slice(0, size);
  const nextCursor = isCursor && texts.length > size ? idOf(items.at(-1)!) : null;
  return { total: totalOf(answer), items, nextCursor };
}
