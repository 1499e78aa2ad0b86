/** Above this many the rest is sorted too: somebody is paging far down. */
const HEAP_MAX = 5000;

/** The first `count` of these in order: without sorting those that nobody asked for. */
export function firstOf(items: Uint32Array, count: number, isBefore: (a: number, b: number) => boolean): number[] {
  const order = (a: number, b: number) => (isBefore(a, b) ? -1 : isBefore(b, a) ? 1 : 0);
  if (count > HEAP_MAX || count >= items.length) return [...items].sort(order).slice(0, count);
  if (count === 0) return [];
  // The last of the first ones stands at the top, where the next candidate meets it.
  const heap = [...items.subarray(0, count)];
  const sink = (place: number): void => {
    for (;;) {
      let last = place;
      for (const child of [2 * place + 1, 2 * place + 2]) {
        if (child < count && isBefore(heap[last]!, heap[child]!)) last = child;
      }
      if (last === place) return;
      [heap[place], heap[last]] = [heap[last]!, heap[place]!];
      place = last;
    }
  };
  for (let place = (count >> 1) - 1; place >= 0; place--) sink(place);
  for (let i = count; i < items.length; i++) {
    if (!isBefore(items[i]!, heap[0]!)) continue;
    heap[0] = items[i]!;
    sink(0);
  }
  return heap.sort(order);
}
