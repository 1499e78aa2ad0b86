import type { AlertSummary } from "../../model/alert.ts";
import { parseExact } from "../../lib/exact-json.ts";
import { AlertColumns, type AlertCells } from "../alert-index/alert-columns.ts";
import { AlertQueries } from "../alert-index/alert-query.ts";
import { AlertSearch } from "../alert-index/alert-search.ts";
import { spellings, type Term } from "../search/text-search.ts";
import { textOfPlain } from "./plain-text.ts";
import type { PostgresDatabase, PostgresQueries } from "./postgres-database.ts";

// The alert index of a node. Before each question it learns what changed in the database since the last one, so that a question
// sees every change that was committed before it was asked, by whichever node.

const ROWS_AT_ONCE = 2000;
/** Numbers of the feed that are read at once; those of alerts that changed again since have no row. */
const NUMBERS_AT_ONCE = 2000;

/** A row of the feed; without an id, the alert is gone. */
interface FedAlert {
  readonly feed: number;
  readonly seq: number;
  readonly id: string | null;
  readonly cells: string;
}

/** The alerts as of one number of the feed. */
export class IndexedAlerts {
  readonly columns = new AlertColumns();
  readonly search: AlertSearch;
  readonly queries: AlertQueries;
  /** The history of the server. Another one may give the same numbers to other changes. */
  readonly history: string;
  readonly #database: PostgresDatabase;
  readonly #slotsById = new Map<string, number>();
  readonly #slotsBySeq = new Map<number, number>();
  /** By slot. */
  readonly #ids: string[] = [];
  readonly #seqs: number[] = [];
  #feed: number;
  #lastId = "";

  constructor(database: PostgresDatabase, feed: number, history: string) {
    this.#database = database;
    this.#feed = feed;
    this.history = history;
    const readSummaries = (slots: readonly number[]) => this.#readSummaries(slots);
    const words = { find: (term: Term, size: number) => this.#findWord(term, size) };
    this.search = new AlertSearch(words, this.columns, readSummaries);
    const slotOf = (id: string) => this.slotOf(id);
    this.queries = new AlertQueries({ columns: this.columns, search: this.search, slotOf, readSummaries });
  }

  get feed(): number {
    return this.#feed;
  }

  slotOf(id: string): number | null {
    return this.#slotsById.get(id) ?? null;
  }

  slotOfSeq(seq: number): number | undefined {
    return this.#slotsBySeq.get(seq);
  }

  idOf(slot: number): string {
    return this.#ids[slot]!;
  }

  seqOf(slot: number): number {
    return this.#seqs[slot]!;
  }

  /** Adds alerts while it is loaded. */
  add(seq: number, id: string, cells: string): void {
    const slot = this.columns.vacantSlot();
    const rank = id > this.#lastId ? this.columns.size : this.#countBelow(id);
    this.columns.add(toCells(cells, slot), rank);
    if (id > this.#lastId) this.#lastId = id;
    this.#slotsById.set(id, slot);
    this.#slotsBySeq.set(seq, slot);
    this.#ids[slot] = id;
    this.#seqs[slot] = seq;
  }

  /** Rows are in the order of the feed, and are all that it has up to this number. */
  apply(rows: readonly FedAlert[], upTo: number): void {
    const gone: number[] = [];
    for (const { seq, id, cells } of rows) {
      const slot = this.#slotsBySeq.get(seq);
      if (id === null) {
        if (slot !== undefined) gone.push(this.#forget(seq, slot));
      } else if (slot === undefined) {
        // Slots are free once the columns have removed them.
        this.#remove(gone.splice(0));
        this.add(seq, textOfPlain(id), cells);
      } else this.columns.change(toCells(cells, slot));
    }
    this.#remove(gone);
    this.#feed = upTo;
  }

  #forget(seq: number, slot: number): number {
    this.#slotsById.delete(this.#ids[slot]!);
    this.#slotsBySeq.delete(seq);
    return slot;
  }

  #remove(slots: readonly number[]): void {
    if (slots.length === 0) return;
    this.columns.remove(slots);
    this.search.dropSlots(slots);
    this.queries.dropSlots(slots);
  }

  /** Ids rise, unless the clock of a node is behind. */
  #countBelow(id: string): number {
    let count = 0;
    for (const other of this.#slotsById.keys()) if (other < id) count++;
    return count;
  }

  async #readSummaries(slots: readonly number[]): Promise<(AlertSummary | undefined)[]> {
    const seqs = slots.map((slot) => this.#seqs[slot]!);
    const rows = await this.#database.query<{ seq: number; document: string }>(
      "SELECT seq, document FROM alert_documents WHERE seq = ANY($1)",
      [seqs],
    );
    const documents = new Map(rows.map(({ seq, document }) => [seq, document]));
    return seqs.map((seq) => {
      const document = documents.get(seq);
      return document === undefined ? undefined : (parseExact(document) as AlertSummary);
    });
  }

  async #findWord(term: Term, size: number): Promise<Uint8Array> {
    // One text instead of a hundred thousand rows.
    const [row] = await this.#database.query<{ seqs: string | null }>(
      "SELECT string_agg(seq::text, ',') AS seqs FROM alert_words WHERE words @@ $1::tsquery",
      [spellings(term).map(lexemeOf).join(" | ")],
    );
    const found = new Uint8Array(size);
    for (const seq of row!.seqs?.split(",") ?? []) {
      const slot = this.#slotsBySeq.get(Number(seq));
      if (slot !== undefined && slot < size) found[slot] = 1;
    }
    return found;
  }
}

function lexemeOf({ word, isPrefix }: Term): string {
  const quoted = word.toWellFormed().replaceAll("\\", "\\\\").replaceAll("'", "''");
  return `'${quoted}'${isPrefix ? ":*" : ""}`;
}

function toCells(text: string, slot: number): AlertCells {
  return { ...(JSON.parse(text) as Omit<AlertCells, "slot">), slot };
}

/** The number of the feed, and that up to which removals are forgotten. */
interface FeedState {
  readonly last_feed: number;
  readonly forgotten_feed: number;
  readonly history: string;
}

/** A server that was promoted, or restored, continues under another timeline. */
const HISTORY = "left(pg_walfile_name(pg_current_wal_lsn()), 8)";

/** Bounds on both sides: with one alone, a planner without statistics would rather sort all alerts. */
const FED = `feed > $1 AND feed <= $1 + ${NUMBERS_AT_ONCE}`;
const CATCH_UP = `SELECT last_feed, forgotten_feed, ${HISTORY} AS history, fed.*
  FROM (SELECT last_feed, forgotten_feed FROM alert_counters LIMIT 1) AS counters LEFT JOIN LATERAL (
    SELECT feed, seq, id, cells FROM alerts WHERE ${FED}
    UNION ALL SELECT feed, seq, NULL, '' FROM alert_removals WHERE ${FED}) AS fed ON true
  ORDER BY fed.feed`;

export class PostgresAlertIndex {
  readonly #database: PostgresDatabase;
  readonly #onReload: () => void;
  #indexed: IndexedAlerts;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(database: PostgresDatabase, indexed: IndexedAlerts, onReload: () => void) {
    this.#database = database;
    this.#indexed = indexed;
    this.#onReload = onReload;
  }

  /** The index with every change that is committed now. Use it before the next await, or check the feed's number. */
  async current(): Promise<IndexedAlerts> {
    // One that runs may have begun before a change that the caller knows of; the next serves all who wait.
    if (this.#running) {
      this.#next ??= this.#running.then(
        () => this.#begin(),
        () => this.#begin(),
      );
      await this.#next;
    } else await this.#begin();
    return this.#indexed;
  }

  #begin(): Promise<void> {
    this.#next = undefined;
    const running = this.#catchUp().finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    this.#running = running;
    return running;
  }

  async #catchUp(): Promise<void> {
    for (;;) {
      const indexed = this.#indexed;
      const rows = await this.#database.query<FeedState & { [K in keyof FedAlert]: FedAlert[K] | null }>(CATCH_UP, [
        indexed.feed,
      ]);
      const { last_feed: last, forgotten_feed: forgotten, history } = rows[0]!;
      if (history !== indexed.history || last < indexed.feed || forgotten > indexed.feed) {
        this.#onReload();
        this.#indexed = await loadAlertIndex(this.#database);
        return;
      }
      const upTo = Math.min(last, indexed.feed + NUMBERS_AT_ONCE);
      indexed.apply(rows[0]!.feed === null ? [] : (rows as FedAlert[]), upTo);
      if (upTo === last) return;
    }
  }
}

/** Reads all alerts as of one moment, in pages. */
export function loadAlertIndex(database: PostgresDatabase): Promise<IndexedAlerts> {
  return database.transact(
    async (transaction) => {
      const [state] = await transaction.query<FeedState>(
        `SELECT last_feed, forgotten_feed, ${HISTORY} AS history FROM alert_counters`,
      );
      const indexed = new IndexedAlerts(database, state!.last_feed, state!.history);
      for (let last = ""; ;) {
        const rows = await readPage(transaction, last);
        for (const { seq, id, cells } of rows) indexed.add(seq, textOfPlain(id), cells);
        if (rows.length < ROWS_AT_ONCE) return indexed;
        last = rows.at(-1)!.id;
      }
    },
    { isolation: "REPEATABLE READ" },
  );
}

function readPage(transaction: PostgresQueries, after: string) {
  return transaction.query<{ seq: number; id: string; cells: string }>(
    "SELECT seq, id, cells FROM alerts WHERE id > $1 ORDER BY id LIMIT $2",
    [after, ROWS_AT_ONCE],
  );
}
