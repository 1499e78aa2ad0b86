import { KEY_WORDS, readWords, type EventKey } from "./event-key.ts";
import type { WindowGroups } from "./window-groups.ts";
import { isSameEvent } from "./threshold-compaction.ts";
import type { Mark, WindowFiring } from "./tracked-match.ts";

/** A range of entries of a group by index; `end` is exclusive. */
export interface EntrySpan {
  readonly first: number;
  readonly end: number;
}

/**
 * Counts the entries of a span that no firing has counted, newest first. `carriedBy` returns the further events that an entry
 * represents, if an event may have several adjacent entries. Without it, each entry is one event.
 */
export function countSpan(
  groups: WindowGroups,
  group: number,
  span: EntrySpan | undefined,
  carriedBy?: (entry: number) => number,
): WindowFiring | undefined {
  if (!span) return undefined;
  const from = groups.begin(group);
  const marks: Mark<EventKey>[] = [];
  let count = 0;
  let firstMs = Infinity;
  let lastMs = -Infinity;
  for (let index = span.end - 1; index >= span.first && groups.uncounted(group) > 0; index--) {
    const at = from + index;
    if (groups.isCounted(at)) continue;
    groups.count(group, at);
    if (carriedBy) {
      count += carriedBy(at);
      if (index + 1 < span.end && isSameEvent(groups, at, at + 1)) continue;
    }
    count++;
    const mark = markOf(groups, at);
    firstMs = Math.min(firstMs, mark.timestampMs);
    lastMs = Math.max(lastMs, mark.timestampMs);
    marks.push(mark);
  }
  return { count, firstMs, lastMs, marks };
}

/** The event or occurrence of an entry. */
export function markOf(groups: WindowGroups, entry: number): Mark<EventKey> {
  const id = readWords((word) => groups.idWord(entry, word));
  const timestampMs = groups.time(entry);
  if (groups.idWords === KEY_WORDS) return { id, timestampMs };
  return { id, timestampMs, occurrence: groups.idWord(entry, KEY_WORDS) };
}

/** Removes counted entries, so that they do not fire again. */
export function dropCounted(groups: WindowGroups, group: number): void {
  const from = groups.begin(group);
  const counted: number[] = [];
  for (let index = 0; index < groups.length(group); index++) if (groups.isCounted(from + index)) counted.push(index);
  groups.dropSome(group, counted);
}
