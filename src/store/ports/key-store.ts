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

export interface KeyStore {
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
