import type { JsonObject } from "../../model/event.ts";

/** A third party's report about an address. */
export interface Reputation {
  readonly address: string;
  readonly checkedAt: number;
  /** As it stands in the enrichment of events. */
  readonly report: JsonObject;
}

/** Reputations that several nodes look up. */
export interface SharedReputations {
  /** What any node has found out at this time or later. */
  find(address: string, sinceMs: number): Promise<Reputation | undefined>;
  /** Counts one more look-up of the day. Returns the number, or undefined if there are `max` already. */
  reserve(day: number, max: number): Promise<number | undefined>;
}

/** A cache of reputations that were looked up, and how many look-ups were made. */
export interface ReputationStore {
  /** Undefined if no other node looks up reputations. */
  readonly shared?: SharedReputations | undefined;
  /** Checked at this time or later, the newest first. */
  since(ms: number, limit: number): Promise<Reputation[]>;
  put(reputation: Reputation): Promise<void>;
  removeBefore(ms: number): Promise<void>;
  /** Look-ups of the UTC day that begins at this time. */
  lookups(day: number): Promise<number>;
  /** Forgets earlier days. */
  saveLookups(day: number, count: number): Promise<void>;
}
