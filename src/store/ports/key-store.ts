import type { ApiKey } from "../../model/key.ts";

export interface KeyUsage {
  readonly keyId: string;
  readonly lastUsedAt: number;
  /** UTC day, in milliseconds, that the count belongs to. */
  readonly day: number;
  readonly dayCount: number;
  /** When the minute that the count belongs to is over. */
  readonly minuteEndsAt: number;
  readonly minuteCount: number;
}

/** Requests that a node may admit, and the windows that they were taken from. */
export interface TakenRequests extends KeyUsage {
  readonly granted: number;
}

/** Requests that were taken and not made, or only the last use. */
export interface UnusedRequests extends Pick<KeyUsage, "keyId" | "lastUsedAt" | "day" | "minuteEndsAt"> {
  readonly count: number;
}

export interface RequestLimits {
  readonly perMinute: number;
  readonly perDay: number | null;
}

/** How far apart the times may be that nodes count with: their clocks agree to the second, and a call may wait. */
export const USAGE_SKEW_MS = 10_000;

/** Counts of requests that several nodes share. */
export interface SharedUsage {
  /** Add this to the clock of this node for a time on which all nodes agree, to the second. */
  readonly clockOffsetMs: number;
  find(keyId: string): Promise<KeyUsage | undefined>;
  /**
   * Counts up to `wanted` requests of the key at once: fewer if its windows have fewer left. Whichever nodes do this at the same
   * time, no window ever counts more than its limit. A minute that is over, or that another clock began, begins anew.
   */
  take(keyId: string, wanted: number, limits: RequestLimits, now: number): Promise<TakenRequests>;
  /** Takes back what was counted and not made, unless its window is over, and notes the last uses. */
  giveBack(unused: readonly UnusedRequests[]): Promise<void>;
}

export interface KeyStore {
  /** Undefined if no other node counts requests. */
  readonly shared?: SharedUsage | undefined;
  /** True if the data next to the keys shows that there were some, and they were gone when the store was opened. */
  readonly wereLost: boolean;
  /**
   * Cheap enough for every request. Never older than the last change of this process, and at most a second older than that of
   * another.
   */
  find(id: string): Promise<ApiKey | undefined>;
  list(): Promise<ApiKey[]>;
  put(key: ApiKey): Promise<void>;
  /**
   * Replaces the key by what `alter` makes of the stored one, in one transaction. Undefined if there is no such key. If
   * `alter` throws, the key stays as it is.
   */
  change(id: string, alter: (key: ApiKey) => ApiKey): Promise<ApiKey | undefined>;
  /** Removes keys with their usage and sessions. Returns the given ids. */
  remove(ids: readonly string[]): Promise<readonly string[]>;
  usage(): Promise<KeyUsage[]>;
  saveUsage(usage: readonly KeyUsage[]): Promise<void>;
}
