import { hash } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { parseExact } from "../../../lib/exact-json.ts";
import { JsonText } from "../../../lib/thread.ts";
import type { Alert, AlertSummary, TimelineEntry } from "../../../model/alert.ts";
import type { Resolution } from "../../../model/alert-state.ts";
import type { AlertEntities } from "../../../model/alert-entity.ts";
import type { EventMark } from "../../../model/finding.ts";
import type { Position } from "../../../model/page.ts";
import type { TimeRange } from "../../../model/query.ts";
import type { RuleDefinition } from "../../../model/rule-definition.ts";
import type {
  AlertChanges,
  AlertEventsPage,
  AlertEventsQuery,
  AlertFilter,
  AlertIds,
  AlertPage,
  AlertQuery,
  AlertSearchResult,
  AlertSort,
  AlertTotals,
  AlertTrends,
  ChangedAlert,
  NewTimelineEntry,
  TrendQuery,
  UnresolvedQuery,
  OutcomesSince,
  RuleOutcomes,
  WorkQuery,
  AlertWork,
} from "../../ports/alert-store.ts";
import { QueryRefused } from "../../ports/store-errors.ts";
import { textWords } from "../../search/indexed-words.ts";
import type { TimeSlices } from "../../queries/time-slices.ts";
import { AlertColumns, type AlertCells, type Selection } from "./alert-columns.ts";
import { RelatedEvents } from "./alert-row-fields.ts";
import { CELLS, cellsIn, cellsOf, entitiesText, writeRow, type CellRow } from "./alert-row.ts";
import { alertTexts } from "../../search/text-matcher.ts";
import { AlertQueries } from "../alert-query/alert-query.ts";
import { AlertSearch } from "./alert-search.ts";
import { alertTrends } from "./alert-trends.ts";
import { alertWork } from "./alert-work.ts";
import { Definitions } from "./definition-table.ts";
import { OlderEvents } from "./older-events.ts";
import { Statements } from "./prepared-statements.ts";
import { TIMELINE_SCHEMA, Timelines } from "./timeline-table.ts";
import { WORD_INDEX_SCHEMA, WordIndex } from "./word-index.ts";

// The tables of alerts. Fields that lists filter and sort by are in narrow rows, which are all read at the start; the alert
// itself is a JSON document in another table.

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

export const TAGS_SCHEMA = "ALTER TABLE alerts ADD COLUMN tags TEXT NOT NULL DEFAULT '[]'";

/** Limits of one batch of a removal, so that other calls do not wait long. */
const REMOVAL_ALERTS_MAX = 200;
const REMOVAL_ROWS_MAX = 1000;

interface WrittenAlert {
  readonly cells: AlertCells;
  readonly isNew: boolean;
  readonly id: string;
}

/** Only the alerts are text: in JSON, a large double could not be told from an integer. */
export interface AlertSearchText extends Omit<AlertSearchResult, "items"> {
  readonly items: string;
}

interface Removal {
  readonly removed: number;
  readonly next: number | null;
  /** Updates the columns; call it once the transaction is committed. */
  readonly done: () => void;
}

export class AlertTables {
  readonly #sql: Statements;
  readonly #columns = new AlertColumns();
  readonly #words: WordIndex;
  readonly #search: AlertSearch;
  readonly #queries: AlertQueries;
  readonly #timelines: Timelines;
  readonly #olderEvents: OlderEvents;
  readonly #definitions: Definitions;
  readonly #events: RelatedEvents;
  #lastId = "";
  #lastChange = 0;

  constructor(db: DatabaseSync) {
    this.#sql = new Statements(db);
    this.#words = new WordIndex(this.#sql);
    this.#search = new AlertSearch(this.#words, this.#columns, (slot) => this.#summaryOf(slot));
    this.#queries = new AlertQueries({
      columns: this.#columns,
      search: this.#search,
      slotOf: (id) => this.#slotOf(id),
      summaryOf: (slot) => this.#summaryOf(slot),
    });
    this.#timelines = new Timelines(this.#sql);
    this.#olderEvents = new OlderEvents(this.#sql);
    this.#definitions = new Definitions(this.#sql);
    this.#events = new RelatedEvents(this.#sql);
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
    this.#columns.load(known.slotsEnd, cellsIn(rows as unknown as Iterable<CellRow>));
    this.#lastId = known.lastId;
    this.#lastChange = known.lastChange;
  }

  /** The number of alerts that were resolved before this time, and of all alerts. */
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

  events(id: string, { after, limit, descending }: AlertEventsQuery): AlertEventsPage | undefined {
    const slot = this.#slotOf(id);
    if (slot === null) return undefined;
    const row = this.#sql.read("SELECT events FROM related WHERE seq = ?").get(slot + 1) as { events: string };
    const all = [...(JSON.parse(row.events) as EventMark[]), ...this.#olderEvents.of(slot + 1)];
    if (!descending) all.reverse();
    const index = after === undefined ? -1 : all.findIndex((event) => event.id === after);
    if (after !== undefined && index < 0) throw new QueryRefused("after", "is not an event of the alert");
    const events = all.slice(index + 1, index + 1 + limit);
    const nextCursor = index + 1 + limit < all.length ? events.at(-1)!.id : null;
    return { eventCount: this.#summaryOf(slot).eventCount, total: all.length, events, nextCursor };
  }

  definition(id: string): JsonText<RuleDefinition> | undefined {
    return this.#definitions.get(id);
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

  trends(query: TrendQuery): AlertTrends {
    return alertTrends(this.#columns, query);
  }

  resolutions(ruleName: string): Record<Resolution, number> {
    return this.#columns.resolutions(ruleName);
  }

  outcomes(ruleNames: readonly string[], since: OutcomesSince): RuleOutcomes[] {
    return this.#columns.outcomes(ruleNames, since);
  }

  work(query: WorkQuery): JsonText<AlertWork> {
    const { total, slots, ...figures } = alertWork(this.#columns, query);
    const items = slots.map(({ slot, kind, at }) => {
      const actor = this.#timelines.actorOf(slot + 1, kind, at);
      const rest = JSON.stringify({ kind, at, actor, lastComment: this.#timelines.lastComment(slot + 1) });
      return `{"alert":${this.#documentOf(slot)},${rest.slice(1)}`;
    });
    const head = JSON.stringify(figures).slice(0, -1);
    return new JsonText(`${head},"handled":{"total":${total},"items":${listText(items)}}}`);
  }

  list(filter: AlertFilter, position: Position, sort: AlertSort, descending: boolean): JsonText<AlertPage> {
    return this.#page({ filter, sort, descending, found: undefined }, position);
  }

  /** The same for a filter with search words, which may take long. */
  search(
    words: string,
    filter: AlertFilter,
    position: Position,
    order: Pick<Selection, "sort" | "descending">,
    slices: TimeSlices,
  ): Promise<JsonText<AlertPage>> {
    return this.#search.find(words, filter, slices, (found) => this.#page({ filter, found, ...order }, position));
  }

  ids(filter: AlertFilter, limit: number): AlertIds {
    return this.#idsOf(filter, undefined, limit);
  }

  /** The same for a filter with search words. */
  searchIds(words: string, filter: AlertFilter, limit: number, slices: TimeSlices): Promise<AlertIds> {
    return this.#search.find(words, filter, slices, (found) => this.#idsOf(filter, found, limit));
  }

  #idsOf(filter: AlertFilter, found: Uint8Array | undefined, limit: number): AlertIds {
    const order = { sort: "created_at", descending: true, after: undefined, offset: 0 } as const;
    const { total, slots } = this.#columns.select({ filter, found: this.#narrowed(filter, found), ...order, limit });
    // One text instead of a hundred thousand rows takes half the time.
    const { ids } = this.#sql
      .read(
        `SELECT group_concat(alerts.id, ',' ORDER BY slot.key) AS ids
         FROM json_each(?) AS slot JOIN alerts ON seq = slot.value + 1`,
      )
      .get(JSON.stringify(slots)) as { ids: string | null };
    return { total, ids: ids?.split(",") ?? [] };
  }

  isHeavy(query: AlertQuery): boolean {
    return this.#queries.isHeavy(query);
  }

  query(query: AlertQuery, slices: TimeSlices): Promise<AlertSearchText> {
    return this.#queries.find(query, slices, ({ total, slots, hasNext, aggregations }) => ({
      total,
      items: listText(slots.map((slot) => this.#documentOf(slot))),
      nextCursor: hasNext ? this.#idOf(slots.at(-1)!) : null,
      aggregations,
    }));
  }

  #page(
    selection: Pick<Selection, "filter" | "found" | "sort" | "descending">,
    position: Position,
  ): JsonText<AlertPage> {
    const found = this.#narrowed(selection.filter, selection.found);
    const isCursor = position.mode === "cursor";
    const after = isCursor && position.after !== undefined ? this.#slotOf(position.after) : undefined;
    if (after === null) throw new QueryRefused("after", "is not the id of an alert");
    const { total, slots } = this.#columns.select({
      ...selection,
      found,
      after,
      offset: isCursor ? 0 : (position.page - 1) * position.size,
      // One more than requested shows whether there is a next page.
      limit: isCursor ? position.size + 1 : position.size,
    });
    const shown = slots.slice(0, position.size);
    const items = listText(shown.map((slot) => this.#documentOf(slot)));
    const hasNext = isCursor && slots.length > position.size;
    const nextCursor = JSON.stringify(hasNext ? this.#idOf(shown.at(-1)!) : null);
    return new JsonText(`{"total":${total},"items":${items},"nextCursor":${nextCursor}}`);
  }

  /** What the words found, and of these only alerts that have one of the filter's events; undefined: all. */
  #narrowed({ eventId }: AlertFilter, found: Uint8Array | undefined): Uint8Array | undefined {
    if (eventId === undefined) return found;
    const slots = new Uint8Array(this.#columns.slotsEnd);
    for (const seq of this.#events.alertsWith(eventId)) slots[seq - 1] = found ? found[seq - 1]! : 1;
    return slots;
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

  /** The document including the alert's events. */
  #wholeOf(slot: number): string {
    return `${this.#documentOf(slot).slice(0, -1)},"relatedEvents":${this.#eventsOf(slot)}}`;
  }

  #eventsOf(slot: number): string {
    const row = this.#sql.read("SELECT events FROM related WHERE seq = ?").get(slot + 1);
    return (row as { events: string }).events;
  }

  withoutEntities(limit: number): JsonText<Pick<Alert, "id" | "group" | "relatedEvents">[]> {
    const rows = this.#sql.read("SELECT seq FROM alerts WHERE entities IS NULL ORDER BY seq DESC LIMIT ?").all(limit);
    return new JsonText(listText((rows as { seq: number }[]).map(({ seq }) => this.#wholeOf(seq - 1))));
  }

  /** Must run in a transaction. The returned function updates the columns; call it once the transaction is committed. */
  fillEntities(found: readonly ({ readonly id: string } & AlertEntities)[]): () => void {
    this.#words.discard();
    const changed: AlertCells[] = [];
    for (const { id, ...entities } of found) {
      const slot = this.#slotOf(id);
      if (slot === null) continue;
      const { entities: known, ...alert } = this.#summaryOf(slot);
      if (known) continue;
      const filled = { ...alert, ...entities };
      const texts = alertTexts(filled);
      this.#indexTexts(slot, texts, true);
      this.#sql.run(
        "UPDATE alerts SET entities = ?, text_hash = ? WHERE seq = ?",
        entitiesText(filled),
        hashOf(texts),
        slot + 1,
      );
      this.#sql.run("UPDATE documents SET document = ? WHERE seq = ?", JSON.stringify(filled), slot + 1);
      changed.push(cellsOf(filled, slot));
    }
    this.#words.write();
    return () => {
      for (const cells of changed) this.#columns.change(cells);
    };
  }

  /** Must run in a transaction. Conflicts are ids of alerts with an unexpected version; with any, roll it back. */
  write({ alerts, timeline, definitions = [] }: AlertChanges): { conflicts: string[]; done: () => void } {
    // A transaction that was rolled back may have left changes.
    this.#words.discard();
    const conflicts: string[] = [];
    const written: WrittenAlert[] = [];
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
      const whole = known ? this.#withStoredEntities(alert, seq - 1) : alert;
      this.#writeAlert(whole, seq, ++change, known?.text_hash);
      written.push({ cells: cellsOf(whole, seq - 1), isNew, id: alert.id });
    }
    if (conflicts.length === 0) {
      this.#definitions.add(definitions);
      this.#words.write();
      this.addEntries(timeline, new Map(written.map(({ cells, id }) => [id, cells.slot])));
    }
    return {
      conflicts,
      done: () => {
        this.#lastChange = change;
        for (const [i, { cells, isNew, id }] of written.entries()) {
          if (isNew) this.#addToColumns(cells, id, written, i);
          else this.#columns.change(cells);
        }
      },
    };
  }

  /** A change that was prepared before the alert had entities must not remove them. */
  #withStoredEntities(alert: ChangedAlert, slot: number): ChangedAlert {
    if (alert.entities) return alert;
    const { entities, entitiesCut } = this.#summaryOf(slot);
    return entities ? { ...alert, entities, ...(entitiesCut && { entitiesCut }) } : alert;
  }

  /**
   * Removes one batch of the alerts, from this slot on, that were resolved before this time, with everything that belongs to
   * them. `release` removes an alert's rows in other tables, or returns false if they are still needed. `next` is the slot
   * for the next batch, null after the last. Must run in a transaction.
   */
  removeResolved(ms: number, fromSlot: number, release: (alertId: string) => boolean): Removal {
    this.#words.discard();
    const slots = this.#columns.resolvedBefore(ms, fromSlot, REMOVAL_ALERTS_MAX);
    const gone: number[] = [];
    let checked = 0;
    for (let rows = 0; checked < slots.length && rows < REMOVAL_ROWS_MAX; checked++) {
      const slot = slots[checked]!;
      const alert = this.#summaryOf(slot);
      if (!release(alert.id)) continue;
      const words = textWords(alertTexts(alert));
      this.#words.remove(slot, words);
      const seq = slot + 1;
      const events = [...(JSON.parse(this.#eventsOf(slot)) as EventMark[]), ...this.#olderEvents.remove(seq)];
      this.#events.remove(seq, events);
      rows += words.size + events.length + this.#timelines.remove(seq);
      for (const table of ["alerts", "documents", "related"]) {
        this.#sql.run(`DELETE FROM ${table} WHERE seq = ?`, slot + 1);
      }
      gone.push(slot);
    }
    this.#words.write();
    // Keep the number of the last change, even if its alert is gone: streams have sent it, so it must not be used again.
    if (gone.length > 0) this.#sql.run("INSERT OR REPLACE INTO last_change VALUES (0, ?)", this.#lastChange);
    const next = slots[checked] ?? (checked === REMOVAL_ALERTS_MAX ? slots.at(-1)! + 1 : null);
    if (next === null) this.#definitions.removeUnused();
    const done = () => {
      this.#columns.remove(gone);
      this.#search.dropSlots(gone);
      this.#queries.dropSlots(gone);
    };
    return { removed: gone.length, next, done };
  }

  /** Must run in a transaction. `slots` has the slots that the caller knows. */
  addEntries(timeline: readonly NewTimelineEntry[], slots: ReadonlyMap<string, number> = new Map()): void {
    for (const { alertId, entry } of timeline) {
      const slot = slots.get(alertId) ?? this.#slotOf(alertId);
      if (slot === null) throw new Error(`a timeline entry for the alert ${alertId}, which does not exist`);
      this.#timelines.add(slot + 1, entry);
    }
  }

  #writeAlert(
    { relatedEvents, olderEvents = [], ...alert }: ChangedAlert,
    seq: number,
    change: number,
    knownHash: string | undefined,
  ): void {
    const texts = alertTexts(alert);
    const textHash = hashOf(texts);
    writeRow(this.#sql, alert, { seq, change, textHash });
    if (textHash !== knownHash) this.#indexTexts(seq - 1, texts, knownHash !== undefined);
    this.#sql.run("INSERT OR REPLACE INTO documents(seq, document) VALUES (?, ?)", seq, JSON.stringify(alert));
    const before = knownHash === undefined ? undefined : (JSON.parse(this.#eventsOf(seq - 1)) as EventMark[]);
    this.#writeEvents(seq, before, relatedEvents ?? before ?? [], olderEvents);
  }

  /** `before` are the stored newest events, undefined for a new alert. Those that are in neither list are forgotten. */
  #writeEvents(
    seq: number,
    before: readonly EventMark[] | undefined,
    related: readonly EventMark[],
    older: readonly EventMark[],
  ): void {
    const kept = new Set([...related, ...older].map(({ id }) => id));
    const known = new Set(before?.map(({ id }) => id));
    this.#events.remove(seq, before?.filter(({ id }) => !kept.has(id)) ?? []);
    this.#events.add(
      seq,
      [...related, ...older].filter(({ id }) => !known.has(id)),
    );
    this.#sql.run("INSERT OR REPLACE INTO related(seq, events) VALUES (?, ?)", seq, JSON.stringify(related));
    if (older.length > 0) this.#events.remove(seq, this.#olderEvents.add(seq, older));
  }

  #indexTexts(slot: number, texts: readonly string[], isChange: boolean): void {
    const words = textWords(texts);
    const before = isChange ? textWords(alertTexts(this.#summaryOf(slot))) : new Set<string>();
    this.#words.remove(slot, before.difference(words));
    this.#words.add(slot, words.difference(before));
  }

  /** Adds a new alert to the columns. Those that were written after it are in the table, but not in the columns yet. */
  #addToColumns(cells: AlertCells, id: string, written: readonly WrittenAlert[], index: number): void {
    let rank = this.#columns.size;
    if (id > this.#lastId) this.#lastId = id;
    else {
      const { before } = this.#sql.read("SELECT count(*) AS before FROM alerts WHERE id < ?").get(id) as {
        before: number;
      };
      rank = before - written.slice(index + 1).filter((other) => other.isNew && other.id < id).length;
    }
    this.#columns.add(cells, rank);
  }
}

function listText(items: readonly string[]): string {
  return `[${items.join(",")}]`;
}

function hashOf(texts: readonly string[]): string {
  return hash("sha1", texts.join("\n"), "base64");
}
