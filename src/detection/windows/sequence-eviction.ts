import type { SequenceEntries, SequenceSteps } from "./sequence-steps.ts";

// Eviction from a group with too many entries. Endless repetition of some steps must not push out the others: entries that a
// later event could complete to a sequence stay. Of the rest, the most common kind is evicted first, so that rare entries
// stay for late events and for a second sequence.

export interface FullGroup {
  readonly entries: SequenceEntries;
  readonly length: number;
  readonly steps: SequenceSteps;
  readonly windowMs: number;
  /** The time of the new event. */
  readonly timestampMs: number;
}

/** Indices of `count` entries to evict, ascending. The group must have more entries than one sequence takes. */
export function entriesToEvict(group: FullGroup, count: number): number[] {
  const { entries, length } = group;
  const kept = vitalEntries(group, length - count);
  const kinds = new Map<number, number[]>();
  for (let i = 0; i < length; i++) {
    if (kept.has(i)) continue;
    const kind = kinds.get(entries.steps(i));
    if (kind) kind.push(i);
    else kinds.set(entries.steps(i), [i]);
  }
  const dropped = new Set<number>();
  while (dropped.size < count) {
    const [steps, indices] = [...kinds].reduce((most, kind) => (kind[1].length > most[1].length ? kind : most));
    // Every second entry, older ones first, so that the past becomes sparser with age.
    for (let i = indices.length === 1 ? 0 : 1; i < indices.length && dropped.size < count; i += 2)
      dropped.add(indices[i]!);
    kinds.set(
      steps,
      indices.filter((index) => !dropped.has(index)),
    );
  }
  return [...dropped].sort((a, b) => a - b);
}

/** Entries without which ordered events, from the new one on, might fail to complete a sequence. */
function vitalEntries({ entries, length, steps, windowMs, timestampMs }: FullGroup, most: number): Set<number> {
  const vital = new Set<number>();
  const keep = (indices: readonly number[]) => {
    const more = indices.filter((index) => !vital.has(index));
    if (vital.size + more.length <= most) for (const index of more) vital.add(index);
  };
  // Late events mostly arrive in order too, interleaved with newer ones.
  const newestMs = entries.time(length - 1);
  for (const atMs of timestampMs < newestMs ? [timestampMs, newestMs] : [timestampMs]) {
    const start = countBefore(entries, length, atMs - windowMs);
    const end = countBefore(entries, length, atMs + 1);
    // In an ordered sequence, entries with this timestamp may be steps before or after those still to come.
    const moment = steps.inOrder ? countBefore(entries, length, atMs) : end;
    for (const beginning of steps.beginnings(entries, start, moment)) keep(beginning);
    // The last entry of an absent step separates everything before it from everything after it.
    for (let bits = steps.absent; bits !== 0; bits &= bits - 1) {
      const last = lastOf(entries, end, bits & -bits);
      if (last >= 0) keep([last]);
    }
    const left = new Map<number, number>();
    for (let i = moment; i < end; i++) {
      const kind = entries.steps(i);
      const usable = left.get(kind) ?? steps.usable(kind);
      if (usable > 0) keep([i]);
      left.set(kind, usable - 1);
    }
  }
  return vital;
}

/** Number of entries that are older. */
function countBefore(entries: SequenceEntries, length: number, ms: number): number {
  let index = length;
  while (index > 0 && entries.time(index - 1) >= ms) index--;
  return index;
}

/** Index of the last of these entries that is this step; -1 if none is. */
function lastOf(entries: SequenceEntries, length: number, bit: number): number {
  let index = length - 1;
  while (index >= 0 && (entries.steps(index) & bit) === 0) index--;
  return index;
}
