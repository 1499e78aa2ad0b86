import { parseExact } from "../../lib/exact-json.ts";
import type { TimelineEntry } from "../../model/alert.ts";
import { foldEntries } from "../alert-index/fold-entries.ts";
import type { NewTimelineEntry } from "../ports/alert-store.ts";
import { plainText } from "./plain-text.ts";
import type { PostgresQueries } from "./postgres-database.ts";

export const POSTGRES_TIMELINES_SCHEMA = `
CREATE TABLE alert_timeline(alert int8 NOT NULL, number int8 NOT NULL, kind text COLLATE "C" NOT NULL, at int8 NOT NULL,
  entry text NOT NULL, PRIMARY KEY(alert, number));
`;

interface NumberedEntry {
  readonly number: number;
  readonly entry: TimelineEntry;
}

/** Must run in a transaction. `seqs` has the numbers of alerts that the caller has locked. */
export async function addTimelineEntries(
  transaction: PostgresQueries,
  timeline: readonly NewTimelineEntry[],
  seqs: ReadonlyMap<string, number> = new Map(),
): Promise<void> {
  if (timeline.length === 0) return;
  const known = new Map(seqs);
  const unknown = [...new Set(timeline.map(({ alertId }) => alertId))].filter((id) => !known.has(id));
  if (unknown.length > 0) {
    // Entries of one alert are added one after the other, whichever process adds them.
    const rows = await transaction.query<{ seq: number; id: string }>(
      "SELECT seq, id FROM alerts WHERE id = ANY($1) ORDER BY seq FOR UPDATE",
      [unknown.map(plainText)],
    );
    const found = new Map(rows.map(({ id, seq }) => [id, seq]));
    for (const id of unknown) {
      const seq = found.get(plainText(id));
      if (seq === undefined) throw new Error(`a timeline entry for the alert ${id}, which does not exist`);
      known.set(id, seq);
    }
  }
  const last = await lastEntries(transaction, [...new Set(timeline.map(({ alertId }) => known.get(alertId)!))]);
  const written = new Map<string, { alert: number; number: number; kind: string; at: number; entry: string }>();
  for (const { alertId, entry } of timeline) {
    const alert = known.get(alertId)!;
    const before = last.get(alert);
    const folded = before && before.entry.kind === entry.kind ? foldEntries(before.entry, entry) : undefined;
    const number = (before?.number ?? 0) + (folded ? 0 : 1);
    const next = folded ?? entry;
    last.set(alert, { number, entry: next });
    const { kind, at } = next;
    written.set(`${alert} ${number}`, { alert, number, kind, at, entry: JSON.stringify(next) });
  }
  await insertEntries(transaction, [...written.values()]);
}

/** Must run in a transaction. Entries with the same number are replaced. */
export async function insertEntries(
  transaction: PostgresQueries,
  entries: readonly { alert: number; number: number; kind: string; at: number; entry: string }[],
): Promise<void> {
  if (entries.length === 0) return;
  await transaction.run(
    `INSERT INTO alert_timeline(alert, number, kind, at, entry)
     SELECT alert, number, kind, at, entry
     FROM json_to_recordset($1::json) AS given(alert int8, number int8, kind text, at int8, entry text)
     ON CONFLICT (alert, number) DO UPDATE SET kind = excluded.kind, at = excluded.at, entry = excluded.entry`,
    [JSON.stringify(entries)],
  );
}

async function lastEntries(
  transaction: PostgresQueries,
  alerts: readonly number[],
): Promise<Map<number, NumberedEntry>> {
  const rows = await transaction.query<{ alert: number; number: number; entry: string }>(
    `SELECT last.* FROM unnest($1::int8[]) AS given(seq) CROSS JOIN LATERAL
       (SELECT alert, number, entry FROM alert_timeline WHERE alert = given.seq ORDER BY number DESC LIMIT 1) AS last`,
    [alerts],
  );
  return new Map(
    rows.map(({ alert, number, entry }) => [alert, { number, entry: parseExact(entry) as TimelineEntry }]),
  );
}
