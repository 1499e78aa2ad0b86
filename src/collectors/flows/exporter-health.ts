import { unreachable } from "../../lib/unreachable.ts";
import type { ExporterState, TimedMessage } from "./flow-status.ts";
import type { AbsentTemplate } from "./netflow/absent-templates.ts";

// The state of an exporter and the sentence that explains it. The sentence gives a reason only while that reason still holds.

/** An exporter without packets for this long is silent; older observations are not reported. */
const SILENT_AFTER_MS = 300_000;

export interface ExporterHealth {
  readonly nowMs: number;
  /** True while it has a TCP connection. */
  readonly connected: boolean;
  /** Templates that recent data needs and that are not there. */
  readonly missing: ReadonlyMap<number, AbsentTemplate>;
  readonly lastSeenMs: number | null;
  readonly lastRecordMs: number | null;
  readonly lastAcceptedMs: number | null;
  /** The last packet, or part of a packet, that could not be decoded. */
  readonly lastFailure: TimedMessage | null;
  readonly lastLate: TimedMessage | null;
  readonly lastUnaddressedMs: number | null;
  /** True if it has sent templates or options. */
  readonly hasTemplatesOrOptions: boolean;
  /** 0 unless its times are being corrected. */
  readonly clockOffsetMs: number;
}

export function exporterState(health: ExporterHealth): ExporterState {
  const { nowMs, missing, lastSeenMs, lastRecordMs, lastAcceptedMs, lastFailure, lastLate } = health;
  if (!isRecent(lastSeenMs, nowMs)) return "silent";
  const recordMs = lastRecordMs ?? 0;
  const missingSinceMs = Math.min(...Array.from(missing.values(), ({ sinceMs }) => sinceMs));
  if (missing.size > 0 && recordMs <= missingSinceMs) return "no_template";
  if (isRecent(lastLate?.atMs, nowMs) && !isRecent(lastAcceptedMs, nowMs)) return "failing";
  if (isRecent(lastRecordMs, nowMs)) return "receiving";
  return isRecent(lastFailure?.atMs, nowMs) && lastFailure!.atMs > recordMs ? "failing" : "no_records";
}

export function describeHealth(state: ExporterState, health: ExporterHealth): string {
  const { nowMs, lastFailure, lastLate } = health;
  switch (state) {
    case "receiving":
      return receiving(health);
    case "no_template":
      return `no template yet: ${describeMissing(health)}`;
    case "no_records":
      return noRecords(health);
    case "failing":
      return isRecent(lastLate?.atMs, nowMs)
        ? `flows are coming in, but all of them are dropped: ${lastLate!.message}`
        : `packets are coming in, but cannot be decoded: ${lastFailure!.message}`;
    case "silent":
      return silent(health);
    default:
      return unreachable(state);
  }
}

function receiving(health: ExporterHealth): string {
  const { nowMs, lastLate, missing, clockOffsetMs } = health;
  const notes = ["flows are coming in"];
  if (isRecent(lastLate?.atMs, nowMs)) notes[0] += `, but some of them are dropped: ${lastLate!.message}`;
  if (missing.size > 0) notes.push(describeMissing(health));
  if (clockOffsetMs !== 0) {
    const seconds = Math.round(Math.abs(clockOffsetMs) / 1000);
    const direction = clockOffsetMs > 0 ? "ahead" : "behind";
    notes.push(`its clock is ${seconds} seconds ${direction}; the times of its flows are corrected`);
  }
  return notes.join("; ");
}

function describeMissing({ missing }: ExporterHealth): string {
  const idsByReason = new Map<string, number[]>();
  for (const [id, absent] of missing) {
    const reason =
      absent.reason ?? "which the exporter has not sent yet; most exporters resend templates within minutes";
    idsByReason.set(reason, [...(idsByReason.get(reason) ?? []), id]);
  }
  return Array.from(idsByReason, ([reason, ids]) => `data needs template ${ids.join(", ")}, ${reason}`).join("; ");
}

function noRecords({ nowMs, lastRecordMs, lastUnaddressedMs, hasTemplatesOrOptions }: ExporterHealth): string {
  if (isRecent(lastUnaddressedMs, nowMs))
    return "records are coming in, but they have no source and destination address";
  if (lastRecordMs !== null)
    return `packets are coming in, but the last flow record arrived ${minutes(nowMs - lastRecordMs)} ago`;
  return hasTemplatesOrOptions
    ? "templates or options are coming in, but no flow record yet"
    : "packets are coming in, but without flow records";
}

function silent({ nowMs, connected, lastSeenMs }: ExporterHealth): string {
  const state = connected ? "connected but silent" : "silent";
  return lastSeenMs === null
    ? `${state}: nothing received yet`
    : `${state}: the last packet arrived ${minutes(nowMs - lastSeenMs)} ago`;
}

function isRecent(atMs: number | null | undefined, nowMs: number): boolean {
  return atMs !== null && atMs !== undefined && nowMs - atMs <= SILENT_AFTER_MS;
}

const minutes = (ms: number) => `${Math.round(ms / 60_000)} minutes`;
