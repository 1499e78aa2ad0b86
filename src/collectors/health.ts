import type { Told } from "./exporter.ts";
import type { AbsentTemplate } from "./netflow/domain.ts";
import type { ExporterState } from "./status.ts";

// How an exporter does, in a word and in a sentence. A sentence names a reason only where that reason still holds.

/** An exporter that says nothing for so long is called silent, and what is older is no news. */
const RECENT_MS = 300_000;

export interface Health {
  readonly nowMs: number;
  /** Over TCP. */
  readonly connected: boolean;
  /** Templates that data has come for and that are not there. */
  readonly missing: ReadonlyMap<number, AbsentTemplate>;
  readonly lastSeenMs: number | null;
  readonly lastRecordMs: number | null;
  readonly lastTakenMs: number | null;
  /** The last packet, or part of one, that could not be decoded. */
  readonly lastFailure: Told | null;
  readonly lastLate: Told | null;
  readonly lastUnaddressedMs: number | null;
  /** Whether it has sent templates or options. */
  readonly hasDescribed: boolean;
  /** 0 where its clock is believed. */
  readonly clockOffsetMs: number;
}

export function stateOf(health: Health): ExporterState {
  const { nowMs, missing, lastSeenMs, lastRecordMs, lastTakenMs, lastFailure, lastLate } = health;
  if (!isRecent(lastSeenMs, nowMs)) return "silent";
  const recordMs = lastRecordMs ?? 0;
  const missingSinceMs = Math.min(...Array.from(missing.values(), ({ sinceMs }) => sinceMs));
  if (missing.size > 0 && recordMs <= missingSinceMs) return "no_template";
  if (isRecent(lastLate?.atMs, nowMs) && !isRecent(lastTakenMs, nowMs)) return "failing";
  if (isRecent(lastRecordMs, nowMs)) return "receiving";
  return isRecent(lastFailure?.atMs, nowMs) && lastFailure!.atMs > recordMs ? "failing" : "no_records";
}

export function describeHealth(state: ExporterState, health: Health): string {
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
        : `packets are coming in, but cannot be used: ${lastFailure!.message}`;
    case "silent":
      return silent(health);
  }
}

function receiving(health: Health): string {
  const { nowMs, lastLate, missing, clockOffsetMs } = health;
  const notes = ["flows are coming in"];
  if (isRecent(lastLate?.atMs, nowMs)) notes[0] += `, and some of them are dropped: ${lastLate!.message}`;
  if (missing.size > 0) notes.push(describeMissing(health));
  if (clockOffsetMs !== 0) {
    const seconds = Math.round(Math.abs(clockOffsetMs) / 1000);
    const direction = clockOffsetMs > 0 ? "ahead" : "behind";
    notes.push(`its clock is ${seconds} seconds ${direction}, and the times of its flows are corrected by that`);
  }
  return notes.join("; ");
}

function describeMissing({ missing }: Health): string {
  const why = new Map<string, number[]>();
  for (const [id, absent] of missing) {
    const reason = absent.why ?? "which its exporter has not described; most send templates again within minutes";
    why.set(reason, [...(why.get(reason) ?? []), id]);
  }
  return Array.from(why, ([reason, ids]) => `data has come for template ${ids.join(", ")}, ${reason}`).join("; ");
}

function noRecords({ nowMs, lastRecordMs, lastUnaddressedMs, hasDescribed }: Health): string {
  if (isRecent(lastUnaddressedMs, nowMs))
    return "records are coming in, but none has the addresses of both ends of a flow";
  if (lastRecordMs !== null)
    return `packets are coming in, but the last flow record came ${minutes(nowMs - lastRecordMs)} ago`;
  return hasDescribed
    ? "templates or options are coming in, but no flow record yet"
    : "packets are coming in, but none holds a flow record";
}

function silent({ nowMs, connected, lastSeenMs }: Health): string {
  const who = connected ? "connected but silent" : "silent";
  return lastSeenMs === null
    ? `${who}: nothing has been sent yet`
    : `${who}: the last packet came ${minutes(nowMs - lastSeenMs)} ago`;
}

function isRecent(atMs: number | null | undefined, nowMs: number): boolean {
  return atMs !== null && atMs !== undefined && nowMs - atMs <= RECENT_MS;
}

const minutes = (ms: number) => `${Math.round(ms / 60_000)} minutes`;
