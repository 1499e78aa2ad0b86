import { hash } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { parseExact } from "../../../lib/exact-json.ts";
import { JsonText } from "../../../lib/thread.ts";
import type { Alert, AlertSummary, TimelineEntry } from "../../../model/alert.ts";
import type { Resolution } from "../../../model/alert-state.ts";
import type { Position } from "../../../model/page.ts";
import type { TimeRange } from "../../../model/query.ts";
import type {
  AlertChanges,
  AlertFilter,
  AlertPage,
  AlertSort,
  AlertTotals,
  ChangedAlert,
  NewTimelineEntry,
  UnresolvedQuery,
} from "../../ports/alert-store.ts";
import { QueryRefused } from "../../ports/store-errors.ts";
import { textWords } from "../../search/indexed-words.ts";
import type { TimeSlices } from "../../queries/time-slices.ts";
import { AlertColumns, type AlertCells, type Selection } from "./alert-columns.ts";
import { alertTexts } from "../../search/text-matcher.ts";
import { AlertSearch } from "./alert-search.ts";
import { Statements } from "./prepared-statements.ts";
import { TIMELINE_SCHEMA, Timelines } from "./timeline-table.ts";
import { WORD_INDEX_SCHEMA, WordIndex } from "./word-index.ts";

// Alerts in their file: what is asked by a column stands in narrow rows, which are read whole at the start; the rest of an
// alert is a document beside them.

export const ALERT_SCHEMA = `
CREATE TABLE IF NOT EXISTS alerts(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, change INTEGER NOT NULL,
  rule_id TEXT NOT NULL, fold_key TEXT NOT NULL, rule_name TEXT NOT NULL, source TEXT NOT NULL, severity TEXT NOT NULL, status TEXT NOT NULL,
  assignee TEXT, resolution TEXT, created_at INTEGER NOT NULL, first_event_at INTEGER NOT NULL,
  last_event_at INTEGER NOT NULL, event_count INTEGER NOT NULL,
  first_acknowledged_at INTEGER, resolved_at INTEGER, text_hash TEXT NOT NULL) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS alerts_change ON alerts(change);
CREATE INDEX IF NOT EXISTS alerts_unresolved ON alerts(rule_id, fold_key, last_event_at, seq) WHERE status <> 'resolved';
CREATE TABLE IF NOT EXISTS documents(seq INTEGER PRIMARY KEY, document TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS related(seq INTEGER PRIMARY KEY, events TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS last_change(only INTEGER PRIMARY KEY CHECK (only = 0), change INTEGER NOT NULL) STRICT;
${TIMELINE_SCHEMA}${WORD_INDEX_SCHEMA}`;

/** What a turn of removing takes on: the thread has others to answer. */
const REMOVED_AT_ONCE_MAX = 200;
const ROWS_REMOVED_AT_ONCE_MAX = 1000;

const CELLS = `seq - 1 AS slot, status, severity, rule_name AS ruleName, source, assignee, resolution, created_at AS createdAt,
  last_event_at AS lastEventAt, event_count AS eventCount, first_acknowledged_at AS firstAcknowledgedAt, resolved_at AS resolvedAt`;

interface Written {
  readonly cells: AlertCells;
  readonly isNew: boolean;
  readonly id: string;
}

interface Removal {
  readonly removed: number;
  readonly next: number | null;
  /** To be called once the transaction is committed. */
  readonly done: () => void;
}

export class AlertTables {
  readonly #sql: Statements;
  readonly #columns = new AlertColumns();
  readonly #words: WordIndex;
  readonly #search: AlertSearch;
  readonly #timelines: Timelines;
  #lastId = "";
  #lastChange = 0;

  constructor(db: DatabaseSync) {
    this.#sql = new Statements(db);
    this.#words = new WordIndex(this.#sql);
    this.#search = new AlertSearch(this.#words, this.#columns, (slot) => this.#summaryOf(slot));
    this.#timelines = new Timelines(this.#sql);
    this.#load();
  }

  #load(): void {
    const known = this.#sql
      .read(
        `SELECT coalesce(max(seq), 0) AS slotsEnd, coalesce(max(id), '') AS lastId,
           max(coalesce(max(change), 0), coalesce((SELECT change FROM last_change), 0)) AS lastChange FROM alerts`,
      )
      .get() as { slotsEnd: number; lastId: string; lastChange: number };
    const rows = this.#sql.read(`SELECT ${CELLS} FROM alerts ORDER BY id`).iterate();
    this.#columns.load(known.slotsEnd, rows as unknown as Iterable<AlertCells>);
    this.#lastId = known.lastId;
    this.#lastChange = known.lastChange;
  }

  /** Those that were resolved before this time, and all. */
  due(beforeMs: number): { rows: number; total: number } {
    const found = this.#sql
      .read(
        "SELECT count(*) FILTER (WHERE status = 'resolved' AND resolved_at < ?) AS rows, count(*) AS total FROM alerts",
      )
      .get(beforeMs);
    return found as { rows: number; total: number };
  }

  lastChange(): number {
    return this.#lastChange;
  }

  lastId(): string | null {
    return this.#lastId === "" ? null : this.#lastId;
  }

  get(id: string): JsonText<Alert> | undefined {
    const slot = this.#slotOf(id);
    return slot === null ? undefined : new JsonText(this.#wholeOf(slot));
  }

  getMany(ids: readonly string[]): JsonText<(AlertSummary | null)[]> {
    const texts = ids.map((id) => {
      const slot = this.#slotOf(id);
      return slot === null ? "null" : this.#documentOf(slot);
    });
    return new JsonText(listText(texts));
  }

  withTimeline(id: string): JsonText<{ alert: Alert; timeline: TimelineEntry[] }> | undefined {
    const slot = this.#slotOf(id);
    if (slot === null) return undefined;
    return new JsonText(`{"alert":${this.#wholeOf(slot)},"timeline":${listText(this.#timelines.of(slot + 1))}}`);
  }

  unresolved(queries: readonly UnresolvedQuery[]): JsonText<(Alert | null)[]> {
    const select = this.#sql.read(
      `SELECT seq FROM alerts WHERE rule_id = ? AND fold_key = ? AND status <> 'resolved'
       AND last_event_at > ? AND first_event_at < ? ORDER BY last_event_at DESC, seq DESC LIMIT 1`,
    );
    const texts = queries.map(({ ruleId, dedupKey, endsAfterMs, beginsBeforeMs }) => {
      const row = select.get(ruleId, dedupKey, endsAfterMs, beginsBeforeMs) as { seq: number } | undefined;
      return row ? this.#wholeOf(row.seq - 1) : "null";
    });
    return new JsonText(listText(texts));
  }

  countUnresolved(ruleIds: readonly string[], besides: string, countMax: number): number[] {
    const select = this.#sql.read(
      `SELECT count(*) AS n FROM
       (SELECT 1 FROM alerts WHERE rule_id = ?1 AND substr(fold_key, 1, length(?2)) <> ?2 AND status <> 'resolved' LIMIT ?3)`,
    );
    return ruleIds.map((ruleId) => (select.get(ruleId, besides, countMax) as { n: number }).n);
  }

  changedSince(change: number, limit: number): JsonText<{ change: number; alert: AlertSummary }[]> {
    const rows = this.#sql
      .read("SELECT change, document FROM alerts JOIN documents USING (seq) WHERE change > ? ORDER BY change LIMIT ?")
      .all(change, limit) as { change: number; document: string }[];
    return new JsonText(listText(rows.map((row) => `{"change":${row.change},"alert":${row.document}}`)));
  }

  totals(range: TimeRange): AlertTotals {
    return this.#columns.totals(range);
  }

  resolutions(ruleName: string): Record<Resolution, number> {
    return this.#columns.resolutions(ruleName);
  }

  list(filter: AlertFilter, position: Position, sort: AlertSort, descending: boolean): JsonText<AlertPage> {
    return this.#page({ filter, sort, descending, found: undefined }, position);
  }

  /** The same for a filter with words, which may take long. */
  search(
    words: string,
    filter: AlertFilter,
    position: Position,
    order: Pick<Selection, "sort" | "descending">,
    parts: TimeSlices,
  ): Promise<JsonText<AlertPage>> {
    return this.#search.find(words, filter, parts, (found) => this.#page({ filter, found, ...order }, position));
  }

  #page(
    selection: Pick<Selection, "filter" | "found" | "sort" | "descending">,
    position: Position,
  ): JsonText<AlertPage> {
    const isCursor = position.mode === "cursor";
    const after = isCursor && position.after !== undefined ? this.#slotOf(position.after) : undefined;
    if (after === null) throw new QueryRefused("after", "is not the id of an alert");
    const { total, slots } = this.#columns.select({
      ...selection,
      after,
      offset: isCursor ? 0 : (position.page - 1) * position.size,
      // One more than asked for tells whether the list goes on.
      limit: isCursor ? position.size + 1 : position.size,
    });
    const shown = slots.slice(0, position.size);
    const items = listText(shown.map((slot) => this.#documentOf(slot)));
    const goesOn = isCursor && slots.length > position.size;
    const nextCursor = JSON.stringify(goesOn ? this.#idOf(shown.at(-1)!) : null);
    return new JsonText(`{"total":${total},"items":${items},"nextCursor":${nextCursor}}`);
  }

  #slotOf(id: string): number | null {
    const row = this.#sql.read("SELECT seq FROM alerts WHERE id = ?").get(id) as { seq: number } | undefined;
    return row ? row.seq - 1 : null;
  }

  #idOf(slot: number): string {
    return (this.#sql.read("SELECT id FROM alerts WHERE seq = ?").get(slot + 1) as { id: string }).id;
  }

  #documentOf(slot: number): string {
    const row = this.#sql.read("SELECT document FROM documents WHERE seq = ?").get(slot + 1);
    return (row as { document: string }).document;
  }

  #summaryOf(slot: number): AlertSummary {
    return parseExact(this.#documentOf(slot)) as AlertSummary;
  }

  /** The document with its events in it. */
  #wholeOf(slot: number): string {
    const row = this.#sql.read("SELECT events FROM related WHERE seq = ?").get(slot + 1) as { events: string };
    return `${this.#documentOf(slot).slice(0, -1)},"relatedEvents":${row.events}}`;
  }

  /** Within a transaction. Ids of alerts that have another version than they should; with any, it must be undone. */
  write({ alerts, timeline }: AlertChanges): { conflicts: string[]; done: () => void } {
    // What a transaction that was undone has left behind.
    this.#words.forget();
    const conflicts: string[] = [];
    const written: Written[] = [];
    let change = this.#lastChange;
    let added = 0;
    for (const alert of alerts) {
      const isNew = alert.version === 1;
      const known = this.#sql.read("SELECT seq, version, text_hash FROM alerts WHERE id = ?").get(alert.id) as
        | { seq: number; version: number; text_hash: string }
        | undefined;
      if ((known?.version ?? 0) !== alert.version - 1) {
        conflicts.push(alert.id);
        continue;
      }
      const seq = known?.seq ?? this.#columns.vacantSlot(added++) + 1;
      this.#writeAlert(alert, seq, ++change, known?.text_hash);
      written.push({ cells: cellsOf(alert, seq - 1), isNew, id: alert.id });
    }
    if (conflicts.length === 0) {
      this.#words.write();
      this.addEntries(timeline, new Map(written.map(({ cells, id }) => [id, cells.slot])));
    }
    return {
      conflicts,
      done: () => {
        this.#lastChange = change;
        for (const [i, { cells, isNew, id }] of written.entries()) {
          if (isNew) this.#rememberNew(cells, id, written, i);
          else this.#columns.change(cells);
        }
      },
    };
  }

  /**
   * Within a transaction. A few of the alerts, from this slot on, that were resolved before this time go with all that belongs to
   * them. `letGo` removes what others keep of one, or says that they need it. The next slot to look at is null after the last.
   */
  removeResolved(ms: number, fromSlot: number, letGo: (alertId: string) => boolean): Removal {
    this.#words.forget();
    const slots = this.#columns.resolvedBefore(ms, fromSlot, REMOVED_AT_ONCE_MAX);
    const gone: number[] = [];
    let looked = 0;
    for (let rows = 0; looked < slots.length && rows < ROWS_REMOVED_AT_ONCE_MAX; looked++) {
      const slot = slots[looked]!;
      const alert = this.#summaryOf(slot);
      if (!letGo(alert.id)) continue;
      const words = textWords(alertTexts(alert));
      this.#words.remove(slot, words);
      rows += words.size + this.#timelines.remove(slot + 1);
      for (const table of ["alerts", "documents", "related"]) {
        this.#sql.run(`DELETE FROM ${table} WHERE seq = ?`, slot + 1);
      }
      gone.push(slot);
    }
    this.#words.write();
    // What the last change was must be known though its alert is gone: numbers that streams have told do not come again.
    if (gone.length > 0) this.#sql.run("INSERT OR REPLACE INTO last_change VALUES (0, ?)", this.#lastChange);
    const next = slots[looked] ?? (looked === REMOVED_AT_ONCE_MAX ? slots.at(-1)! + 1 : null);
    const done = () => {
      this.#columns.remove(gone);
      this.#search.forget(gone);
    };
    return { removed: gone.length, next, done };
  }

  /** Within a transaction. `slots` are those that are known. */
  addEntries(timeline: readonly NewTimelineEntry[], slots: ReadonlyMap<string, number> = new Map()): void {
    for (const { alertId, entry } of timeline) {
      const slot = slots.get(alertId) ?? this.#slotOf(alertId);
      if (slot === null) throw new Error(`a timeline without its alert ${alertId}`);
      this.#timelines.add(slot + 1, entry);
    }
  }

  #writeAlert(
    { relatedEvents, ...alert }: ChangedAlert,
    seq: number,
    change: number,
    knownHash: string | undefined,
  ): void {
    const texts = alertTexts(alert);
    const textHash = hash("sha1", texts.join("\n"), "base64");
    this.#sql.run(
      `INSERT INTO alerts(seq, id, version, change, rule_id, fold_key, rule_name, source, severity, status, assignee, resolution,
         created_at, first_event_at, last_event_at, event_count, first_acknowledged_at, resolved_at, text_hash)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT(seq) DO UPDATE SET version = excluded.version, change = excluded.change, severity = excluded.severity,
         status = excluded.status, assignee = excluded.assignee, resolution = excluded.resolution,
         first_event_at = excluded.first_event_at, last_event_at = excluded.last_event_at, event_count = excluded.event_count,
         first_acknowledged_at = excluded.first_acknowledged_at, resolved_at = excluded.resolved_at, text_hash = excluded.text_hash`,
      seq,
      alert.id,
      alert.version,
      change,
      alert.rule.id,
      alert.foldKey,
      alert.rule.name,
      alert.source,
      alert.severity,
      alert.status,
      alert.assignee,
      alert.resolution,
      alert.createdAt,
      alert.firstEventAt,
      alert.lastEventAt,
      alert.eventCount,
      alert.firstAcknowledgedAt,
      alert.resolvedAt,
      textHash,
    );
    if (textHash !== knownHash) this.#indexTexts(seq - 1, texts, knownHash !== undefined);
    this.#sql.run("INSERT OR REPLACE INTO documents(seq, document) VALUES (?, ?)", seq, JSON.stringify(alert));
    if (relatedEvents === undefined && knownHash !== undefined) return;
    const events = JSON.stringify(relatedEvents ?? []);
    this.#sql.run("INSERT OR REPLACE INTO related(seq, events) VALUES (?, ?)", seq, events);
  }

  #indexTexts(slot: number, texts: readonly string[], isChange: boolean): void {
    const words = textWords(texts);
    const before = isChange ? textWords(alertTexts(this.#summaryOf(slot))) : new Set<string>();
    this.#words.remove(slot, before.difference(words));
    this.#words.add(slot, words.difference(before));
  }

  /** It was stored with others: those after it are not remembered yet. */
  #rememberNew(cells: AlertCells, id: string, written: readonly Written[], place: number): void {
    let rank = this.#columns.size;
    if (id > this.#lastId) this.#lastId = id;
    else {
      const { before } = this.#sql.read("SELECT count(*) AS before FROM alerts WHERE id < ?").get(id) as {
        before: number;
      };
      rank = before - written.slice(place + 1).filter((other) => other.isNew && other.id < id).length;
    }
    this.#columns.add(cells, rank);
  }
}

function listText(items: readonly string[]): string {
  return `[${items.join(",")}]`;
}

function cellsOf(alert: AlertSummary, slot: number): AlertCells {
  return { ...alert, slot, ruleName: alert.rule.name };
}
