import { carriedBy, carry, type DifferentValues } from "./different-values.ts";
import type { Groups } from "./groups.ts";

// What a threshold's group that has grown long can do without. Time is cut into lengths for it, on a grid, so that what an
// entry stands for never moves on beyond the length that it lies in, however often this is done.

/** The least part of a window that entries of one value are told apart by, and how much coarser each further try is. */
const FINEST = 64;
const COARSER = 8;

/**
 * Of many within one length of the window both ends are enough: any span of that length that has the threshold's count of
 * them has it of those as well. They have been counted, since so many have fired.
 */
export function dropDense(groups: Groups, group: number, windowMs: number, count: number): void {
  const from = groups.begin(group);
  const length = groups.length(group);
  const lengthOf = (place: number) => Math.floor(groups.time(from + place) / windowMs);
  // Twice the count lies around some two of these: where there is none, there is nothing to look for.
  let isDense = false;
  for (let place = count; place < length && !isDense; place += count)
    isDense = lengthOf(place - count) === lengthOf(place);
  if (!isDense) return;
  const dropped: number[] = [];
  for (let start = 0, end = 1; end <= length; end++) {
    if (end < length && lengthOf(end) === lengthOf(start)) continue;
    for (let place = start + count; place < end - count; place++) dropped.push(place);
    start = end;
  }
  if (dropped.length > 0) groups.dropSome(group, dropped);
}

/**
 * A value that comes again and again must not push others out: its entries that lie close together become one, the newest,
 * which stands for their events. Where that leaves more than these, the oldest go, but never the newest of a value.
 */
export function dropRepeated(
  groups: Groups,
  group: number,
  values: DifferentValues,
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
  for (let place = groups.length(group) - 1; place >= 0; place--) {
    if (!values.add(from + place)) repeated.push(place);
  }
  groups.dropSome(group, repeated.slice(-excess).reverse());
}

/** Beyond a window before the newest, where only what comes late looks, one of each window is enough. */
function mergeRepeated(
  groups: Groups,
  group: number,
  values: DifferentValues,
  { windowMs, partMs }: { readonly windowMs: number; readonly partMs: number },
): void {
  const from = groups.begin(group);
  const length = groups.length(group);
  const recentMs = groups.time(from + length - 1) - windowMs;
  const isNear = (one: number, other: number) => {
    const [oneMs, otherMs] = [groups.time(one), groups.time(other)];
    const lengthMs = oneMs >= recentMs ? partMs : windowMs;
    return oneMs >= recentMs === otherMs >= recentMs && Math.floor(oneMs / lengthMs) === Math.floor(otherMs / lengthMs);
  };
  const dropped: number[] = [];
  let isEventKept = false;
  values.clear();
  for (let place = length - 1; place >= 0; place--) {
    const entry = from + place;
    if (place + 1 === length || !isSameEvent(groups, entry, entry + 1)) isEventKept = false;
    const kept = from + values.get(entry) - 1;
    if (kept >= from && isNear(kept, entry) && groups.isCounted(kept) === groups.isCounted(entry)) {
      dropped.push(place);
      // The event itself is carried where none of its values is left to stand for it.
      const isLast = !isEventKept && (place === 0 || !isSameEvent(groups, entry, entry - 1));
      carry(groups, kept, carriedBy(groups, entry) + (isLast ? 1 : 0));
    } else {
      values.set(entry, place + 1);
      isEventKept = true;
    }
  }
  if (dropped.length > 0) groups.dropSome(group, dropped.reverse());
}

/** Several values of one event are several entries, side by side. */
export function isSameEvent(groups: Groups, one: number, other: number): boolean {
  for (let i = 0; i < 4; i++) if (groups.idWord(one, i) !== groups.idWord(other, i)) return false;
  return true;
}
