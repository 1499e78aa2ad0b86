import type { Counter } from "prom-client";
import { parseExact } from "../../lib/exact-json.ts";
import type { AlertSummary, TimelineEntry } from "../../model/alert.ts";
import type { Position } from "../../model/page.ts";
import type { Selection } from "../alert-index/alert-columns.ts";
import { alertWork } from "../alert-index/alert-work.ts";
import type {
  AlertFilter,
  AlertIds,
  AlertPage,
  AlertQuery,
  AlertSearchResult,
  AlertSort,
  AlertWork,
  WorkQuery,
} from "../ports/alert-store.ts";
import type { QueryContext } from "../ports/query-context.ts";
import { QueryRefused, StoreUnavailable } from "../ports/store-errors.ts";
import { QueryLanes, type Lane } from "../queries/query-lanes.ts";
import { TimeSlices } from "../queries/time-slices.ts";
import { alertsWithEvents } from "./postgres-alert-events.ts";
import type { IndexedAlerts, PostgresAlertIndex } from "./postgres-alert-index.ts";
import type { PostgresDatabase } from "./postgres-database.ts";

// Lists, searches and reports: the index finds the alerts, and the database has their documents. If one of them changed or went
// between the two, the question is asked again, so that an answer is of one moment.

/** A search that runs longer is stopped. */
const SEARCH_MS_MAX = 30_000;
/** How long a search may keep the thread from other requests. */
const SLICE_MS = 10;
/** How often a question is asked before an answer may be of two moments. */
const ATTEMPTS_MAX = 4;

/** What the index answered, and what to read for it. */
interface Found<Rest> {
  readonly rest: Rest;
  readonly seqs: readonly number[];
  readonly feed: number;
}

interface FoundPage {
  readonly total: number;
  readonly nextCursor: string | null;
}

export interface AlertQuestionsOptions {
  readonly database: PostgresDatabase;
  readonly index: PostgresAlertIndex;
  /** Counts questions that were asked again. */
  readonly repeated: Counter;
}

export class AlertQuestions {
  readonly #database: PostgresDatabase;
  readonly #index: PostgresAlertIndex;
  readonly #repeated: Counter;
  readonly #lanes = new QueryLanes();
  readonly #closing = new AbortController();

  constructor({ database, index, repeated }: AlertQuestionsOptions) {
    this.#database = database;
    this.#index = index;
    this.#repeated = repeated;
  }

  /** Searches that were refused because of too many others. */
  get refused(): number {
    return this.#lanes.refused;
  }

  /** Stops searches. */
  close(): void {
    this.#closing.abort(new StoreUnavailable("closed", "the store is being closed"));
  }

  async list(
    filter: AlertFilter,
    position: Position,
    order: { readonly sort: AlertSort; readonly descending: boolean },
    context: QueryContext,
  ): Promise<AlertPage> {
    const select = (indexed: IndexedAlerts, found: Uint8Array | undefined) =>
      pageOf(indexed, { filter, found, ...order }, position);
    const { search } = filter;
    if (search === undefined) {
      return this.#answer(async (indexed) => select(indexed, await this.#withEvents(indexed, filter)));
    }
    return this.#inLane(context, "heavy", (slices) =>
      this.#answer(async (indexed) => {
        const withEvents = await this.#withEvents(indexed, filter);
        return indexed.search.find(search, filter, slices, (found) => select(indexed, both(found, withEvents)));
      }),
    );
  }

  async ids(filter: AlertFilter, limit: number, context: QueryContext): Promise<AlertIds> {
    const order = { sort: "created_at", descending: true, after: undefined, offset: 0 } as const;
    const select = (indexed: IndexedAlerts, found: Uint8Array | undefined) => {
      const { total, slots } = indexed.columns.select({ filter, found, ...order, limit });
      return { total, ids: slots.map((slot) => indexed.idOf(slot)) };
    };
    const { search } = filter;
    const indexed = await this.#index.current();
    const withEvents = await this.#withEvents(indexed, filter);
    if (search === undefined) return select(indexed, withEvents);
    return this.#inLane(context, "heavy", (slices) =>
      indexed.search.find(search, filter, slices, (found) => select(indexed, both(found, withEvents))),
    );
  }

  async search(query: AlertQuery, context: QueryContext): Promise<AlertSearchResult> {
    const lane = (await this.#index.current()).queries.isHeavy(query) ? "heavy" : "quick";
    return this.#inLane(context, lane, (slices) =>
      this.#answer(
        (indexed) =>
          indexed.queries.find(query, slices, ({ total, slots, hasNext, aggregations }) => ({
            rest: { total, aggregations, nextCursor: hasNext ? indexed.idOf(slots.at(-1)!) : null },
            seqs: slots.map((slot) => indexed.seqOf(slot)),
            feed: indexed.feed,
          })),
        // A search over documents takes long, and sees changes that come meanwhile anyway.
        lane === "heavy" ? 1 : ATTEMPTS_MAX,
      ),
    );
  }

  async work(query: WorkQuery): Promise<AlertWork> {
    for (let attempt = 1; ; attempt++) {
      const indexed = await this.#index.current();
      const { total, slots, ...figures } = alertWork(indexed.columns, query);
      const { feed } = indexed;
      const handled = slots.map(({ slot, kind, at }) => ({ seq: indexed.seqOf(slot), kind, at }));
      const rows = await this.#database.query<{
        seq: number;
        feed: number;
        document: string;
        done: string | null;
        comment: string | null;
      }>(
        `SELECT seq, feed, document,
           (SELECT entry FROM alert_timeline AS t WHERE t.alert = seq AND t.kind = given.kind AND t.at = given.at
            ORDER BY number DESC LIMIT 1) AS done,
           (SELECT entry FROM alert_timeline AS t WHERE t.alert = seq AND t.kind = 'commented'
            ORDER BY number DESC LIMIT 1) AS comment
         FROM json_to_recordset($1::json) AS given(seq int8, kind text, at int8)
         JOIN alerts USING (seq) JOIN alert_documents USING (seq)`,
        [JSON.stringify(handled)],
      );
      if (!this.#isOfOneMoment(rows, handled.length, feed) && attempt < ATTEMPTS_MAX) continue;
      const bySeq = new Map(rows.map((row) => [row.seq, row]));
      const items = handled.flatMap(({ seq, kind, at }) => {
        const row = bySeq.get(seq);
        if (!row) return [];
        const comment = row.comment === null ? null : (parseExact(row.comment) as TimelineEntry);
        return {
          alert: parseExact(row.document) as AlertSummary,
          kind,
          at,
          actor: row.done === null ? null : (parseExact(row.done) as TimelineEntry).actor,
          lastComment: comment?.kind === "commented" ? comment.comment : null,
        };
      });
      return { ...figures, handled: { total, items } };
    }
  }

  /** Asks the index, and reads the documents of what it found. */
  async #answer<Rest extends object>(
    ask: (indexed: IndexedAlerts) => Promise<Found<Rest>>,
    attemptsMax = ATTEMPTS_MAX,
  ): Promise<Rest & { items: AlertSummary[] }> {
    for (let attempt = 1; ; attempt++) {
      const { rest, seqs, feed } = await ask(await this.#index.current());
      if (seqs.length === 0) return { ...rest, items: [] };
      const rows = await this.#database.query<{ seq: number; feed: number; document: string }>(
        "SELECT seq, feed, document FROM alerts JOIN alert_documents USING (seq) WHERE seq = ANY($1)",
        [seqs],
      );
      if (!this.#isOfOneMoment(rows, seqs.length, feed) && attempt < attemptsMax) continue;
      const documents = new Map(rows.map(({ seq, document }) => [seq, document]));
      const items = seqs.flatMap((seq) => {
        const document = documents.get(seq);
        return document === undefined ? [] : (parseExact(document) as AlertSummary);
      });
      return { ...rest, items };
    }
  }

  #isOfOneMoment(rows: readonly { readonly feed: number }[], expected: number, feed: number): boolean {
    const isWhole = rows.length === expected && rows.every((row) => row.feed <= feed);
    if (!isWhole) this.#repeated.inc();
    return isWhole;
  }

  /** 1 for each slot whose alert has one of the filter's events; undefined: all. */
  async #withEvents(indexed: IndexedAlerts, { eventId }: AlertFilter): Promise<Uint8Array | undefined> {
    if (eventId === undefined) return undefined;
    const seqs = await alertsWithEvents(this.#database, eventId);
    const slots = new Uint8Array(indexed.columns.slotsEnd);
    for (const seq of seqs) {
      const slot = indexed.slotOfSeq(seq);
      if (slot !== undefined) slots[slot] = 1;
    }
    return slots;
  }

  /** Searches for words take long if many alerts contain them: only some run at a time, and each in slices. */
  async #inLane<Value>(
    { client, signal }: QueryContext,
    lane: Lane,
    work: (slices: TimeSlices) => Promise<Value>,
  ): Promise<Value> {
    const stop = new AbortController();
    const all = AbortSignal.any([stop.signal, this.#closing.signal, ...(signal ? [signal] : [])]);
    const refusal = new QueryRefused("search", `took longer than ${SEARCH_MS_MAX / 1000} s: narrow the other filters`);
    return this.#lanes.take({ name: client, lane }, all, async () => {
      const timer = setTimeout(() => stop.abort(refusal), SEARCH_MS_MAX);
      try {
        return await work(new TimeSlices(all, SLICE_MS));
      } finally {
        clearTimeout(timer);
      }
    });
  }
}

function pageOf(
  indexed: IndexedAlerts,
  selection: Pick<Selection, "filter" | "found" | "sort" | "descending">,
  position: Position,
): Found<FoundPage> {
  const isCursor = position.mode === "cursor";
  const after = isCursor && position.after !== undefined ? indexed.slotOf(position.after) : undefined;
  if (after === null) throw new QueryRefused("after", "is not the id of an alert");
  const { total, slots } = indexed.columns.select({
    ...selection,
    after,
    offset: isCursor ? 0 : (position.page - 1) * position.size,
    // One more than requested shows whether there is a next page.
    limit: isCursor ? position.size + 1 : position.size,
  });
  const shown = slots.slice(0, position.size);
  const hasNext = isCursor && slots.length > position.size;
  return {
    rest: { total, nextCursor: hasNext ? indexed.idOf(shown.at(-1)!) : null },
    seqs: shown.map((slot) => indexed.seqOf(slot)),
    feed: indexed.feed,
  };
}

/** `found` without the slots that are not in the other. */
function both(found: Uint8Array, other: Uint8Array | undefined): Uint8Array {
  return other ? found.map((mark, slot) => mark & (other[slot] ?? 0)) : found;
}
