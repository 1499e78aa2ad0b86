import { carriedBy, carry, type DistinctValues } from "./distinct-values.ts";
import type { WindowGroups } from "./window-groups.ts";

// Compaction of a threshold's group that has grown long. Time is divided into buckets on a fixed grid, so that the events that
// an entry represents never leave their bucket, regardless of the number of compactions.

/** Merging starts within 1/64 of a window; each further attempt is 8 times as coarse. */
const FINEST = 64;
const COARSER = 8;

/**
 * Drops the middle of buckets with many entries; `count` entries at both ends suffice. Any window that reaches the count with
 * the dropped entries also reaches it with those. The dropped entries have been counted, since so many have fired.
 */
export function dropDense(groups: WindowGroups, group: number, windowMs: number, count: number): void {
  const from = groups.begin(group);
  const length = groups.length(group);
  const bucketOf = (index: number) => Math.floor(groups.time(from + index) / windowMs);
  // A bucket with twice the count contains two of these probes. Without such a bucket there is nothing to drop.
  let isDense = false;
  for (let index = count; index < length && !isDense; index += count)
    isDense = bucketOf(index - count) === bucketOf(index);
  if (!isDense) return;
  const dropped: number[] = [];
  for (let start = 0, end = 1; end <= length; end++) {
    if (end < length && bucketOf(end) === bucketOf(start)) continue;
    for (let index = start + count; index < end - count; index++) dropped.push(index);
    start = end;
  }
  if (dropped.length > 0) groups.dropSome(group, dropped);
}

/**
 * Merges repeated values, so that a frequent value does not push out others. Entries of a value that are close in time become
 * one, the newest, which represents their events. If more than `left` remain, the oldest repeats are dropped, but never the
 * newest entry of a value.
 */
export function dropRepeated(
  groups: WindowGroups,
  group: number,
  values: DistinctValues,
  { windowMs, left }: { readonly windowMs: number; readonly left: number },
): void {
  for (let part = FINEST; part >= 1 && groups.length(group) > left; part /= COARSER) {
    mergeRepeated(groups, group, values, { windowMs, partMs: windowMs / part });
  }
  const excess = groups.length(group) - left;
  if (excess <= 0) return;
  const from = groups.begin(group);
  const repeated: number[] = [];
  values.clear();
  for (let index = groups.length(group) - 1; index >= 0; index--) {
    if (!values.add(from + index)) repeated.push(index);
  }
  groups.dropSome(group, repeated.slice(-excess).reverse());
}

/** Entries older than a window only matter to late events, so one per window suffices there. */
function mergeRepeated(
  groups: WindowGroups,
  group: number,
  values: DistinctValues,
  { windowMs, partMs }: { readonly windowMs: number; readonly partMs: number },
): void {
  const from = groups.begin(group);
  const length = groups.length(group);
  const recentMs = groups.time(from + length - 1) - windowMs;
  const isClose = (one: number, other: number) => {
    const [oneMs, otherMs] = [groups.time(one), groups.time(other)];
    const bucketMs = oneMs >= recentMs ? partMs : windowMs;
    return oneMs >= recentMs === otherMs >= recentMs && Math.floor(oneMs / bucketMs) === Math.floor(otherMs / bucketMs);
  };
  const dropped: number[] = [];
  let isEventKept = false;
  values.clear();
  for (let index = length - 1; index >= 0; index--) {
    const entry = from + index;
    if (index + 1 === length || !isSameEvent(groups, entry, entry + 1)) isEventKept = false;
    const kept = from + values.get(entry) - 1;
    if (kept >= from && isClose(kept, entry) && groups.isCounted(kept) === groups.isCounted(entry)) {
      dropped.push(index);
      // Carry the event itself if none of its values remains.
      const isLast = !isEventKept && (index === 0 || !isSameEvent(groups, entry, entry - 1));
      carry(groups, kept, carriedBy(groups, entry) + (isLast ? 1 : 0));
    } else {
      values.set(entry, index + 1);
      isEventKept = true;
    }
  }
  if (dropped.length > 0) groups.dropSome(group, dropped.reverse());
}

/** True if two entries are values of one event or occurrence. Such entries are adjacent. */
export function isSameEvent(groups: WindowGroups, one: number, other: number): boolean {
  for (let i = 0; i < groups.idWords; i++) if (groups.idWord(one, i) !== groups.idWord(other, i)) return false;
  return true;
}
