import type { CaseRecord } from "../ports/archive.ts";
import { plainText, textOfPlain } from "./plain-text.ts";
import { importAlerts } from "./postgres-alert-writer.ts";
import type { PostgresDatabase, PostgresQueries } from "./postgres-database.ts";

// Alerts of a database with everything that belongs to them, as records.

const PAGE_ALERTS = 100;

interface StoredAlertRow {
  readonly seq: number;
  readonly id: string;
  readonly change: number;
  readonly document: string;
  readonly events: string;
}

export async function* readArchivedAlerts(database: PostgresDatabase): AsyncGenerator<readonly CaseRecord[]> {
  for (let after = ""; ;) {
    const rows = await database.query<StoredAlertRow>(
      `SELECT seq, id, change, document, events FROM alerts JOIN alert_documents USING (seq)
       WHERE id > $1 ORDER BY id LIMIT ${PAGE_ALERTS}`,
      [after],
    );
    if (rows.length === 0) return;
    const seqs = rows.map(({ seq }) => seq);
    const older = await database.query<{ alert: number; at: number; event: string }>(
      "SELECT alert, at, event FROM alert_older_events WHERE alert = ANY($1) ORDER BY alert, at, event",
      [seqs],
    );
    const timeline = await database.query<{ alert: number; entry: string }>(
      "SELECT alert, entry FROM alert_timeline WHERE alert = ANY($1) ORDER BY alert, number",
      [seqs],
    );
    const olderOf = Map.groupBy(older, ({ alert }) => alert);
    const timelineOf = Map.groupBy(timeline, ({ alert }) => alert);
    yield rows.map(({ seq, id, change, document, events }) => ({
      id: textOfPlain(id),
      change,
      document,
      events,
      older: (olderOf.get(seq) ?? []).map(({ at, event }) => [at, textOfPlain(event)]),
      timeline: (timelineOf.get(seq) ?? []).map(({ entry }) => entry),
    }));
    after = rows.at(-1)!.id;
  }
}

/** Must run in a transaction. Alerts that exist stay: they were written as a whole. */
export async function writeArchivedAlerts(transaction: PostgresQueries, records: readonly CaseRecord[]): Promise<void> {
  const known = await transaction.query<{ id: string }>("SELECT id FROM alerts WHERE id = ANY($1)", [
    records.map(({ id }) => plainText(id as string)),
  ]);
  const stored = new Set(known.map(({ id }) => textOfPlain(id)));
  await importAlerts(
    transaction,
    records
      .filter(({ id }) => !stored.has(id as string))
      .map(({ change, document, events, older, timeline }) => ({
        change: change as number,
        document: document as string,
        events: events as string,
        older: older as [number, string][],
        timeline: timeline as string[],
      })),
  );
}
