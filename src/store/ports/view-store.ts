import type { SavedView, Screen } from "../../model/view.ts";

export interface ViewFilter {
  /** The views of this key, and those that others share. */
  readonly keyId: string;
  readonly screen?: Screen | undefined;
}

export interface ViewLimits {
  readonly perKeyMax: number;
  readonly sharedMax: number;
}

/** `key_full`, `shared_full`: a limit is reached. `changed`: the view was edited or removed since the caller read it. */
export type ViewRefusal = "key_full" | "shared_full" | "changed";

export interface ViewPage {
  readonly total: number;
  readonly views: readonly SavedView[];
}

/**
 * Saved views. The positions of an owner's views of one screen are 0, 1, 2 and so on: whatever adds, moves or removes one
 * shifts the others.
 */
export interface ViewStore {
  /** The key's own views first, by screen and position, then the shared ones of others, by screen and id. */
  list(filter: ViewFilter, page: number, size: number): Promise<ViewPage>;
  get(id: string): Promise<SavedView | undefined>;
  /** Adds a view at its position, or at the end if that is less. Returns it as stored. */
  add(view: SavedView, limits: ViewLimits): Promise<SavedView | ViewRefusal>;
  /** Replaces the view of the revision before and moves it to its position. Owner and screen cannot change. */
  put(view: SavedView, limits: ViewLimits): Promise<SavedView | ViewRefusal>;
  /**
   * Puts these views first, in this order; the owner's other views of the screen keep theirs behind them. False if one is
   * not a view of this owner and screen; then nothing changes.
   */
  arrange(owner: string, screen: Screen, ids: readonly string[]): Promise<boolean>;
  /** False if there is no such view. */
  remove(id: string): Promise<boolean>;
  /** Removes the views of these owners that are not shared. Returns their number. */
  removeUnshared(owners: readonly string[]): Promise<number>;
}
