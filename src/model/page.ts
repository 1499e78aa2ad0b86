// How a list is walked: by numbered pages, or from an item on.

export const PER_PAGE_DEFAULT = 50;
export const PER_PAGE_MAX = 100;

export type Position =
  | { readonly mode: "page"; readonly page: number; readonly size: number }
  | { readonly mode: "cursor"; readonly after: string | undefined; readonly size: number };

/** A page of items as their JSON texts: what is stored is what is sent. */
export interface TextPage {
  readonly total: number;
  readonly items: readonly string[];
  /** In cursor mode, the id to go on from; null where the list ends. */
  readonly nextCursor: string | null;
}
