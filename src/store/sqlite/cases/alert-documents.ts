import { parseExact } from "../../../lib/exact-json.ts";
import type { AlertSummary } from "../../../model/alert.ts";
import type { Statements } from "./prepared-statements.ts";

/** Reads alerts by the number of their slot, which is one less than their number in the file. */
export class AlertDocuments {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  slotOf(id: string): number | null {
    const row = this.#sql.read("SELECT seq FROM alerts WHERE id = ?").get(id) as { seq: number } | undefined;
    return row ? row.seq - 1 : null;
  }

  idOf(slot: number): string {
    return (this.#sql.read("SELECT id FROM alerts WHERE seq = ?").get(slot + 1) as { id: string }).id;
  }

  textOf(slot: number): string {
    const row = this.#sql.read("SELECT document FROM documents WHERE seq = ?").get(slot + 1);
    return (row as { document: string }).document;
  }

  summaryOf(slot: number): AlertSummary {
    return parseExact(this.textOf(slot)) as AlertSummary;
  }

  /** The document including the alert's events. */
  wholeOf(slot: number): string {
    return `${this.textOf(slot).slice(0, -1)},"relatedEvents":${this.eventsOf(slot)}}`;
  }

  eventsOf(slot: number): string {
    const row = this.#sql.read("SELECT events FROM related WHERE seq = ?").get(slot + 1);
    return (row as { events: string }).events;
  }
}
