import type { Entries, Steps } from "./steps.ts";

// What a group forgets when it has too many entries. Somebody who repeats some steps without end must not hide the others:
// what a sequence needs that later events would complete is kept. Of the rest the commonest kind is thinned out, so that
// what is seldom stays, for events that come late and for a second sequence.

export interface Crowd {
  readonly entries: Entries;
  readonly length: number;
  readonly steps: Steps;
  readonly windowMs: number;
  /** The time of the event that comes. */
  readonly timestampMs: number;
}

/** The places of so many entries, rising, out of more than those that one sequence takes. */
export function entriesToDrop(crowd: Crowd, count: number): number[] {
  const { entries, length } = crowd;
  const kept = vitalEntries(crowd, length - count);
  const kinds = new Map<number, number[]>();
  for (let i = 0; i < length; i++) {
    if (kept.has(i)) continue;
    const kind = kinds.get(entries.steps(i));
    if (kind) kind.push(i);
    else kinds.set(entries.steps(i), [i]);
  }
  const dropped = new Set<number>();
  while (dropped.size < count) {
    const [steps, places] = [...kinds].reduce((most, kind) => (kind[1].length > most[1].length ? kind : most));
    // Every second one, the older ones first: what lies further back gets less and less.
    for (let i = places.length === 1 ? 0 : 1; i < places.length && dropped.size < count; i += 2)
      dropped.add(places[i]!);
    kinds.set(
      steps,
      places.filter((place) => !dropped.has(place)),
    );
  }
  return [...dropped].sort((a, b) => a - b);
}

/** Entries without which events in the order of their times, from the one that comes on, could fail to make a sequence. */
function vitalEntries({ entries, length, steps, windowMs, timestampMs }: Crowd, most: number): Set<number> {
  const vital = new Set<number>();
  const keep = (places: readonly number[]) => {
    const more = places.filter((place) => !vital.has(place));
    if (vital.size + more.length <= most) for (const place of more) vital.add(place);
  };
  // Late events mostly come in the order of their times too, and newer ones go on beside them.
  const newestMs = entries.time(length - 1);
  for (const atMs of timestampMs < newestMs ? [timestampMs, newestMs] : [timestampMs]) {
    const start = firstFrom(entries, length, atMs - windowMs);
    const end = firstFrom(entries, length, atMs + 1);
    // In order, those of the moment itself may be steps before or after those that are still to come in it.
    const moment = steps.inOrder ? firstFrom(entries, length, atMs) : end;
    for (const beginning of steps.beginnings(entries, start, moment)) keep(beginning);
    // The last one of a step that must not happen stands between all that came before it and all that comes.
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

/** How many of the entries are older. */
function firstFrom(entries: Entries, length: number, ms: number): number {
  let place = length;
  while (place > 0 && entries.time(place - 1) >= ms) place--;
  return place;
}

/** The place of the last of these entries that is this step; below 0 when none is. */
function lastOf(entries: Entries, length: number, bit: number): number {
  let place = length - 1;
  while (place >= 0 && (entries.steps(place) & bit) === 0) place--;
  return place;
}
