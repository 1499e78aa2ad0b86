import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";

/**
 * An LRU cache that keeps digests of its keys. A key may be as large as a request, and thousands of those would fill the
 * memory that a limit on entries is meant to bound.
 */
export class DigestCache<Value extends {}> {
  readonly #values: LRUCache<string, Value>;

  constructor(entriesMax: number) {
    this.#values = new LRUCache({ max: entriesMax });
  }

  get(key: string): Value | undefined {
    return this.#values.get(digestOf(key));
  }

  set(key: string, value: Value): void {
    this.#values.set(digestOf(key), value);
  }

  clear(): void {
    this.#values.clear();
  }
}

function digestOf(key: string): string {
  return hash("sha256", key, "base64");
}
