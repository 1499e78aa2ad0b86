// Pagination: by page number or by cursor.

export const PER_PAGE_DEFAULT = 50;
export const PER_PAGE_MAX = 100;
export const CURSOR_CHARACTERS_MAX = 100;

export type Position =
  | { readonly mode: "page"; readonly page: number; readonly size: number }
  | { readonly mode: "cursor"; readonly after: string | undefined; readonly size: number };

/** A page of items as JSON texts, which are stored and sent without parsing. */
export interface TextPage {
  readonly total: number;
  readonly items: readonly string[];
  /** In cursor mode, the id to continue from; null at the end of the list. */
  readonly nextCursor: string | null;
}
