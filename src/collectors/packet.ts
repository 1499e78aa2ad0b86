import type { Exporter } from "./exporter.ts";
import type { RecordBatch } from "./records.ts";
import type { FlowVersion } from "./status.ts";

// What every decoder is given: the bytes of one packet, who sent it, and what must be known to read its times.

/** No flow is believed to have lasted longer; its beginning is then taken to be its end. */
const DURATION_MS_MAX = 31 * 86_400_000;
/** Flows with total counters whose last report is remembered. */
const TOTALS_MAX = 65_536;

export interface Totals {
  readonly bytes: bigint;
  readonly packets: bigint;
}

/** The last report of flows, the longest unheard of forgotten first. */
class ReportedTotals {
  readonly #reported = new Map<string, Totals>();

  replace(key: string, totals: Totals): Totals | undefined {
    const before = this.#reported.get(key);
    this.#reported.delete(key);
    this.#reported.set(key, totals);
    if (this.#reported.size > TOTALS_MAX) this.#reported.delete(this.#reported.keys().next().value!);
    return before;
  }
}

export class Packet {
  readonly batch: RecordBatch;
  readonly totals = new ReportedTotals();
  readonly clockSkewMaxMs: number;
  view: DataView = new DataView(new ArrayBuffer(0));
  exporter!: Exporter;
  /** That it was sent from. */
  port = 0;
  version: FlowVersion = 5;
  receivedMs = 0;
  exportMs = 0;
  /** The exporter's uptime at export; below zero where the packet does not say. */
  uptimeMs = -1;
  /** Taken off every time of the packet, since the exporter's clock is so far ahead. */
  shiftMs = 0;

  constructor(batch: RecordBatch, clockSkewMaxMs: number) {
    this.batch = batch;
    this.clockSkewMaxMs = clockSkewMaxMs;
  }

  /** An exporter whose clock is further off than the bound is read as if it were right at the moment of export. */
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
