import { LRUCache } from "lru-cache";

/**
 * An LRU cache with a limit of entries. It limits the total size, with one unit per entry, because lru-cache preallocates
 * for a limit of entries: a hundred thousand of them would cost time and memory at every start.
 */
export function createLruCache<Key extends {}, Value extends {}>(entriesMax: number): LRUCache<Key, Value> {
  return new LRUCache({ maxSize: entriesMax, sizeCalculation: () => 1 });
}
