import type { TimelineEntry } from "../../model/alert.ts";

/**
 * Consecutive additions of events become one entry with their total count and the time of the last. An addition that raised
 * the severity starts a new entry.
 */
export function foldEntries(last: TimelineEntry, next: TimelineEntry): TimelineEntry | undefined {
  if (last.kind !== "events_added" || next.kind !== "events_added" || last.actor !== next.actor) return undefined;
  if (next.severity !== undefined) return undefined;
  const { silentSince = last.silentSince } = next;
  return { ...last, at: next.at, count: last.count + next.count, ...(silentSince !== undefined && { silentSince }) };
}
