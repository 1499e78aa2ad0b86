import { ALERT_EVENTS_MAX, RELATED_EVENTS_MAX, type EventMark } from "../../../model/finding.ts";
import type { Statements } from "./prepared-statements.ts";

// The events of alerts beyond the newest, which are in the table `related`. Most alerts have none. An alert is identified by
// its number in the file.

export const OLDER_EVENTS_SCHEMA = `
CREATE TABLE older_events(alert INTEGER NOT NULL, at INTEGER NOT NULL, event TEXT NOT NULL, PRIMARY KEY(alert, at, event))
  STRICT, WITHOUT ROWID;
`;

const OLDER_EVENTS_MAX = ALERT_EVENTS_MAX - RELATED_EVENTS_MAX;

export class OlderEvents {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  /** Newest first. */
  of(alert: number): EventMark[] {
    return this.#sql
      .read(
        "SELECT event AS id, at AS timestampMs FROM older_events WHERE alert = ? ORDER BY at DESC, event DESC LIMIT ?",
      )
      .all(alert, OLDER_EVENTS_MAX) as unknown as EventMark[];
  }

  /** Must run in a transaction. Drops the oldest beyond the limit, and returns them. */
  add(alert: number, events: readonly EventMark[]): EventMark[] {
    for (const { id, timestampMs } of events) {
      this.#sql.run("INSERT OR IGNORE INTO older_events VALUES (?, ?, ?)", alert, timestampMs, id);
    }
    const oldest = this.#sql
      .read("SELECT at, event FROM older_events WHERE alert = ? ORDER BY at DESC, event DESC LIMIT 1 OFFSET ?")
      .get(alert, OLDER_EVENTS_MAX - 1) as { at: number; event: string } | undefined;
    if (!oldest) return [];
    return this.#sql
      .read(
        `DELETE FROM older_events WHERE alert = ? AND (at, event) < (?, ?)
         RETURNING event AS id, at AS timestampMs`,
      )
      .all(alert, oldest.at, oldest.event) as unknown as EventMark[];
  }

  /** Must run in a transaction. Returns those that there were. */
  remove(alert: number): EventMark[] {
    return this.#sql
      .read("DELETE FROM older_events WHERE alert = ? RETURNING event AS id, at AS timestampMs")
      .all(alert) as unknown as EventMark[];
  }
}
