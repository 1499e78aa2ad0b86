import type { DatabaseSync } from "node:sqlite";
import { parseExact } from "../../../lib/exact-json.ts";
import type { Alert, AlertSummary } from "../../../model/alert.ts";
import type { EventMark } from "../../../model/finding.ts";
import { alertFields } from "../../alert-index/alert-cells.ts";
import { eventKey } from "../../alert-index/compact-event-id.ts";
import type { Statements } from "./prepared-statements.ts";

// Fields of alerts that earlier versions had in the document alone, and the index from events to alerts.

/** `entities` is null until the alert's entities are known. */
const SCHEMA = `
ALTER TABLE alerts ADD COLUMN group_field TEXT;
ALTER TABLE alerts ADD COLUMN group_value TEXT;
ALTER TABLE alerts ADD COLUMN entities TEXT;
ALTER TABLE alerts ADD COLUMN threat_score INTEGER;
CREATE INDEX alerts_without_entities ON alerts(seq) WHERE entities IS NULL;
CREATE TABLE alert_events(event BLOB NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(event, seq)) STRICT, WITHOUT ROWID;
`;

/** The migration that adds them. */
export function addAlertFields(db: DatabaseSync): void {
  db.exec(SCHEMA);
  const update = db.prepare("UPDATE alerts SET group_field = ?, group_value = ?, threat_score = ? WHERE seq = ?");
  const documents = db.prepare("SELECT seq, document FROM documents").iterate();
  for (const { seq, document } of documents as Iterable<{ seq: number; document: string }>) {
    const { group, threatScore } = alertFields(parseExact(document) as AlertSummary);
    update.run(group?.field ?? null, group?.value ?? null, threatScore, seq);
  }
  const insert = db.prepare("INSERT OR IGNORE INTO alert_events(event, seq) VALUES (?, ?)");
  const older = db.prepare("SELECT alert AS seq, event FROM older_events").iterate();
  for (const { seq, event } of older as Iterable<{ seq: number; event: string }>) insert.run(eventKey(event), seq);
  const related = db.prepare("SELECT seq, events FROM related").iterate();
  for (const { seq, events } of related as Iterable<{ seq: number; events: string }>) {
    for (const { id } of JSON.parse(events) as EventMark[]) insert.run(eventKey(id), seq);
  }
}

/** The index from events to the alerts that they are related to. Changes must run in a transaction. */
export class RelatedEvents {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  add(seq: number, events: Alert["relatedEvents"]): void {
    for (const { id } of events) {
      this.#sql.run("INSERT OR IGNORE INTO alert_events(event, seq) VALUES (?, ?)", eventKey(id), seq);
    }
  }

  remove(seq: number, events: Alert["relatedEvents"]): void {
    for (const { id } of events) {
      this.#sql.run("DELETE FROM alert_events WHERE event = ? AND seq = ?", eventKey(id), seq);
    }
  }

  /** The numbers of the alerts that have one of the events. */
  alertsWith(ids: readonly string[]): number[] {
    const select = this.#sql.read("SELECT seq FROM alert_events WHERE event = ?");
    return ids.flatMap((id) => (select.all(eventKey(id)) as { seq: number }[]).map(({ seq }) => seq));
  }
}
