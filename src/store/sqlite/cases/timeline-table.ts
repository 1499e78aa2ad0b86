import { parseExact } from "../../../lib/exact-json.ts";
import type { Comment, TimelineEntry, TimelineKind } from "../../../model/alert.ts";
import { foldEntries } from "../../alert-index/fold-entries.ts";
import type { Statements } from "./prepared-statements.ts";

// The timelines of alerts. An alert is identified by its number in the file.

export const TIMELINE_SCHEMA = `
CREATE TABLE IF NOT EXISTS timeline(alert INTEGER NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL, entry TEXT NOT NULL,
  PRIMARY KEY(alert, number)) STRICT, WITHOUT ROWID;
`;

/** Entries of one kind that are searched for the one of a time. */
const ENTRIES_SEARCHED_MAX = 100;

export class Timelines {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  /** Oldest first, as JSON. */
  of(alert: number): string[] {
    const rows = this.#sql.read("SELECT entry FROM timeline WHERE alert = ? ORDER BY number").all(alert);
    return (rows as { entry: string }[]).map(({ entry }) => entry);
  }

  /** The actor of the entry of this kind and time; null if it is not among the newest of the kind. */
  actorOf(alert: number, kind: TimelineKind, at: number): string | null {
    const entries = this.#newest(alert, kind, ENTRIES_SEARCHED_MAX);
    return entries.find((entry) => entry.at === at)?.actor ?? null;
  }

  lastComment(alert: number): Comment | null {
    const [entry] = this.#newest(alert, "commented", 1);
    return entry?.kind === "commented" ? entry.comment : null;
  }

  #newest(alert: number, kind: TimelineKind, limit: number): TimelineEntry[] {
    const rows = this.#sql
      .read("SELECT entry FROM timeline WHERE alert = ? AND kind = ? ORDER BY number DESC LIMIT ?")
      .all(alert, kind, limit);
    return (rows as { entry: string }[]).map(({ entry }) => parseExact(entry) as TimelineEntry);
  }

  /** Must run in a transaction. */
  add(alert: number, entry: TimelineEntry): void {
    const last = this.#sql
      .read("SELECT number, kind, entry FROM timeline WHERE alert = ? ORDER BY number DESC LIMIT 1")
      .get(alert) as { number: number; kind: string; entry: string } | undefined;
    const folded =
      last && last.kind === entry.kind ? foldEntries(parseExact(last.entry) as TimelineEntry, entry) : undefined;
    this.#sql.run(
      "INSERT OR REPLACE INTO timeline(alert, number, kind, entry) VALUES (?, ?, ?, ?)",
      alert,
      (last?.number ?? 0) + (folded ? 0 : 1),
      entry.kind,
      JSON.stringify(folded ?? entry),
    );
  }

  /** Must run in a transaction. Returns the number of entries. */
  remove(alert: number): number {
    return Number(this.#sql.read("DELETE FROM timeline WHERE alert = ?").run(alert).changes);
  }
}
