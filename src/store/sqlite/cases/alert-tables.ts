import type { DatabaseSync } from "node:sqlite";
import { AlertQueries } from "../../alert-index/alert-query.ts";
import { AlertColumns } from "../../alert-index/alert-columns.ts";
import { AlertDocuments } from "./alert-documents.ts";
import { AlertReader } from "./alert-reader.ts";
import { CELLS, cellsIn, type CellRow } from "./alert-row.ts";
import { RelatedEvents } from "./alert-row-fields.ts";
import { AlertSearch } from "../../alert-index/alert-search.ts";
import { AlertWriter, type LastAlert } from "./alert-writer.ts";
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

export interface AlertTables {
  readonly reader: AlertReader;
  readonly writer: AlertWriter;
}

export function openAlertTables(db: DatabaseSync): AlertTables {
  const sql = new Statements(db);
  const columns = new AlertColumns();
  const documents = new AlertDocuments(sql);
  const words = new WordIndex(sql);
  const readSummaries = (slots: readonly number[]) => slots.map((slot) => documents.summaryOf(slot));
  const search = new AlertSearch(words, columns, readSummaries);
  const queries = new AlertQueries({ columns, search, slotOf: (id) => documents.slotOf(id), readSummaries });
  const shared = {
    sql,
    columns,
    documents,
    timelines: new Timelines(sql),
    definitions: new Definitions(sql),
    relatedEvents: new RelatedEvents(sql),
    olderEvents: new OlderEvents(sql),
  };
  const onRemoved = (slots: readonly number[]) => {
    search.dropSlots(slots);
    queries.dropSlots(slots);
  };
  const writer = new AlertWriter({ ...shared, words, onRemoved, last: loadColumns(sql, columns) });
  return { reader: new AlertReader({ ...shared, search, queries, last: () => writer.last }), writer };
}

/** Returns what was written last. */
function loadColumns(sql: Statements, columns: AlertColumns): LastAlert {
  const known = sql
    .read(
      `SELECT coalesce(max(seq), 0) AS slotsEnd, coalesce(max(id), '') AS lastId,
         max(coalesce(max(change), 0), coalesce((SELECT change FROM last_change), 0)) AS lastChange FROM alerts`,
    )
    .get() as { slotsEnd: number; lastId: string; lastChange: number };
  const rows = sql.read(`SELECT ${CELLS} FROM alerts ORDER BY id`).iterate();
  columns.load(known.slotsEnd, cellsIn(rows as unknown as Iterable<CellRow>));
  return { id: known.lastId, change: known.lastChange };
}
