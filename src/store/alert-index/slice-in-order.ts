/**
 * The items from `start` to `end` in sorted order, by quickselect: a page costs a few passes, no matter how deep it is.
 * Reorders `items`.
 */
export function sliceInOrder(
  items: Uint32Array,
  start: number,
  end: number,
  isBefore: (a: number, b: number) => boolean,
): number[] {
  if (start >= items.length) return [];
  const last = Math.min(end, items.length);
  partition(items, start, 0, items.length, isBefore);
  partition(items, last, start, items.length, isBefore);
  return [...items.subarray(start, last)].sort((a, b) => (isBefore(a, b) ? -1 : 1));
}

/** Partitions the items from `low` to `high` so that those before `position` sort before those after it. */
function partition(
  items: Uint32Array,
  position: number,
  low: number,
  high: number,
  isBefore: (a: number, b: number) => boolean,
): void {
  while (low < position && position < high) {
    // A random pivot: no initial order of the items makes it slow.
    const pivot = items[low + Math.floor(Math.random() * (high - low))]!;
    let [left, right] = [low, high - 1];
    while (left <= right) {
      while (isBefore(items[left]!, pivot)) left++;
      while (isBefore(pivot, items[right]!)) right--;
      if (left > right) break;
      const item = items[left]!;
      items[left++] = items[right]!;
      items[right--] = item;
    }
    if (position <= right) high = right + 1;
    else if (position >= left) low = left;
    else return;
  }
}
