/**
 * What would stand from `start` to `end` if the items were in order, without putting the others in order: a page costs a
 * few passes, however far down it lies. The items are moved about.
 */
export function sliceInOrder(
  items: Uint32Array,
  start: number,
  end: number,
  isBefore: (a: number, b: number) => boolean,
): number[] {
  if (start >= items.length) return [];
  const last = Math.min(end, items.length);
  part(items, start, 0, items.length, isBefore);
  part(items, last, start, items.length, isBefore);
  return [...items.subarray(start, last)].sort((a, b) => (isBefore(a, b) ? -1 : 1));
}

/** Moves the items from `low` to `high` until those before `place` come before those after it. */
function part(
  items: Uint32Array,
  place: number,
  low: number,
  high: number,
  isBefore: (a: number, b: number) => boolean,
): void {
  while (low < place && place < high) {
    // Chosen by chance: no order that the items may have makes it slow.
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
    if (place <= right) high = right + 1;
    else if (place >= left) low = left;
    else return;
  }
}
