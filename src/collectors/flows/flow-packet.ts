import type { FlowExporter } from "./flow-exporter.ts";
import type { RecordBatch } from "./flow-records.ts";
import type { FlowVersion } from "./flow-status.ts";

// The input of every decoder: the bytes of one packet, its exporter, and the clock that its times refer to.

/** The longest credible duration; a flow that claims more gets its end as its start. */
const DURATION_MS_MAX = 31 * 86_400_000;
/** Flows with total counters whose last report is kept. */
const LAST_REPORTS_MAX = 65_536;

export interface ReportedCounters {
  readonly bytes: bigint;
  readonly packets: bigint;
}

/** The last reported counters of each flow; the least recently reported flow is evicted first. */
class LastReports {
  readonly #reported = new Map<string, ReportedCounters>();

  replace(key: string, totals: ReportedCounters): ReportedCounters | undefined {
    const before = this.#reported.get(key);
    this.#reported.delete(key);
    this.#reported.set(key, totals);
    if (this.#reported.size > LAST_REPORTS_MAX) this.#reported.delete(this.#reported.keys().next().value!);
    return before;
  }
}

export class FlowPacket {
  readonly batch: RecordBatch;
  readonly lastReports = new LastReports();
  readonly clockSkewMaxMs: number;
  view: DataView = new DataView(new ArrayBuffer(0));
  exporter!: FlowExporter;
  /** The source port. */
  port = 0;
  version: FlowVersion = 5;
  receivedMs = 0;
  exportMs = 0;
  /** The exporter's uptime at export; negative if the packet does not report it. */
  uptimeMs = -1;
  /** The clock correction: subtracted from every time of the packet. */
  shiftMs = 0;

  constructor(batch: RecordBatch, clockSkewMaxMs: number) {
    this.batch = batch;
    this.clockSkewMaxMs = clockSkewMaxMs;
  }

  /** Sets the packet's clock. If it is off by more than the permitted skew, times are shifted so that the export is now. */
  setClock(exportMs: number, uptimeMs: number): void {
    const { exporter } = this;
    const offsetMs = exportMs - this.receivedMs;
    this.exportMs = exportMs;
    this.uptimeMs = uptimeMs;
    const corrected = Math.abs(offsetMs) > this.clockSkewMaxMs;
    this.shiftMs = corrected ? offsetMs : 0;
    exporter.clockOffsetMs = offsetMs;
    exporter.clockCorrected = corrected;
  }

  setTimes(row: number, startMs: number, endMs: number): void {
    let end = Math.floor(endMs - this.shiftMs);
    if (!(end <= this.receivedMs + this.clockSkewMaxMs)) end = this.receivedMs;
    let start = Math.floor(startMs - this.shiftMs);
    if (!(start <= end && start >= end - DURATION_MS_MAX)) start = end;
    this.batch.firstSeen[row] = start;
    this.batch.lastSeen[row] = end;
  }
}
