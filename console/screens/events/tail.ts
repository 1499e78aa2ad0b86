import type { Event } from "../../data/client.ts";

// Events of the live tail: those that are shown, and those that wait while somebody reads.

export interface Tail {
  /** Newest first. */
  readonly shown: readonly Event[];
  /** Newest first. */
  readonly waiting: readonly Event[];
  /** Events that are neither shown nor waiting, because there were too many. */
  readonly skipped: number;
}

export const WAITING_MAX = 500;
/** Older ones are in the store, and in the list after the next look. */
export const SHOWN_MAX = 500;

export const EMPTY_TAIL: Tail = { shown: [], waiting: [], skipped: 0 };

/** Takes what has arrived, oldest first. */
export function arrived(tail: Tail, events: readonly Event[], isPaused: boolean): Tail {
  const known = new Set([...tail.shown, ...tail.waiting].map(({ id }) => id));
  const fresh = events.filter(({ id }) => !known.has(id) && known.add(id)).toReversed();
  if (fresh.length === 0) return tail;
  const waiting = [...fresh, ...tail.waiting];
  const held: Tail = {
    ...tail,
    waiting: waiting.slice(0, WAITING_MAX),
    skipped: tail.skipped + Math.max(0, waiting.length - WAITING_MAX),
  };
  return isPaused ? held : letIn(held);
}

/** Shows what waited. */
export function letIn({ shown, waiting, skipped }: Tail): Tail {
  const all = [...waiting, ...shown];
  return { shown: all.slice(0, SHOWN_MAX), waiting: [], skipped: skipped + Math.max(0, all.length - SHOWN_MAX) };
}
