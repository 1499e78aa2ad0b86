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

/** Lists that several nodes change. */
export interface SharedLists {
  get(name: string): Promise<StoredList | undefined>;
  /**
   * Calls the listener with the name of a list that another node changed, and with undefined when changes may have been missed.
   * Returns a function that removes it.
   */
  onChange(listener: (name: string | undefined) => void): () => void;
}

/** Lists that are managed by the API. */
export interface ListStore {
  /** Undefined if no other node changes lists. */
  readonly shared?: SharedLists | undefined;
  /** By name. */
  all(): Promise<StoredList[]>;
  /** Creates or changes a list, all or nothing. Once it resolves the change survives a crash. */
  put(list: WatchList, changes: EntryChanges): Promise<void>;
  /** Removes a list and its entries. */
  remove(name: string): Promise<void>;
}
