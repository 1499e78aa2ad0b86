import type { Logger } from "pino";
import { parseExact } from "../../lib/exact-json.ts";
import type { Event } from "../../model/event.ts";
import { readEventId } from "../files/event-id.ts";
import type {
  ArchiveCursor,
  ArchivedEvent,
  ArrivalOrder,
  ArrivedEvent,
  DayRows,
  EventArchive,
} from "../ports/archive.ts";
import type { ArrivalLog, ArrivalRow } from "../ports/arrival-log.ts";
import { StoreUnavailable } from "../ports/store-errors.ts";
import { writtenOrder, type ShardNumbers } from "./archived-order.ts";
import { createDocuments, type NewDocument } from "./bulk.ts";
import { dailyIndexName, listDailyIndices } from "./daily-index.ts";
import { documentText } from "./event-documents.ts";
import { makePlace } from "./event-place.ts";
import type { EventAnswer, EventHit } from "./event-search.ts";
import { keyOf, numbered, numberOf, type EventShards, type ShardProgress } from "./event-shards.ts";
import type { OpenSearchClient } from "./opensearch-client.ts";

// The events in OpenSearch with the order of their arrival, read and written as a whole.

const PAGE_EVENTS = 1000;
const ROWS_AT_ONCE = 200;
/** Numbers whose events are read at once. */
const NUMBERS_AT_ONCE = 2000;
const KIND = { operation: "archive" };
/** Places of events that the log does not have yet: after all that it has. */
const NEWEST = makePlace(2 ** 47, 0, 0);

/** Where reading goes on: events before the log, those of the log, those that are not in it yet. */
type ReadCursor =
  | { readonly part: "before" | "beyond"; readonly shard: string; readonly after: readonly (string | number)[] | null }
  | { readonly part: "log"; readonly row: number };

export interface ArchivedEventsOptions {
  readonly client: OpenSearchClient;
  readonly name: string;
  readonly shards: EventShards;
  readonly arrivals: ArrivalLog;
  readonly log: Logger;
  readonly now: () => number;
}

export class ArchivedEvents implements EventArchive {
  readonly #client: OpenSearchClient;
  readonly #name: string;
  readonly #shards: EventShards;
  readonly #arrivals: ArrivalLog;
  readonly #log: Logger;
  readonly #now: () => number;

  constructor({ client, name, shards, arrivals, log, now }: ArchivedEventsOptions) {
    this.#client = client;
    this.#name = name;
    this.#shards = shards;
    this.#arrivals = arrivals;
    this.#log = log;
    this.#now = now;
  }

  async days(): Promise<readonly DayRows[]> {
    return countDays(this.#client, this.#name);
  }

  async *read(
    after: ArchiveCursor,
  ): AsyncIterable<{ readonly events: readonly ArrivedEvent[]; readonly cursor: ArchiveCursor }> {
    const progress = await this.#shards.progress();
    await this.#shards.refresh(new Set(progress.map(({ index }) => index)));
    const next = new Map((await this.#arrivals.positions()).map((position) => [keyOf(position), position.next]));
    const logged = await this.#firstLogged();
    let from = after as unknown as ReadCursor | null;
    if (from === null || from.part === "before") {
      const range = (shard: ShardProgress) =>
        [0, Math.min(logged.get(keyOf(shard)) ?? Infinity, next.get(keyOf(shard)) ?? 0) - 1] as const;
      yield* this.#readShards("before", progress, range, from, null);
      from = null;
    }
    if (from === null || from.part === "log") {
      yield* this.#readLog(from?.row ?? 0);
      from = null;
    }
    // What was stored a moment before the service ended.
    const range = (shard: ShardProgress) => [next.get(keyOf(shard)) ?? 0, shard.newest] as const;
    yield* this.#readShards("beyond", progress, range, from, NEWEST);
  }

  /** The first number of each shard that the log has. */
  async #firstLogged(): Promise<Map<string, number>> {
    const found = new Map<string, number>();
    for await (const row of this.#rows(0))
      found.set(keyOf(row), Math.min(found.get(keyOf(row)) ?? Infinity, row.first));
    return found;
  }

  async *#rows(from: number): AsyncGenerator<ArrivalRow> {
    for (let next = from; ;) {
      const rows = await this.#arrivals.rows(next, ROWS_AT_ONCE);
      yield* rows;
      if (rows.length < ROWS_AT_ONCE) return;
      next = rows.at(-1)!.row + 1;
    }
  }

  /** Shard by shard, in the order of the times of arrival. */
  async *#readShards(
    part: "before" | "beyond",
    progress: readonly ShardProgress[],
    rangeOf: (shard: ShardProgress) => readonly [first: number, last: number],
    from: ReadCursor | null,
    place: string | null,
  ): AsyncGenerator<{ readonly events: readonly ArrivedEvent[]; readonly cursor: ArchiveCursor }> {
    const start = from?.part === part ? progress.findIndex((shard) => keyOf(shard) === from.shard) : 0;
    if (start < 0) throw new Error("an index was removed while it was being copied");
    for (const [nth, shard] of progress.slice(start).entries()) {
      const [first, last] = rangeOf(shard);
      if (last < first) continue;
      let after = nth === 0 && from?.part === part ? from.after : null;
      for (;;) {
        const hits = await this.#page(shard, {
          query: numbered(first, last),
          size: PAGE_EVENTS,
          sort: [{ arrived: "asc" }, { id: "asc" }],
          ...(after && { search_after: after }),
        });
        if (hits.length === 0) break;
        after = hits.at(-1)!.sort!;
        const cursor: ReadCursor = { part, shard: keyOf(shard), after };
        yield { events: hits.map((hit) => ({ ...eventOf(hit), place })), cursor: cursor as unknown as ArchiveCursor };
        if (hits.length < PAGE_EVENTS) break;
      }
    }
  }

  async *#readLog(
    from: number,
  ): AsyncGenerator<{ readonly events: readonly ArrivedEvent[]; readonly cursor: ArchiveCursor }> {
    let block: ArrivalRow[] = [];
    let numbers = 0;
    const readBlock = async () => {
      const events = await this.#readRows(block);
      const cursor: ReadCursor = { part: "log", row: block.at(-1)!.row + 1 };
      block = [];
      numbers = 0;
      return { events, cursor: cursor as unknown as ArchiveCursor };
    };
    for await (const row of this.#rows(from)) {
      block.push(row);
      numbers += row.last - row.first + 1;
      if (numbers >= NUMBERS_AT_ONCE) yield await readBlock();
    }
    if (block.length > 0) yield await readBlock();
  }

  async #readRows(rows: readonly ArrivalRow[]): Promise<ArrivedEvent[]> {
    const searches = rows.map((on) => {
      const body = { query: numbered(on.first, on.last), size: on.last - on.first + 1, ...WHOLE_PAGE };
      return { on, body };
    });
    const answers = await this.#shards.searchMany(searches);
    const incarnations = await this.#shards.incarnations(new Set(rows.map(({ index }) => index)));
    return rows.flatMap((row, nth) => {
      // Retention has removed the day since.
      if (incarnations.get(row.index) !== row.incarnation) return [];
      const hits = answers[nth]?.hits.hits ?? [];
      return hits
        .map((hit) => ({ ...eventOf(hit), place: makePlace(row.atMs, row.row, numberOf(hit)) }))
        .sort((a, b) => (a.place < b.place ? -1 : 1));
    });
  }

  async #page(shard: ShardProgress, body: object): Promise<readonly EventHit[]> {
    const [answer] = await this.#shards.searchMany([{ on: shard, body: { ...body, ...WHOLE_PAGE } }]);
    if (!answer) throw new Error(`the index ${shard.index} was removed while it was being copied`);
    return answer.hits.hits;
  }

  async *readDay(day: number): AsyncIterable<readonly ArchivedEvent[]> {
    const index = dailyIndexName(this.#name, day);
    for await (const hits of pagesOfIndex<EventAnswer>(this.#client, index, PAGE_EVENTS, [{ id: "asc" }]))
      yield (hits as readonly EventHit[]).map(eventOf);
  }

  async write(events: readonly ArchivedEvent[]): Promise<ArchiveCursor> {
    const documents = events.map((event) => this.#document(event, false));
    const outcomes = await createDocuments(this.#client, documents, { kind: "events" });
    const refused = events.filter((_, nth) => outcomes[nth]!.status === "refused");
    if (refused.length > 0) await this.#writeBare(refused);
    return null;
  }

  /** As the service does: an event whose derived fields are refused is stored as its text alone. */
  async #writeBare(events: readonly ArchivedEvent[]): Promise<void> {
    const documents = events.map((event) => this.#document(event, true));
    const outcomes = await createDocuments(this.#client, documents, { kind: "events" });
    for (const [nth, outcome] of outcomes.entries()) {
      if (outcome.status !== "refused") continue;
      const { index } = documents[nth]!;
      throw new StoreUnavailable("failed", `OpenSearch refuses an event of ${index} (${outcome.detail})`);
    }
    this.#log.warn({ events: events.length }, "OpenSearch refuses the terms of events: they are stored without them");
  }

  #document({ id, text, token }: ArchivedEvent, isBare: boolean): NewDocument {
    const event = parseExact(text) as Event;
    const { arrivedMs } = readEventId(id)!;
    return {
      index: dailyIndexName(this.#name, Date.parse(event.timestamp)),
      id,
      text: documentText({ text, event, arrivedMs, token: token ?? undefined }, isBare),
    };
  }

  /** The last number of each shard: only this process writes. */
  async mark(): Promise<ArchiveCursor> {
    const progress = await this.#shards.progress();
    return Object.fromEntries(progress.map((shard) => [keyOf(shard), shard.newest]));
  }

  async finish({ marks, processed, fromMs }: ArrivalOrder): Promise<readonly string[]> {
    const progress = await this.#shards.progress();
    await this.#shards.refresh(new Set(progress.map(({ index }) => index)));
    const ends = marks.map(({ mark }) => new Map(Object.entries(mark as unknown as Record<string, number>)));
    const { rows, endOf } = await writtenOrder({
      shards: progress,
      ends: [...ends, new Map(progress.map((shard) => [keyOf(shard), shard.newest]))],
      processed,
      fromMs,
      now: this.#now(),
      read: (shard, first, last, since) => this.#numbers(shard, first, last, since),
    });
    await this.#arrivals.replace(
      rows,
      progress.map((shard) => ({ ...shard, next: shard.newest + 1 })),
    );
    return marks.map(({ atMs }, nth) => {
      const row = rows[endOf[nth]! - 1];
      return row ? makePlace(row.atMs, row.row, row.last) : makePlace(atMs, 0, 0);
    });
  }

  async #numbers(shard: ShardProgress, first: number, last: number, since: number): Promise<readonly ShardNumbers[]> {
    const hits = await this.#page(shard, {
      query: { bool: { filter: [numbered(first, last), { range: { arrived: { gte: since } } }] } },
      size: PAGE_EVENTS,
      sort: [{ _seq_no: "asc" }],
      _source: ["first_seq", "arrived"],
    });
    return hits.map((hit) => ({ number: numberOf(hit), arrivedMs: hit._source!.arrived }));
  }
}

const WHOLE_PAGE = { track_total_hits: false, seq_no_primary_term: true };

function eventOf({ _source }: EventHit): ArchivedEvent {
  const { text, token } = _source!;
  return { id: (parseExact(text) as Event).id, text, token: token ?? null };
}

export async function countDays(client: OpenSearchClient, name: string): Promise<readonly DayRows[]> {
  const found: DayRows[] = [];
  for (const { index, day } of await listDailyIndices(client, name)) {
    await client.send(KIND, { method: "POST", path: `/${index}/_refresh` });
    const { count } = await client.send<{ count: number }>(KIND, { method: "GET", path: `/${index}/_count` });
    if (count > 0) found.push({ day, rows: count });
  }
  return found;
}

/** All documents of an index that nobody changes, in the order of unique keys. */
export async function* pagesOfIndex<Answer extends { hits?: { hits: readonly { sort?: readonly unknown[] }[] } }>(
  client: OpenSearchClient,
  index: string,
  size: number,
  sort: readonly object[],
): AsyncGenerator<readonly unknown[]> {
  for (let after: readonly unknown[] | undefined; ;) {
    const answer = await client.send<Answer>(
      { ...KIND, isQuery: true },
      {
        method: "POST",
        path: `/${index}/_search`,
        query: { allow_partial_search_results: false },
        body: { size, sort, track_total_hits: false, ...(after && { search_after: after }) },
        ignore: [404],
      },
    );
    const hits = answer.hits?.hits ?? [];
    if (hits.length > 0) yield hits;
    if (hits.length < size) return;
    after = hits.at(-1)!.sort;
  }
}
