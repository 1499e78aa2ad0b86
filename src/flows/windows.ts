import type { RecordBatch } from "../collectors/records.ts";
import { FLOW_WINDOW_MS } from "../model/flow.ts";
import { FlowTable } from "./table.ts";

// Windows of 60 seconds. A flow belongs to the one in which it ended: that keeps every total exact, puts a flow into one
// row, and lets it be seen a minute after its exporter told of it; when it began stands in the row. A window is closed a
// grace after its end; what comes later gets rows of its own in the next batch that is written.

export interface WindowSettings {
  /** How long after its end a window waits for records. */
  readonly graceMs: number;
  /** Records of flows that ended longer ago are dropped. */
  readonly lateMaxMs: number;
  /** Rows in memory, closed windows that are not stored yet included. */
  readonly rowsMax: number;
}

export interface WindowCounts {
  folded: number;
  late: number;
  earlyFlushes: number;
}

export interface ExporterBook {
  addressBytes(index: number): Uint8Array;
  tooLate(index: number): void;
  /** At least once for each batch that has a record of it which is not too late. */
  taken(index: number, nowMs: number): void;
}

export class Windows {
  readonly counts: WindowCounts = { folded: 0, late: 0, earlyFlushes: 0 };
  readonly #settings: WindowSettings;
  readonly #book: ExporterBook;
  readonly #run: string;
  readonly #closed: (table: FlowTable) => void;
  readonly #open = new Map<number, FlowTable>();
  #made = 0;
  /** Rows of tables that were closed and are not stored yet. */
  #waitingRows = 0;
  #openRows = 0;
  #usual = 0;

  /** `run` tells tables of this start from those of others; `closed` is given each table that takes no more. */
  constructor(settings: WindowSettings, book: ExporterBook, run: string, closed: (table: FlowTable) => void) {
    this.#settings = settings;
    this.#book = book;
    this.#run = run;
    this.#closed = closed;
  }

  get openRows(): number {
    return this.#openRows;
  }

  get waitingRows(): number {
    return this.#waitingRows;
  }

  tables(): Iterable<FlowTable> {
    return this.#open.values();
  }

  add(batch: RecordBatch, nowMs: number): void {
    const { lateMaxMs } = this.#settings;
    const oldest = this.#oldestOpen(nowMs);
    const tooLate = nowMs - lateMaxMs;
    let table: FlowTable | undefined;
    let exporter = -1;
    for (let record = 0; record < batch.count; record++) {
      const lastSeen = batch.lastSeen[record]!;
      if (lastSeen < tooLate) {
        this.#book.tooLate(batch.exporter[record]!);
        continue;
      }
      const minute = Math.floor(lastSeen / FLOW_WINDOW_MS);
      if (minute < oldest) this.counts.late++;
      const home = minute < oldest ? oldest : minute;
      if (table?.minute !== home || this.#open.get(home) !== table) {
        table = this.#table(home);
        exporter = -1;
      }
      if (batch.exporter[record] !== exporter) {
        exporter = batch.exporter[record]!;
        this.#book.taken(exporter, nowMs);
        if (!table.exporters.has(exporter)) table.exporters.set(exporter, this.#book.addressBytes(exporter));
      }
      this.#place(table, batch, record, minute);
    }
  }

  #place(table: FlowTable, batch: RecordBatch, record: number, minute: number): void {
    const { rowsMax } = this.#settings;
    const before = table.count;
    const room = rowsMax - this.#openRows - this.#waitingRows;
    if (!table.add(batch, record, minute, before + Math.max(0, room))) {
      table.addToOther(batch, record);
      this.counts.folded++;
    }
    this.#openRows += table.count - before;
    // Half is for the windows that are open, half for those that the store has yet to take.
    if (this.#openRows >= rowsMax / 2 && this.#waitingRows === 0) {
      this.closeEarly(this.#largest());
    }
  }

  #largest(): FlowTable {
    let largest: FlowTable | undefined;
    for (const table of this.#open.values()) if (!largest || table.count > largest.count) largest = table;
    return largest!;
  }

  #table(minute: number): FlowTable {
    let table = this.#open.get(minute);
    if (!table) {
      table = new FlowTable(`${minute}-${this.#run}-${this.#made++}`, minute, this.#usual);
      this.#open.set(minute, table);
    }
    return table;
  }

  /** The first minute that still takes records of its own. */
  #oldestOpen(nowMs: number): number {
    return Math.floor((nowMs - this.#settings.graceMs) / FLOW_WINDOW_MS);
  }

  /** Closes the windows whose time has come. */
  closeDue(nowMs: number): void {
    const oldest = this.#oldestOpen(nowMs);
    for (const table of this.#open.values()) if (table.minute < oldest) this.#close(table);
  }

  /** Closes a window before its time. */
  closeEarly(table: FlowTable): void {
    this.counts.earlyFlushes++;
    this.#close(table);
  }

  closeAll(): void {
    for (const table of this.#open.values()) this.#close(table);
  }

  #close(table: FlowTable): void {
    this.#open.delete(table.minute);
    this.#openRows -= table.count;
    this.#waitingRows += table.count;
    // The next window is likely to be as large; half the room saves most of the growing and wastes little.
    this.#usual = table.count >> 1;
    this.#closed(table);
  }

  /** Rows of a table from before the last stop, which wait like those of one closed now. */
  readmit(table: FlowTable): void {
    this.#waitingRows += table.count;
  }

  stored(rows: number): void {
    this.#waitingRows -= rows;
  }
}
