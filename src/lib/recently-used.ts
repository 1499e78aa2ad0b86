import { LRUCache } from "lru-cache";

/**
 * A table of so many entries at most, of which the one that was used longest ago goes first. It grows with what is in it:
 * told of entries instead of sizes, the cache would make room for all of them at once, and a hundred thousand that may
 * never come cost time and memory at every start.
 */
export function recentlyUsed<Key extends {}, Value extends {}>(entriesMax: number): LRUCache<Key, Value> {
  return new LRUCache({ maxSize: entriesMax, sizeCalculation: () => 1 });
}
