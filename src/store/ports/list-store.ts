import type { ListEntry, WatchList } from "../../model/watch-list.ts";

export interface StoredList {
  readonly list: WatchList;
  /** By value. */
  readonly entries: readonly ListEntry[];
}

export interface EntryChanges {
  /** Removes all entries first. */
  readonly isReplacement?: boolean | undefined;
  /** Adds entries, or replaces those with the same value. */
  readonly set?: readonly ListEntry[] | undefined;
  readonly removed?: readonly string[] | undefined;
}

/** Lists that are managed by the API. */
export interface ListStore {
  /** By name. */
  all(): Promise<StoredList[]>;
  /** Creates or changes a list, all or nothing. Once it resolves the change survives a crash. */
  put(list: WatchList, changes: EntryChanges): Promise<void>;
  /** Removes a list and its entries. */
  remove(name: string): Promise<void>;
}
