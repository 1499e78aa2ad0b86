import type { AlertEntities } from "../../../model/alert-entity.ts";
import type { EventMark } from "../../../model/finding.ts";
import type { AlertChanges, ChangedAlert, NewTimelineEntry } from "../../ports/alert-store.ts";
import { textWords } from "../../search/indexed-words.ts";
import { alertTexts } from "../../search/text-matcher.ts";
import type { AlertCells, AlertColumns } from "../../alert-index/alert-columns.ts";
import type { AlertDocuments } from "./alert-documents.ts";
import { cellsOf, hashOfTexts } from "../../alert-index/alert-cells.ts";
import { entitiesText, writeRow } from "./alert-row.ts";
import type { RelatedEvents } from "./alert-row-fields.ts";
import type { Definitions } from "./definition-table.ts";
import type { OlderEvents } from "./older-events.ts";
import type { Statements } from "./prepared-statements.ts";
import type { Timelines } from "./timeline-table.ts";
import type { WordIndex } from "./word-index.ts";

/** Limits of one batch of a removal, so that other calls do not wait long. */
const REMOVAL_ALERTS_MAX = 200;
const REMOVAL_ROWS_MAX = 1000;

interface WrittenAlert {
  readonly cells: AlertCells;
  readonly isNew: boolean;
  readonly id: string;
}

interface Removal {
  readonly removed: number;
  readonly next: number | null;
  /** Updates the columns; call it once the transaction is committed. */
  readonly done: () => void;
}

/** The highest id, empty for none, and the number of the last change. */
export interface LastAlert {
  readonly id: string;
  readonly change: number;
}

export interface AlertWriterOptions {
  readonly sql: Statements;
  readonly columns: AlertColumns;
  readonly documents: AlertDocuments;
  readonly words: WordIndex;
  readonly timelines: Timelines;
  readonly definitions: Definitions;
  readonly relatedEvents: RelatedEvents;
  readonly olderEvents: OlderEvents;
  /** Called with the slots of removed alerts, before others use them. */
  readonly onRemoved: (slots: readonly number[]) => void;
  readonly last: LastAlert;
}

/** Changes alerts with everything that belongs to them. Columns change only after a transaction is committed. */
export class AlertWriter {
  readonly #sql: Statements;
  readonly #columns: AlertColumns;
  readonly #documents: AlertDocuments;
  readonly #words: WordIndex;
  readonly #timelines: Timelines;
  readonly #definitions: Definitions;
  readonly #relatedEvents: RelatedEvents;
  readonly #olderEvents: OlderEvents;
  readonly #onRemoved: AlertWriterOptions["onRemoved"];
  #lastId: string;
  #lastChange: number;

  constructor(options: AlertWriterOptions) {
    this.#sql = options.sql;
    this.#columns = options.columns;
    this.#documents = options.documents;
    this.#words = options.words;
    this.#timelines = options.timelines;
    this.#definitions = options.definitions;
    this.#relatedEvents = options.relatedEvents;
    this.#olderEvents = options.olderEvents;
    this.#onRemoved = options.onRemoved;
    this.#lastId = options.last.id;
    this.#lastChange = options.last.change;
  }

  get last(): LastAlert {
    return { id: this.#lastId, change: this.#lastChange };
  }

  /** Must run in a transaction. The returned function updates the columns; call it once the transaction is committed. */
  fillEntities(found: readonly ({ readonly id: string } & AlertEntities)[]): () => void {
    this.#words.discard();
    const changed: AlertCells[] = [];
    for (const { id, ...entities } of found) {
      const slot = this.#documents.slotOf(id);
      if (slot === null) continue;
      const { entities: known, ...alert } = this.#documents.summaryOf(slot);
      if (known) continue;
      const filled = { ...alert, ...entities };
      const texts = alertTexts(filled);
      this.#indexTexts(slot, texts, true);
      this.#sql.run(
        "UPDATE alerts SET entities = ?, text_hash = ? WHERE seq = ?",
        entitiesText(filled),
        hashOfTexts(texts),
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
    const { entities, entitiesCut } = this.#documents.summaryOf(slot);
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
      const alert = this.#documents.summaryOf(slot);
      if (!release(alert.id)) continue;
      const words = textWords(alertTexts(alert));
      this.#words.remove(slot, words);
      const seq = slot + 1;
      const events = [...(JSON.parse(this.#documents.eventsOf(slot)) as EventMark[]), ...this.#olderEvents.remove(seq)];
      this.#relatedEvents.remove(seq, events);
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
      this.#onRemoved(gone);
    };
    return { removed: gone.length, next, done };
  }

  /** Must run in a transaction. `slots` has the slots that the caller knows. */
  addEntries(timeline: readonly NewTimelineEntry[], slots: ReadonlyMap<string, number> = new Map()): void {
    for (const { alertId, entry } of timeline) {
      const slot = slots.get(alertId) ?? this.#documents.slotOf(alertId);
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
    const textHash = hashOfTexts(texts);
    writeRow(this.#sql, alert, { seq, change, textHash });
    if (textHash !== knownHash) this.#indexTexts(seq - 1, texts, knownHash !== undefined);
    this.#sql.run("INSERT OR REPLACE INTO documents(seq, document) VALUES (?, ?)", seq, JSON.stringify(alert));
    const before = knownHash === undefined ? undefined : (JSON.parse(this.#documents.eventsOf(seq - 1)) as EventMark[]);
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
    this.#relatedEvents.remove(seq, before?.filter(({ id }) => !kept.has(id)) ?? []);
    this.#relatedEvents.add(
      seq,
      [...related, ...older].filter(({ id }) => !known.has(id)),
    );
    this.#sql.run("INSERT OR REPLACE INTO related(seq, events) VALUES (?, ?)", seq, JSON.stringify(related));
    if (older.length > 0) this.#relatedEvents.remove(seq, this.#olderEvents.add(seq, older));
  }

  #indexTexts(slot: number, texts: readonly string[], isChange: boolean): void {
    const words = textWords(texts);
    const before = isChange ? textWords(alertTexts(this.#documents.summaryOf(slot))) : new Set<string>();
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
