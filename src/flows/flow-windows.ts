import type { RecordBatch } from "../collectors/flows/flow-records.ts";
import { FLOW_WINDOW_MS } from "../model/flow.ts";
import { WindowTable } from "./window-table.ts";

// Windows of 60 seconds. A flow belongs to the window in which it ended: totals stay exact, each flow is in one row, and it is
// visible a minute after its exporter reported it; the row has its start time. A window is closed a grace period after its end.
// Late records get rows of their own in the next batch.

export interface FlowWindowSettings {
  /** How long a window stays open after its end. */
  readonly graceMs: number;
  /** Records of flows that ended longer ago are dropped. */
  readonly lateMaxMs: number;
  /** Rows in memory, including closed windows that are not stored yet. */
  readonly rowsMax: number;
}

export interface FlowWindowCounts {
  folded: number;
  late: number;
  earlyFlushes: number;
}

export interface ExporterRegistry {
  addressBytes(index: number): Uint8Array;
  tooLate(index: number): void;
  /** Called at least once for each batch with a record of the exporter that is not too late. */
  accepted(index: number, nowMs: number): void;
}

export class FlowWindows {
  readonly counts: FlowWindowCounts = { folded: 0, late: 0, earlyFlushes: 0 };
  readonly #settings: FlowWindowSettings;
  readonly #exporters: ExporterRegistry;
  readonly #run: string;
  readonly #onClose: (table: WindowTable) => void;
  readonly #open = new Map<number, WindowTable>();
  #tablesMade = 0;
  /** Rows of closed tables that are not stored yet. */
  #waitingRows = 0;
  #openRows = 0;
  #expectedRows = 0;

  /** `run` makes table ids unique to this start; `onClose` receives each closed table. */
  constructor(
    settings: FlowWindowSettings,
    exporters: ExporterRegistry,
    run: string,
    onClose: (table: WindowTable) => void,
  ) {
    this.#settings = settings;
    this.#exporters = exporters;
    this.#run = run;
    this.#onClose = onClose;
  }

  get openRows(): number {
    return this.#openRows;
  }

  get waitingRows(): number {
    return this.#waitingRows;
  }

  tables(): Iterable<WindowTable> {
    return this.#open.values();
  }

  add(batch: RecordBatch, nowMs: number): void {
    const { lateMaxMs } = this.#settings;
    const oldest = this.#oldestOpen(nowMs);
    const tooLate = nowMs - lateMaxMs;
    let table: WindowTable | undefined;
    let exporter = -1;
    for (let record = 0; record < batch.count; record++) {
      const lastSeen = batch.lastSeen[record]!;
      if (lastSeen < tooLate) {
        this.#exporters.tooLate(batch.exporter[record]!);
        continue;
      }
      const minute = Math.floor(lastSeen / FLOW_WINDOW_MS);
      if (minute < oldest) this.counts.late++;
      const tableMinute = minute < oldest ? oldest : minute;
      if (table?.minute !== tableMinute || this.#open.get(tableMinute) !== table) {
        table = this.#table(tableMinute);
        exporter = -1;
      }
      if (batch.exporter[record] !== exporter) {
        exporter = batch.exporter[record]!;
        this.#exporters.accepted(exporter, nowMs);
        if (!table.exporters.has(exporter)) table.exporters.set(exporter, this.#exporters.addressBytes(exporter));
      }
      this.#addRecord(table, batch, record, minute);
    }
  }

  #addRecord(table: WindowTable, batch: RecordBatch, record: number, minute: number): void {
    const { rowsMax } = this.#settings;
    const before = table.count;
    const free = rowsMax - this.#openRows - this.#waitingRows;
    if (!table.add(batch, record, minute, before + Math.max(0, free))) {
      table.addToOverflow(batch, record);
      this.counts.folded++;
    }
    this.#openRows += table.count - before;
    // Half of the rows is for open windows, half for closed ones that are not stored yet.
    if (this.#openRows >= rowsMax / 2 && this.#waitingRows === 0) {
      this.closeEarly(this.#largest());
    }
  }

  #largest(): WindowTable {
    let largest: WindowTable | undefined;
    for (const table of this.#open.values()) if (!largest || table.count > largest.count) largest = table;
    return largest!;
  }

  #table(minute: number): WindowTable {
    let table = this.#open.get(minute);
    if (!table) {
      table = new WindowTable(`${minute}-${this.#run}-${this.#tablesMade++}`, minute, this.#expectedRows);
      this.#open.set(minute, table);
    }
    return table;
  }

  /** The earliest minute whose window is open. */
  #oldestOpen(nowMs: number): number {
    return Math.floor((nowMs - this.#settings.graceMs) / FLOW_WINDOW_MS);
  }

  /** Closes the windows that are due. */
  closeDue(nowMs: number): void {
    const oldest = this.#oldestOpen(nowMs);
    for (const table of this.#open.values()) if (table.minute < oldest) this.#close(table);
  }

  /** Closes a window before it is due. */
  closeEarly(table: WindowTable): void {
    this.counts.earlyFlushes++;
    this.#close(table);
  }

  closeAll(): void {
    for (const table of this.#open.values()) this.#close(table);
  }

  #close(table: WindowTable): void {
    this.#open.delete(table.minute);
    this.#openRows -= table.count;
    this.#waitingRows += table.count;
    // The next window is likely to be as large; half the capacity saves most of the growing and wastes little.
    this.#expectedRows = table.count >> 1;
    this.#onClose(table);
  }

  /** Counts the rows of a recovered table as closed and not stored yet. */
  addRecovered(table: WindowTable): void {
    this.#waitingRows += table.count;
  }

  stored(rows: number): void {
    this.#waitingRows -= rows;
  }
}
