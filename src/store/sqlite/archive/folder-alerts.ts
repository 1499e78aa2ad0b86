import { parseExact } from "../../../lib/exact-json.ts";
import type { AlertSummary, TimelineEntry } from "../../../model/alert.ts";
import type { EventMark } from "../../../model/finding.ts";
import type { CaseRecord } from "../../ports/archive.ts";
import { hashOfTexts } from "../../alert-index/alert-cells.ts";
import { textWords } from "../../search/indexed-words.ts";
import { alertTexts } from "../../search/text-matcher.ts";
import { RelatedEvents } from "../cases/alert-row-fields.ts";
import { writeRow } from "../cases/alert-row.ts";
import type { Statements } from "../cases/prepared-statements.ts";
import { WordIndex } from "../cases/word-index.ts";

// Alerts of a data folder with everything that belongs to them, as records.

const PAGE_ALERTS = 100;

interface FolderAlertRow {
  readonly seq: number;
  readonly id: string;
  readonly change: number;
  readonly document: string;
  readonly events: string;
}

export function* readAlerts(sql: Statements): Generator<readonly CaseRecord[]> {
  const page = sql.read(
    `SELECT seq, id, change, document, events FROM alerts JOIN documents USING (seq) JOIN related USING (seq)
     WHERE id > ? ORDER BY id LIMIT ${PAGE_ALERTS}`,
  );
  const older = sql.read("SELECT at, event FROM older_events WHERE alert = ? ORDER BY at, event");
  const timeline = sql.read("SELECT entry FROM timeline WHERE alert = ? ORDER BY number");
  for (let after = ""; ;) {
    const rows = page.all(after) as unknown as FolderAlertRow[];
    if (rows.length === 0) return;
    yield rows.map(({ seq, id, change, document, events }) => ({
      id,
      change,
      document,
      events,
      older: (older.all(seq) as unknown as { at: number; event: string }[]).map(({ at, event }) => [at, event]),
      timeline: (timeline.all(seq) as { entry: string }[]).map(({ entry }) => entry),
    }));
    after = rows.at(-1)!.id;
  }
}

/** Must run in a transaction. Alerts that exist stay: they were written as a whole. */
export function writeAlerts(sql: Statements, records: readonly CaseRecord[]): void {
  const words = new WordIndex(sql);
  const relatedEvents = new RelatedEvents(sql);
  const known = sql.read("SELECT 1 FROM alerts WHERE id = ?");
  let { seq } = sql.read("SELECT coalesce(max(seq), 0) AS seq FROM alerts").get() as { seq: number };
  for (const record of records) {
    const id = record["id"] as string;
    if (known.get(id)) continue;
    seq++;
    const document = record["document"] as string;
    const events = record["events"] as string;
    const alert = parseExact(document) as AlertSummary;
    const texts = alertTexts(alert);
    writeRow(sql, alert, { seq, change: record["change"] as number, textHash: hashOfTexts(texts) });
    words.add(seq - 1, textWords(texts));
    sql.run("INSERT INTO documents(seq, document) VALUES (?, ?)", seq, document);
    sql.run("INSERT INTO related(seq, events) VALUES (?, ?)", seq, events);
    const older = (record["older"] as [number, string][]).map(([timestampMs, event]) => ({ id: event, timestampMs }));
    relatedEvents.add(seq, [...(JSON.parse(events) as EventMark[]), ...older]);
    for (const mark of older) sql.run("INSERT INTO older_events VALUES (?, ?, ?)", seq, mark.timestampMs, mark.id);
    for (const [place, entry] of (record["timeline"] as string[]).entries()) {
      const { kind } = parseExact(entry) as TimelineEntry;
      sql.run("INSERT INTO timeline(alert, number, kind, entry) VALUES (?, ?, ?, ?)", seq, place + 1, kind, entry);
    }
  }
  words.write();
}
