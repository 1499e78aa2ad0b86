import type { Fence } from "./lease-store.ts";

// The order in which the events of a cluster arrived, for engines whose shards number their own events only.

/** A shard of one incarnation of an index: an index that was removed and created again has another one. */
export interface ArrivalShard {
  readonly index: string;
  readonly incarnation: string;
  readonly shard: number;
}

/** Numbers of a shard that follow each other in the order of arrival. Some may belong to no event. */
export interface ArrivalRange extends ArrivalShard {
  readonly first: number;
  readonly last: number;
}

export interface ArrivalRow extends ArrivalRange {
  /** Rises by one with each row. */
  readonly row: number;
  /** When the numbers were complete; never less than that of the row before. */
  readonly atMs: number;
}

/** Where to go on in a shard: the first number that is in no row. */
export interface ShardPosition extends ArrivalShard {
  readonly next: number;
}

export interface ArrivalLog {
  /** Rows from this one on. */
  rows(from: number, limit: number): Promise<readonly ArrivalRow[]>;
  /** Rows up to this one, the last one first. */
  rowsBack(upTo: number, limit: number): Promise<readonly ArrivalRow[]>;
  /** The last row that there ever was, also if it has been removed; null if there never was one. */
  head(): Promise<ArrivalRow | null>;
  /** The last row that was complete before this time. */
  lastBefore(ms: number): Promise<ArrivalRow | null>;
  positions(): Promise<readonly ShardPosition[]>;
  /**
   * Adds rows and moves positions, in one transaction under the lease: rejects with LeaseLost, and changes nothing, if it is
   * over. Tells all listeners.
   */
  add(fence: Fence, atMs: number, ranges: readonly ArrivalRange[], positions: readonly ShardPosition[]): Promise<void>;
  /** Replaces the whole log, of events that were copied from another store. Nobody follows it meanwhile. */
  replace(rows: readonly ArrivalRow[], positions: readonly ShardPosition[]): Promise<void>;
  /** When numbers of this incarnation were complete last, as far as rows are kept. */
  lastOf(incarnation: string): Promise<number | null>;
  /** Rows and positions of one incarnation become those of another: its index was restored from a snapshot. */
  rename(fence: Fence, from: string, to: string): Promise<void>;
  /** Removes rows that were complete before this time, and positions of shards that are not among these incarnations. */
  prune(fence: Fence, beforeMs: number, incarnations: readonly string[]): Promise<void>;
  /** Asks whoever adds rows to do so at once. */
  request(): Promise<void>;
  /** Calls the listener when rows were added, or are requested. Returns a function that removes it. Calls may be missed. */
  listen(what: "added" | "requested", listener: () => void): () => void;
}
