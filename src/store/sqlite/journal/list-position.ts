/** A place in the list's order: newest first by time, then by sequence. */
export interface ListPlace {
  readonly ts: number;
  readonly seq: number;
}

/** Compares in list order: negative if `a` comes before `b`. */
export function newestFirst(a: ListPlace, b: ListPlace): number {
  return b.ts - a.ts || b.seq - a.seq;
}
