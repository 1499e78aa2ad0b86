import { parseExact } from "../../lib/exact-json.ts";
import type { AlertEntities } from "../../model/alert-entity.ts";
import type { AlertSummary, TimelineEntry } from "../../model/alert.ts";
import type { EventMark } from "../../model/finding.ts";
import { cellsOf, hashOfTexts } from "../alert-index/alert-cells.ts";
import type { AlertChanges, ChangedAlert } from "../ports/alert-store.ts";
import { textWords } from "../search/indexed-words.ts";
import { alertTexts } from "../search/text-matcher.ts";
import { plainText } from "./plain-text.ts";
import { EventChanges, removeEvents } from "./postgres-alert-events.ts";
import type { PostgresQueries } from "./postgres-database.ts";
import { addTimelineEntries, insertEntries } from "./postgres-timelines.ts";

// Changes of alerts. Every function must run in a transaction, and takes the lock of the counters first: changes are made one
// after the other, whichever process makes them.

/** Limit of one batch of a removal, so that other calls do not wait long. */
const REMOVAL_ALERTS_MAX = 100;
/** Removals that are remembered for nodes that have not heard of them yet. A node that missed more reads all alerts anew. */
const REMOVALS_KEPT_MAX = 100_000;
/** A list of words may have a megabyte. Words beyond half of that are not found. */
const WORD_BYTES_MAX = 512 * 1024;

interface AlertCounters {
  change: number;
  feed: number;
  seq: number;
}

/** An alert as it is stored, or as an earlier change of the same commit leaves it. */
interface KnownAlert {
  readonly seq: number;
  readonly version: number;
  readonly textHash: string;
  readonly cells: string;
  readonly document: string;
  readonly events: string;
}

interface NewRow {
  readonly seq: number;
  readonly id: string;
  readonly version: number;
  readonly change: number;
  readonly feed: number;
  readonly rule_id: string;
  readonly fold_key: string;
  readonly status: string;
  readonly first_event_at: number;
  readonly last_event_at: number;
  readonly resolved_at: number | null;
  readonly has_entities: boolean;
  readonly text_hash: string;
  readonly definition_id: string | null;
  readonly cells: string;
  readonly document: string;
  readonly events: string;
  /** Undefined if they stay as they are. */
  readonly words: string | undefined;
}

async function lockAlerts(transaction: PostgresQueries): Promise<AlertCounters> {
  const [counters] = await transaction.query<AlertCounters>(
    "SELECT last_change AS change, last_feed AS feed, last_seq AS seq FROM alert_counters FOR UPDATE",
  );
  return counters!;
}

/** Returns the ids of alerts with an unexpected version; with any, nothing was written. */
export async function writeAlerts(
  transaction: PostgresQueries,
  { alerts, timeline, definitions = [] }: AlertChanges,
): Promise<string[]> {
  const counters = await lockAlerts(transaction);
  const known = await readKnown(transaction, alerts);
  const conflicts: string[] = [];
  const rows = new Map<string, NewRow>();
  const events = new EventChanges();
  for (const alert of alerts) {
    const before = known.get(alert.id);
    if ((before?.version ?? 0) !== alert.version - 1) {
      conflicts.push(alert.id);
      continue;
    }
    const row = rowOf(alert, before, counters, events);
    // Words that an earlier change of this commit brought are still to be written.
    rows.set(alert.id, { ...row, words: row.words ?? rows.get(alert.id)?.words });
    known.set(alert.id, { ...row, textHash: row.text_hash });
  }
  if (conflicts.length > 0) return conflicts;
  if (definitions.length > 0) await addDefinitions(transaction, definitions);
  await writeRows(transaction, [...rows.values()]);
  await events.write(transaction);
  await saveCounters(transaction, counters);
  await addTimelineEntries(transaction, timeline, new Map(Array.from(known, ([id, { seq }]) => [id, seq])));
  return [];
}

/** An alert of another store, with the number of its last change and its whole timeline. */
export interface ImportedAlert {
  readonly change: number;
  /** JSON, as the events and the entries of the timeline. */
  readonly document: string;
  readonly events: string;
  readonly older: readonly (readonly [at: number, id: string])[];
  readonly timeline: readonly string[];
}

/** Adds alerts that do not exist yet. */
export async function importAlerts(transaction: PostgresQueries, alerts: readonly ImportedAlert[]): Promise<void> {
  const counters = await lockAlerts(transaction);
  const events = new EventChanges();
  const entries: { alert: number; number: number; kind: string; at: number; entry: string }[] = [];
  const rows = alerts.map(({ change, document, events: newest, older, timeline }) => {
    const alert = parseExact(document) as AlertSummary;
    const relatedEvents = JSON.parse(newest) as EventMark[];
    const olderEvents = older.map(([timestampMs, id]) => ({ id, timestampMs }));
    const row = rowOf({ ...alert, relatedEvents, olderEvents }, undefined, counters, events);
    for (const [place, entry] of timeline.entries()) {
      const { kind, at } = parseExact(entry) as TimelineEntry;
      entries.push({ alert: row.seq, number: place + 1, kind, at, entry });
    }
    return { ...row, change, document, events: newest };
  });
  await writeRows(transaction, rows);
  await events.write(transaction);
  await insertEntries(transaction, entries);
  counters.change = Math.max(counters.change, ...rows.map(({ change }) => change));
  await saveCounters(transaction, counters);
}

function rowOf(
  changed: ChangedAlert,
  before: KnownAlert | undefined,
  counters: AlertCounters,
  events: EventChanges,
): NewRow {
  const { relatedEvents, olderEvents = [], ...given } = changed;
  const alert = before ? withStoredEntities(given, before) : given;
  const seq = before?.seq ?? ++counters.seq;
  const marks = before && (JSON.parse(before.events) as EventMark[]);
  const related = relatedEvents ?? marks ?? [];
  events.change(seq, marks, related, olderEvents);
  const texts = alertTexts(alert);
  const textHash = hashOfTexts(texts);
  return {
    seq,
    id: plainText(alert.id),
    version: alert.version,
    change: ++counters.change,
    feed: ++counters.feed,
    rule_id: plainText(alert.rule.id),
    fold_key: plainText(alert.foldKey),
    status: alert.status,
    first_event_at: alert.firstEventAt,
    last_event_at: alert.lastEventAt,
    resolved_at: alert.resolvedAt,
    has_entities: alert.entities !== undefined,
    text_hash: textHash,
    definition_id: alert.definitionId === undefined ? null : plainText(alert.definitionId),
    cells: cellsText(alert, before?.cells),
    document: JSON.stringify(alert),
    events: JSON.stringify(related),
    words: textHash === before?.textHash ? undefined : wordsText(texts),
  };
}

/** A change that was prepared before the alert had entities must not remove them. */
function withStoredEntities(alert: AlertSummary, { document }: KnownAlert): AlertSummary {
  if (alert.entities) return alert;
  const { entities, entitiesCut } = parseExact(document) as AlertSummary;
  return entities ? { ...alert, entities, ...(entitiesCut && { entitiesCut }) } : alert;
}

/**
 * What a node's index has of an alert. The slot is the node's own. What the rule gave the alert when it was created stays,
 * whatever a later document says.
 */
function cellsText(alert: AlertSummary, before?: string): string {
  const { slot: _slot, ...all } = cellsOf(alert, 0);
  const first = before === undefined ? all : (JSON.parse(before) as typeof all);
  return JSON.stringify({
    ruleName: first.ruleName,
    source: first.source,
    createdAt: first.createdAt,
    groupField: first.groupField,
    groupValue: first.groupValue,
    status: all.status,
    severity: all.severity,
    assignee: all.assignee,
    resolution: all.resolution,
    firstEventAt: all.firstEventAt,
    lastEventAt: all.lastEventAt,
    eventCount: all.eventCount,
    firstAcknowledgedAt: all.firstAcknowledgedAt,
    resolvedAt: all.resolvedAt,
    tags: all.tags,
    entities: all.entities,
    threatScore: all.threatScore,
  });
}

/** Words contain no spaces. */
function wordsText(texts: readonly string[]): string {
  const words: string[] = [];
  let bytes = 0;
  for (const word of textWords(texts)) {
    bytes += Buffer.byteLength(word);
    if (bytes > WORD_BYTES_MAX) break;
    words.push(word.toWellFormed());
  }
  return words.join(" ");
}

async function readKnown(
  transaction: PostgresQueries,
  alerts: readonly ChangedAlert[],
): Promise<Map<string, KnownAlert>> {
  if (alerts.length === 0) return new Map();
  const idOf = new Map(alerts.map(({ id }) => [plainText(id), id]));
  const rows = await transaction.query<KnownAlert & { id: string }>(
    `SELECT seq, id, version, text_hash AS "textHash", cells, document, events FROM alerts JOIN alert_documents USING (seq)
     WHERE id = ANY($1)`,
    [[...idOf.keys()]],
  );
  return new Map(rows.map((row) => [idOf.get(row.id)!, row]));
}

async function writeRows(transaction: PostgresQueries, rows: readonly NewRow[]): Promise<void> {
  if (rows.length === 0) return;
  await transaction.run(
    `INSERT INTO alerts(seq, id, version, change, feed, rule_id, fold_key, status, first_event_at, last_event_at, resolved_at,
       has_entities, text_hash, definition_id, cells)
     SELECT * FROM json_to_recordset($1::json) AS given(seq int8, id text, version int8, change int8, feed int8, rule_id text,
       fold_key text, status text, first_event_at int8, last_event_at int8, resolved_at int8, has_entities bool, text_hash text,
       definition_id text, cells text)
     ON CONFLICT (seq) DO UPDATE SET version = excluded.version, change = excluded.change, feed = excluded.feed,
       status = excluded.status, first_event_at = excluded.first_event_at, last_event_at = excluded.last_event_at,
       resolved_at = excluded.resolved_at, has_entities = excluded.has_entities, text_hash = excluded.text_hash,
       definition_id = excluded.definition_id, cells = excluded.cells`,
    [JSON.stringify(rows.map(({ document: _document, events: _events, words: _words, ...row }) => row))],
  );
  await transaction.run(
    `INSERT INTO alert_documents(seq, document, events)
     SELECT seq, document, events FROM json_to_recordset($1::json) AS given(seq int8, document text, events text)
     ON CONFLICT (seq) DO UPDATE SET document = excluded.document, events = excluded.events`,
    [JSON.stringify(rows.map(({ seq, document, events }) => ({ seq, document, events })))],
  );
  await writeWords(
    transaction,
    rows.filter(({ words }) => words !== undefined),
  );
}

async function writeWords(
  transaction: PostgresQueries,
  rows: readonly { readonly seq: number; readonly words: string | undefined }[],
): Promise<void> {
  if (rows.length === 0) return;
  await transaction.run(
    `INSERT INTO alert_words(seq, words)
     SELECT seq, array_to_tsvector(string_to_array(words, ' '))
     FROM json_to_recordset($1::json) AS given(seq int8, words text)
     ON CONFLICT (seq) DO UPDATE SET words = excluded.words`,
    [JSON.stringify(rows.map(({ seq, words }) => ({ seq, words })))],
  );
}

async function addDefinitions(
  transaction: PostgresQueries,
  definitions: NonNullable<AlertChanges["definitions"]>,
): Promise<void> {
  const given = definitions.map(({ id, definition }) => ({
    id: plainText(id),
    definition: JSON.stringify(definition),
  }));
  await transaction.run(
    `INSERT INTO alert_definitions(id, definition)
     SELECT id, definition FROM json_to_recordset($1::json) AS given(id text, definition text) ON CONFLICT DO NOTHING`,
    [JSON.stringify(given)],
  );
}

async function saveCounters(transaction: PostgresQueries, { change, feed, seq }: AlertCounters): Promise<void> {
  await transaction.run("UPDATE alert_counters SET last_change = $1, last_feed = $2, last_seq = $3", [
    change,
    feed,
    seq,
  ]);
}

export async function fillAlertEntities(
  transaction: PostgresQueries,
  found: readonly ({ readonly id: string } & AlertEntities)[],
): Promise<void> {
  const counters = await lockAlerts(transaction);
  const rows = await transaction.query<{ seq: number; id: string; document: string }>(
    `SELECT seq, id, document FROM alerts JOIN alert_documents USING (seq) WHERE id = ANY($1) AND NOT has_entities`,
    [found.map(({ id }) => plainText(id))],
  );
  const entitiesOf = new Map(found.toReversed().map(({ id, ...entities }) => [plainText(id), entities]));
  const filled = rows.map(({ seq, id, document }) => {
    const alert: AlertSummary = { ...(parseExact(document) as AlertSummary), ...entitiesOf.get(id)! };
    const texts = alertTexts(alert);
    return {
      seq,
      feed: ++counters.feed,
      text_hash: hashOfTexts(texts),
      cells: cellsText(alert),
      document: JSON.stringify(alert),
      words: wordsText(texts),
    };
  });
  if (filled.length === 0) return;
  const given = JSON.stringify(filled);
  await transaction.run(
    `UPDATE alerts SET feed = given.feed, text_hash = given.text_hash, cells = given.cells, has_entities = true
     FROM json_to_recordset($1::json) AS given(seq int8, feed int8, text_hash text, cells text) WHERE alerts.seq = given.seq`,
    [given],
  );
  await transaction.run(
    `UPDATE alert_documents SET document = given.document
     FROM json_to_recordset($1::json) AS given(seq int8, document text) WHERE alert_documents.seq = given.seq`,
    [given],
  );
  await writeWords(transaction, filled);
  await saveCounters(transaction, counters);
}

/**
 * Removes one batch of the alerts that were resolved before this time, with everything that belongs to them, except those with
 * notifications still to be sent.
 */
export async function removeResolvedAlerts(
  transaction: PostgresQueries,
  ms: number,
): Promise<{ removed: number; isLast: boolean }> {
  const counters = await lockAlerts(transaction);
  const rows = await transaction.query<{ seq: number; id: string; events: string }>(
    `SELECT seq, id, events FROM alerts JOIN alert_documents USING (seq)
     WHERE status = 'resolved' AND resolved_at < $1 AND NOT EXISTS
       (SELECT 1 FROM notifications WHERE alert_id = alerts.id AND notifications.status NOT IN ('sent', 'dead'))
     ORDER BY resolved_at, seq LIMIT $2`,
    [ms, REMOVAL_ALERTS_MAX],
  );
  const seqs = rows.map(({ seq }) => seq);
  const isLast = rows.length < REMOVAL_ALERTS_MAX;
  if (rows.length > 0) {
    await removeEvents(
      transaction,
      rows.map(({ seq, events }) => ({ seq, newest: JSON.parse(events) as EventMark[] })),
    );
    for (const table of ["alert_timeline WHERE alert", ...["alerts", "alert_documents", "alert_words"].map(bySeq)]) {
      await transaction.run(`DELETE FROM ${table} = ANY($1)`, [seqs]);
    }
    await transaction.run("DELETE FROM notifications WHERE alert_id = ANY($1)", [rows.map(({ id }) => id)]);
    await transaction.run(
      "INSERT INTO alert_removals(feed, seq) SELECT $1 + number, seq FROM unnest($2::int8[]) WITH ORDINALITY AS given(seq, number)",
      [counters.feed, seqs],
    );
    counters.feed += rows.length;
    await saveCounters(transaction, counters);
  }
  if (isLast) {
    await forgetRemovals(transaction);
    await transaction.run(
      "DELETE FROM alert_definitions WHERE NOT EXISTS (SELECT 1 FROM alerts WHERE definition_id = alert_definitions.id)",
    );
  }
  return { removed: rows.length, isLast };
}

function bySeq(table: string): string {
  return `${table} WHERE seq`;
}

async function forgetRemovals(transaction: PostgresQueries): Promise<void> {
  await transaction.run(
    `WITH forgotten AS (DELETE FROM alert_removals WHERE feed <=
         (SELECT feed FROM alert_removals ORDER BY feed DESC OFFSET ${REMOVALS_KEPT_MAX} LIMIT 1) RETURNING feed)
     UPDATE alert_counters SET forgotten_feed = newest.feed FROM (SELECT max(feed) AS feed FROM forgotten) AS newest
     WHERE newest.feed IS NOT NULL`,
  );
}
