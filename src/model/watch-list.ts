// Lists of addresses and domains that are managed by the API. Lists in files are part of the settings.

export const LIST_KINDS = ["any", "addresses", "domains"] as const;
export type ListKind = (typeof LIST_KINDS)[number];

export const ENTRY_TYPES = ["address", "network", "range", "domain"] as const;
export type EntryType = (typeof ENTRY_TYPES)[number];

/** As in the settings of lists in files. */
export const LIST_NAME = /^[a-z][a-z0-9_-]{0,63}$/;

export const MANAGED_LISTS_MAX = 100;
/** All entries are in memory, and a change builds the table of its list again: longer lists belong in files. */
export const LIST_ENTRIES_MAX = 20_000;
export const MANAGED_ENTRIES_MAX = 100_000;

export interface WatchList {
  readonly name: string;
  readonly description: string;
  readonly kind: ListKind;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** The name of the key that made the last change. */
  readonly author: string;
}

export interface ListEntry {
  /** In canonical form; unique in its list. */
  readonly value: string;
  readonly type: EntryType;
  readonly note: string | null;
  /** Null: never. An expired entry stays in the list but matches nothing. */
  readonly expiresAt: number | null;
  readonly addedAt: number;
  readonly author: string;
}

export function isExpired({ expiresAt }: Pick<ListEntry, "expiresAt">, nowMs: number): boolean {
  return expiresAt !== null && expiresAt <= nowMs;
}

export function allowsType(kind: ListKind, type: EntryType): boolean {
  return kind === "any" || (kind === "domains") === (type === "domain");
}
