/** A place in the list's order: newest first by time, then by sequence. */
export interface ListPlace {
  readonly ts: number;
  readonly seq: number;
}

/** As lists are: below zero where `a` stands above `b`. */
export function newestFirst(a: ListPlace, b: ListPlace): number {
  return b.ts - a.ts || b.seq - a.seq;
}
