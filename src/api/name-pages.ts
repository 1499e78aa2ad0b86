import type { Position } from "../model/page.ts";

/**
 * One page of items in the order of their keys. A cursor is the key of an item, and continues after it even if the item is
 * gone.
 */
export function pageByKey<Item>(
  all: readonly Item[],
  position: Position,
  keyOf: (item: Item) => string,
): { total: number; shown: readonly Item[]; nextCursor: string | null } {
  const after = position.mode === "cursor" ? position.after : undefined;
  const rest = after === undefined ? all : all.filter((item) => keyOf(item) > after);
  const first = position.mode === "page" ? (position.page - 1) * position.size : 0;
  const shown = rest.slice(first, first + position.size);
  const isLast = first + shown.length >= rest.length;
  return { total: all.length, shown, nextCursor: isLast ? null : keyOf(shown.at(-1)!) };
}
